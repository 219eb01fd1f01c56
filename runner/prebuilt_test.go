package runner_test

import (
	"testing"

	"writ"
	"writ/internal/testkit"
	"writ/lang"
	"writ/runner"
	"writ/sandbox"
)

// TestPrebuiltIsThereForTheCompiler: as links, in a folder that the compiler can add to;
// and a host without it compiles all the same.
func TestPrebuiltIsThereForTheCompiler(t *testing.T) {
	needBubblewrap(t)
	const program = `#!/bin/sh
echo "$WHAT"
`
	for name, tt := range map[string]struct{ prebuilt, want string }{
		"there":     {"/usr/lib", "linked\n"},
		"not there": {"/usr/lib/no-such-folder", "nothing\n"},
	} {
		row := lang.Language{
			Name: "shc", Kind: writ.RunInterpreter, Scope: "shell", File: "main.shc", Candidates: []string{"/bin/sh"}, Package: "dash",
			Prebuilt: tt.prebuilt, CacheVar: "SHC_CACHE", Prebuild: "true",
			Compile: []string{"-c", `what=nothing
if [ -L "$SHC_CACHE/os-release" ] && [ -r "$SHC_CACHE/os-release" ] && echo x >"$SHC_CACHE/more"; then what=linked; fi
sed "s/.WHAT/$what/" main.shc >` + lang.BinDir + `/main`},
			Vars: map[string]string{"SHC_CACHE": "/tmp/deep/cache"},
		}
		r := start(t, sandbox.Options{}, runner.Options{Interpreters: lang.Table{row}})
		var d testkit.Depot
		spec := testkit.Interpret("shc", program)
		limits := testkit.InterpreterLimits
		limits.Files = writ.MaxLimits.Files // links to a whole folder of the system
		spec.Compile = &limits
		res := testkit.MustInterpret(t, r, spec, &d)
		if res.Outcome != writ.Succeeded || res.Stdout.Text != tt.want {
			t.Errorf("%s: %s (%s), stdout %q, stderr %q", name, res.Outcome, res.Reason, res.Stdout.Text, res.Stderr.Text)
		}
	}
}
