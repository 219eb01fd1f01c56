package runner_test

import (
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
	"writ/lang"
	"writ/runner"
	"writ/sandbox"
)

// bomb is a C program of ten million million numbers.
func bomb() string {
	var b strings.Builder
	b.WriteString("#define Na 0,\n")
	for c := 'b'; c <= 'n'; c++ {
		b.WriteString("#define N" + string(c) + strings.Repeat(" N"+string(c-1), 10) + "\n")
	}
	return b.String() + "int x[] = { Nn };\nint main() {}\n"
}

// TestEX_CompileStepHasItsOwnLimits: what a compiler does with hostile code ends as what a
// program does, and nothing is run then.
func TestEX_CompileStepHasItsOwnLimits(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{})
	testkit.NeedInterpreter(t, r, "c")
	huge := "#include <stdio.h>\nchar x[64 << 20] = {1};\nint main() { puts(\"ran\"); }\n"
	for _, tt := range []struct {
		name, code string
		limit      func(*writ.Limits)
		want       []writ.Outcome
	}{
		{"time", bomb(), func(l *writ.Limits) { l.WallMS = 500 }, []writ.Outcome{writ.TimedOut}},
		// Where nothing counts the memory of all processes together the compiler is told that there is no more.
		{"memory", bomb(), func(l *writ.Limits) { l.MemoryBytes = 64 << 20 }, []writ.Outcome{writ.OutOfMemory, writ.Failed}},
		{"room", huge, func(*writ.Limits) {}, []writ.Outcome{writ.Failed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d testkit.Depot
			spec := testkit.Interpret("c", tt.code)
			tt.limit(spec.Compile)
			res := testkit.MustInterpret(t, r, spec, &d)
			ok := false
			for _, o := range tt.want {
				ok = ok || res.Outcome == o
			}
			if !ok || !res.Compiled || !res.Started || res.Stdout.Text != "" || len(res.Files) != 0 {
				t.Errorf("it ended %s (%s), compiled %v\nstdout %q\nstderr %s", res.Outcome, res.Reason, res.Compiled, res.Stdout.Text, res.Stderr.Text)
			}
		})
	}
}

func TestCompilerThatMakesNoProgram(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{})
	for l, code := range map[writ.Language]string{"rust": "#![crate_type = \"rlib\"]\npub fn f() {}\n", "go": "package library\n"} {
		t.Run(string(l), func(t *testing.T) {
			testkit.NeedInterpreter(t, r, l)
			var d testkit.Depot
			spec := testkit.Interpret(l, code, d.Put("in.txt", nil))
			spec.Compile.WallMS, spec.Compile.CPUMS = 600_000, 600_000 // a machine may be busy
			res := testkit.MustInterpret(t, r, spec, &d)
			if res.Outcome != writ.Failed || !res.Compiled || res.ExitCode == nil || *res.ExitCode == 0 || res.Reason == "" {
				t.Errorf("result %+v", res)
			}
			if got := testkit.FilesOf(res); got != "same in.txt" {
				t.Errorf("files %s", got)
			}
		})
	}
}

// TestCompilerThatIsContentWithNothing: that is no success.
func TestCompilerThatIsContentWithNothing(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{Interpreters: lang.Table{{
		Name: "shc", Kind: writ.RunInterpreter, Scope: "shell", File: "main.shc", Candidates: []string{"/bin/sh"}, Package: "dash",
		Compile: []string{"-c", "echo fine >&2"},
	}}})
	var d testkit.Depot
	res := testkit.MustInterpret(t, r, testkit.Interpret("shc", "x"), &d)
	if res.Outcome != writ.Failed || !res.Compiled || res.ExitCode == nil || *res.ExitCode != 126 || res.Stderr.Text != "fine\nthe compiler made no program\n" {
		t.Errorf("result %+v", res)
	}
}
