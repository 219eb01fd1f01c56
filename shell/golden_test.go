package shell

import (
	"fmt"
	"strings"
)

// show is a reading on one line: the commands with " | " between them, each with its
// assignments, "~" when an argument is not known, its redirections, and in brackets why
// something in it cannot be known. A program with a folder is name=path.
func show(r Reading) string {
	var list []string
	for _, c := range r.Commands {
		parts := append([]string{}, c.Assigns...)
		switch c.Program {
		case "":
			parts = append(parts, "?")
		case c.Path:
			parts = append(parts, c.Path)
		default:
			parts = append(parts, c.Program+"="+c.Path)
		}
		for _, a := range c.Args {
			if strings.ContainsAny(a, " \n|") || a == "" {
				a = fmt.Sprintf("%q", a)
			}
			parts = append(parts, a)
		}
		if c.ArgsUnknown {
			parts = append(parts, "~")
		}
		for _, d := range c.Redirects {
			parts = append(parts, map[bool]string{true: ">", false: "<"}[d.Write]+d.Path)
		}
		if whys := c.Whys(); len(whys) > 0 {
			parts = append(parts, fmt.Sprint(whys))
		}
		list = append(list, strings.Join(parts, " "))
	}
	return strings.Join(list, " | ")
}

// inShell reads text as the shell of that name gets it after -c. It leaves that command
// out of what it shows, but for why something in the text as a whole is not known: that
// stands before the semicolon.
func inShell(shell, text string) string {
	r := Read([]string{shell, "-c", text})
	whys := strings.Trim(fmt.Sprint(r.Commands[0].Whys()), "[]")
	r.Commands = r.Commands[1:]
	return strings.TrimSpace(strings.TrimSpace(whys+" ; ") + " " + show(r))
}
