package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/lang"
	"writ/sandbox"
)

func TestRunHandsTheSpecToABox(t *testing.T) {
	r, p := newFake(t, Options{})
	spec := writ.RunSpec{
		Language: "sh", Code: "cat", Args: []string{"-", "out"}, Stdin: "in", Env: map[string]string{"A": "b"},
		Inputs: []writ.Input{{Path: "d/f", Content: []byte{0, 255}}, {Path: "x", Content: []byte("#!"), Exec: true}},
		Limits: writ.DefaultLimits,
	}
	var got collect
	res, err := r.Run(t.Context(), "r1", spec, spec.Digest(), &writ.Exchange{Emit: got.emit})
	if err != nil || res.Outcome != writ.Succeeded || got.text(writ.Stdout) != "out" {
		t.Fatalf("Run = %+v, %v with output %q", res, err, got.text(writ.Stdout))
	}
	cmd := p.started[0]
	want := sandbox.Command{
		Argv: []string{"/bin/sh", "/run/writ/main.sh", "-", "out"},
		Dir:  "/workspace",
		Files: []sandbox.File{
			{Path: "/run/writ/main.sh", Content: []byte("cat"), Mode: 0o444},
			{Path: "/workspace/d/f", Content: []byte{0, 255}, Mode: 0o644},
			{Path: "/workspace/x", Content: []byte("#!"), Mode: 0o755},
		},
		Stdin:  []byte("in"),
		Limits: writ.DefaultLimits,
	}
	l, _ := lang.Lookup("sh")
	want.Env = l.Env(spec.Env)
	cmd.Stdout, cmd.Stderr = nil, nil
	if diff := cmp.Diff(want, cmd); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
}

func TestRunRefusesWhatWasNotApproved(t *testing.T) {
	r, p := newFake(t, Options{})
	good, digest := specOf("x")
	change := func(f func(*writ.RunSpec)) writ.RunSpec {
		s := good
		f(&s)
		return s
	}
	for _, tt := range []struct {
		name   string
		id     string
		spec   writ.RunSpec
		digest writ.Digest // empty means the spec's own
		want   string
	}{
		{"digest of another spec", "r", good, writ.DigestOf([]byte("x")), "what was approved"},
		{"code changed", "r", change(func(s *writ.RunSpec) { s.Code += " " }), digest, "what was approved"},
		{"no digest", "r", good, "none", "what was approved"},
		{"no id", "", good, "", "run id"},
		{"long id", strings.Repeat("i", 300), good, "", "run id"},
		{"Scenario20 empty code", "r", change(func(s *writ.RunSpec) { s.Code = "" }), "", "code is empty"},
		{"Scenario20 not UTF-8", "r", change(func(s *writ.RunSpec) { s.Code = "\xff" }), "", "UTF-8"},
		{"Scenario20 language", "r", change(func(s *writ.RunSpec) { s.Language = "sh " }), "", "want one of"},
		{"limit not set", "r", change(func(s *writ.RunSpec) { s.Limits.CPUMS = 0 }), "", "limits.cpu_ms"},
		{"inputs do not fit", "r", change(func(s *writ.RunSpec) {
			s.Limits.WorkspaceBytes = 64 << 10
			s.Inputs = []writ.Input{{Path: "f", Content: make([]byte, 65<<10)}}
		}), "", "limits.workspace_bytes"},
	} {
		d := tt.digest
		if d == "" {
			d = tt.spec.Digest()
		}
		res, err := r.Run(t.Context(), tt.id, tt.spec, d, nil)
		if writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), tt.want) {
			t.Errorf("%s: Run = %+v, %v; want invalid with %q", tt.name, res, err, tt.want)
		}
	}
	if _, started, _ := p.counts(); started != 0 {
		t.Errorf("%d programs were started", started)
	}
}

func TestRunIDIsGoodForOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := newFake(t, Options{Slots: 2})
		spec, d := specOf("x")

		p.fail(errors.New("no box"), nil)
		if _, err := r.Run(t.Context(), "r1", spec, d, nil); writ.KindOf(err) != writ.Unavailable {
			t.Errorf("Run without a box = %v, want unavailable", err)
		}
		p.fail(nil, nil)
		if _, err := r.Run(t.Context(), "r1", spec, d, nil); err != nil {
			t.Errorf("an id that ran nothing was refused: %v", err)
		}
		if _, err := r.Run(t.Context(), "r1", spec, d, nil); writ.KindOf(err) != writ.Conflict {
			t.Errorf("second Run of one id = %v, want conflict", err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		wait, wd := specOf("wait")
		go func() {
			defer close(done)
			_, _ = r.Run(ctx, "r2", wait, wd, nil)
		}()
		synctest.Wait()
		if _, err := r.Run(t.Context(), "r2", spec, d, nil); writ.KindOf(err) != writ.Conflict {
			t.Errorf("Run of an id under way = %v, want conflict", err)
		}
		cancel()
		<-done
		if _, started, _ := p.counts(); started != 2 {
			t.Errorf("%d programs were started, want 2", started)
		}
	})
}

func TestIDsForgetTheOldest(t *testing.T) {
	s := newIDs()
	name := func(i int) string {
		return string(rune('a'+i%26)) + strings.Repeat("x", i/26%50) + time.Duration(i).String()
	}
	for i := range keptIDs + 10 {
		if err := s.begin(name(i)); err != nil {
			t.Fatal(err)
		}
		s.end(name(i), true)
	}
	if len(s.spent) != keptIDs || len(s.order) != keptIDs || len(s.live) != 0 {
		t.Errorf("keeps %d of %d, %d live", len(s.spent), len(s.order), len(s.live))
	}
	if s.begin(name(9)) != nil || s.begin(name(10)) == nil {
		t.Error("it did not forget the oldest first")
	}
}

func TestScenario15_WithoutABoxNothingRuns(t *testing.T) {
	r, p := newFake(t, Options{})
	spec, d := specOf("x")
	why := &writ.Error{Kind: writ.Unavailable, Op: "prepare", Msg: "bwrap is not installed: apt-get install bubblewrap"}
	for _, tt := range []struct {
		prep, start error
		want        string
	}{
		{why, nil, why.Msg},
		{errors.New("secret detail"), nil, "nothing was executed"},
		{nil, why, why.Msg},
		{nil, errors.New("secret detail"), "nothing was executed"},
	} {
		p.fail(tt.prep, tt.start)
		res, err := r.Run(t.Context(), "r", spec, d, nil)
		if writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), tt.want) || strings.Contains(writ.Message(err), "secret") {
			t.Errorf("Run = %+v, %v; want unavailable with %q", res, err, tt.want)
		}
	}
	if _, started, open := p.counts(); started != 0 || open != 0 {
		t.Errorf("%d programs started, %d boxes left", started, open)
	}
}

func TestInterpreterMissing(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "interpreter")
	if err := os.WriteFile(outside, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	row := func(name string, candidates ...string) lang.Language {
		return lang.Language{Name: writ.Language(name), Scope: "x", File: "m", Candidates: candidates, Package: "pkg-" + name}
	}
	r, p := newFake(t, Options{Languages: lang.Table{
		row("absent", "/usr/bin/no-such-interpreter"),
		row("folder", "/usr/bin"),
		row("data", "/etc/passwd"),
		row("outside", outside), // a box does not show it
		{Name: "npm", Scope: "x", File: "m", Candidates: []string{"/usr/bin/no-such-interpreter"}, Package: "pkg-npm", NPM: true},
		row("second", "/usr/bin/no-such-interpreter", "/bin/sh"),
	}})
	for _, name := range []writ.Language{"absent", "folder", "data", "outside", "npm"} {
		spec := writ.RunSpec{Language: name, Code: "x", Limits: writ.DefaultLimits}
		_, err := r.Run(t.Context(), "r", spec, spec.Digest(), nil)
		by := "apt-get install pkg-" + string(name)
		if name == "npm" {
			by = "npm install -g pkg-npm"
		}
		if writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), by) {
			t.Errorf("%s: Run = %v, want unavailable with the package", name, err)
		}
	}
	if made, _, _ := p.counts(); made != 0 {
		t.Errorf("%d boxes were made", made)
	}
	got, err := r.Languages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range got {
		if l.Kind != writ.RunTask {
			continue // the real table
		}
		if want := map[writ.Language]string{"second": "/bin/sh"}[l.Name]; l.Interpreter != want {
			t.Errorf("%s has interpreter %q, want %q", l.Name, l.Interpreter, want)
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newFake(t, Options{Slots: 1, Warm: 2})
		spec, d := specOf("wait")
		results := make(chan writ.Result, 2)
		for _, id := range []string{"running", "queued"} {
			go func() {
				res, err := r.Run(context.Background(), id, spec, d, nil)
				if err != nil {
					t.Errorf("%s: %v", id, err)
				}
				results <- res
			}()
			synctest.Wait()
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		started := 0
		for range 2 {
			res := <-results
			if res.Outcome != writ.Killed || !strings.Contains(res.Reason, "shut down") {
				t.Errorf("result %+v, want killed because the runner was shut down", res)
			}
			if res.Started {
				started++
			}
		}
		if started != 1 {
			t.Errorf("%d of 2 had started, want 1", started)
		}
		if _, err := r.Run(t.Context(), "late", spec, d, nil); writ.KindOf(err) != writ.Unavailable {
			t.Errorf("Run after Close = %v, want unavailable", err)
		}
	})
}

func TestCloseIsBoundedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := newFake(t, Options{})
		release := make(chan struct{})
		p.program = func(context.Context, sandbox.Command) writ.Result {
			<-release
			return writ.Result{Outcome: writ.Succeeded, Started: true}
		}
		spec, d := specOf("x")
		go func() { _, _ = r.Run(context.Background(), "stuck", spec, d, nil) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v, want its context's error", err)
		}
		close(release)
	})
}
