package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/store"
)

func (d *desk) retain(t testing.TB, dry bool) writ.FileRemoval {
	t.Helper()
	r, err := d.Retain(context.Background(), writ.Ref{}, dry)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestScenario191_192_Retain walks over the edges: a session ends at its TTL, and is
// removed after the retention, not at it; a dry pass only counts.
func TestScenario191_192_Retain(t *testing.T) {
	d, ada, ctx := newDesk(t, Defaults()), user("ada"), context.Background()
	s := d.create(t, ada, own)
	o := d.put(t, ada, own, s, text("a", "123"))
	gone := d.put(t, ada, own, s, text("b", "12345"))
	if err := d.Delete(ctx, ada, own, s, gone.ID); err != nil {
		t.Fatal(err)
	}
	// The clock of this test stands, but for what it is told.
	start := d.now()
	at := func(since time.Duration) { d.now = func() time.Time { return start.Add(since) } }
	made, err := d.Find(ctx, ada, own, s)
	if err != nil {
		t.Fatal(err)
	}
	end := made.Expires.Sub(start)
	at(end - time.Millisecond)
	if got, err := d.bytesOf(ada, own, s, o.ID); got != "123" || err != nil {
		t.Errorf("at its last moment: %q, %v", got, err)
	}
	at(end)
	if _, err := d.Find(ctx, ada, own, s); writ.KindOf(err) != writ.NotFound {
		t.Errorf("at its end: %v", err)
	}
	at(end + d.opt.Retention)
	if r := d.retain(t, true); r != (writ.FileRemoval{Blobs: 1, BlobBytes: 5}) || d.blobs(t) != 2 {
		t.Errorf("a dry pass at the cut-off: %+v, %d blobs", r, d.blobs(t))
	}
	if r := d.retain(t, false); r != (writ.FileRemoval{Blobs: 1, BlobBytes: 5}) || d.blobs(t) != 1 {
		t.Errorf("at the cut-off: %+v, %d blobs", r, d.blobs(t))
	}
	at(end + d.opt.Retention + time.Millisecond)
	want := writ.FileRemoval{Sessions: 1, Objects: 1, Bytes: 3}
	if r := d.retain(t, true); r != want || d.blobs(t) != 1 || testTotals(t, d).Sessions != 1 {
		t.Errorf("a dry pass after it: %+v, %d blobs", r, d.blobs(t))
	}
	want.Blobs, want.BlobBytes = 1, 3
	if r := d.retain(t, false); r != want || d.blobs(t) != 0 || testTotals(t, d) != (writ.SessionTotals{}) {
		t.Errorf("after it: %+v, %d blobs, %+v", r, d.blobs(t), testTotals(t, d))
	}
	if r := d.retain(t, false); r != (writ.FileRemoval{}) {
		t.Errorf("again: %+v", r)
	}
}

// TestScenario190_196_ManySessionsAndTwoPasses has two passes over more sessions than a
// page: each is removed once.
func TestScenario190_196_ManySessionsAndTwoPasses(t *testing.T) {
	d, ctx := newDesk(t, Defaults()), context.Background()
	const n = retainPage + 5
	err := d.db.Update(ctx, func(tx *store.Tx) error {
		for i := range n {
			at := writ.Now().Add(time.Duration(-i/50) * time.Second) // many at one moment
			if err := tx.InsertSession(ctx, writ.Session{ID: writ.NewSessionID(), Tenant: "acme", Created: at, Expires: at}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d.pass(d.opt.Retention + time.Minute)
	if r := d.retain(t, true); r.Sessions != n {
		t.Errorf("a dry pass counts %+v, want %d", r, n)
	}
	var wg sync.WaitGroup
	removed := make([]writ.FileRemoval, 2)
	for i := range removed {
		wg.Go(func() { removed[i] = d.retain(t, false) })
	}
	wg.Wait()
	if got := removed[0].Sessions + removed[1].Sessions; got != n || testTotals(t, d).Sessions != 0 {
		t.Errorf("removed %+v, together %d, want %d", removed, got, n)
	}
}

// TestScenario193_SweepUnderWriters puts bytes that are there, old and unused, while they
// are swept: an object always has its bytes.
func TestScenario193_SweepUnderWriters(t *testing.T) {
	opt := Defaults()
	opt.Grace = time.Minute
	d, ada, ctx := newDesk(t, opt), user("ada"), context.Background()
	s := d.create(t, ada, own)
	stop := make(chan struct{})
	var sweeps, writers sync.WaitGroup
	var putting sync.RWMutex // held by who puts: nothing that is on its way is made older
	sweeps.Go(func() {
		old := time.Now().Add(-time.Hour)
		for {
			select {
			case <-stop:
				return
			default:
			}
			putting.Lock()
			files, err := filepath.Glob(filepath.Join(d.dir, "blobs", "*"))
			for _, f := range files {
				err = errors.Join(err, os.Chtimes(f, old, old))
			}
			putting.Unlock()
			if err != nil {
				t.Error(err)
			}
			d.retain(t, false)
		}
	})
	for w := range 4 {
		writers.Go(func() {
			for i := range 8 {
				body := fmt.Sprint("text ", i%3)
				putting.RLock()
				o, err := d.Put(ctx, ada, own, s, text(fmt.Sprint(w, "-", i), body))
				putting.RUnlock()
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := d.bytesOf(ada, own, s, o.ID); got != body || err != nil {
					t.Errorf("an object without its bytes: %q, %v", got, err)
				}
				if err := d.Delete(ctx, ada, own, s, o.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	sweeps.Wait()
}

// TestCrashLeavesBytesWithoutARowAndNeverTheOther leaves what a process leaves that ends
// between bytes and row, and one that ends after a deletion.
func TestCrashLeavesBytesWithoutARowAndNeverTheOther(t *testing.T) {
	d, ada, ctx := newDesk(t, Defaults()), user("ada"), context.Background()
	s := d.create(t, ada, own)
	kept := d.put(t, ada, own, s, text("kept", "kept"))
	if _, _, err := d.Service.blobs.Put(ctx, text("", "orphan").Body, 100); err != nil {
		t.Fatal(err)
	}
	d.put(t, ada, own, s, text("twin", "kept"))
	if err := d.Delete(ctx, ada, own, s, kept.ID); err != nil {
		t.Fatal(err)
	}
	if r := d.retain(t, false); r != (writ.FileRemoval{}) || d.blobs(t) != 2 {
		t.Errorf("within the grace: %+v", r)
	}
	d.pass(d.opt.Grace + time.Second)
	if r := d.retain(t, false); r != (writ.FileRemoval{Blobs: 1, BlobBytes: 6}) || d.blobs(t) != 1 {
		t.Errorf("after it: %+v", r)
	}
	os, err := d.List(ctx, ada, own, s)
	if err != nil || len(os) != 1 {
		t.Fatal(os, err)
	}
	if got, err := d.bytesOf(ada, own, s, os[0].ID); got != "kept" || err != nil {
		t.Errorf("the twin of what was deleted: %q, %v", got, err)
	}
}

// TestRowWithinItsTime: an object whose row would be late for its bytes is none.
func TestRowWithinItsTime(t *testing.T) {
	opt := Defaults()
	opt.Grace = 2 * time.Nanosecond
	d, ada, ctx := newDesk(t, opt), user("ada"), context.Background()
	s := d.create(t, ada, own)
	if _, err := d.Put(ctx, ada, own, s, text("late", "late")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want it to be late", err)
	}
	if os, err := d.List(ctx, ada, own, s); len(os) != 0 || err != nil {
		t.Errorf("listed %v, %v", os, err)
	}
}

func TestWatch(t *testing.T) {
	d, ada := newDesk(t, Defaults()), user("ada")
	s := d.create(t, ada, own)
	d.put(t, ada, own, s, text("a", "1"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	passes := 0
	d.Watch(ctx, time.Millisecond, false, func(r writ.FileRemoval, err error) {
		switch passes++; passes {
		case 1:
			if r != (writ.FileRemoval{}) || err != nil {
				t.Errorf("the first pass: %+v, %v", r, err)
			}
			d.pass(d.opt.TTL + d.opt.Retention + time.Second)
		case 2:
			if r.Sessions != 1 || r.Blobs != 1 || err != nil {
				t.Errorf("the second pass: %+v, %v", r, err)
			}
			cancel()
		}
	})
	if passes < 2 {
		t.Errorf("%d passes", passes)
	}
}

// TestRetainTakesWhatUsersRanAndCounts: the bodies of a user's runs go as late as the
// session that they made, those of agents stay; a dry pass says what a real one does; and
// operators are told what is kept and what was removed.
func TestRetainTakesWhatUsersRanAndCounts(t *testing.T) {
	d, ada, ctx := newDesk(t, Defaults()), user("ada"), context.Background()
	// The clock of this test stands, but for what it is told.
	ended := d.now()
	at := func(since time.Duration) { d.now = func() time.Time { return ended.Add(since) } }
	at(0)
	s := d.create(t, ada, own)
	d.put(t, ada, own, s, text("a", "123"))
	r := d.acquire(t, ada, hint)
	d.save(t, r, d.input(t, "a", "12345"))
	release(t, r)
	agent := writ.Principal{Kind: writ.KindAgent, ID: "ada", Tenant: "acme"}
	const n = retainPage + 3
	err := d.db.Update(ctx, func(tx *store.Tx) error {
		for i := range n + 1 {
			task := writ.Task{ID: writ.TaskID(fmt.Sprint("t", i)), Tenant: "acme", Identity: ada.Owner(), State: writ.TaskSucceeded, Created: ended, Updated: ended}
			if i == n {
				task.Identity = agent.Owner()
			}
			if err := errors.Join(tx.InsertTask(ctx, task), tx.PutBody(ctx, task.ID, store.BodyStdout, []byte("secret"))); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range n {
		_, _, counted := d.db.Count(ctx, writ.Digest(fmt.Sprint(i)), ended, 30*time.Second, 20)
		err = errors.Join(err, counted)
	}
	if err != nil {
		t.Fatal(err)
	}
	body := func(id string) error {
		return d.db.View(ctx, func(tx *store.Tx) error { _, err := tx.Body(ctx, writ.TaskID(id), store.BodyStdout); return err })
	}
	counts := func() (n int64) {
		t.Helper()
		only := errors.New("only counted")
		err := d.db.Update(ctx, func(tx *store.Tx) (err error) {
			if n, err = tx.DeleteCounts(ctx, d.now(), 2*retainPage); err == nil {
				err = only
			}
			return err
		})
		if !errors.Is(err, only) {
			t.Fatal(err)
		}
		return n
	}
	usage := func() writ.FileUsage {
		t.Helper()
		u, err := d.Usage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	if u := usage(); u != (writ.FileUsage{Sessions: 1, Objects: 1, Bytes: 3, Runtimes: 1, RuntimeBytes: 5}) {
		t.Errorf("kept are %+v", u)
	}
	pass := func(want writ.FileRemoval, blobs, bytes int64) { // blobs that nobody names after the pass
		t.Helper()
		before := usage().Removed
		if got := d.retain(t, true); got != want {
			t.Errorf("a dry pass: %+v, want %+v", got, want)
		}
		want.Blobs, want.BlobBytes = blobs, bytes
		if got := d.retain(t, false); got != want {
			t.Errorf("a pass: %+v, want %+v", got, want)
		}
		before.Add(want)
		if got := usage().Removed; got != before {
			t.Errorf("removed are %+v, want %+v", got, before)
		}
	}
	at(30*time.Second + countsGrace)
	pass(writ.FileRemoval{}, 0, 0)
	at(30*time.Second + countsGrace + time.Millisecond)
	if got := counts(); got != n {
		t.Errorf("before their pass there are %d counts, want %d", got, n)
	}
	pass(writ.FileRemoval{}, 0, 0)
	if got := counts(); got != 0 {
		t.Errorf("after it there are %d", got)
	}
	at(d.opt.TTL + d.opt.Retention)
	pass(writ.FileRemoval{Runtimes: 1, RuntimeBytes: 5}, 1, 5)
	if err := body("t0"); err != nil {
		t.Errorf("a body within its time: %v", err)
	}
	at(d.opt.TTL + d.opt.Retention + time.Millisecond)
	pass(writ.FileRemoval{Sessions: 1, Objects: 1, Bytes: 3, Bodies: n}, 1, 3)
	for i := range n + 1 {
		if err := body(fmt.Sprint("t", i)); i < n && writ.KindOf(err) != writ.NotFound || i == n && err != nil {
			t.Errorf("a body of task %d after its time, the last being an agent's: %v", i, err)
		}
	}
	pass(writ.FileRemoval{}, 0, 0)
	u := usage()
	if u.Removed = (writ.FileRemoval{}); u != (writ.FileUsage{}) {
		t.Errorf("in the end are kept %+v", u)
	}
}
