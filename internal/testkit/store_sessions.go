package testkit

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/store"
)

func newSession(tenant writ.Tenant) writ.Session {
	return writ.Session{
		ID: writ.NewSessionID(), Tenant: tenant, By: writ.Ref{Kind: writ.KindUser, ID: "ada:1"}, Kind: writ.EntityUser,
		Key: writ.DigestOf([]byte("ada")), Created: epoch, Expires: epoch.Add(24 * time.Hour),
	}
}

func newObject(s writ.Session, name, text string) writ.Object {
	return writ.Object{
		ID: writ.NewObjectID(), Session: s.ID, Name: name, Type: "text/plain", Size: int64(len(text)),
		SHA256: writ.DigestOf([]byte(text)), Created: epoch,
	}
}

func insertSessions(t testing.TB, db *store.DB, ss ...writ.Session) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		for _, s := range ss {
			if err := tx.InsertSession(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

func insertObjects(t testing.TB, db *store.DB, os ...writ.Object) {
	t.Helper()
	for _, o := range os {
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			s, err := tx.Session(ctx, o.Session)
			if err != nil {
				return err
			}
			return tx.InsertObject(ctx, s, o)
		})
	}
}

func sessionRoundTrip(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	want, other := newSession("te:nant ☃"), newSession("acme")
	insertSessions(t, db, want, other)
	a, b, c := newObject(want, "a.txt", "same"), newObject(want, "d\x00ir/ä №\u202e.csv", "same"), newObject(other, "c", "")
	a.ReadOnly, a.Created = true, epoch.Add(time.Second)
	b.ModifiedFrom = &writ.ObjectRef{ID: a.ID, Session: a.Session}
	insertObjects(t, db, a, b, c)
	want.Objects, want.Bytes = 2, 8
	got := view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Session, error) { return tx.Session(ctx, want.ID) })
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("session changed (-stored +read):\n%s", d)
	}
	list := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Object, error) { return tx.Objects(ctx, want.ID, 10) })
	if d := cmp.Diff([]writ.Object{b, a}, list); d != "" {
		t.Errorf("objects changed (-stored +read):\n%s", d)
	}
	first := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Object, error) { return tx.Objects(ctx, want.ID, 1) })
	if len(first) != 1 {
		t.Errorf("one object was asked for, got %v", first)
	}
	view(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
		o, err := tx.Object(ctx, want.ID, b.ID)
		if d := cmp.Diff(b, o); d != "" {
			t.Errorf("object changed (-stored +read):\n%s", d)
		}
		_, missing := tx.Object(ctx, other.ID, b.ID)
		wantKind(t, "object of another session", missing, writ.NotFound)
		_, missing = tx.Object(ctx, want.ID, "a\x00b")
		wantKind(t, "object with a NUL", missing, writ.NotFound)
		_, missing = tx.Session(ctx, "none")
		wantKind(t, "session that is not there", missing, writ.NotFound)
		used, err1 := tx.UsedDigests(ctx, []writ.Digest{a.SHA256, writ.DigestOf([]byte("none")), c.SHA256})
		slices.Sort(used)
		wantUsed := []writ.Digest{a.SHA256, c.SHA256}
		slices.Sort(wantUsed)
		if !slices.Equal(used, wantUsed) || err1 != nil {
			t.Errorf("used are %v, %v, want %v", used, err1, wantUsed)
		}
		none, err1 := tx.UsedDigests(ctx, nil)
		if len(none) != 0 || err1 != nil {
			t.Errorf("of no digests used are %v, %v", none, err1)
		}
		return 0, err
	})
	wantKind(t, "a session twice", db.Update(ctx, func(tx *store.Tx) error { return tx.InsertSession(ctx, other) }), writ.Conflict)
	wantKind(t, "an object twice", db.Update(ctx, func(tx *store.Tx) error { return tx.InsertObject(ctx, want, c) }), writ.Conflict)
	lost := newSession("acme")
	if err := db.Update(ctx, func(tx *store.Tx) error { return tx.InsertObject(ctx, lost, newObject(lost, "x", "x")) }); err == nil {
		t.Error("an object of no session was stored")
	}
}

func totalsOf(t testing.TB, db *store.DB, tenant writ.Tenant) writ.SessionTotals {
	t.Helper()
	return view(t, db, func(ctx context.Context, tx *store.Tx) (writ.SessionTotals, error) {
		return tx.SessionTotals(ctx, tenant)
	})
}

func sessionTotals(t *testing.T, s storeSuite) {
	db := s.open(t)
	one, two, other := newSession("acme"), newSession("acme"), newSession("evil")
	insertSessions(t, db, one, two, other)
	a, b, c, d := newObject(one, "a", "12345"), newObject(one, "b", "678"), newObject(two, "c", "9"), newObject(other, "d", "elsewhere")
	insertObjects(t, db, a, b, c, d)
	check := func(what string, want writ.SessionTotals) {
		t.Helper()
		if got := totalsOf(t, db, "acme"); got != want {
			t.Errorf("%s: totals %+v, want %+v", what, got, want)
		}
	}
	check("inserted", writ.SessionTotals{Sessions: 2, Objects: 3, Bytes: 9})
	for range 2 { // the second time it is gone
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			s, err := tx.Session(ctx, one.ID)
			if err != nil {
				return err
			}
			return tx.DeleteObject(ctx, s, a)
		})
	}
	check("an object deleted", writ.SessionTotals{Sessions: 2, Objects: 2, Bytes: 4})
	update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteObject(ctx, one, c) })
	check("an object of another session is not deleted", writ.SessionTotals{Sessions: 2, Objects: 2, Bytes: 4})
	for range 2 {
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			s, err := tx.Session(ctx, one.ID)
			if writ.KindOf(err) == writ.NotFound {
				s, err = one, nil
			}
			if err != nil {
				return err
			}
			return tx.DeleteSession(ctx, s)
		})
	}
	check("a session deleted", writ.SessionTotals{Sessions: 1, Objects: 1, Bytes: 1})
	left := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Object, error) { return tx.Objects(ctx, one.ID, 10) })
	if len(left) != 0 {
		t.Errorf("objects of a deleted session: %v", left)
	}
	if got, want := totalsOf(t, db, "evil"), (writ.SessionTotals{Sessions: 1, Objects: 1, Bytes: 9}); got != want {
		t.Errorf("another tenant has %+v, want %+v", got, want)
	}
	if got := totalsOf(t, db, "nobody"); got != (writ.SessionTotals{}) {
		t.Errorf("a tenant without sessions has %+v", got)
	}
}

// sessionTotalsRace has writers check a bound of the tenant's before they add to it, each
// in a session of its own: together they do not pass it.
func sessionTotalsRace(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	got := race(8, func(int) string {
		err := db.Update(ctx, func(tx *store.Tx) error {
			have, err := tx.SessionTotals(ctx, "acme")
			if err != nil {
				return err
			}
			if have.Sessions >= 5 {
				return &writ.Error{Kind: writ.Exhausted, Msg: "enough"}
			}
			return tx.InsertSession(ctx, newSession("acme"))
		})
		return fmt.Sprint(err)
	})
	if got["<nil>"] != 5 || got["enough"] != 3 {
		t.Errorf("8 add to at most 5: %v", got)
	}
	if n := totalsOf(t, db, "acme"); n.Sessions != 5 {
		t.Errorf("totals %+v", n)
	}
}

// sessionsExpire has two passes remove what is over, at one moment: each session once, with
// what is in it, and nothing else.
func sessionsExpire(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	var all []writ.Session
	for n := range 7 {
		x := newSession(writ.Tenant(fmt.Sprint("t", n%3)))
		x.Expires = epoch.Add(time.Duration(n/2) * time.Second) // pairs at one moment
		all = append(all, x)
	}
	insertSessions(t, db, all...)
	for _, x := range all {
		insertObjects(t, db, newObject(x, "a", "12"), newObject(x, "b", "345"))
	}
	end := epoch.Add(3 * time.Second) // the last one's: it does not expire before it
	want := writ.SessionTotals{Sessions: 6, Objects: 12, Bytes: 30}
	if got := view(t, db, func(ctx context.Context, tx *store.Tx) (writ.SessionTotals, error) {
		return tx.ExpiredSessions(ctx, end)
	}); got != want {
		t.Errorf("expired are %+v, want %+v", got, want)
	}
	removed := make([]writ.SessionTotals, 2)
	got := race(len(removed), func(i int) string {
		for {
			var page writ.SessionTotals
			err := db.Update(ctx, func(tx *store.Tx) (err error) { page, err = tx.DeleteExpiredSessions(ctx, end, 2); return err })
			if err != nil || page.Sessions == 0 {
				return fmt.Sprint(err)
			}
			if page.Sessions > 2 {
				return fmt.Sprintf("a page of %+v", page)
			}
			removed[i] = writ.SessionTotals{
				Sessions: removed[i].Sessions + page.Sessions, Objects: removed[i].Objects + page.Objects, Bytes: removed[i].Bytes + page.Bytes,
			}
		}
	})
	sum := writ.SessionTotals{
		Sessions: removed[0].Sessions + removed[1].Sessions, Objects: removed[0].Objects + removed[1].Objects, Bytes: removed[0].Bytes + removed[1].Bytes,
	}
	if got["<nil>"] != len(removed) || sum != want {
		t.Errorf("%v: removed %+v, want %+v", got, removed, want)
	}
	for i, x := range all {
		err := db.View(ctx, func(tx *store.Tx) error { _, err := tx.Session(ctx, x.ID); return err })
		if gone := writ.KindOf(err) == writ.NotFound; gone != (i < 6) {
			t.Errorf("session %d is gone: %v (%v)", i, gone, err)
		}
	}
	for tenant, want := range map[writ.Tenant]writ.SessionTotals{"t0": {Sessions: 1, Objects: 2, Bytes: 5}, "t1": {}, "t2": {}} {
		if got := totalsOf(t, db, tenant); got != want {
			t.Errorf("%s has %+v, want %+v", tenant, got, want)
		}
	}
}

// sessionLists reads the sessions of all tenants and of one, while more are made.
func sessionLists(t *testing.T, s storeSuite) {
	db := s.open(t)
	const n = 7
	for i := range n {
		x := newSession(writ.Tenant([]string{"acme", "evil"}[i%2]))
		x.Created = epoch.Add(time.Duration(i/2) * time.Second)
		insertSessions(t, db, x)
	}
	read := func(tenant writ.Tenant) (seen []writ.Session) {
		t.Helper()
		f := writ.SessionFilter{Tenant: tenant, Page: writ.Page{Limit: 2}}
		for {
			next := ""
			page := view(t, db, func(ctx context.Context, tx *store.Tx) (p []writ.Session, err error) {
				p, next, err = tx.Sessions(ctx, f)
				return p, err
			})
			seen = append(seen, page...)
			if next == "" {
				return seen
			}
			f.Page.Cursor = next
			late := newSession(tenant)
			late.Created = epoch.Add(time.Hour)
			insertSessions(t, db, late)
		}
	}
	if all := read(""); len(all) != n || !slices.IsSortedFunc(all, func(a, b writ.Session) int { return b.Created.Compare(a.Created) }) {
		t.Errorf("read %v", all)
	}
	evil := read("evil")
	if len(evil) != n/2 || slices.ContainsFunc(evil, func(s writ.Session) bool { return s.Tenant != "evil" }) {
		t.Errorf("of one tenant: %v", evil)
	}
}

// removals adds what was removed at one moment: nothing of it is lost, and it is taken once.
func removals(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	one := writ.FileRemoval{Sessions: 1, Objects: 2, Bytes: 3, Runtimes: 4, RuntimeBytes: 5, Bodies: 6, Blobs: 7, BlobBytes: 8}
	var want writ.FileRemoval
	for range 8 {
		want.Add(one)
	}
	got := race(8, func(int) string {
		return fmt.Sprint(db.Update(ctx, func(tx *store.Tx) error { return tx.AddRemoval(ctx, one) }))
	})
	if got["<nil>"] != 8 {
		t.Errorf("added: %v", got)
	}
	took := make([]writ.FileRemoval, 2)
	race(len(took), func(i int) string {
		return fmt.Sprint(db.Update(ctx, func(tx *store.Tx) (err error) { took[i], err = tx.TakeRemoval(ctx); return err }))
	})
	if took[0].Add(took[1]); took[0] != want {
		t.Errorf("took %+v, want %+v once", took, want)
	}
}

// blobOwners has gateways ask at one moment whose the files are: all are told one name.
func blobOwners(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	got := race(8, func(i int) string {
		var f store.BlobFolder
		err := db.Update(ctx, func(tx *store.Tx) (err error) { f, err = tx.BlobFolder(ctx, fmt.Sprint("owner", i)); return err })
		return fmt.Sprint(f, err)
	})
	if len(got) != 1 {
		t.Errorf("told %v", got)
	}
	update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.ClaimBlobFolder(ctx) })
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		f, err := tx.BlobFolder(ctx, "another")
		if !f.Claimed || f.Owner == "another" {
			t.Errorf("after it was claimed: %+v", f)
		}
		return err
	})
}
