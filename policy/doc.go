// Package policy decides: may this identity have this run, this change or this command,
// must a person look at it first, or may it not. A [Set] is what an operator wrote, in
// Cedar, checked and made ready; Decide is a pure function of a set and a request.
//
// # Promises
//
//   - Deny beats hold, hold beats allow, and no rule means deny. A rule that cannot
//     be evaluated denies, whatever the others say: Cedar itself skips a policy that
//     errs, so that a forbid could vanish.
//   - A set that compiles has no rule that was dropped on the way and none that
//     speaks of something that does not exist. Every fault is reported at once, with
//     file, line and column.
//   - The order of files and rules means nothing.
//   - A decision names the rules that made it and the version of the set.
//
// # The language
//
// Rules are Cedar policies (https://docs.cedarpolicy.com) without templates, checked
// strictly against schema.cedarschema ([Schema]), which lists every entity type, action and
// attribute. Every attribute is always there. These annotations mean something, and
// any other is a fault:
//
//	@id("name")               the rule's name in decisions and records, unique; else it is file:line
//	@hold("why")              on permit: a person must grant the run first, for this reason
//	@grants("2")              with hold: that many different approvers, 1 to 16; 1 when not given
//	@require_reason("true")   with hold: a grant must say why
//	@approvers("lead,sec")    with hold: an approver must have every one of these roles
//	@reason("why")            on forbid: told to the caller
//
// When several holds match, the strictest of each is needed.
//
// # Commands
//
// The action exec is about a command line, which package shell reads: through bash -c,
// env, sudo, xargs and the like, down to the simple commands in it. [Set.DecideCommand]
// asks about each of them, the line's own program first, and the strictest answer is
// that of the line: deny beats hold, hold beats allow. So a rule on sudo hears of
// /usr/bin/sudo, of env sudo and of bash -c "ls; sudo ls", and where a rule allows git
// alone, git log && curl x is denied for curl. A wrapper is a command too: a policy that
// allows by name has to allow bash for bash -c "git log".
//
// In each question program, program_path, first_arg, args, arg_count, args_known, opaque
// and opaque_why are those of the one command; programs, redirect_writes, tty and
// command_digest are those of the line. Arguments of a computed value stand as their source
// text, and args_known is false: a rule that looks for an argument must look at it too.
//
// Of an opaque command it cannot be known what it runs: python3 -c, make, sh x.sh, $x,
// LD_PRELOAD=x ls. A permit that does not name context.opaque or context.opaque_why does
// not speak of such: when permits alone match, and none of them names one of the two, the
// command is held for one grant, without a rule. Where a permit names opaque_why, it
// should name all that it means:
//
//	["code", "file"].containsAll(context.opaque_why)
//
// A command with a part that could not be read (opaque_why has unparsable or too-large)
// is held so whatever the permits name. A forbid, and the lack of any permit, deny opaque
// and unreadable commands as all others.
//
// The action input is about bytes for a process that runs. It knows the program and not
// what the bytes mean to it.
//
// # Examples
//
// Files named *.test.yaml (or .yml, .json) beside the rules hold a list of requests
// with the answer that is wanted, for runs, commands and input; see [Set.Check].
//
// # Limits
//
// Policy sees facts about a run and not its code: what a program will do is not to
// be read from its text, and a rule that looks for words in a shell script is dodged
// by the next spelling. Of a command it sees which programs the line names, and not what
// is behind a name: a copy of sudo under another name is another program. What is
// enforced is the sandbox; policy decides who gets one and with what.
//
// # What it refuses to know
//
// Where files come from, which languages there are, what an approval is, what time
// it is. Whether the identity holds the scope is checked by the caller before policy
// is asked (spec/01 §2 rule 5).
//
// Policy files are the operator's, and still bounded: a mistake must be a message
// and not a crash. Requests are hostile: their names and arguments are an agent's.
package policy
