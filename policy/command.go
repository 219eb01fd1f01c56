package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"writ"
	"writ/shell"
)

// LineFacts are what policy may know of a command line as a whole. They are the same
// in every question about one line.
type LineFacts struct {
	Programs []string // names of all that it would run, as far as they are known
	Writes   []string // files that its shells write to by redirection
	TTY      bool
	Digest   writ.Digest // the fingerprint of its request
}

// CommandFacts are what policy may know of one of the commands that a line would run.
type CommandFacts struct {
	Program     string   // without its folder; empty when it is not known
	Path        string   // as written
	Args        []string // as far as they are known
	ArgsUnknown bool     // some are made only when it runs
	Opaque      []string // why it cannot be known what it runs: words of shell.Why
	Unreadable  bool     // a part of it was not read at all
}

// CommandFactsOf reads the command line of r: the facts of the line, and those of each
// command in it, for DecideCommand. The first is the line's own program with all of its
// arguments.
func CommandFactsOf(r writ.CommandRequest) (LineFacts, []CommandFacts) {
	reading := shell.Read(r.Command)
	line := LineFacts{Programs: reading.Programs(), Writes: reading.Writes(), TTY: r.TTY, Digest: r.Fingerprint()}
	commands := make([]CommandFacts, 0, len(reading.Commands))
	for _, c := range reading.Commands {
		f := CommandFacts{Program: c.Program, Path: c.Path, Args: c.Args, ArgsUnknown: c.ArgsUnknown}
		for _, why := range c.Whys() {
			f.Opaque = append(f.Opaque, string(why))
			f.Unreadable = f.Unreadable || why.Unreadable()
		}
		commands = append(commands, f)
	}
	return line, commands
}

const maxReasons = 10 // of the commands of one line

// DecideCommand answers r, whose action is writ.ActionExec, for a line with those
// commands: Decide is asked about each of them in the place of r.Command, and the
// strictest answer is that of the line. Rules, Reason and Need are joined of all the
// answers that have this effect: Rules each once, Need as the strictest union. A line
// without commands is denied.
func (s *Set) DecideCommand(r Request, commands []CommandFacts) writ.Decision {
	answers := make([]writ.Decision, 0, len(commands))
	for _, c := range commands {
		r.Command = c
		answers = append(answers, s.Decide(r))
	}
	switch len(answers) {
	case 0:
		return writ.Decision{Effect: writ.Deny, Reason: "there is no command", Policy: s.version}
	case 1:
		return answers[0]
	}
	d := writ.Decision{Effect: strictestOf(answers), Policy: s.version}
	var reasons []string
	for i, a := range answers {
		if a.Effect != d.Effect {
			continue
		}
		d.Rules = append(d.Rules, a.Rules...)
		d.Need = joinNeeds(d.Need, a.Need)
		why := a.Reason
		if d.Effect != writ.Allow && !opens(why) {
			why = nameOf(commands[i]) + ": " + why
		}
		if !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	slices.SortFunc(d.Rules, func(a, b writ.Rule) int { return cmp.Or(comparePlaces(a, b), strings.Compare(a.ID, b.ID)) })
	d.Rules = slices.Compact(d.Rules)
	if more := len(reasons) - maxReasons; more > 0 {
		reasons = append(reasons[:maxReasons], fmt.Sprintf("and %d more", more))
	}
	d.Reason = strings.Join(reasons, "; ")
	return d
}

func strictestOf(answers []writ.Decision) writ.Effect {
	effects := []writ.Effect{writ.Deny, writ.Hold, writ.Allow}
	return effects[slices.IndexFunc(effects, func(e writ.Effect) bool {
		return e == writ.Allow || slices.ContainsFunc(answers, func(d writ.Decision) bool { return d.Effect == e })
	})]
}

// joinNeeds is what satisfies both a and b. Either may be nil.
func joinNeeds(a, b *writ.Need) *writ.Need {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	roles := slices.Concat(a.Roles, b.Roles)
	slices.Sort(roles)
	return &writ.Need{Grants: max(a.Grants, b.Grants), Reason: a.Reason || b.Reason, Roles: slices.Compact(roles)}
}

// nameOf is the program of c for a message. It is an agent's text.
func nameOf(c CommandFacts) string {
	switch {
	case c.Program == "":
		return "a program whose name is not known"
	case len(c.Program) > 64:
		return fmt.Sprintf("%q...", c.Program[:64])
	case strings.ContainsFunc(c.Program, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Sprintf("%q", c.Program)
	}
	return c.Program
}

const cannotKnow = "it cannot be known what "

func opens(reason string) bool { return strings.HasPrefix(reason, cannotKnow) }

// holdUnknown is the answer about a command that permits allow although it cannot be
// known what it runs; nil when one of them speaks of that.
func holdUnknown(c CommandFacts, permits []*rule) *writ.Decision {
	said := slices.ContainsFunc(permits, func(r *rule) bool { return r.opaque })
	switch {
	case len(c.Opaque) == 0 && !c.Unreadable, said && !c.Unreadable:
		return nil
	}
	why := cannotKnow + nameOf(c) + " runs (" + strings.Join(c.Opaque, ", ") + "): a person must look"
	if !c.Unreadable {
		why += ", or a rule must name context.opaque"
	}
	return &writ.Decision{Effect: writ.Hold, Reason: why, Need: &writ.Need{Grants: 1}}
}

// speaksOfOpaque reports whether p asks whether it can be known what a command runs.
func speaksOfOpaque(p *ast.Policy) bool {
	found := false
	for _, c := range p.Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			if a, ok := n.(ast.NodeTypeAccess); ok {
				v, ok := a.Arg.(ast.NodeTypeVariable)
				found = found || ok && v.Name == "context" && slices.Contains([]types.String{"opaque", "opaque_why"}, a.Value)
			}
			return true
		})
	}
	return found
}
