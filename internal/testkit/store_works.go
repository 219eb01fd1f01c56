package testkit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/store"
)

func newWork(id string) writ.Work {
	return writ.Work{
		ID: writ.WorkID(id), Workspace: "site", Root: "/srv/site", Tenant: "acme", State: writ.WorkActive, Revision: 1,
		By: writ.Ref{Kind: writ.KindAgent, ID: "builder"}, Created: epoch,
	}
}

func newIntent(id string, work writ.WorkID, position int64) writ.Intent {
	return writ.Intent{
		ID: writ.IntentID(id), Work: work, Workspace: "site", Root: "/srv/site", Tenant: "acme", Position: position, Revision: 1,
		Kind: writ.IntentFollowUp, Delivery: writ.DeliverCheckpoint, Body: "do " + id, State: writ.IntentQueued,
		By: writ.Ref{Kind: writ.KindOperator, ID: "olga"}, Created: epoch, Updated: epoch,
	}
}

func insertWorks(t testing.TB, db *store.DB, works []writ.Work, intents ...writ.Intent) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		for _, w := range works {
			if err := tx.InsertWork(ctx, w); err != nil {
				return err
			}
		}
		for _, i := range intents {
			if err := tx.InsertIntent(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
}

func workRoundTrip(t *testing.T, s storeSuite) {
	db := s.open(t)
	want := newWork("work-1")
	want.Root, want.Title = "/srv/ä b/'site", "mend\x00 <&> \u202e ☃"
	insertWorks(t, db, []writ.Work{want})
	read := func() writ.Work {
		return view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Work, error) { return tx.Work(ctx, want.ID) })
	}
	if d := cmp.Diff(want, read()); d != "" {
		t.Errorf("work changed (-stored +read):\n%s", d)
	}
	set := func(w writ.Work, from int64) (ok bool) {
		update(t, db, func(ctx context.Context, tx *store.Tx) (err error) { ok, err = tx.UpdateWork(ctx, w, from); return err })
		return ok
	}
	thief := want
	thief.State, thief.Revision = writ.WorkClosing, 2
	thief.Tenant, thief.Workspace, thief.Root, thief.Created = "evil", "theirs", "/root", epoch.Add(time.Hour)
	if set(thief, 7) || !set(thief, 1) || set(thief, 1) {
		t.Error("a work is updated at its revision alone")
	}
	want.State, want.Revision = writ.WorkClosing, 2
	if d := cmp.Diff(want, read()); d != "" {
		t.Errorf("what identifies a work changed (-stored +read):\n%s", d)
	}
	want.State, want.Revision, want.Closed = writ.WorkClosed, 3, &epoch
	if !set(want, 2) || set(thief, 3) {
		t.Error("a work closes once")
	}
	if d := cmp.Diff(want, read()); d != "" {
		t.Errorf("closed work changed (-stored +read):\n%s", d)
	}
	if set(newWork("work-none"), 1) {
		t.Error("a work that is not there was updated")
	}
}

func workLists(t *testing.T, s storeSuite) {
	db := s.open(t)
	var works []writ.Work
	for n, change := range []func(*writ.Work){
		func(w *writ.Work) {}, func(w *writ.Work) { w.State = writ.WorkClosing }, func(w *writ.Work) { w.State = writ.WorkClosed },
		func(w *writ.Work) { w.Workspace = "docs" }, func(w *writ.Work) { w.Tenant = "evil" }, func(w *writ.Work) { w.Root = "/srv/moved" },
	} {
		w := newWork(fmt.Sprint("work-", n+1))
		w.Created = epoch.Add(time.Duration(n) * time.Second)
		change(&w)
		works = append(works, w)
	}
	next := newIntent("fb-4", "work-2", 4)
	next.Delivery = writ.DeliverNextWork
	draft := newIntent("fb-3", "work-2", 3)
	draft.State = writ.IntentDraft
	claimed := newIntent("fb-1", "work-2", 1)
	claimed.State = writ.IntentClaimed
	insertWorks(t, db, works, claimed, newIntent("fb-2", "work-2", 2), draft, next, newIntent("fb-5", "work-6", 5))
	list := func(f writ.WorkFilter) (ids []string, next string) {
		ws := view(t, db, func(ctx context.Context, tx *store.Tx) (ws []writ.Work, err error) {
			ws, next, err = tx.Works(ctx, f)
			return ws, err
		})
		for _, w := range ws {
			ids = append(ids, strings.TrimPrefix(string(w.ID), "work-"))
		}
		return ids, next
	}
	for _, c := range []struct {
		filter writ.WorkFilter
		want   string
	}{
		{writ.WorkFilter{}, "6 5 4 3 2 1"},
		{writ.WorkFilter{Tenant: "acme"}, "6 4 3 2 1"},
		{writ.WorkFilter{Tenant: "acme", Workspace: "site"}, "6 3 2 1"},
		{writ.WorkFilter{Workspace: "site", States: []writ.WorkState{writ.WorkClosing, writ.WorkClosed}}, "3 2"},
		{writ.WorkFilter{Workspace: "none"}, ""}, {writ.WorkFilter{Workspace: "a\x00b"}, ""},
	} {
		if got, next := list(c.filter); strings.Join(got, " ") != c.want || next != "" {
			t.Errorf("%+v: got %v, then %q, want %s", c.filter, got, next, c.want)
		}
	}
	first, cursor := list(writ.WorkFilter{Page: writ.Page{Limit: 4}})
	rest, end := list(writ.WorkFilter{Page: writ.Page{Limit: 4, Cursor: cursor}})
	if strings.Join(first, " ") != "6 5 4 3" || strings.Join(rest, " ") != "2 1" || end != "" {
		t.Errorf("pages: %v, %v, then %q", first, rest, end)
	}
	for _, c := range []struct {
		tenant writ.Tenant
		root   string
		id     writ.WorkID
		want   writ.WorkHint
	}{
		{"acme", "/srv/site", "", writ.WorkHint{}}, // two are open
		{"acme", "/srv/site", "work-1", writ.WorkHint{Work: "work-1", Revision: 1}},
		{"acme", "/srv/site", "work-2", writ.WorkHint{Work: "work-2", Pending: 2, Revision: 1}},
		{"acme", "/srv/site", "work-3", writ.WorkHint{}}, // closed
		{"acme", "/srv/site", "work-6", writ.WorkHint{}}, // of another root
		{"acme", "/srv/moved", "", writ.WorkHint{Work: "work-6", Pending: 1, Revision: 1}},
		{"evil", "/srv/site", "", writ.WorkHint{Work: "work-5", Revision: 1}},
		{"acme", "/srv/site", "a\x00b", writ.WorkHint{}},
	} {
		var found bool
		got := view(t, db, func(ctx context.Context, tx *store.Tx) (h writ.WorkHint, err error) {
			h, found, err = tx.WorkHint(ctx, c.tenant, "site", c.root, c.id)
			return h, err
		})
		if got != c.want || found != (c.want.Work != "") {
			t.Errorf("hint of %s, %s, %q: %+v, %v, want %+v", c.tenant, c.root, c.id, got, found, c.want)
		}
	}
	open := view(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
		return tx.CountOpenWorks(ctx, "acme", "site", "/srv/site")
	})
	if open != 2 {
		t.Errorf("%d works are open, want 2", open)
	}
}

func intentRoundTrip(t *testing.T, s storeSuite) {
	db := s.open(t)
	want := newIntent("fb-1", "work-1", 3)
	want.Body, want.State, want.Root = "do <&>\n\u202e ☃", writ.IntentDraft, "/srv/ä b/'site"
	insertWorks(t, db, []writ.Work{newWork("work-1"), newWork("work-2")}, want)
	read := func() writ.Intent {
		return view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Intent, error) { return tx.Intent(ctx, want.ID) })
	}
	if d := cmp.Diff(want, read()); d != "" {
		t.Errorf("intent changed (-stored +read):\n%s", d)
	}
	set := func(i, was writ.Intent) (ok bool) {
		update(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
			ok, err = tx.UpdateIntent(ctx, i, was)
			return err
		})
		return ok
	}
	was, stale, elsewhere := want, want, want
	stale.Revision, elsewhere.State = 9, writ.IntentQueued
	thief := want
	thief.Work, thief.State, thief.Delivery, thief.Position, thief.Revision, thief.Body = "work-2", writ.IntentClaimed, writ.DeliverAfter, 9, 2, "other"
	thief.Tenant, thief.Workspace, thief.Root = "evil", "theirs", "/root"
	if set(thief, stale) || set(thief, elsewhere) || !set(thief, was) || set(thief, was) {
		t.Error("an intent is updated at its state and its revision alone")
	}
	want.Work, want.State, want.Delivery, want.Position, want.Revision, want.Body = thief.Work, thief.State, thief.Delivery, thief.Position, thief.Revision, thief.Body
	if d := cmp.Diff(want, read()); d != "" {
		t.Errorf("what identifies an intent changed (-stored +read):\n%s", d)
	}
	was = want
	want.State, want.Work = writ.IntentDone, ""
	if !set(want, was) {
		t.Error("an intent was not ended")
	}
	if d := cmp.Diff(want, read()); d != "" {
		t.Errorf("intent without a work changed (-stored +read):\n%s", d)
	}
	ctx := context.Background()
	again := want
	again.State = writ.IntentQueued
	if err := db.Update(ctx, func(tx *store.Tx) error { _, err := tx.UpdateIntent(ctx, again, want); return err }); err == nil {
		t.Error("a terminal state was left")
	}
	if err := db.Update(ctx, func(tx *store.Tx) error { return tx.InsertIntent(ctx, newIntent("fb-2", "work-none", 1)) }); err == nil {
		t.Error("an intent of a work that is not there was stored")
	}
	nul := newIntent("fb-3", "work-1", 1)
	nul.Body = "a\x00b"
	wantKind(t, "an intent with a NUL", db.Update(ctx, func(tx *store.Tx) error { return tx.InsertIntent(ctx, nul) }), writ.Invalid)
}

func intentLists(t *testing.T, s storeSuite) {
	db := s.open(t)
	var all []writ.Intent
	add := func(id string, work writ.WorkID, position int64, state writ.IntentState, delivery writ.Delivery) *writ.Intent {
		i := newIntent(id, work, position)
		i.State, i.Delivery = state, delivery
		all = append(all, i)
		return &all[len(all)-1]
	}
	add("fb-done", "work-1", 1, writ.IntentDone, writ.DeliverCheckpoint)
	add("fb-late", "work-1", 9, writ.IntentQueued, writ.DeliverCheckpoint)
	add("fb-soon", "work-1", 5, writ.IntentQueued, writ.DeliverCheckpoint)
	add("fb-after", "work-1", 2, writ.IntentQueued, writ.DeliverAfter)
	add("fb-draft", "work-1", 3, writ.IntentDraft, writ.DeliverCheckpoint)
	add("fb-has", "work-1", 8, writ.IntentClaimed, writ.DeliverCheckpoint)
	add("fb-gone", "work-1", 4, writ.IntentCancelled, writ.DeliverCheckpoint)
	add("fb-loose", "", 7, writ.IntentQueued, writ.DeliverNextWork)
	add("fb-other", "work-2", 6, writ.IntentQueued, writ.DeliverCheckpoint)
	add("fb-moved", "", 99, writ.IntentQueued, writ.DeliverCheckpoint).Root = "/srv/moved"
	add("fb-evil", "", 99, writ.IntentQueued, writ.DeliverCheckpoint).Tenant = "evil"
	insertWorks(t, db, []writ.Work{newWork("work-1"), newWork("work-2")}, all...)
	base := store.IntentFilter{Tenant: "acme", Workspace: "site", Root: "/srv/site", Limit: 100}
	for _, c := range []struct {
		narrow func(*store.IntentFilter)
		want   string
	}{
		{func(f *store.IntentFilter) { f.Work = "work-1" }, "has after soon late draft gone done"},
		{func(f *store.IntentFilter) { f.Work, f.Loose = "work-1", true }, "has after soon loose late draft gone done"},
		{func(f *store.IntentFilter) { f.Loose = true }, "loose"},
		{func(f *store.IntentFilter) {
			f.Work, f.States = "work-1", []writ.IntentState{writ.IntentDraft, writ.IntentQueued}
		}, "after soon late draft"},
		{func(f *store.IntentFilter) { f.Work, f.Limit = "work-1", 6 }, "has after soon late draft gone"},
		{func(f *store.IntentFilter) { f.Loose, f.Root = true, "/srv/moved" }, "moved"},
		{func(f *store.IntentFilter) { f.Loose, f.Tenant = true, "evil" }, "evil"},
		{func(f *store.IntentFilter) { f.Work = "a\x00b" }, ""},
	} {
		f := base
		c.narrow(&f)
		var got []string
		for _, i := range view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Intent, error) { return tx.Intents(ctx, f) }) {
			got = append(got, strings.TrimPrefix(string(i.ID), "fb-"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: got %v, want %s", f, got, c.want)
		}
	}
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		next := func(work writ.WorkID, deliveries ...writ.Delivery) string {
			i, err := tx.NextIntent(ctx, work, deliveries)
			if err != nil {
				wantKind(t, "no next intent", err, writ.NotFound)
			}
			return string(i.ID)
		}
		both := []writ.Delivery{writ.DeliverCheckpoint, writ.DeliverAfter}
		got := []string{next("work-1", writ.DeliverCheckpoint), next("work-1", both...), next("work-2", both...), next("", both...), next("work-1", writ.DeliverNextWork)}
		if want := []string{"fb-soon", "fb-after", "fb-other", "", ""}; !slices.Equal(got, want) {
			t.Errorf("next are %v, want %v", got, want)
		}
		place, err := tx.NextPosition(ctx, "acme", "site", "/srv/site")
		first, err1 := tx.NextPosition(ctx, "acme", "docs", "/srv/docs")
		open, err2 := tx.CountOpenIntents(ctx, "acme", "site", "/srv/site")
		if place != 10 || first != 1 || open != 7 || err != nil || err1 != nil || err2 != nil {
			t.Errorf("next position %d, first %d, %d are open; want 10, 1, 7 (%v %v %v)", place, first, open, err, err1, err2)
		}
		counts, err := tx.IntentCounts(ctx, "work-1")
		n := map[string]int{}
		for _, c := range counts {
			n[fmt.Sprint(c.State, " ", c.Delivery)] = c.N
		}
		want := map[string]int{
			"queued next_checkpoint": 2, "queued after_current_work": 1, "draft next_checkpoint": 1, "claimed next_checkpoint": 1,
			"done next_checkpoint": 1, "cancelled next_checkpoint": 1,
		}
		if d := cmp.Diff(want, n); d != "" {
			t.Errorf("counts (-want +got):\n%s", d)
		}
		_, err1 = tx.NextIntent(ctx, "work-1", nil)
		if err1 == nil {
			t.Error("the next intent of no delivery is one")
		}
		return err
	})
}

// intentClaimRace claims from one work at once, as a work service does: what one has
// read another does not get.
func intentClaimRace(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	insertWorks(t, db, []writ.Work{newWork("work-1")})
	for n := range 4 {
		insertWorks(t, db, nil, newIntent(fmt.Sprint("fb-", n), "work-1", int64(n+1)))
	}
	got := race(6, func(int) string {
		var mine writ.Intent
		err := db.Update(ctx, func(tx *store.Tx) error {
			w, err := tx.Work(ctx, "work-1")
			if err != nil {
				return err
			}
			was, err := tx.NextIntent(ctx, w.ID, []writ.Delivery{writ.DeliverCheckpoint})
			if err != nil {
				return err
			}
			mine = was
			mine.State = writ.IntentClaimed
			ok, err := tx.UpdateIntent(ctx, mine, was)
			if err == nil && ok {
				from := w.Revision
				w.Revision++
				ok, err = tx.UpdateWork(ctx, w, from)
			}
			if err == nil && !ok {
				err = fmt.Errorf("it was changed by another since it was read")
			}
			return err
		})
		if err != nil {
			return writ.KindOf(err).String()
		}
		return string(mine.ID)
	})
	w := view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Work, error) { return tx.Work(ctx, "work-1") })
	if len(got) != 5 || got["not_found"] != 2 || w.Revision != 5 {
		t.Errorf("6 claim 4 intents: %v, revision %d; want each once, none for two, and revision 5", got, w.Revision)
	}
}
