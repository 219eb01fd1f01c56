package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"writ"
	"writ/blob"
	"writ/internal/testkit"
	"writ/store"
)

// TestCP08_OnBothEngines is what must hold on both. The tests share a server.
func TestCP08_OnBothEngines(t *testing.T) {
	sqlite := func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "writ.db") }
	for engine, fresh := range map[string]func(testing.TB) string{"sqlite": sqlite, "postgres": testkit.Postgres(t)} {
		for name, test := range map[string]func(*testing.T, string){
			"one run at a time":                         oneRunAtATime,
			"a holder that was overtaken saves nothing": overtaken,
			"two runs come to one that is over":         twoRunsOfOneThatIsOver,
			"killed while it saves":                     killedWhileItSaves,
			"what was removed is one event":             removedIsOneEvent,
			"operators see and remove sessions":         operatorsRemove,
			"a store and a folder belong together":      bound,
		} {
			t.Run(engine+"/"+name, func(t *testing.T) { test(t, fresh(t)) })
		}
	}
}

const hint = "v2:user:0123456789abcdef"

func (d *desk) acquire(t testing.TB, p writ.Principal, hint string) *Runtime {
	t.Helper()
	r, err := NewRuntimes(d.Service).Acquire(context.Background(), p, hint, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(t, r) })
	return r
}

func release(t testing.TB, r *Runtime) {
	t.Helper()
	if err := r.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// input is a file with such bytes, which are put.
func (d *desk) input(t testing.TB, path, body string) writ.FileInput {
	t.Helper()
	k := d.kept(t, path, body)
	return writ.FileInput{Path: path, Digest: k.Digest, Size: k.Size}
}

func (d *desk) save(t testing.TB, r *Runtime, files ...writ.FileInput) {
	t.Helper()
	if err := r.Save(context.Background(), files); err != nil {
		t.Fatal(err)
	}
}

// bodies are what the checkpoint of r has, by path.
func (d *desk) bodies(t testing.TB, r *Runtime) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, f := range r.Files {
		body, err := d.read(f.Digest)
		if err != nil {
			t.Errorf("%s: %v", f.Path, err)
		}
		m[f.Path] = body
	}
	return m
}

func wantBusy(t testing.TB, what string, err error) {
	t.Helper()
	if writ.KindOf(err) != writ.Conflict || writ.CodeOf(err) != "runtime_session_busy" || writ.Message(err) != "Runtime session is busy" {
		t.Errorf("%s: %v, want it busy", what, err)
	}
}

// oneRunAtATime has runs on two gateways take turns: each finds what the one
// before it saved, and nobody else is there.
func oneRunAtATime(t *testing.T, url string) {
	d := newDeskAt(t, url, Defaults())
	desks := []*desk{d, d.sibling(t, url)}
	ada := user("ada")
	var inside, fresh atomic.Int64
	var wg sync.WaitGroup
	const runs, rounds = 4, 3
	for n := range runs {
		wg.Go(func() {
			d := desks[n%2]
			for range rounds {
				r, err := NewRuntimes(d.Service).Acquire(context.Background(), ada, hint, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two runs have one runtime session")
				}
				if r.New {
					fresh.Add(1)
				}
				if err := r.Save(context.Background(), append(r.Files, d.input(t, fmt.Sprint("n/", len(r.Files)), "same"))); err != nil {
					t.Error(err)
				}
				inside.Add(-1)
				release(t, r)
			}
		})
	}
	wg.Wait()
	r := d.acquire(t, ada, hint)
	if len(r.Files) != runs*rounds || fresh.Load() != 1 || r.New {
		t.Errorf("%d runs left %v, of which %d were the first", runs*rounds, r.Files, fresh.Load())
	}

	// Who waits is told, soon or after the wait; who is waited for is not disturbed.
	other := NewRuntimes(desks[1].Service)
	_, err := other.Acquire(context.Background(), ada, hint, 0)
	wantBusy(t, "no wait", err)
	_, err = other.Acquire(context.Background(), ada, hint, 2*runtimePoll)
	wantBusy(t, "a wait", err)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := other.Acquire(gone, ada, hint, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone: %v", err)
	}
	got := make(chan error)
	go func() {
		r, err := other.Acquire(context.Background(), ada, hint, time.Minute)
		if err == nil {
			err = r.Release(context.Background())
		}
		got <- err
	}()
	release(t, r)
	if err := testkit.Receive(t, "the one that waits", got); err != nil {
		t.Error(err)
	}
	if err := r.Save(context.Background(), nil); writ.CodeOf(err) != CodeRuntimeBusy {
		t.Errorf("saved after its release: %v", err)
	}
}

// TestRuntimeSessionsAreApart: one user, one hint, one checkpoint.
func TestRuntimeSessionsAreApart(t *testing.T) {
	d, ada := newDesk(t, Defaults()), user("ada")
	r := d.acquire(t, ada, hint)
	if r.ID != "rt_203b8f72075a6a8d4f1b08deb3ff87dd7aaece84" || !r.New || len(r.Files) != 0 {
		t.Errorf("first: %+v", r)
	}
	files := []writ.FileInput{d.input(t, "a.txt", "a"), d.input(t, "d/b.sh", "b"), d.input(t, "e/.dirkeep", "")}
	files[0].ReadOnly, files[1].Exec = true, true
	d.save(t, r, files...)
	release(t, r)
	for name, c := range map[string]struct {
		p    writ.Principal
		hint string
	}{
		"another user":                 {user("bob"), hint},
		"another tenant":               {writ.Principal{Kind: writ.KindUser, ID: "ada", Tenant: "evil"}, hint},
		"an agent of that name":        {writ.Principal{Kind: writ.KindAgent, ID: "ada", Tenant: "acme"}, hint},
		"an agent of the owner's name": {writ.Principal{Kind: writ.KindAgent, ID: "user:ada", Tenant: "acme"}, hint},
		"another hint":                 {ada, hint + "0"},
	} {
		other, err := NewRuntimes(d.Service).Acquire(context.Background(), c.p, c.hint, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !other.New || len(other.Files) != 0 || name != "an agent of that name" && other.ID == r.ID {
			t.Errorf("%s got %+v", name, other)
		}
		release(t, other)
	}
	again := d.acquire(t, ada, hint)
	if !slices.Equal(again.Files, files) || again.New || again.ID != r.ID {
		t.Errorf("the user again: %+v, want %v", again, files)
	}
	if got := d.bodies(t, again); len(got) != 3 || got["a.txt"] != "a" || got["d/b.sh"] != "b" {
		t.Errorf("bytes: %v", got)
	}
	d.save(t, again) // a run that removed everything
	release(t, again)
	if last := d.acquire(t, ada, hint); last.New || len(last.Files) != 0 {
		t.Errorf("after a run that left nothing: %+v", last)
	}
	// Joined with NULs, as the contract's ids are, these two are one.
	one, two := writ.Principal{Tenant: "a\x00b", ID: "c"}, writ.Principal{Tenant: "a", ID: "b\x00c"}
	if runtimeKey(one, hint) == runtimeKey(two, hint) || RuntimeID(one, hint) != RuntimeID(two, hint) {
		t.Error("two users whose names join the same share a checkpoint, or the ids are not the contract's")
	}
	// sha256sum of "acme\0ada\0v2:user:0123456789abcdef" (spec/03 §12).
	known := writ.Principal{Kind: writ.KindUser, Tenant: "acme", ID: "ada"}
	if got := RuntimeID(known, "v2:user:0123456789abcdef"); got != "rt_203b8f72075a6a8d4f1b08deb3ff87dd7aaece84" {
		t.Errorf("the id of a runtime session is %s", got)
	}
	if _, err := NewRuntimes(d.Service).Acquire(context.Background(), ada, "", 0); err == nil {
		t.Error("acquired without a hint")
	}
}

// overtaken lets a lease run out under who has it.
func overtaken(t *testing.T, url string) {
	d, ada, ctx := newDeskAt(t, url, Defaults()), user("ada"), context.Background()
	slow := d.acquire(t, ada, hint)
	d.pass(d.opt.RuntimeLease - time.Second)
	_, err := NewRuntimes(d.Service).Acquire(ctx, ada, hint, 0)
	wantBusy(t, "before the lease is over", err)
	d.pass(time.Second)
	quick := d.acquire(t, ada, hint)
	d.save(t, quick, d.input(t, "quick", "q"))
	wantBusy(t, "overtaken", slow.Save(ctx, []writ.FileInput{d.input(t, "slow", "s")}))
	release(t, slow) // what is another's by now stays that
	_, err = NewRuntimes(d.Service).Acquire(ctx, ada, hint, 0)
	wantBusy(t, "while the other has it", err)
	d.save(t, quick, d.input(t, "quick", "q"), d.input(t, "more", "m"))
	release(t, quick)
	release(t, quick)
	if got := d.bodies(t, d.acquire(t, ada, hint)); len(got) != 2 || got["quick"] != "q" || got["more"] != "m" {
		t.Errorf("left is %v", got)
	}
}

// TestLeaseIsRenewedUntilItIsLost watches the store.
func TestLeaseIsRenewedUntilItIsLost(t *testing.T) {
	opt := Defaults()
	opt.RuntimeLease = 3 * time.Second // of which a third passes here, and a slow disk does not lose it
	d, ctx := newDesk(t, opt), context.Background()
	ended, cancel := context.WithCancel(ctx)
	r, err := NewRuntimes(d.Service).Acquire(ended, user("ada"), hint, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, r)
	cancel() // of a client that went away; its run is still under way
	held := func() (until time.Time) {
		err := d.db.View(ctx, func(tx *store.Tx) error { is, err := tx.Runtime(ctx, r.key); until = is.Held; return err })
		if err != nil {
			t.Fatal(err)
		}
		return until
	}
	first := held()
	testkit.Eventually(t, "the lease is renewed", func() bool { return held().After(first) })
	select {
	case <-r.Lost():
		t.Error("lost while it is renewed")
	default:
	}
	err = d.db.Update(ctx, func(tx *store.Tx) error {
		is, err := tx.Runtime(ctx, r.key)
		is.Holder = "another"
		return errors.Join(err, tx.HoldRuntime(ctx, is))
	})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the holder learns that it is none", func() bool {
		select {
		case <-r.Lost():
			return true
		default:
			return false
		}
	})
}

// TestIO04_CheckpointsAreBounded: what is refused leaves the last checkpoint as it was.
func TestIO04_CheckpointsAreBounded(t *testing.T) {
	opt := Defaults()
	opt.Limits = Limits{SessionObjects: 9, SessionBytes: 100, TenantSessions: 9, TenantBytes: 12, RuntimeFiles: 3, RuntimeBytes: 10}
	d, ada, ctx := newDesk(t, opt), user("ada"), context.Background()
	r := d.acquire(t, ada, hint)
	d.save(t, r, d.input(t, "a", "12345"))
	a, b := d.input(t, "a", "123456"), d.input(t, "b", "12345")
	with := func(f writ.FileInput, change func(*writ.FileInput)) writ.FileInput { change(&f); return f }
	path := func(p string) func(*writ.FileInput) { return func(f *writ.FileInput) { f.Path = p } }
	for name, c := range map[string]struct {
		files []writ.FileInput
		kind  writ.Kind
		says  string
	}{
		"11 bytes":                 {[]writ.FileInput{a, b}, writ.Exhausted, "more than the 10 bytes"},
		"four files":               {[]writ.FileInput{b, with(b, path("c")), with(b, path("d")), with(b, path("e"))}, writ.Exhausted, "the most that is kept for the next run is 3"},
		"sizes that wrap around":   {[]writ.FileInput{with(a, func(f *writ.FileInput) { f.Size = 1 << 62 }), with(b, func(f *writ.FileInput) { f.Size = 1 << 62 })}, writ.Exhausted, "more than the 10 bytes"},
		"a size below zero":        {[]writ.FileInput{with(b, func(f *writ.FileInput) { f.Size = -5 })}, writ.Internal, ""},
		"one path twice":           {[]writ.FileInput{b, b}, writ.Internal, ""},
		"a path that leads out":    {[]writ.FileInput{with(b, path("../b"))}, writ.Internal, ""},
		"bytes that are not there": {[]writ.FileInput{{Path: "x", Digest: writ.DigestOf([]byte("none")), Size: 4}}, writ.Internal, ""},
		"another size":             {[]writ.FileInput{b, {Path: "x", Digest: b.Digest, Size: 4}}, writ.Internal, ""},
		"a digest that is none":    {[]writ.FileInput{{Path: "x", Digest: "../../x", Size: 4}}, writ.Internal, ""},
	} {
		if err := r.Save(ctx, c.files); err == nil || writ.KindOf(err) != c.kind || !strings.Contains(writ.Message(err), c.says) {
			t.Errorf("%s: %v, want %v, %q", name, err, c.kind, c.says)
		}
	}
	// Files of sessions and of runs that are to come share the tenant's room.
	s := d.create(t, ada, own)
	if _, err := d.Put(ctx, ada, own, s, text("f", "12345678")); writ.KindOf(err) != writ.Exhausted {
		t.Errorf("13 bytes of a tenant that may have 12: %v", err)
	}
	d.put(t, ada, own, s, text("f", "1234567"))
	if err := r.Save(ctx, []writ.FileInput{a}); writ.KindOf(err) != writ.Exhausted || !strings.Contains(writ.Message(err), "no room for 1 more bytes") {
		t.Errorf("13 bytes of a tenant that may have 12: %v", err)
	}
	release(t, r)
	r = d.acquire(t, ada, hint)
	if got := d.bodies(t, r); len(got) != 1 || got["a"] != "12345" || testTotals(t, d).Bytes != 12 {
		t.Errorf("left is %v; the tenant has %+v", got, testTotals(t, d))
	}
	d.save(t, r, d.input(t, "z", "12")) // less is always taken
	if got := testTotals(t, d).Bytes; got != 9 {
		t.Errorf("the tenant has %d bytes, want 9", got)
	}
}

// TestRuntimeSessionsEnd walks over their edges: what nobody uses is over after its time,
// and its bytes are kept until then and no longer.
func TestRuntimeSessionsEnd(t *testing.T) {
	d, ada := newDesk(t, Defaults()), user("ada")
	r := d.acquire(t, ada, hint)
	d.save(t, r, d.input(t, "a", "12345"))
	release(t, r)
	d.age(t)
	d.pass(d.opt.RuntimeTTL - time.Minute)
	if got := d.retain(t, false); got != (writ.FileRemoval{}) || d.blobs(t) != 1 {
		t.Errorf("before its end: %+v", got)
	}
	r = d.acquire(t, ada, hint) // used again: its time begins anew
	if r.New || len(r.Files) != 1 {
		t.Errorf("before its end: %+v", r)
	}
	release(t, r)
	d.pass(d.opt.RuntimeTTL + time.Millisecond)
	if over := d.acquire(t, ada, hint); !over.New || len(over.Files) != 0 {
		t.Errorf("over, and not removed yet: %+v", over)
	} else {
		d.save(t, over, d.input(t, "b", "123"))
		d.pass(d.opt.RuntimeTTL - d.opt.RuntimeLease) // a long run, whose lease the clock of this test left behind
		held := store.Runtime{Key: over.key, Holder: over.holder, Held: d.now().Add(d.opt.RuntimeLease), Used: d.now().Add(-2 * d.opt.RuntimeTTL)}
		if err := d.db.Update(context.Background(), func(tx *store.Tx) error { return tx.HoldRuntime(context.Background(), held) }); err != nil {
			t.Fatal(err)
		}
		if got := d.retain(t, false); got.Runtimes != 0 {
			t.Errorf("removed under its holder: %+v", got)
		}
		release(t, over)
	}
	d.pass(d.opt.RuntimeTTL + time.Second)
	d.age(t)
	want := writ.FileRemoval{Runtimes: 1, RuntimeBytes: 3}
	if got := d.retain(t, true); got != want || d.blobs(t) != 1 {
		t.Errorf("a dry pass: %+v, %d blobs", got, d.blobs(t))
	}
	want.Blobs, want.BlobBytes = 1, 3
	if got := d.retain(t, false); got != want || d.blobs(t) != 0 || testTotals(t, d) != (writ.SessionTotals{}) {
		t.Errorf("a pass: %+v, %d blobs, %+v", got, d.blobs(t), testTotals(t, d))
	}
}

// saveForEver takes a runtime session, looks whether it is one generation, saves the next,
// and says so.
func saveForEver(ctx context.Context, s *Service) error {
	for {
		r, err := NewRuntimes(s).Acquire(ctx, user("ada"), hint, time.Minute)
		if err != nil {
			return err
		}
		n, err := generation(ctx, s, r)
		if err != nil {
			return err
		}
		var files []writ.FileInput
		for i := range 20 {
			body := fmt.Sprint(n+1, " ", i)
			digest, size, err := s.blobs.Put(ctx, strings.NewReader(body), 100)
			if err != nil {
				return err
			}
			files = append(files, writ.FileInput{Path: fmt.Sprint("f", i), Digest: digest, Size: size})
		}
		fmt.Println("saving", n+1)
		if err := r.Save(ctx, files); err != nil {
			return err
		}
		fmt.Println("saved", n+1)
		if err := r.Release(ctx); err != nil {
			return err
		}
	}
}

// generation is that of a checkpoint, 0 for none. Files of two are an error.
func generation(ctx context.Context, s *Service, r *Runtime) (n int, err error) {
	d := &desk{Service: s}
	for i, f := range r.Files {
		body, err := d.read(f.Digest)
		if err != nil {
			return 0, err
		}
		var of, place int
		if _, err := fmt.Sscan(body, &of, &place); err != nil || i > 0 && of != n || place != i {
			return 0, fmt.Errorf("file %d of generation %d has %q", i, n, body)
		}
		n = of
	}
	if len(r.Files) != 20 && len(r.Files) != 0 {
		return 0, fmt.Errorf("a checkpoint of %d files", len(r.Files))
	}
	return n, nil
}

// killedWhileItSaves kills a process that has a runtime session, again and again: the
// next one gets it once the lease is over, with the last checkpoint, whole.
func killedWhileItSaves(t *testing.T, url string) {
	dir, ctx := t.TempDir(), context.Background()
	for round := range 2 {
		cmd, lines := startChild(t, "runtime", dir, url)
		saving, saved := 0, 0
		for n := 0; lines.Scan(); n++ {
			if n == 4+round { // in the middle of a save, or of what comes after it
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			var what string
			var of int
			if _, err := fmt.Sscan(lines.Text(), &what, &of); err != nil {
				t.Fatalf("the child says %q", lines.Text())
			}
			switch what {
			case "saving":
				saving = of
			case "saved":
				saved = of
			default:
				t.Fatalf("the child says %q", lines.Text())
			}
		}
		_ = cmd.Wait() // killed
		func() {
			blobs, err := blob.OpenFolder(filepath.Join(dir, "blobs"))
			if err != nil {
				t.Fatal(err)
			}
			defer blobs.Close()
			db, err := store.Open(ctx, url, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			s, err := New(db, blobs, killOptions())
			if err != nil {
				t.Fatal(err)
			}
			r, err := NewRuntimes(s).Acquire(ctx, user("ada"), hint, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			defer release(t, r)
			if n, err := generation(ctx, s, r); err != nil || n != saved && n != saving {
				t.Errorf("generation %d (%v), of %d that was saved and %d that was being saved", n, err, saved, saving)
			}
		}()
	}
}
