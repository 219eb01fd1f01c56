package gateway_test

import (
	"context"
	"database/sql"
	"flag"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"writ"
	"writ/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Jail()
	if raced { // else a hundred; more are had with -rapid.checks
		if err := flag.Set("rapid.checks", "15"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// direct writes to the store's file as somebody would who got hold of it.
func direct(t *testing.T, s *testkit.System, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.File()+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range statements {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// failOn makes the log refuse events of one type, until mend is called.
func failOn(t *testing.T, s *testkit.System, typ writ.EventType) (mend func()) {
	t.Helper()
	direct(t, s, `CREATE TRIGGER fault BEFORE INSERT ON events WHEN NEW.type = '`+string(typ)+`'
		BEGIN SELECT RAISE(ABORT, 'disk is full'); END`)
	return func() { t.Helper(); direct(t, s, `DROP TRIGGER fault`) }
}

// impatient has a gateway give a failing store up soon.
func impatient(g *testkit.GatewaySetup) { g.Options.Insist = 300 * time.Millisecond }

func wantKind(t *testing.T, what string, err error, want writ.Kind) {
	t.Helper()
	if err == nil || writ.KindOf(err) != want {
		t.Errorf("%s: got error %v, want one of kind %v", what, err, want)
	}
}

func wantTypes(t *testing.T, s *testkit.System, id writ.TaskID, want ...writ.EventType) {
	t.Helper()
	if d := cmp.Diff(want, s.Types(id)); d != "" {
		t.Errorf("events of %s (-want +got):\n%s", id, d)
	}
}

// wantNotRun fails t if the task was executed or says so.
func wantNotRun(t *testing.T, s *testkit.System, task writ.Task) {
	t.Helper()
	if n := s.Runner.CallsOf(task.ID); n != 0 || task.Executed() || task.Result != nil {
		t.Errorf("task %s was run %d times, executed %v, result %+v", task.ID, n, task.Executed(), task.Result)
	}
}

func setPolicy(t *testing.T, s *testkit.System, text string) {
	t.Helper()
	if err := s.SetPolicy(context.Background(), testkit.Local(), testkit.CompilePolicy(t, text)); err != nil {
		t.Fatal(err)
	}
}

// sweep settles what is due as a running server does from time to time.
func sweep(t *testing.T, s *testkit.System) {
	t.Helper()
	if err := s.Sweep(context.Background(), false); err != nil {
		t.Fatal(err)
	}
}

// The sequences of spec/01 §2 rule 6.
var (
	allowedRun = []writ.EventType{
		writ.EventTaskReceived, writ.EventTaskDecided, writ.EventAgentStarted, writ.EventToolInvoked,
		writ.EventToolResult, writ.EventAgentFinished,
	}
	heldRun = []writ.EventType{
		writ.EventTaskReceived, writ.EventTaskDecided, writ.EventApprovalRequested, writ.EventApprovalVoted,
		writ.EventApprovalDecided, writ.EventTaskQueued, writ.EventAgentStarted, writ.EventToolInvoked,
		writ.EventToolResult, writ.EventAgentFinished,
	}
)
