package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/blob"
	"writ/internal/testkit"
	"writ/store"
)

// ledger is a log of events that can be made to fail.
type ledger struct {
	events []writ.Event
	err    error
}

func (l *ledger) record(_ context.Context, _ *store.Tx, e writ.Event) error {
	if l.err == nil {
		l.events = append(l.events, e)
	}
	return l.err
}

// take answers the events since the last time.
func (l *ledger) take() []writ.Event {
	es := l.events
	l.events = nil
	return es
}

// removedIsOneEvent: a pass that removed something is one event with counts, whoever began
// it; what a pass could not record is in the next one's, and until then nothing is removed.
func removedIsOneEvent(t *testing.T, url string) {
	var log ledger
	opt := Defaults()
	opt.Record = log.record
	d, ada, ctx := newDeskAt(t, url, opt), user("ada"), context.Background()
	fill := func(body string) {
		d.put(t, ada, own, d.create(t, ada, own), text("secret.txt", body))
	}
	removed := func(by writ.Ref, r writ.FileRemoval) []writ.Event {
		return []writ.Event{{Type: writ.EventFilesRemoved, Actor: by, Data: writ.EventData{Removed: &r}}}
	}
	check := func(what string, want []writ.Event) {
		t.Helper()
		if d := cmp.Diff(want, log.take()); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	fill("one")
	fill("two!")
	r := d.acquire(t, ada, hint)
	d.save(t, r, d.input(t, "a", "12345"))
	release(t, r)
	d.retain(t, false)
	check("nothing was over", nil)
	d.pass(opt.TTL + opt.Retention + time.Minute)
	d.retain(t, true)
	check("a dry pass", nil)
	root := writ.Ref{Kind: writ.KindLocal, ID: "0"}
	got, err := d.Retain(ctx, root, false)
	want := writ.FileRemoval{Sessions: 2, Objects: 2, Bytes: 7, Runtimes: 1, RuntimeBytes: 5, Blobs: 3, BlobBytes: 12}
	if got != want || err != nil {
		t.Errorf("removed %+v, %v, want %+v", got, err, want)
	}
	check("a pass", removed(root, want))
	d.retain(t, false)
	check("there was nothing more", nil)

	fill("three")
	d.pass(opt.TTL + opt.Retention + time.Minute)
	log.err = errors.New("the log is damaged")
	if got, err := d.Retain(ctx, root, false); got.Sessions != 1 || !errors.Is(err, log.err) {
		t.Errorf("a pass that cannot be recorded: %+v, %v", got, err)
	}
	fill("four")
	d.pass(opt.TTL + opt.Retention + time.Minute)
	if got, err := d.Retain(ctx, root, false); got != (writ.FileRemoval{}) || !errors.Is(err, log.err) {
		t.Errorf("while what was removed is not recorded: %+v, %v", got, err)
	}
	log.err = nil
	d.retain(t, false)
	check("once it can be", slices.Concat(
		removed(writ.Ref{}, writ.FileRemoval{Sessions: 1, Objects: 1, Bytes: 5, Blobs: 1, BlobBytes: 5}),
		removed(writ.Ref{}, writ.FileRemoval{Sessions: 1, Objects: 1, Bytes: 4, Blobs: 1, BlobBytes: 4})))

	// A pass that is told to end says what it did until then; so does the next after a crash.
	fill("five")
	d.pass(opt.TTL + opt.Retention + time.Minute)
	crashed := pass{s: d.Service}
	if err := crashed.sessions(ctx); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := d.Retain(ended, root, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a pass that was told to end: %v", err)
	}
	check("before it", nil)
	d.retain(t, false)
	check("after a crash", slices.Concat(
		removed(writ.Ref{}, writ.FileRemoval{Sessions: 1, Objects: 1, Bytes: 4}), removed(writ.Ref{}, writ.FileRemoval{Blobs: 1, BlobBytes: 4})))
}

// operatorsRemove: an operator sees and removes the sessions of its tenant, the owner of the
// data folder those of all, and nobody else any; the bytes go too, but for those that
// somebody else names or that a writer may be about to name.
func operatorsRemove(t *testing.T, url string) {
	var log ledger
	opt := Defaults()
	opt.Record = log.record
	d, ctx := newDeskAt(t, url, opt), context.Background()
	ada, eve := user("ada"), writ.Principal{Kind: writ.KindUser, ID: "eve", Tenant: "evil"}
	hers, other := d.create(t, ada, own), d.create(t, ada, Entity{Kind: writ.EntityAgent, ID: "team"})
	evil := d.create(t, eve, own)
	first := d.put(t, ada, own, hers, text("a/secret.txt", "secret"))
	second := d.put(t, ada, own, hers, text("twin.txt", "secret"))
	d.put(t, ada, own, hers, text("shared.txt", "shared"))
	d.put(t, eve, own, evil, text("theirs.txt", "shared"))
	// These bytes are old: nobody is about to name them.
	for _, body := range []string{"secret", "shared"} {
		old := time.Now().Add(-2 * opt.Grace)
		if err := os.Chtimes(filepath.Join(d.dir, "blobs", string(writ.DigestOf([]byte(body)))), old, old); err != nil {
			t.Fatal(err)
		}
	}
	young := d.put(t, ada, own, hers, text("young.txt", "young!!"))

	local := writ.Principal{Kind: writ.KindLocal, ID: "0", Tenant: writ.DefaultTenant}
	operator := func(t writ.Tenant) writ.Principal {
		return writ.Principal{Kind: writ.KindOperator, ID: "op", Tenant: t}
	}
	for _, c := range []struct {
		name   string
		who    writ.Principal
		tenant writ.Tenant // asked for
		lists  int         // how many, below zero when it is denied
		shows  bool        // ada's
	}{
		{"owner", local, "", 3, true},
		{"owner, of one tenant", local, "evil", 1, true},
		{"operator", operator("acme"), "", 2, true},
		{"operator, of another tenant", operator("acme"), "evil", 2, true},
		{"foreign operator", operator("evil"), "acme", 1, false},
		{"user", ada, "acme", -1, false},
		{"agent", writ.Principal{Kind: writ.KindAgent, ID: "a", Tenant: "acme"}, "", -1, false},
	} {
		list, next, err := d.Sessions(ctx, c.who, writ.SessionFilter{Tenant: c.tenant})
		if (c.lists < 0) != (writ.KindOf(err) == writ.Denied) || len(list) != max(c.lists, 0) || next != "" {
			t.Errorf("%s lists %v, %q, %v", c.name, list, next, err)
		}
		got, err := d.Contents(ctx, c.who, hers)
		want := writ.NotFound
		if c.lists < 0 {
			want = writ.Denied
		}
		if c.shows && (err != nil || len(got.Files) != 4 || got.Files[0].Name != first.Name || got.ID != hers) || !c.shows && writ.KindOf(err) != want {
			t.Errorf("%s is shown %+v, %v", c.name, got, err)
		}
		if c.shows {
			continue
		}
		if r, err := d.Remove(ctx, c.who, hers); writ.KindOf(err) != want || r != (writ.FileRemoval{}) {
			t.Errorf("%s removes %+v, %v", c.name, r, err)
		}
	}
	if _, err := d.Remove(ctx, local, "../none"); writ.KindOf(err) != writ.NotFound {
		t.Errorf("one that is not there: %v", err)
	}
	log.err = errors.New("the log is damaged")
	if r, err := d.Remove(ctx, local, hers); !errors.Is(err, log.err) || r != (writ.FileRemoval{}) {
		t.Errorf("without a record: %+v, %v", r, err)
	}
	log.err = nil
	if got, err := d.bytesOf(ada, own, hers, first.ID); got != "secret" || err != nil || len(log.take()) != 0 {
		t.Fatalf("after all that were refused: %q, %v", got, err)
	}

	who := operator("acme")
	r, err := d.Remove(ctx, who, hers)
	if want := (writ.FileRemoval{Sessions: 1, Objects: 4, Bytes: 25, Blobs: 1, BlobBytes: 6}); r != want || err != nil {
		t.Errorf("removed %+v, %v, want %+v", r, err, want)
	}
	rows := writ.FileRemoval{Sessions: 1, Objects: 4, Bytes: 25}
	if diff := cmp.Diff([]writ.Event{{Type: writ.EventSessionRemoved, Tenant: "acme", Actor: who.Ref(),
		Data: writ.EventData{Subject: string(hers), Removed: &rows}}}, log.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for _, o := range []writ.Object{first, second, young} {
		if _, err := d.Get(ctx, ada, own, hers, o.ID); writ.KindOf(err) != writ.NotFound {
			t.Errorf("%s is still there: %v", o.Name, err)
		}
	}
	if got, err := d.read(young.SHA256); got != "young!!" || err != nil {
		t.Errorf("bytes that somebody may be about to name: %q, %v", got, err)
	}
	if _, err := d.read(first.SHA256); writ.KindOf(err) != writ.NotFound {
		t.Errorf("bytes that nobody names: %v", err)
	}
	if got, err := d.read(writ.DigestOf([]byte("shared"))); got != "shared" || err != nil {
		t.Errorf("bytes that another tenant names: %q, %v", got, err)
	}
	if _, err := d.Find(ctx, ada, Entity{Kind: writ.EntityAgent, ID: "team"}, other); err != nil {
		t.Errorf("another session: %v", err)
	}
	if _, err := d.Remove(ctx, who, hers); writ.KindOf(err) != writ.NotFound {
		t.Errorf("again: %v", err)
	}
	d.pass(opt.Grace + time.Minute)
	want := writ.FileRemoval{Blobs: 1, BlobBytes: 7}
	if r := d.retain(t, false); r != want {
		t.Errorf("the next pass removes %+v, want %+v", r, want)
	}
	if es := log.take(); len(es) != 1 || *es[0].Data.Removed != want {
		t.Errorf("its event is %+v, want %+v", es, want)
	}
}

// bound: gateways of one store have one folder, and a folder is of one store, also when
// they start at one moment, and when the first of them died as it started.
func bound(t *testing.T, url string) {
	ctx := context.Background()
	db := testkit.OpenStore(t, url)
	other := testkit.OpenStore(t, "sqlite:"+filepath.Join(t.TempDir(), "writ.db"))
	folder := func(dir string) *blob.Folder {
		f, err := blob.OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	errs := make([]error, 6)
	var wg sync.WaitGroup
	for i := range errs {
		f := folder(dirs[i%2])
		wg.Go(func() { errs[i] = Bind(ctx, db, f) })
	}
	wg.Wait()
	first := 0
	if errs[0] != nil {
		first = 1
	}
	for i, err := range errs {
		if i%2 == first && err != nil || i%2 != first && writ.KindOf(err) != writ.Unavailable {
			t.Errorf("start %d, where folder %d was first: %v", i, first, err)
		}
	}
	mine, another := folder(dirs[first]), folder(dirs[1-first])
	if err := Bind(ctx, db, mine); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := Bind(ctx, other, mine); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("another database takes the folder: %v", err)
	}
	if owner, err := another.Owner(); owner != "" || err != nil {
		t.Errorf("the folder that was refused is %q's, %v", owner, err)
	}
	// What the message says for files that are lost.
	owner, err := mine.Owner()
	if err := errors.Join(err, os.WriteFile(filepath.Join(dirs[1-first], "owner"), []byte(owner+"\n"), 0o600), Bind(ctx, db, another)); err != nil {
		t.Errorf("the folder that was given to it by hand: %v", err)
	}

	// A crash after the folder had its name and before that was stored.
	early := folder(filepath.Join(t.TempDir(), "c"))
	var is store.BlobFolder
	err = other.Update(ctx, func(tx *store.Tx) (err error) { is, err = tx.BlobFolder(ctx, "x"); return err })
	if err := errors.Join(err, early.Own(is.Owner), Bind(ctx, other, early)); err != nil || is.Claimed {
		t.Errorf("after a crash: %+v, %v", is, err)
	}
	if err := Bind(ctx, other, folder(filepath.Join(t.TempDir(), "d"))); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("another folder after it: %v", err)
	}
}
