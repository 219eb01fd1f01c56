package interpreter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/interpreter"
	"writ/session"
	"writ/store"
)

// answer is what Exec answered.
type answer struct {
	reply interpreter.Reply
	err   error
}

// begin has who run r, and answers when that began.
func (s *system) begin(ctx context.Context, who writ.Principal, r interpreter.Request) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		reply, err := s.Exec(ctx, who, r)
		done <- answer{reply, err}
	}()
	return done
}

// last is the task that was made last.
func (s *system) last() writ.Task {
	s.t.Helper()
	list, _, err := s.sys.Tasks.List(s.t.Context(), testkit.Local(), writ.TaskFilter{Page: writ.Page{Limit: 1}})
	if err != nil || len(list) == 0 {
		s.t.Fatalf("no task: %v", err)
	}
	return list[0]
}

// TestClientsThatGoAwayEndTheirRuns: nobody pays for what nobody waits for.
func TestClientsThatGoAwayEndTheirRuns(t *testing.T) {
	s := open(t, nil)
	started, _ := s.sys.Runner.Blocks()
	ctx, leave := context.WithCancel(t.Context())
	done := s.begin(ctx, ada, interpreter.Request{Language: "bash"})
	testkit.Receive(t, "the start", started)
	leave()
	if a := testkit.Receive(t, "the answer", done); !errors.Is(a.err, context.Canceled) {
		t.Errorf("%v", a.err)
	}
	if n := s.sessions(ada); n != 0 {
		t.Errorf("it leaves %d sessions", n)
	}
	s.sys.Until(s.last().ID, writ.TaskKilled)
}

// sessions are how many there are in who's tenant.
func (s *system) sessions(who writ.Principal) (n int64) {
	s.t.Helper()
	err := s.sys.DB.View(s.t.Context(), func(tx *store.Tx) error {
		totals, err := tx.SessionTotals(s.t.Context(), who.Tenant)
		n = totals.Sessions
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func TestDeadlineOfJobs(t *testing.T) {
	// Longer ones in turn, until one ends a run and not what comes before it.
	for deadline := 50 * time.Millisecond; deadline < time.Minute; deadline *= 4 {
		s := open(t, func(o *interpreter.Options) { o.Deadline = deadline })
		started, _ := s.sys.Runner.Blocks()
		a := testkit.Receive(t, "the answer", s.begin(t.Context(), ada, interpreter.Request{Language: "bash"}))
		if !errors.Is(a.err, context.DeadlineExceeded) {
			t.Errorf("%v", a.err)
		}
		select {
		case <-started:
			s.sys.Until(s.last().ID, writ.TaskKilled)
			return
		default:
		}
	}
	t.Error("no run was started within its deadline")
}

func TestCancelEndsTheRunOfItsCaller(t *testing.T) {
	s := open(t, nil)
	started, _ := s.sys.Runner.Blocks()
	done := s.begin(t.Context(), ada, interpreter.Request{Language: "bash", ID: "req-1"})
	testkit.Receive(t, "the start", started)
	for name, who := range map[string]writ.Principal{"another user": user("acme", "bob"), "another tenant's": user("globex", "ada")} {
		if found, err := s.Cancel(t.Context(), who, "req-1"); err != nil || found {
			t.Errorf("%s cancels it: %v, %v", name, found, err)
		}
	}
	if found, err := s.Cancel(t.Context(), ada, "req-2"); err != nil || found {
		t.Errorf("another id: %v, %v", found, err)
	}
	if found, err := s.Cancel(t.Context(), ada, "req-1"); err != nil || !found {
		t.Errorf("its own: %v, %v", found, err)
	}
	a := testkit.Receive(t, "the answer", done)
	if writ.KindOf(a.err) != writ.Conflict || writ.CodeOf(a.err) != "cancelled" {
		t.Errorf("%v", a.err)
	}
	s.sys.Until(s.last().ID, writ.TaskKilled)
	if found, err := s.Cancel(t.Context(), ada, "req-1"); err != nil || found {
		t.Errorf("when it is over: %v, %v", found, err)
	}
}

// TestHeldRunsWait: a front end waits while a person looks.
func TestHeldRunsWait(t *testing.T) {
	s := open(t, nil)
	decide := func(v writ.Verdict) answer {
		done := s.begin(t.Context(), ada, interpreter.Request{Language: "node"})
		var held writ.Task
		testkit.Eventually(t, "the hold", func() bool {
			list, _, err := s.sys.Tasks.List(t.Context(), testkit.Local(), writ.TaskFilter{States: []writ.TaskState{writ.TaskHeld}})
			if err == nil && len(list) == 1 {
				held = list[0]
			}
			return held.ID != ""
		})
		if _, err := s.sys.Decide(s.sys.Operator("ann"), held, v, "no"); err != nil {
			t.Fatal(err)
		}
		return testkit.Receive(t, "the answer", done)
	}
	if a := decide(writ.Grant); a.err != nil || *a.reply.Code != 0 {
		t.Errorf("granted: %+v", a)
	}
	if a := decide(writ.Refuse); writ.KindOf(a.err) != writ.Denied || writ.CodeOf(a.err) != "denied" {
		t.Errorf("refused: %v", a.err)
	}
	_, err := s.Exec(t.Context(), ada, interpreter.Request{Language: "php"})
	if writ.KindOf(err) != writ.Denied || writ.CodeOf(err) != "denied" {
		t.Errorf("forbidden: %v", err)
	}
}

func TestRunnersThatCannot(t *testing.T) {
	s := open(t, nil)
	for name, tt := range map[string]struct {
		script testkit.Script
		kind   writ.Kind
		code   string
	}{
		"no box": {func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
			return writ.Result{}, &writ.Error{Kind: writ.Unavailable, Op: "run", Msg: "no box"}
		}, writ.Unavailable, "sandbox_setup_failed"},
		"inputs gone": {func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
			return writ.Result{}, &writ.Error{Kind: writ.NotFound, Code: writ.CodeInputUnavailable, Op: "run", Msg: "secret"}
		}, writ.NotFound, "session_input_unavailable"},
		"inputs unreadable": {func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
			return writ.Result{}, &writ.Error{Kind: writ.Unavailable, Code: writ.CodeInputSource, Op: "run", Msg: "secret"}
		}, writ.Unavailable, "session_input_source_failed"},
		"inputs too large": {func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
			return writ.Result{}, &writ.Error{Kind: writ.Invalid, Code: writ.CodeInputTooLarge, Op: "run", Msg: "secret"}
		}, writ.Invalid, "session_input_too_large"},
		"lost": {func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
			return writ.Result{Outcome: writ.Interrupted, Started: true}, nil
		}, writ.Internal, "sandbox_execution_failed"},
	} {
		s.sys.Runner.Does(tt.script)
		_, err := s.Exec(t.Context(), ada, interpreter.Request{Language: "bash"})
		if writ.KindOf(err) != tt.kind || writ.CodeOf(err) != tt.code || strings.Contains(writ.Message(err), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		if n := s.sessions(ada); n != 0 {
			t.Errorf("%s: it leaves %d sessions", name, n)
		}
	}
}

// TestFilesForWhichThereIsNoRoom: the output of a run is worth as much without them.
func TestFilesForWhichThereIsNoRoom(t *testing.T) {
	s := openReal(t, nil)
	small := session.Defaults()
	small.Limits.TenantBytes = 10
	files, err := session.New(s.sys.DB, s.blobs, small)
	if err != nil {
		t.Fatal(err)
	}
	s = s.with(files)
	got := s.bash(ada, "", "echo 12345 >a.txt; echo 12345 >b.txt; echo done")
	if got.Stdout != "done\n" || len(got.Files) != 0 || got.DroppedFiles != 2 || got.Dropped[0].Path != "a.txt" || got.Dropped[0].Class != writ.DropFiles {
		t.Errorf("%+v", got)
	}
	if got := s.bash(ada, "", "echo 12345 >a.txt"); listed(got) != "a.txt" || got.DroppedFiles != 0 {
		t.Errorf("%+v", got)
	}
}

// TestRequestsThatCannotBeRun: what is wrong with them is said in the contract's form.
func TestRequestsThatCannotBeRun(t *testing.T) {
	s := open(t, nil)
	for name, r := range map[string]interpreter.Request{
		"NUL in the code": {Code: "a\x00"}, "too many arguments": {Args: make([]string, writ.MaxArgs+1)},
	} {
		r.Language = "bash"
		if _, err := s.Exec(t.Context(), ada, r); writ.KindOf(err) != writ.Invalid || writ.CodeOf(err) != "bad_request" {
			t.Errorf("%s: %v", name, err)
		}
		if n := s.sessions(ada); n != 0 {
			t.Errorf("%s: it leaves %d sessions", name, n)
		}
	}
}

// TestInputsThatDoNotFit: nobody is asked about a run that cannot be.
func TestInputsThatDoNotFit(t *testing.T) {
	s := open(t, func(o *interpreter.Options) { o.Limits.WorkspaceBytes = 1 << 20 })
	refs := []interpreter.Ref{s.upload(ada, mine(ada), text("a.txt", strings.Repeat("a", 1<<19))), s.upload(ada, mine(ada), text("b.txt", strings.Repeat("b", 1<<19)))}
	for code, want := range map[string]string{"": "", ":": writ.CodeInputTooLarge} {
		_, err := s.Exec(t.Context(), ada, interpreter.Request{Language: "bash", Code: code, Files: refs})
		if writ.CodeOf(err) != want || want != "" && writ.Message(err) != "Input files exceed the delivery limit" {
			t.Errorf("code %q: %v", code, err)
		}
	}
}
