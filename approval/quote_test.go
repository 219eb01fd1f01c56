package approval_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/approval"
	"writ/shell"
)

func TestShellLine(t *testing.T) {
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{[]string{"go", "test", "-run=X", "./..."}, "go test -run=X ./..."},
		{[]string{"echo", "", "a b", "it's", "$HOME", "*", "~", "#x"}, `echo '' 'a b' 'it'\''s' '$HOME' '*' '~' '#x'`},
		{[]string{"A=1", "A=1", "=ls"}, `'A=1' A=1 '=ls'`},
		{[]string{"if", "if"}, `'if' if`},
		{[]string{"Übung\n"}, "'Übung\n'"},
		{nil, ""},
	} {
		if got := approval.ShellLine(tt.argv); got != tt.want {
			t.Errorf("ShellLine(%q) = %s, want %s", tt.argv, got, tt.want)
		}
	}
}

// A shell reads the line back as the argv.
func FuzzShellLine(f *testing.F) {
	f.Add("echo", "it's", "a\nb")
	f.Add("for", "$(x)", "`y`")
	f.Add("A=b", "\\", "'")
	f.Add("[[", "!", "{a,b}")
	f.Fuzz(func(t *testing.T, program, first, second string) {
		argv := []string{program, first, second}
		if program == "" || strings.HasSuffix(program, "/") {
			return // names no program
		}
		for _, s := range argv {
			for _, c := range s {
				if c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c == '\ufffd' {
					return // which package shell refuses to read
				}
			}
		}
		line := approval.ShellLine(argv)
		list := shell.Read([]string{"bash", "-c", "--", line}).Commands
		for _, c := range list[1:] {
			if c.Path == program && slices.Equal(c.Args, argv[1:]) && len(c.Assigns) == 0 && !c.ArgsUnknown {
				return
			}
		}
		t.Errorf("%q is read back as %s", line, cmp.Diff(argv, list))
	})
}
