package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
)

// What one caller can take from the others has a bound: places, held requests,
// records, and the gateway's memory through a runner that says too much.

func TestShareOfOneIdentity(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) {
		g.Options.Slots, g.Options.Backlog, g.Options.Share = 1, 5, 3
	})
	_, release := s.Runner.Blocks()
	defer release()
	for range 3 {
		s.MustSubmit(testkit.Run("python", "x"))
	}
	_, _, err := s.Submit(t.Context(), s.Agent("coder"), testkit.Run("python", "x"))
	if writ.KindOf(err) != writ.Exhausted || !strings.Contains(writ.Message(err), `3 tasks of "coder"`) {
		t.Errorf("over its share: %v", err)
	}
	if task, _, err := s.Submit(t.Context(), s.Agent("guest"), testkit.Run("python", "x")); err != nil {
		t.Errorf("another identity is kept out: %v (%s)", err, task.State)
	}
	release()
	testkit.Eventually(t, "there is room again", func() bool {
		_, _, err := s.Submit(t.Context(), s.Agent("coder"), testkit.Run("python", "x"))
		return err == nil
	}, func() string { return s.Slog.String() })
}

// However many tasks those of one tenant have, another's can have one.
func TestEachTenantFindsAPlace(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) {
		g.Policy, g.Options.Users, g.Options.Blobs = interpreterPolicy, []writ.Scope{"python"}, &memoryBlobs{}
		g.Options.Slots, g.Options.Backlog, g.Options.Share = 1, 2, 2
	})
	_, release := s.Runner.Blocks()
	defer release()
	takes := func(tenant writ.Tenant, id string) error {
		who := user(id)
		who.Tenant = tenant
		_, err := s.Interpret(t.Context(), who, interpret("python", "x"))
		return err
	}
	for _, id := range []string{"a", "a", "b"} {
		if err := takes("acme", id); err != nil {
			t.Fatal(err)
		}
	}
	wantKind(t, "a user of the tenant that has all places", takes("acme", "c"), writ.Exhausted)
	for _, tenant := range []writ.Tenant{"other", "third"} {
		if err := takes(tenant, "a"); err != nil {
			t.Errorf("tenant %s is kept out: %v", tenant, err)
		}
		wantKind(t, "its second task", takes(tenant, "a"), writ.Exhausted)
	}
	wantKind(t, "a tenant beyond all bounds", takes("fourth", "a"), writ.Exhausted)
}

func TestHeldOfOneIdentity(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Held = 2 })
	first := s.MustSubmit(testkit.Run("bash", "echo 1"))
	s.MustSubmit(testkit.Run("bash", "echo 2"))
	before := len(s.Events(""))
	_, _, err := s.Submit(t.Context(), s.Agent("coder"), testkit.Run("bash", "echo 3"))
	if writ.KindOf(err) != writ.Exhausted || !strings.Contains(writ.Message(err), "2 requests of \"coder\" are held") {
		t.Errorf("over the bound: %v", err)
	}
	if n := len(s.Events("")); n != before {
		t.Errorf("%d events of what was not taken", n-before)
	}
	if _, _, err := s.Submit(t.Context(), s.Agent("guest"), testkit.Run("bash", "echo 4")); err != nil {
		t.Errorf("another identity is kept out: %v", err)
	}
	s.MustGrant(first)
	s.MustSubmit(testkit.Run("bash", "echo 5"))
}

func TestRefusalsAreRecordedWithinBounds(t *testing.T) {
	s := testkit.Gateway(t)
	held := s.MustSubmit(testkit.Run("bash", "echo 1"))
	before := len(s.Events(""))
	const tries = 100
	for range tries {
		if _, err := s.Vote(t.Context(), s.Agent("coder"), held.Approval, writ.VoteRequest{Verdict: writ.Grant}); writ.KindOf(err) != writ.Denied {
			t.Fatalf("an agent's own vote: %v", err)
		}
	}
	written := len(s.Events("")) - before
	// 60 in one minute; a minute may end on the way.
	if written < 60 || written >= tries {
		t.Errorf("%d refusals made %d records", tries, written)
	}
	if _, _, err := s.Submit(t.Context(), s.Agent("guest"), testkit.Run("cobol", "x")); writ.KindOf(err) != writ.Invalid {
		t.Fatal(err)
	}
	if n := len(s.Events("")) - before - written; n != 1 {
		t.Errorf("another caller's refusal made %d records", n)
	}
}

// The rules can look at the clock: what is asked for when the run starts counts.
func TestMoreIsAskedForWhenItStarts(t *testing.T) {
	// Longer ones in turn, until one is long enough for what must come before its end.
	for in := time.Second; in < time.Minute; in *= 4 {
		if moreIsAskedForIn(t, in) {
			return
		}
	}
	t.Error("nothing was granted in time")
}

// moreIsAskedForIn is false when the time was over before there was a grant.
func moreIsAskedForIn(t *testing.T, in time.Duration) bool {
	soon := time.Now().Add(in).UTC().Truncate(time.Millisecond) // as the rules read it
	policy := testkit.GatewayPolicy + fmt.Sprintf(`
@id("two-later")
@hold("two people look after hours")
@grants("2")
permit (principal, action, resource in Scope::"shell")
when { context.now > datetime("%s") };
`, soon.Format("2006-01-02T15:04:05.000Z"))
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Policy, g.Options.Slots = policy, 1 })
	started, release := s.Runner.Blocks()
	defer release()
	s.MustSubmit(testkit.Run("python", "holds the only slot"))
	testkit.Receive(t, "it begins", started)
	task := s.MustSubmit(testkit.Run("bash", "echo 1"))
	if task.State != writ.TaskHeld {
		t.Fatalf("task is %s: %s", task.State, task.Reason)
	}
	if a := s.MustGrant(task); a.State != writ.ApprovalQueued {
		if time.Now().After(soon) {
			return false
		}
		t.Fatalf("approval is %s after one grant", a.State)
	}
	testkit.Eventually(t, "the hour comes", func() bool { return writ.Now().After(soon) })
	release()
	again := s.Until(task.ID, writ.TaskHeld)
	testkit.Eventually(t, "it is asked again", func() bool {
		again = s.Stored(task.ID)
		return again.State == writ.TaskHeld && again.Approval != task.Approval
	}, func() string { return s.Slog.String() })
	next := s.StoredApproval(again.Approval)
	if next.Need.Grants != 2 || next.Replaces != task.Approval || !strings.Contains(next.Reason, "more is asked for now") {
		t.Errorf("asked again: %+v", next)
	}
	if old := s.StoredApproval(task.Approval); old.State != writ.ApprovalCancelled {
		t.Errorf("the old approval is %s", old.State)
	}
	if n := s.Runner.CallsOf(task.ID); n != 0 {
		t.Errorf("it ran %d times", n)
	}
	return true
}

func TestARunnerThatSaysTooMuch(t *testing.T) {
	s := testkit.Gateway(t)
	word := strings.Repeat("w", 10_000)
	s.Runner.Does(func(_ context.Context, _ writ.RunSpec, emit func(writ.Chunk)) (writ.Result, error) {
		for range 10 {
			emit(writ.Chunk{Stream: writ.Stdout, Data: []byte(word)})
		}
		r := testkit.Ran(0, strings.Repeat("o", 100_000), strings.Repeat("e", 100_000))
		r.Signal, r.Sandbox.Provider, r.Sandbox.Active = word, word, strings.Split(strings.Repeat(word+",", 100), ",")
		return r, nil
	})
	req := testkit.Run("python", "x")
	req.Spec.Limits.OutputBytes = 25_000
	task := s.MustSubmit(req)
	s.Until(task.ID, writ.TaskSucceeded)
	var seen int
	err := s.Tasks.Watch(t.Context(), s.Agent("coder"), task.ID, func(ev writ.TaskEvent) error {
		if ev.Output != nil && ev.Output.Stream == writ.Stdout {
			seen += len(ev.Output.Data)
		}
		return nil
	})
	if err != nil || seen != 25_000 {
		t.Errorf("watched %d bytes, %v", seen, err)
	}
	r := s.Stored(task.ID).Result
	if r.Stdout.Kept != 25_000 || r.Stdout.Bytes != 100_000 || !r.Stdout.Truncated || r.Stderr.Kept != 25_000 {
		t.Errorf("kept %+v and %+v", r.Stdout, r.Stderr)
	}
	if len(r.Signal) > 100 || len(r.Sandbox.Provider) > 100 || len(r.Sandbox.Active) > 64 || len(r.Sandbox.Active[0]) > 100 {
		t.Errorf("its words went on: %d, %d, %d", len(r.Signal), len(r.Sandbox.Provider), len(r.Sandbox.Active))
	}
}

func TestAnnounce(t *testing.T) {
	s := testkit.Gateway(t)
	subject := func(s *testkit.System) string {
		t.Helper()
		if err := s.Announce(t.Context(), testkit.Local()); err != nil {
			t.Fatal(err)
		}
		all := s.Events("")
		e := all[len(all)-1]
		if e.Type != writ.EventServerStarted || e.Data.Policy != s.Policy().Version() || e.Data.Count != int64(len(s.Setup.Options.Identities)) {
			t.Errorf("event %+v", e)
		}
		return e.Data.Subject
	}
	before := subject(s)
	s.Setup.Options.Identities[1].Scopes = []writ.Scope{"shell"}
	s.Restart()
	if after := subject(s); after == before {
		t.Errorf("a scope was given while no server ran, and both starts say %q", after)
	}
}
