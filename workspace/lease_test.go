package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"writ"
)

func mustAcquire(t *testing.T, l *Leases, root string) *Lease {
	t.Helper()
	h, err := l.Acquire(t.Context(), root)
	if err != nil {
		t.Fatalf("acquire %s: %v", root, err)
	}
	return h
}

// request is one that acquires root in the background.
type request struct {
	lease *Lease
	err   error
	done  bool
}

// ask begins a request and returns when it holds the root or waits. It must be called
// in a synctest bubble.
func ask(ctx context.Context, l *Leases, root string) *request {
	r := &request{}
	go func() { // ends with its lease, or with ctx
		r.lease, r.err = l.Acquire(ctx, root)
		r.done = true
	}()
	synctest.Wait()
	return r
}

func (r *request) holds() bool { synctest.Wait(); return r.done && r.err == nil }
func (r *request) waits() bool { synctest.Wait(); return !r.done }

// wantNothing fails when something is left in l.
func wantNothing(t *testing.T, l *Leases) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held)+len(l.waiting) > 0 {
		t.Errorf("%d held and %d waiting, want none", len(l.held), len(l.waiting))
	}
}

func TestScenario105_WaitersAreServedInOrder(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		a := mustAcquire(t, &l, root)
		b := ask(t.Context(), &l, root)
		c := ask(t.Context(), &l, root)
		if !b.waits() || !c.waits() {
			t.Fatal("two leases on one root are held at once")
		}
		a.Release()
		if !b.holds() || !c.waits() {
			t.Fatalf("after a: b holds %v, c waits %v", b.holds(), c.waits())
		}
		b.lease.Release()
		if !c.holds() {
			t.Fatal("c does not hold the root after b")
		}
		c.lease.Release()
		wantNothing(t, &l)
	})
}

func TestScenario107_CancelledWaiterLeavesNoPlace(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		a := mustAcquire(t, &l, root)
		ctx, cancel := context.WithCancel(t.Context())
		b := ask(ctx, &l, root)
		c := ask(t.Context(), &l, root)
		cancel()
		synctest.Wait()
		if !b.done || !errors.Is(b.err, context.Canceled) || b.lease != nil {
			t.Fatalf("the cancelled waiter got lease %v, error %v", b.lease, b.err)
		}
		a.Release()
		if !c.holds() {
			t.Fatal("the waiter behind the cancelled one does not hold the root")
		}
		c.lease.Release()
		wantNothing(t, &l)
	})
}

// A grant that races with a cancel goes to the next one (spec/02 §8.2).
func TestGrantToACancelledWaiterIsHandedOn(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		a := mustAcquire(t, &l, root)
		ctx, cancel := context.WithCancel(t.Context())
		b := ask(ctx, &l, root)
		c := ask(t.Context(), &l, root)
		// Both before b can run: it sees a lease that is granted and a request that is over.
		a.Release()
		cancel()
		if !c.holds() || !b.done || !errors.Is(b.err, context.Canceled) {
			t.Fatalf("b: %+v, c: %+v", b, c)
		}
		c.lease.Release()
		wantNothing(t, &l)
	})
}

func TestScenario112_OneWaiterTooMany(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		a := mustAcquire(t, &l, root)
		var waiting []*request
		for range MaxWaiters - 1 {
			waiting = append(waiting, ask(t.Context(), &l, root))
		}
		ctx, cancel := context.WithCancel(t.Context())
		goes := ask(ctx, &l, root)
		refused := func(when string) {
			t.Helper()
			if _, err := l.Acquire(t.Context(), root); writ.KindOf(err) != writ.Exhausted || writ.CodeOf(err) != CodeQueueFull {
				t.Fatalf("%s, one more: %v, want %s", when, err, CodeQueueFull)
			}
		}
		refused("64 wait")
		mustAcquire(t, &l, other).Release() // the bound is of each root

		goes.leaves(t, cancel, ctx)
		waiting = append(waiting, ask(t.Context(), &l, root))
		refused("one left and one came")

		a.Release()
		for n, w := range waiting {
			if !w.holds() {
				t.Fatalf("waiter %d does not hold the root in its turn: %v", n, w.err)
			}
			w.lease.Release()
		}
		wantNothing(t, &l)
	})
}

// leaves cancels and sees that the request is over.
func (r *request) leaves(t *testing.T, cancel func(), ctx context.Context) {
	t.Helper()
	cancel()
	synctest.Wait()
	if !r.done || !errors.Is(r.err, ctx.Err()) {
		t.Fatalf("a cancelled waiter: done %v, error %v", r.done, r.err)
	}
}

func TestScenario113_WorkspacesAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		dir := t.TempDir()
		a := mustAcquire(t, &l, filepath.Join(dir, "ab"))
		b := ask(t.Context(), &l, filepath.Join(dir, "a"))
		if !b.holds() {
			t.Fatal("a folder waits for another whose name begins as its own")
		}
		a.Release()
		b.lease.Release()
		wantNothing(t, &l)
	})
}

// Section 16 §17: the lease is of the root, not of the id or of the path's spelling.
func TestRootsThatOverlapExcludeEachOther(t *testing.T) {
	dir := t.TempDir()
	root, inner := filepath.Join(dir, "root"), filepath.Join(dir, "root", "in", "ner")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"toroot": root, "toinner": inner} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, held, asked string
		excluded          bool
	}{
		{"same", root, root, true},
		{"spelling", root, root + "/../root/./", true},
		{"symlink", root, filepath.Join(dir, "toroot"), true},
		{"beneath", root, inner, true},
		{"over", inner, root, true},
		{"symlink beneath", root, filepath.Join(dir, "toinner"), true},
		{"over a symlink", filepath.Join(dir, "toinner"), root, true},
		{"missing, beneath", root, filepath.Join(root, "none", "here"), true},
		{"missing, same", filepath.Join(dir, "none"), dir + "/toroot/../none", true},
		{"up from a symlink, beneath", root, dir + "/toinner/..", true},
		{"up from a symlink, same", filepath.Join(root, "in"), dir + "/toinner/..", true},
		{"missing beside", filepath.Join(root, "none"), inner, false},
		{"beside", inner, dir + "/other", false},
		{"everything", "/", inner, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l Leases
				a := mustAcquire(t, &l, c.held)
				b := ask(t.Context(), &l, c.asked)
				if b.waits() != c.excluded {
					t.Errorf("%s is held, %s waits: %v, want %v", c.held, c.asked, b.waits(), c.excluded)
				}
				a.Release()
				if !b.holds() {
					t.Fatal("the other is not held in the end")
				}
				b.lease.Release()
				wantNothing(t, &l)
			})
		})
	}
}

// A root over others waits for all of them and is not overtaken by those who came
// after it, while others go on.
func TestNobodyOvertakesAWaiterThatOverlaps(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		a, b := mustAcquire(t, &l, one), mustAcquire(t, &l, two)
		all := ask(t.Context(), &l, dir)
		late := ask(t.Context(), &l, one)
		a.Release()
		if !all.waits() || !late.waits() {
			t.Fatalf("over two, one of them held: waits %v; behind it: waits %v", all.waits(), late.waits())
		}
		b.Release()
		if !all.holds() || !late.waits() {
			t.Fatalf("over two: holds %v; behind it: waits %v", all.holds(), late.waits())
		}
		all.lease.Release()
		if !late.holds() {
			t.Fatal("the last one waits for nobody")
		}
		late.lease.Release()
		wantNothing(t, &l)
	})
}

// A waiter that leaves lets those behind it through, if they waited for it alone.
func TestACancelledWaiterLetsOthersThrough(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		a := mustAcquire(t, &l, one)
		ctx, cancel := context.WithCancel(t.Context())
		all := ask(ctx, &l, dir)
		behind := ask(t.Context(), &l, two)
		if !behind.waits() {
			t.Fatal("one who came later overtakes")
		}
		all.leaves(t, cancel, ctx)
		if !behind.holds() {
			t.Fatal("it waits for one who has left")
		}
		behind.lease.Release()
		a.Release()
		wantNothing(t, &l)
	})
}

func TestALeaseIsFreedOnEveryPath(t *testing.T) {
	root := t.TempDir()
	var l Leases
	func() {
		defer func() { _ = recover() }()
		h := mustAcquire(t, &l, root)
		defer h.Release()
		panic("in the middle of a patch")
	}()
	wantNothing(t, &l)

	// Twice is once: it must not free what another holds.
	a := mustAcquire(t, &l, root)
	a.Release()
	b := mustAcquire(t, &l, root)
	a.Release()
	if len(l.held) != 1 {
		t.Error("a second Release frees the lease of another")
	}
	b.Release()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if h, err := l.Acquire(ctx, root); h != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("a request that is over gets %v, %v", h, err)
	}
	if h, err := l.Acquire(t.Context(), "rel/ative"); h != nil || writ.KindOf(err) != writ.Invalid {
		t.Errorf("a relative root gets %v, %v", h, err)
	}
	wantNothing(t, &l)
}

// Many at once, some of which give up: never two that overlap, and nobody is forgotten.
func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	roots := []string{dir, filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "a", "x")}
	var l Leases
	var mu sync.Mutex
	var in []string // guarded by mu
	var all sync.WaitGroup
	for n := range 60 {
		root := roots[n%len(roots)]
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if n%5 == 0 {
				go cancel() // ends at once
			}
			h, err := l.Acquire(ctx, root)
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			defer h.Release()
			mu.Lock()
			for _, other := range in {
				if beneath(root, other) || beneath(other, root) {
					t.Errorf("%s and %s are held at once", root, other)
				}
			}
			in = append(in, root)
			mu.Unlock()
			runtime.Gosched()
			mu.Lock()
			in = slices.Delete(in, slices.Index(in, root), slices.Index(in, root)+1)
			mu.Unlock()
		})
	}
	all.Wait()
	wantNothing(t, &l)
}
