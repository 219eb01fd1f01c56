package workspace

import (
	"testing"
	"testing/synctest"

	"writ"
)

func wantBusy(t *testing.T, err error, id writ.ProcessID) {
	t.Helper()
	if writ.CodeOf(err) != CodeBusy || writ.KindOf(err) != writ.Conflict {
		t.Errorf("got %v, want %s of process %s", err, CodeBusy, id)
	}
}

func TestScenario106_HeldByAProcessRefusesWithoutWaiting(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		h := mustAcquire(t, &l, root)
		h.Keep("proc-a")
		for _, overlapping := range []string{root, root + "/below", "/"} {
			r := ask(t.Context(), &l, overlapping)
			if !r.done {
				t.Fatalf("a request for %s waits for a process", overlapping)
			}
			wantBusy(t, r.err, "proc-a")
		}
		h.Release()
		mustAcquire(t, &l, root).Release()
		wantNothing(t, &l)
	})
}

func TestScenario109_AProcessRefusesThoseWhoWait(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		h := mustAcquire(t, &l, root)
		elsewhere := mustAcquire(t, &l, other)
		first, second := ask(t.Context(), &l, root), ask(t.Context(), &l, root)
		apart := ask(t.Context(), &l, other)
		// Waits for both, in front of whom only the ones of root are refused.
		both := ask(t.Context(), &l, "/")
		h.Keep("proc-a")
		for _, r := range []*request{first, second, both} {
			if synctest.Wait(); !r.done {
				t.Fatal("a waiter was neither served nor refused")
			}
			wantBusy(t, r.err, "proc-a")
		}
		if !apart.waits() {
			t.Error("a process in one workspace ended the waiting in another")
		}
		elsewhere.Release()
		if !apart.holds() {
			t.Fatal("the waiter of the other workspace was not served")
		}
		apart.lease.Release()
		h.Release()
		wantNothing(t, &l)
	})
}

func TestScenario109_WhoWaitedBehindTheRefusedIsServed(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		h := mustAcquire(t, &l, root)
		wide := ask(t.Context(), &l, "/")     // waits for root
		behind := ask(t.Context(), &l, other) // waits behind it only
		if !behind.waits() {
			t.Fatal("it overtook a waiter that overlaps")
		}
		h.Keep("proc-a")
		synctest.Wait()
		wantBusy(t, wide.err, "proc-a")
		if !behind.holds() {
			t.Fatal("nobody is before it, and it waits")
		}
		behind.lease.Release()
		h.Release()
		wantNothing(t, &l)
	})
}

func TestScenario110_SpawnAbortWakesTheNext(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		spawning := mustAcquire(t, &l, root) // and no process comes of it
		next := ask(t.Context(), &l, root)
		spawning.Release()
		if !next.holds() {
			t.Fatal("the next is not served")
		}
		next.lease.Release()
		wantNothing(t, &l)
	})
}

func TestScenario114_TheEndOfAProcessKeepsWhatRequestsHold(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	var l Leases
	p, r := mustAcquire(t, &l, root), mustAcquire(t, &l, other)
	p.Keep("proc-a")
	p.Release()
	p.Release()
	l.mu.Lock()
	held := len(l.held)
	l.mu.Unlock()
	if held != 1 {
		t.Errorf("%d are held, want the request's", held)
	}
	r.Release()
	wantNothing(t, &l)
}
