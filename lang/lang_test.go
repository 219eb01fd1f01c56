package lang

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
)

func TestLookup(t *testing.T) {
	for _, tt := range []struct{ in, want, scope writ.Language }{
		{"python", "python", "python"}, {"py", "python", "python"}, {"python3", "python", "python"},
		{"bash", "bash", "shell"}, {"sh", "sh", "shell"},
		{"node", "node", "node"}, {"js", "node", "node"}, {"javascript", "node", "node"}, {"nodejs", "node", "node"},
	} {
		l, err := Lookup(tt.in)
		if err != nil || l.Name != tt.want || l.Scope != writ.Scope(tt.scope) {
			t.Errorf("Lookup(%q) = %q with scope %q, %v; want %q with %q", tt.in, l.Name, l.Scope, err, tt.want, tt.scope)
		}
	}
}

func TestScenario20_UnknownLanguageIsRefused(t *testing.T) {
	long := writ.Language(strings.Repeat("\u00e9", 1<<20))
	for _, name := range []writ.Language{
		"", "Python", "Python ", " python", "python\n", "python\x00", "PY", "cobol", "../python", "main.py", "\xff", long,
	} {
		l, err := Lookup(name)
		if writ.KindOf(err) != writ.Invalid {
			t.Errorf("Lookup(%.20q) = %v, %v; want an error of kind invalid", name, l.Name, err)
			continue
		}
		msg := writ.Message(err)
		for _, l := range All() {
			if !strings.Contains(msg, string(l.Name)) {
				t.Errorf("Lookup(%.20q) says %q, which does not list %s", name, msg, l.Name)
			}
		}
		if len(msg) > 1024 {
			t.Errorf("Lookup(%.20q) answers with %d bytes", name, len(msg))
		}
	}
}

func TestTableIsSound(t *testing.T) {
	seen := map[writ.Language]bool{}
	for _, l := range All() {
		for _, n := range append([]writ.Language{l.Name}, l.Aliases...) {
			if seen[n] {
				t.Errorf("%q stands for two languages", n)
			}
			seen[n] = true
		}
		if l.Scope == "" || l.Package == "" || l.File != path.Base(l.File) || len(l.Candidates) == 0 {
			t.Errorf("%s: incomplete row %+v", l.Name, l)
		}
		for _, c := range l.Candidates {
			if !path.IsAbs(c) || path.Clean(c) != c {
				t.Errorf("%s: candidate %q is not a clean absolute path", l.Name, c)
			}
		}
	}
}

func TestAllIsACopy(t *testing.T) {
	All()[0].Vars["PYTHONPATH"] = "/elsewhere"
	All()[0].Aliases[0] = "sh"
	if l, err := Lookup("py"); err != nil || l.Vars["PYTHONPATH"] != Workspace {
		t.Errorf("a caller changed the table: %+v, %v", l, err)
	}
}

func TestAFifthLanguageIsOneRow(t *testing.T) {
	table := append(All(), Language{
		Name: "perl", Aliases: []writ.Language{"pl"}, Scope: "perl", File: "main.pl",
		Candidates: []string{"/usr/bin/perl"}, Package: "perl-base",
		Flags: []string{"-w"}, Vars: map[string]string{"PERL5LIB": Workspace},
	})
	l, err := table.Lookup("pl")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/usr/bin/perl", "-w", "/run/writ/main.pl", "a", "-b", ""}
	if diff := cmp.Diff(want, l.Argv(l.Candidates[0], path.Join(CodeDir, l.File), []string{"a", "-b", ""})); diff != "" {
		t.Errorf("Argv (-want +got):\n%s", diff)
	}
	if env := l.Env(nil); !slices.Contains(env, "PERL5LIB=/workspace") || !slices.Contains(env, "HOME=/home/agent") {
		t.Errorf("Env = %q", env)
	}
	if _, err := table.Lookup("cobol"); err == nil || !strings.Contains(err.Error(), "perl (or pl)") {
		t.Errorf("Lookup(cobol) = %v, want it to list perl", err)
	}
}

func TestArgvDoesNotShareItsArguments(t *testing.T) {
	args := make([]string, 1, 8)
	l, _ := Lookup("bash")
	argv := l.Argv("/usr/bin/bash", "/run/writ/main.sh", args)
	argv[len(argv)-1] = "changed"
	if args[0] != "" {
		t.Error("Argv handed out the caller's slice")
	}
}

// TestEX20_CachesAreWritable: what a tool writes beside its work must land in a
// private place, and never in the workspace, where results are looked for.
func TestEX20_CachesAreWritable(t *testing.T) {
	for _, l := range All() {
		for _, kv := range l.Env(nil) {
			k, v, _ := strings.Cut(kv, "=")
			switch {
			case k == "PATH" || k == "SHELL" || k == "PYTHONPATH" || k == "NODE_PATH" || !path.IsAbs(v):
			case v == Home || v == tmp || strings.HasPrefix(v, Home+"/") || strings.HasPrefix(v, tmp+"/"):
			default:
				t.Errorf("%s: %s is not beneath %s or %s", l.Name, kv, Home, tmp)
			}
		}
	}
}

func TestEnvOrderAndPrecedence(t *testing.T) {
	l, _ := Lookup("python")
	env := l.Env(map[string]string{"PYTHONPATH": "/workspace/lib", "A": "1=2", "LANG": "de_DE.UTF-8"})
	if !slices.IsSorted(env) {
		t.Errorf("Env is not sorted: %q", env)
	}
	for _, want := range []string{"PYTHONPATH=/workspace/lib", "A=1=2", "LANG=de_DE.UTF-8", "PYTHONUTF8=1"} {
		if !slices.Contains(env, want) {
			t.Errorf("Env lacks %q: %q", want, env)
		}
	}
}

// TestEX28_EnvHasNothingOfTheServer: the environment is made from nothing.
func TestEX28_EnvHasNothingOfTheServer(t *testing.T) {
	t.Setenv("WRIT_TEST_SECRET", "S3CR")
	t.Setenv("PATH", "/S3CR")
	t.Setenv("HOME", "/S3CR")
	for _, l := range All() {
		if env := strings.Join(l.Env(nil), "\n"); strings.Contains(env, "S3CR") {
			t.Errorf("%s: the server's environment reached the run:\n%s", l.Name, env)
		}
	}
}
