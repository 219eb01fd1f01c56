package shell

import (
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// FuzzRead: whatever the text and whatever carries it, reading ends within its bounds,
// and a program that stands plainly as the first word of a simple command is in it, or
// the reading says that there is something that it does not know.
func FuzzRead(f *testing.F) {
	for _, l := range lines {
		f.Add(l.text, "bash")
	}
	for _, text := range slices.Concat(Ways, BashWays) {
		f.Add(text, "sh")
		f.Add(text, "env")
	}
	f.Add("for x in a b; do sudo; done", "zsh")
	f.Fuzz(func(t *testing.T, text, program string) {
		for _, argv := range [][]string{{program, "-c", text}, {program, text}, append([]string{program}, strings.Fields(text)...), {"xargs", "-I" + program, "bash", "-c", text}} {
			r := Read(argv)
			if len(r.Commands) == 0 || len(r.Commands) > MaxCommands {
				t.Fatalf("%q is read as %d commands", argv, len(r.Commands))
			}
			for _, c := range r.Commands {
				if c.Program == "" && len(c.Unknown) == 0 || strings.Contains(c.Program, "/") {
					t.Fatalf("%q has the program %q, not known for %v", argv, c.Program, c.Unknown)
				}
				for _, u := range c.Unknown {
					if !slices.Contains(Whys, u.Why) || len(u.Text) > maxExcerpt {
						t.Fatalf("%q is not known for %+v", argv, u)
					}
				}
			}
		}
		r := Read([]string{"bash", "-c", "--", text})
		for _, name := range plainPrograms(text) {
			if !slices.Contains(r.Programs(), name) && len(r.Whys()) == 0 {
				t.Fatalf("%q runs %q, and is read as %s", text, name, show(r))
			}
		}
	})
}

// plainPrograms are the first words of the simple commands of text that need no
// unquoting, as the parser alone has them.
func plainPrograms(text string) (names []string) {
	if openers(text) > maxOpeners || len(text) > MaxTextBytes {
		return nil
	}
	file, err := parse(text, syntax.LangBash)
	if err != nil {
		return nil
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			if name := c.Args[0].Lit(); name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == "" {
				names = append(names, name)
			}
		}
		return true
	})
	return names
}
