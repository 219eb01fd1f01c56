package interpreter_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/interpreter"
	"writ/session"
	"writ/store"
)

func stateful(mode interpreter.Mode) func(*interpreter.Options) {
	return func(o *interpreter.Options) { o.Mode = mode }
}

// TestRuntimeSessionsKeepTheirFolder: all of it, also what an answer does not list.
func TestRuntimeSessionsKeepTheirFolder(t *testing.T) {
	s := openReal(t, stateful(interpreter.Affinity))
	first := s.bash(ada, "v2:user:1", `echo 1 >n.txt; echo x >no.kind; mkdir -p .cache empty; echo c >.cache/c; printf '#!/bin/sh\necho ran\n' >run.sh; chmod +x run.sh; ln -s n.txt link.txt; mkdir -p venv/bin node_modules/.bin; echo m >node_modules/m.txt; ln -s /bin/echo venv/bin/python; ln -s ../m.txt node_modules/.bin/m`)
	if got := listed(first); got != "empty/.dirkeep, n.txt, run.sh" {
		t.Errorf("first: %s, dropped %v", got, first.Dropped)
	}
	if first.Runtime != session.RuntimeID(ada, "v2:user:1") || first.RuntimeStatus != "new" {
		t.Errorf("first: %q is %q", first.Runtime, first.RuntimeStatus)
	}
	second := s.bash(ada, "v2:user:1", "./run.sh; cat n.txt no.kind .cache/c; ls -d empty; cat link.txt node_modules/.bin/m; venv/bin/python ran; echo 2 >>n.txt; rm no.kind; rm -r node_modules; chmod -x run.sh; chmod +x n.txt")
	if second.Stdout != "ran\n1\nx\nc\nempty\n1\nm\nran\n" || second.RuntimeStatus != "reused" || second.Runtime != first.Runtime {
		t.Errorf("second: %+v", second)
	}
	if got := listed(second); got != "n.txt" || strings.Join(second.Deleted, " ") != "no.kind" {
		t.Errorf("second: %s, deleted %v", got, second.Deleted)
	}
	third := s.bash(ada, "v2:user:1", "cat n.txt; ls -A | sort | tr '\\n' ' '; stat -c %a run.sh n.txt")
	if third.Stdout != "1\n2\n.cache empty link.txt n.txt run.sh script.sh venv 600\n700\n" || len(third.Files) != 0 || len(third.Deleted) != 0 {
		t.Errorf("third: %+v", third)
	}
	for name, r := range map[string]interpreter.Reply{
		"another hint":     s.bash(ada, "v2:user:2", "ls -A"),
		"another user":     s.bash(user("acme", "bob"), "v2:user:1", "ls -A"),
		"another tenant":   s.bash(user("globex", "ada"), "v2:user:1", "ls -A"),
		"no hint, no keep": s.bash(ada, "", "ls -A; echo y >y.txt"),
	} {
		if r.Stdout != "script.sh\n" || r.RuntimeStatus == "reused" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestRuntimeSessionsTakeReferences: what the client sends is over what was there.
func TestRuntimeSessionsTakeReferences(t *testing.T) {
	s := openReal(t, stateful(interpreter.Strict))
	a := s.upload(ada, mine(ada), text("in.csv", "1"))
	b := text("skill.txt", "s")
	b.ReadOnly = true
	skill := s.upload(ada, mine(ada), b)
	s.bash(ada, "h", "echo changed >in.csv; cat skill.txt", a, skill)
	got := s.bash(ada, "h", "cat in.csv; ls")
	if got.Stdout != "changed\nin.csv\nscript.sh\n" {
		t.Errorf("without references: %+v", got)
	}
	got = s.bash(ada, "h", "cat in.csv", a)
	if got.Stdout != "1" || listed(got) != "in.csv inherited" {
		t.Errorf("with one: %+v", got)
	}
	// So do the files where the code must be.
	s.bash(ada, "h", "mkdir main.py; echo x >main.py/x.txt")
	if py, err := s.Exec(t.Context(), ada, interpreter.Request{Language: "python", Code: "print('ran')", Hint: "h"}); err != nil || py.Stdout != "ran\n" {
		t.Errorf("where a folder had the name of the code: %+v, %v", py, err)
	}
	// A file where the folder of a reference must be gives way.
	s.bash(ada, "h", "rm in.csv; echo file >data")
	got = s.bash(ada, "h", "cat data/x.csv", s.upload(ada, mine(ada), text("data/x.csv", "x")))
	if got.Stdout != "x" {
		t.Errorf("over a file: %+v", got)
	}
}

// TestFilesThatCouldNotBeKeptAreNotLost: what changed and is dropped stays as it was, and is
// none that the run deleted.
func TestFilesThatCouldNotBeKeptAreNotLost(t *testing.T) {
	s := open(t, stateful(interpreter.Affinity))
	s.sys.Runner.Trades(func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) (writ.Result, error) {
		res := testkit.Ran(0, "", "")
		for _, p := range []string{"changed.txt", "same.txt", "removed.txt", "fifo.txt"} {
			if err := x.Keep(ctx, writ.OutputFile{Path: p}, strings.NewReader(p)); err != nil {
				return res, err
			}
			res.Files = append(res.Files, writ.OutputFile{Path: p, State: writ.OutputNew})
		}
		return res, nil
	})
	run := func() interpreter.Reply { return s.bash(ada, "h", "") }
	run()
	var found []string
	leaves := func(r writ.Result) {
		s.sys.Runner.Trades(func(_ context.Context, spec writ.RunSpec, _ *writ.Exchange) (writ.Result, error) {
			found = nil
			for _, f := range spec.Files {
				found = append(found, f.Path)
			}
			res := testkit.Ran(0, "", "")
			res.Files, res.Dropped, res.DroppedFiles = []writ.OutputFile{{Path: "same.txt", State: writ.OutputSame}}, r.Dropped, r.DroppedFiles
			return res, nil
		})
	}
	leaves(writ.Result{DroppedFiles: 2, Dropped: []writ.DroppedFile{
		{Path: "changed.txt", Class: writ.DropUnreadable, Why: "slow"}, {Path: "fifo.txt", Class: writ.DropKind, Why: "it is no regular file"},
	}})
	if got := run(); strings.Join(got.Deleted, " ") != "fifo.txt removed.txt" {
		t.Errorf("deleted %v", got.Deleted)
	}
	leaves(writ.Result{DroppedFiles: 1000})
	if got := run(); strings.Join(found, " ") != "changed.txt same.txt" || len(got.Deleted) != 0 {
		t.Errorf("found %v, deleted %v", found, got.Deleted)
	}
	if run(); strings.Join(found, " ") != "changed.txt same.txt" {
		t.Errorf("after a run of whose files not all are known: %v", found)
	}
}

// TestRuntimeSessionsWhoseBytesAreGone: one begins anew, and says so.
func TestRuntimeSessionsWhoseBytesAreGone(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, "", stateful(interpreter.Affinity)).real()
	s.bash(ada, "h", "echo lost >lost.txt; echo kept >kept.txt; echo damaged >damaged.txt")
	ref := s.upload(ada, mine(ada), text("ref.txt", "ref\n"))
	for _, harm := range []func(path string) error{os.Remove, func(path string) error { return os.WriteFile(path, []byte("DAMAGED\n"), 0o600) }} {
		if err := harm(filepath.Join(dir, "blobs", "blobs", string(writ.DigestOf([]byte("lost\n"))))); err != nil {
			t.Fatal(err)
		}
		got := s.bash(ada, "h", "ls; cat ref.txt; echo lost >lost.txt", ref)
		if got.Stdout != "ref.txt\nscript.sh\nref\n" || got.RuntimeStatus != "new" || got.DroppedFiles != 1 || got.Dropped[0].Path != "." || len(got.Deleted) != 0 {
			t.Errorf("%+v", got)
		}
	}
	if got := s.bash(ada, "h", "ls"); got.Stdout != "lost.txt\nref.txt\nscript.sh\n" || got.RuntimeStatus != "reused" {
		t.Errorf("afterwards: %+v", got)
	}
	if err := os.Remove(filepath.Join(dir, "blobs", "blobs", string(writ.DigestOf([]byte("ref\n"))))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Exec(t.Context(), ada, interpreter.Request{Language: "bash", Hint: "h", Files: []interpreter.Ref{ref}}); writ.CodeOf(err) != writ.CodeInputUnavailable {
		t.Errorf("a reference whose bytes are gone: %v", err)
	}
}

// TestRuntimeSessionsThatAreFull: no run leaves the next one without room to work.
func TestRuntimeSessionsThatAreFull(t *testing.T) {
	s := openReal(t, func(o *interpreter.Options) {
		o.Mode, o.Limits.WorkspaceBytes, o.Limits.Files = interpreter.Affinity, 4<<20, 160
	})
	s.bash(ada, "h", "echo good >n.txt")
	for name, code := range map[string]string{
		"bytes": "head -c 3900000 /dev/zero >big.txt; rm n.txt", "files": "for i in {1..150}; do : >$i.txt; done; rm n.txt",
	} {
		if got := s.bash(ada, "h", code); got.Stderr != "" || len(got.Dropped) == 0 || got.Dropped[len(got.Dropped)-1].Path != "." {
			t.Errorf("%s: %+v", name, got)
		}
		if got := s.bash(ada, "h", "cat n.txt #"+strings.Repeat("x", 10000)); got.Stdout != "good\n" {
			t.Errorf("after too many %s: %+v", name, got)
		}
	}
	if got := s.bash(ada, "h", "head -c 3600000 /dev/zero >big.txt; for i in {1..130}; do : >$i.txt; done"); strings.Contains(fmt.Sprint(got.Dropped), "not kept for the next run") {
		t.Errorf("%+v", got)
	}
	if got := s.bash(ada, "h", "rm *.txt; ls #"+strings.Repeat("x", 10000)); got.Stdout != "script.sh\n" {
		t.Errorf("nearly full: %+v", got)
	}
}

// TestSyntheticRunsKeepNothing: in no mode, whatever they say.
func TestSyntheticRunsKeepNothing(t *testing.T) {
	who := ada
	who.Synthetic = true
	for _, mode := range []interpreter.Mode{interpreter.Stateless, interpreter.Affinity, interpreter.Strict} {
		s := open(t, stateful(mode))
		for _, hint := range []string{"", "h", "not a hint"} {
			reply, err := s.Exec(t.Context(), who, interpreter.Request{Language: "bash", Hint: hint})
			if err != nil || reply.Runtime != "" || s.sys.Runner.SpecOf(s.last().ID).Collect.Hidden {
				t.Errorf("%s, %q: %+v, %v", mode, hint, reply, err)
			}
		}
	}
}

func TestHints(t *testing.T) {
	long := strings.Repeat("h", 129)
	for mode, tests := range map[interpreter.Mode]map[string]string{
		interpreter.Stateless: {"": "", "a b": "", long: ""},
		interpreter.Affinity:  {"": "", "v2:user:0a": "", "A.b_c-1": "", long[1:]: ""},
		interpreter.Strict:    {"": "runtime_session_hint is required in strict mode", "x": ""},
	} {
		if mode != interpreter.Stateless {
			tests[long] = "runtime_session_hint must be at most 128 characters"
			for _, bad := range []string{"a b", "a/b", "é", "a\x00"} {
				tests[bad] = `runtime_session_hint may only contain letters, digits, ".", "_", ":", and "-"`
			}
		}
		s := open(t, stateful(mode))
		for hint, want := range tests {
			err := s.Hint(hint)
			if (err == nil) != (want == "") || err != nil && (writ.Message(err) != want || writ.KindOf(err) != writ.Invalid) {
				t.Errorf("%s, %.20q: %v, want %q", mode, hint, err, want)
			}
		}
		if s.Mode() != mode {
			t.Errorf("mode %s", s.Mode())
		}
	}
}

// TestCP08_OneRunInARuntimeSession: the second waits, and then is told.
func TestCP08_OneRunInARuntimeSession(t *testing.T) {
	s := open(t, stateful(interpreter.Affinity))
	started, release := s.sys.Runner.Blocks()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	done := s.begin(ctx, ada, interpreter.Request{Language: "bash", Hint: "h"})
	testkit.Receive(t, "the start", started)
	_, err := s.Exec(t.Context(), ada, interpreter.Request{Language: "bash", Hint: "h"})
	if writ.KindOf(err) != writ.Conflict || writ.CodeOf(err) != "runtime_session_busy" || writ.Message(err) != "Runtime session is busy" {
		t.Errorf("at the same time: %v", err)
	}
	other := s.begin(t.Context(), ada, interpreter.Request{Language: "bash", Hint: "another"})
	testkit.Receive(t, "the start of another", started)
	release()
	for _, d := range []<-chan answer{done, other} {
		if a := testkit.Receive(t, "the answer", d); a.err != nil {
			t.Error(a.err)
		}
	}
	if _, err := s.Exec(t.Context(), ada, interpreter.Request{Language: "bash", Hint: "h"}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestRunsThatWereCancelledSaveNothing: the next run finds what the last whole one left.
func TestRunsThatWereCancelledSaveNothing(t *testing.T) {
	s := openReal(t, stateful(interpreter.Affinity))
	s.bash(ada, "h", "echo good >n.txt")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	done := s.begin(ctx, ada, interpreter.Request{Language: "bash", Hint: "h", ID: "r", Code: "echo bad >n.txt; sleep 60"})
	testkit.Eventually(t, "the run", func() bool { return s.last().State == writ.TaskRunning })
	if found, err := s.Cancel(t.Context(), ada, "r"); err != nil || !found {
		t.Fatalf("%v, %v", found, err)
	}
	if a := testkit.Receive(t, "the answer", done); writ.CodeOf(a.err) != "cancelled" {
		t.Errorf("%v", a.err)
	}
	if got := s.bash(ada, "h", "cat n.txt"); got.Stdout != "good\n" {
		t.Errorf("%+v", got)
	}
}

// stolen is what a run needs of others, of which one, at, does not answer before the run's
// runtime session was given to another.
type stolen struct {
	interpreter.Tasks
	interpreter.Sessions
	at   string
	take func()
}

func (s stolen) in(ctx context.Context, at string) error {
	if at != s.at {
		return nil
	}
	s.take()
	<-ctx.Done()
	return fmt.Errorf("write to the database: %w", ctx.Err())
}

func (s stolen) Create(ctx context.Context, p writ.Principal, e session.Entity) (writ.Session, error) {
	if err := s.in(ctx, "create"); err != nil {
		return writ.Session{}, err
	}
	return s.Sessions.Create(ctx, p, e)
}

func (s stolen) Interpret(ctx context.Context, who writ.Principal, spec writ.RunSpec) (writ.Task, error) {
	if err := s.in(ctx, "interpret"); err != nil {
		return writ.Task{}, err
	}
	return s.Tasks.Interpret(ctx, who, spec)
}

func (s stolen) Wait(ctx context.Context, who writ.Principal, id writ.TaskID, d time.Duration) (writ.Task, error) {
	if err := s.in(ctx, "wait"); err != nil {
		return writ.Task{}, err
	}
	return s.Tasks.Wait(ctx, who, id, d)
}

func (s stolen) Adopt(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, kept []session.Kept) ([]writ.Object, error) {
	if err := s.in(ctx, "adopt"); err != nil {
		return nil, err
	}
	return s.Sessions.Adopt(ctx, p, e, in, kept)
}

// TestRuntimeSessionsThatAreLost: whose runtime session another was given is told so, in
// whatever part of the run that happens.
func TestRuntimeSessionsThatAreLost(t *testing.T) {
	s := open(t, stateful(interpreter.Affinity))
	opt := session.Defaults()
	opt.RuntimeLease = 30 * time.Millisecond // it is noticed with the next renewal
	files, err := session.New(s.sys.DB, s.blobs, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"create", "interpret", "wait", "adopt"} {
		take := func() {
			err := s.sys.DB.Update(context.Background(), func(tx *store.Tx) error {
				far := time.Now().Add(time.Hour)
				all, err := tx.UnusedRuntimes(context.Background(), far, far, store.Runtime{}, 1)
				if err != nil || len(all) == 0 {
					return fmt.Errorf("%d runtime sessions: %w", len(all), err)
				}
				return tx.DeleteRuntime(context.Background(), all[0])
			})
			if err != nil {
				t.Error(err)
			}
		}
		st := stolen{s.sys.Tasks, files, at, take}
		run := interpreter.New(st, st, session.NewRuntimes(files), spoken{}, slog.New(slog.DiscardHandler), s.opt)
		_, err := run.Exec(t.Context(), ada, interpreter.Request{Language: "bash", Hint: at})
		if writ.KindOf(err) != writ.Conflict || writ.CodeOf(err) != session.CodeRuntimeBusy || writ.Message(err) != "Runtime session is busy" {
			t.Errorf("%s: %v", at, err)
		}
	}
	if n := s.sessions(ada); n != 0 {
		t.Errorf("they leave %d sessions", n)
	}
}
