package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinesAreReadAsTheirTableSays(t *testing.T) {
	for _, tt := range lines {
		t.Run(tt.subject, func(t *testing.T) {
			if got := inShell("bash", tt.text); got != tt.want {
				t.Errorf("%q\n got %s\nwant %s", tt.text, got, tt.want)
			}
		})
	}
}

func TestReadIsOfTheArgvAndNotOfText(t *testing.T) {
	for _, tt := range []struct {
		argv []string
		want string
	}{
		{[]string{"rm", "-r", "$x", "*", "a && b"}, `rm -r $x * "a && b"`},
		{[]string{"/usr/bin/sudo", "rm"}, "sudo=/usr/bin/sudo rm | rm"},
		{[]string{"$(rm)", "x"}, "$(rm) x"},
		{[]string{"eval", "rm x"}, `eval "rm x"`}, // a program of that name, since no shell is there
		{[]string{"env", "sh", "-c", "rm x; a"}, `env sh -c "rm x; a" | sh -c "rm x; a" | rm x | a`},
		{[]string{"find", ".", "-exec", "rm", "{}", ";"}, "find . -exec rm {} ; | rm {} ~"},
		{[]string{"find", "-exec", "eval", "rm x", ";", "-exec", "bash", "-c", "eval 'rm x'", ";"},
			`find -exec eval "rm x" ; -exec bash -c "eval 'rm x'" ; | eval "rm x" | bash -c "eval 'rm x'" | eval "rm x" | rm x`},
		{[]string{"bash", "-c", ""}, `bash -c ""`},
		{[]string{"bash", "-c"}, "bash -c"},
		{[]string{"PATH=.", "ls"}, "PATH=. ls"},
		{[]string{"/"}, "? [computed]"},
		{[]string{""}, "? [unparsable]"},
		{nil, "? [unparsable]"},
	} {
		if got := show(Read(tt.argv)); got != tt.want {
			t.Errorf("%q\n got %s\nwant %s", tt.argv, got, tt.want)
		}
	}
}

// PA-03: each spelling of one command that a rule on rm must hear of.
func TestPA03_EverySpellingNamesTheProgram(t *testing.T) {
	for _, text := range []string{
		"X=1 rm -r d", "(rm -r d)", "{ rm -r d; }", "command rm -r d", `\rm -r d`, `bash -c "rm -r d"`,
		"find d -exec rm {} +", "xargs rm < l", "/bin/rm -r d",
	} {
		r := Read([]string{"bash", "-c", text})
		if !slices.Contains(r.Programs(), "rm") {
			t.Errorf("%s: the programs are %q", text, r.Programs())
		}
		if whys := r.Whys(); len(whys) > 0 {
			t.Errorf("%s: not known for %v", text, whys)
		}
	}
}

// POL-02: there is no number of commands behind which one is not seen.
func TestPOL02_ManyCommandsHideNone(t *testing.T) {
	for _, joint := range []string{"\n", "; ", " && ", " | ", " & "} {
		text := "true a0"
		for i := range 200 {
			text += joint + "true a" + strings.Repeat("a", i)
		}
		r := Read([]string{"bash", "-c", text + joint + "sudo ls"})
		if !slices.Contains(r.Programs(), "sudo") || len(r.Commands) != 204 || len(r.Whys()) > 0 {
			t.Errorf("%q: %d commands, programs %q, not known for %v", joint, len(r.Commands), r.Programs(), r.Whys())
		}
	}
}

func TestWhatIsTooLargeIsSaidToBe(t *testing.T) {
	many := func(s string, n int) []string { return []string{"bash", "-c", strings.Repeat(s, n)} }
	different := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("a" + strings.Repeat("b", i%60) + strings.Repeat("c", i/60) + ";")
		}
		return b.String()
	}
	deep := []string{"rm", "x"}
	for range MaxDepth + 1 {
		deep = append([]string{"nice"}, deep...)
	}
	nested := "rm x"
	for range MaxDepth + 1 {
		nested = "eval " + strings.ReplaceAll(strings.ReplaceAll(nested, `\`, `\\`), " ", `\ `)
		if len(nested) > 32<<10 {
			break
		}
	}
	for name, argv := range map[string][]string{
		"commands": {"bash", "-c", different(MaxCommands + 10)},
		"brackets": many("(", maxOpeners+1),
		"bytes":    many("a b; ", MaxTextBytes/5+1),
		"wrappers": deep,
		"texts":    {"bash", "-c", strings.Repeat("a ", MaxTextBytes/3), "x"},
	} {
		r := Read(argv)
		if name == "texts" {
			if r.Unreadable() {
				t.Errorf("%s: one text below the bound is %v", name, r.Whys())
			}
			continue
		}
		if !slices.Contains(r.Whys(), TooLarge) || !r.Unreadable() || len(r.Commands) > MaxCommands {
			t.Errorf("%s: %d commands, not known for %v", name, len(r.Commands), r.Whys())
		}
	}
	if r := Read([]string{"bash", "-c", nested}); !slices.Contains(r.Programs(), "rm") && !r.Unreadable() {
		t.Errorf("eval in eval: programs %q, not known for %v", r.Programs(), r.Whys())
	}
}

func TestSetsOfAReading(t *testing.T) {
	r := Read([]string{"bash", "-c", "{ b > x/../.env; a 2> /dev/null < in; b >> out; } > all; eval $z; python3 -c 1; ("})
	for _, tt := range []struct {
		what      string
		got, want any
	}{
		{"programs", r.Programs(), []string{"a", "b", "bash", "eval", "python3"}},
		{"writes", r.Writes(), []string{".env", "all", "out"}},
		{"whys", r.Whys(), []Why{Code, Computed, Unparsable}},
		{"unreadable", r.Unreadable(), true},
		{"of a command", r.Commands[slices.IndexFunc(r.Commands, func(c Command) bool { return c.Program == "python3" })].Unknown,
			[]Unknown{{Code, "python3 -c 1"}}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s differ (-want +got):\n%s", tt.what, diff)
		}
	}
	if r := Read([]string{"ls"}); r.Unreadable() || len(r.Whys()) > 0 || len(r.Writes()) > 0 {
		t.Errorf("ls is read as %+v", r)
	}
}

func TestDialects(t *testing.T) {
	for _, tt := range []struct{ shell, text, want string }{
		{"sh", "a && b", "; a | b"},
		{"sh", "[[ a && b ]]", "; [[ a | b ]]"}, // what dash runs; in bash nothing
		{"sh", "a &> f", "unparsable ; a >f"},   // dash: a in the background, and f is made
		{"sh", "cat <(rm x)", `unparsable ; cat "<(rm x)" ~ | rm x`},
		{"dash", "f() { rm x; }; f", "; rm x | f"},
		{"zsh", "a && b", "; a | b"},
		{"zsh", "=rm x", "; ? x [computed]"},
		{"zsh", "repeat 3 rm x", "; repeat 3 rm x | rm x"},
		{"zsh", "noglob rm x", "; noglob rm x | rm x"},
		{"zsh", "echo ${(e)x}", "computed unparsable ; echo ${(e)x} ~"},
		{"ksh", "a |& b", "; a | b"},
		{"busybox", "rm x", "indirect ; rm x"},
	} {
		if got := inShell(tt.shell, tt.text); got != tt.want {
			t.Errorf("%s -c %q\n got %s\nwant %s", tt.shell, tt.text, got, tt.want)
		}
	}
}
