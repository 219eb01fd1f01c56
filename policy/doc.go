// Package policy decides: may this identity have this run, must a person look at
// it first, or may it not. A [Set] is what an operator wrote, in Cedar, checked and
// made ready; Decide is a pure function of a set and a request.
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
// strictly against schema.cedarschema, which lists every entity type, action and
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
// # Examples
//
// Files named *.test.yaml (or .yml, .json) beside the rules hold a list of requests
// with the answer that is wanted; see [Set.Check].
//
// # Limits
//
// Policy sees facts about a run and not its code: what a program will do is not to
// be read from its text, and a rule that looks for words in a shell script is dodged
// by the next spelling. What is enforced is the sandbox; policy decides who gets one
// and with what.
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
