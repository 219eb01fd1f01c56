package testkit

import (
	"strings"
	"testing"

	"writ"
	"writ/lang"
	"writ/runner"
)

func (s suite) hello(t *testing.T) {
	r := s.start(t, runner.Options{Warm: 1})
	for l, code := range map[writ.Language]string{
		"python": "print('hello')", "py": "print('hello')", "bash": "[[ hello == h* ]] && echo hello",
		"sh": "echo hello", "node": "console.log('hello')", "javascript": "console.log('hello')",
	} {
		t.Run(string(l), func(t *testing.T) {
			row, err := lang.Lookup(l)
			if err != nil {
				t.Fatal(err)
			}
			NeedLanguage(t, r, row.Name)
			wantOutput(t, r, Spec(l, code), "hello\n")
		})
	}
}

func (s suite) fifthLanguage(t *testing.T) {
	r := s.start(t, runner.Options{Languages: append(lang.All(), lang.Language{
		Name: "perl", Scope: "perl", File: "main.pl", Candidates: []string{"/usr/bin/perl"}, Package: "perl-base", Flags: []string{"-w"},
	})})
	NeedLanguage(t, r, "perl")
	wantOutput(t, r, Spec("perl", `print "$0 @ARGV\n"`, "a"), "/run/writ/main.pl a\n")
}

func (s suite) exitCode(t *testing.T) {
	res := MustRun(t, s.start(t, runner.Options{}), Spec("sh", "echo out; echo err >&2; exit 3"))
	if res.Outcome != writ.Failed || !res.Started || res.ExitCode == nil || *res.ExitCode != 3 || res.Signal != "" {
		t.Errorf("result %+v, want failed with exit code 3", res)
	}
	if res.Stdout.Text != "out\n" || res.Stderr.Text != "err\n" {
		t.Errorf("stdout %q, stderr %q", res.Stdout.Text, res.Stderr.Text)
	}
	if res.Sandbox.Provider == "" || len(res.Sandbox.Active) == 0 {
		t.Errorf("the result does not say what enforced it: %+v", res.Sandbox)
	}
}

func (s suite) signalDeath(t *testing.T) {
	res := MustRun(t, s.start(t, runner.Options{}), Spec("sh", "kill -9 $$"))
	if res.Outcome != writ.Failed || res.ExitCode != nil || res.Signal != "SIGKILL" {
		t.Errorf("result %+v, want failed by SIGKILL", res)
	}
}

func (s suite) stdin(t *testing.T) {
	r := s.start(t, runner.Options{})
	wantOutput(t, r, Spec("sh", "cat; echo end"), "end\n")
	spec := Spec("sh", "cat; echo end")
	spec.Stdin = "one\n\x00two <&> \u2192\n"
	wantOutput(t, r, spec, spec.Stdin+"end\n")
	spec = Spec("sh", "wc -c")
	spec.Stdin = strings.Repeat("x", writ.MaxStdinBytes)
	wantOutput(t, r, spec, "10485760\n")
}

func (s suite) arguments(t *testing.T) {
	args := []string{"", " ", "-n", "a b", "$HOME", "`id`", "\u2192", "line\nbreak", "*", `"'\`}
	wantOutput(t, s.start(t, runner.Options{}), Spec("bash", `printf '<%s>' "$@"`, args...), "<"+strings.Join(args, "><")+">")
}

func (s suite) inputs(t *testing.T) {
	r := s.start(t, runner.Options{})
	spec := Spec("sh", `pwd; cat data/deep/f; wc -c < zeros; ./tool; test -x data/deep/f || echo plain; echo more >> data/deep/f && echo written`)
	spec.Inputs = []writ.Input{
		{Path: "data/deep/f", Content: []byte("content\n")},
		{Path: "zeros", Content: make([]byte, 1<<20)},
		{Path: "tool", Content: []byte("#!/bin/sh\necho tool\n"), Exec: true},
		{Path: "empty"},
	}
	wantOutput(t, r, spec, "/workspace\ncontent\n1048576\ntool\nplain\nwritten\n")

	t.Run("python imports", func(t *testing.T) {
		NeedLanguage(t, r, "python")
		spec := Spec("python", "import helper; print(helper.x)")
		spec.Inputs = []writ.Input{{Path: "helper.py", Content: []byte("x = 7\n")}}
		wantOutput(t, r, spec, "7\n")
	})
	t.Run("node requires", func(t *testing.T) {
		NeedLanguage(t, r, "node")
		spec := Spec("node", "console.log(require('helper').x)")
		spec.Inputs = []writ.Input{{Path: "helper.js", Content: []byte("exports.x = 7\n")}}
		wantOutput(t, r, spec, "7\n")
	})
}

func (s suite) writableHome(t *testing.T) {
	wantOutput(t, s.start(t, runner.Options{}), Spec("bash", `
set -e
touch ~/x
for d in "$HOME" "$TMPDIR" "$MPLCONFIGDIR" "$XDG_CACHE_HOME" "$XDG_CONFIG_HOME" "$XDG_DATA_HOME" "$GOCACHE" "$GOPATH" "$npm_config_cache"; do
	mkdir -p "$d" && echo x > "$d/probe"
done
cp /bin/true "$TMPDIR/t" && "$TMPDIR/t" && echo ok # EX-21
ls -A /workspace
`), "ok\n")
}

func (s suite) locale(t *testing.T) {
	r := s.start(t, runner.Options{})
	wantOutput(t, r, Spec("bash", `printf '\u00e9\n'; printf 'b\n\u00fc\n' | sort`), "\u00e9\nb\n\u00fc\n")
	t.Run("python", func(t *testing.T) {
		NeedLanguage(t, r, "python")
		wantOutput(t, r, Spec("python", `print("\u2192 \u00fc \u6f22")`), "\u2192 \u00fc \u6f22\n")
	})
	t.Run("node", func(t *testing.T) {
		NeedLanguage(t, r, "node")
		wantOutput(t, r, Spec("node", `console.log("\u2192 \u00fc \u6f22")`), "\u2192 \u00fc \u6f22\n")
	})
}

func (s suite) user(t *testing.T) {
	r := s.start(t, runner.Options{})
	wantOutput(t, r, Spec("sh", "whoami; id -un; id -gn; cd ~ && pwd"), "agent\nagent\nagent\n/home/agent\n")
	t.Run("python", func(t *testing.T) {
		NeedLanguage(t, r, "python")
		wantOutput(t, r, Spec("python", "import getpass,os;print(getpass.getuser(),os.path.expanduser('~'))"), "agent /home/agent\n")
		wantOutput(t, r, Spec("bash", `env -u HOME python3 -c "import site"`), "")
	})
}

func (s suite) noSecrets(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "S3CR")
	res := MustRun(t, s.start(t, runner.Options{Warm: 1}), Spec("sh", `env; cat /proc/*/environ 2>/dev/null | tr '\0' '\n'; echo end`))
	if res.Outcome != writ.Succeeded || strings.Contains(res.Stdout.Text, "S3CR") || !strings.HasSuffix(res.Stdout.Text, "end\n") {
		t.Errorf("result %+v", res)
	}
}

func (s suite) freshBox(t *testing.T) {
	r := s.start(t, runner.Options{Slots: 1, Warm: 2})
	for range 4 {
		wantOutput(t, r, Spec("bash", `
ls -A /workspace /tmp ~ /dev/shm | grep trace
for d in /workspace /tmp ~ /dev/shm; do echo x > $d/trace || exit 1; done
(setsid sleep 600 &) # is not there for the next one either
ls -d /proc/[0-9]* | wc -l | { read n; test $n -lt 10 || echo $n processes; }
`), "")
	}
}

func (s suite) timeLimit(t *testing.T) {
	r := s.start(t, runner.Options{})
	LongEnough(t, 500, func(ms int64) bool {
		mark := writ.NewID("mark")
		spec := Sleeper(mark)
		spec.Limits.WallMS = ms
		res := MustRun(t, r, spec)
		if res.Outcome != writ.TimedOut || res.Reason == "" || res.WallMS < ms {
			t.Errorf("result %+v, want timed out after %d ms", res, ms)
		}
		if pids := Alive(t, mark); pids != nil {
			t.Errorf("processes %v are alive", pids)
		}
		return res.Stdout.Text == "ready\n" && res.WallMS <= ms+1000 // scenario 16: the limit plus one second
	})
}
