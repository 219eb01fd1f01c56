package work_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"writ"
	"writ/audit"
	"writ/work"
)

// TestInboxIsForPeople: no agent opens it, and what belongs to another tenant is not
// there.
func TestInboxIsForPeople(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		i := d.draft(w, "x", "")
		revision := d.work(w).Revision
		ctx := t.Context()
		calls := map[string]func(writ.Principal) error{
			"work":    func(who writ.Principal) error { _, err := d.Work(ctx, who, w.ID); return err },
			"intents": func(who writ.Principal) error { _, err := d.Intents(ctx, who, w.ID); return err },
			"add": func(who writ.Principal) error {
				_, err := d.AddIntent(ctx, who, w.ID, writ.IntentRequest{Body: "x"})
				return err
			},
			"edit": func(who writ.Principal) error {
				_, err := d.EditIntent(ctx, who, i.ID, writ.IntentEdit{Revision: i.Revision, Body: "y"})
				return err
			},
			"queue":  func(who writ.Principal) error { _, err := d.QueueIntent(ctx, who, i.ID, i.Revision); return err },
			"cancel": func(who writ.Principal) error { _, err := d.CancelIntent(ctx, who, i.ID); return err },
			"reorder": func(who writ.Principal) error {
				_, err := d.ReorderIntents(ctx, who, w.ID, writ.ReorderRequest{})
				return err
			},
			"stop": func(who writ.Principal) error { _, err := d.StopWork(ctx, who, w.ID, writ.StopRequest{}); return err },
		}
		user := writ.Principal{Kind: writ.KindUser, ID: "uma", Tenant: "acme"}
		for name, call := range calls {
			for _, who := range []writ.Principal{builder, spy, user} {
				wantCode(t, name+" by "+who.ID, call(who), "UNAUTHORIZED")
			}
			want := "WORK_NOT_FOUND"
			if slices.Contains([]string{"edit", "queue", "cancel"}, name) {
				want = "INTENT_NOT_FOUND"
			}
			wantCode(t, name+" by another tenant's operator", call(otto), want)
		}
		_, _, err := d.Works(ctx, builder, writ.WorkFilter{})
		wantCode(t, "list by an agent", err, "UNAUTHORIZED")
		for who, want := range map[*writ.Principal]int{&olga: 1, &otto: 0, &owner: 1} {
			works, _, err := d.Works(ctx, *who, writ.WorkFilter{Tenant: "acme"})
			if err != nil || len(works) != want {
				t.Errorf("%s lists %d works, want %d (%v)", who.ID, len(works), want, err)
			}
		}
		if got := d.work(w).Revision; got != revision || len(d.Stopped()) != 0 {
			t.Errorf("what was refused changed the work: revision %d of %d, stopped %v", got, revision, d.Stopped())
		}
		if err := calls["queue"](owner); err != nil {
			t.Errorf("the owner of the data folder: %v", err)
		}
	})
}

// TestAgentsHaveTheWorksOfTheirWorkspaces: those that they see and may read, with the
// root that they have now.
func TestAgentsHaveTheWorksOfTheirWorkspaces(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		i := d.queued(w, "x", writ.DeliverCheckpoint)
		ctx := t.Context()
		calls := map[string]func(writ.Principal, writ.WorkID) error{
			"status": func(who writ.Principal, id writ.WorkID) error { _, _, err := d.Status(ctx, who, id); return err },
			"claim":  func(who writ.Principal, id writ.WorkID) error { _, err := d.ClaimNext(ctx, who, id); return err },
			"finish": func(who writ.Principal, id writ.WorkID) error { _, err := d.Finish(ctx, who, id); return err },
			"complete": func(who writ.Principal, id writ.WorkID) error {
				_, err := d.Complete(ctx, who, id, i.ID, writ.IntentDone)
				return err
			},
		}
		d.Bar("tester")
		for name, call := range calls {
			want := "WORK_NOT_FOUND"
			if name == "complete" {
				want = "INTENT_NOT_FOUND"
			}
			wantCode(t, name+" by another tenant", call(spy, w.ID), want)
			wantCode(t, name+" of none", call(builder, "work-none"), want)
			wantCode(t, name+" of a hostile id", call(builder, "a\x00b"), want)
			wantCode(t, name+" by who may not read", call(tester, w.ID), "UNAUTHORIZED")
		}
		_, err := d.Open(ctx, tester, "site", "")
		wantCode(t, "open by who may not read", err, "UNAUTHORIZED")
		_, err = d.Open(ctx, spy, "site", "")
		wantCode(t, "open elsewhere", err, "WORKSPACE_NOT_FOUND")
		if _, _, err := d.Hint(ctx, spy, "site", w.ID); writ.CodeOf(err) != "WORKSPACE_NOT_FOUND" {
			t.Errorf("hint to another tenant: %v", err)
		}
		if st, _, err := d.Status(ctx, builder, w.ID); err != nil || st.Queued != 1 {
			t.Errorf("afterwards: %+v, %v", st, err)
		}

		// The same id is another folder now: its works are others.
		s := d.With(d.Moved(t, space("site", "acme", "/srv/moved")))
		_, err = s.ClaimNext(ctx, builder, w.ID)
		wantCode(t, "claim after the workspace moved", err, "WORK_NOT_FOUND")
		if _, found, err := s.Hint(ctx, builder, "site", ""); found || err != nil {
			t.Errorf("hint after the workspace moved: %v", err)
		}
		there, err := s.Open(ctx, builder, "site", "")
		if err != nil || there.Root != "/srv/moved" {
			t.Fatalf("open after the workspace moved: %+v, %v", there, err)
		}
		if got := d.bodies(there); got != "" {
			t.Errorf("a work in the new folder has %s", got)
		}
		if got := d.bodies(w); got != "queued x" {
			t.Errorf("people see of the old one: %s", got)
		}
	})
}

func TestBoundsOfWorks(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		ctx := t.Context()
		for _, title := range []string{strings.Repeat("x", writ.MaxTitleBytes+1), "a\x00b", "\xff"} {
			if _, err := d.Open(ctx, builder, "site", title); writ.KindOf(err) != writ.Invalid {
				t.Errorf("title %.20q: %v", title, err)
			}
		}
		first := d.open()
		last := first
		for range writ.MaxOpenWorks - 1 {
			last = d.open()
		}
		_, err := d.Open(ctx, builder, "site", "")
		wantCode(t, "one work more", err, "RESOURCE_QUEUE_FULL")
		if writ.KindOf(err) != writ.Exhausted {
			t.Errorf("one work more: %v", err)
		}
		if _, err := d.Open(ctx, builder, "docs", ""); err != nil {
			t.Errorf("a work elsewhere: %v", err)
		}
		d.finish(last)
		d.open() // in place of the one that is closed

		var one writ.Intent
		for range writ.MaxOpenIntents {
			one = d.draft(first, "x", writ.DeliverCheckpoint)
		}
		_, err = d.AddIntent(ctx, olga, first.ID, writ.IntentRequest{Body: "x"})
		wantCode(t, "one intent more", err, "RESOURCE_QUEUE_FULL")
		if _, err := d.StopWork(ctx, olga, first.ID, writ.StopRequest{}); err != nil {
			t.Errorf("a stop when the queue is full: %v", err)
		}
		for _, id := range append(ids(d.intents(first), writ.IntentDraft)[:2], one.ID) {
			if _, err := d.CancelIntent(ctx, olga, id); err != nil {
				t.Fatal(err)
			}
		}
		d.draft(first, "y", "")
		_, err = d.Complete(ctx, builder, first.ID, one.ID, "claimed")
		if writ.KindOf(err) != writ.Invalid {
			t.Errorf("an outcome that is none: %v", err)
		}
	})
}

// TestEventsHaveNoText: of each step one event, with who and what state, and nothing of
// what anybody wrote.
func TestEventsHaveNoText(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		ctx := t.Context()
		w, err := d.Open(ctx, builder, "site", "the secret title")
		if err != nil {
			t.Fatal(err)
		}
		a := d.queued(w, "the secret text", writ.DeliverCheckpoint)
		a, err = d.EditIntent(ctx, olga, a.ID, writ.IntentEdit{Revision: a.Revision, Body: "another secret"})
		if err != nil {
			t.Fatal(err)
		}
		b := d.draft(w, "a secret draft", "")
		if _, err := d.CancelIntent(ctx, olga, b.ID); err != nil {
			t.Fatal(err)
		}
		_, id := d.claim(w)
		d.complete(w, id)
		stop, err := d.StopWork(ctx, olga, w.ID, writ.StopRequest{Reason: "a secret reason"})
		if err != nil {
			t.Fatal(err)
		}
		d.complete(w, stop.Intent.ID)
		d.queued(w, "a secret for later", writ.DeliverAfter)
		d.finish(w)
		_, id = d.claim(w)
		d.complete(w, id)
		d.finish(w)

		var got []string
		for _, e := range d.Events(t) {
			got = append(got, string(e.Type)+" by "+e.Actor.ID+" "+string(e.Data.WorkState)+" "+string(e.Data.IntentState))
			if e.Tenant != "acme" || e.Data.Work != w.ID || e.Data.Workspace != "site" {
				t.Errorf("%s: tenant %s, work %s, workspace %s", e.Type, e.Tenant, e.Data.Work, e.Data.Workspace)
			}
			if line, err := json.Marshal(e); err != nil || strings.Contains(string(line), "secret") {
				t.Errorf("an event has text: %s", line)
			}
		}
		want := []string{
			"work.opened by builder active ",
			"intent.queued by olga active queued",
			"intent.queued by olga active queued", // with another text
			"intent.cancelled by olga active cancelled",
			"intent.claimed by builder active claimed",
			"intent.completed by builder active done",
			"work.stopped by olga active claimed",
			"intent.completed by builder active done",
			"intent.queued by olga active queued",
			"work.finished by builder closing ",
			"intent.claimed by builder closing claimed",
			"intent.completed by builder closing done",
			"work.finished by builder closed ",
		}
		if !slices.Equal(got, want) {
			t.Errorf("events:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		claimed := d.Events(t, writ.EventIntentClaimed)[0].Data
		if claimed.Intent != a.ID || claimed.Text != writ.DigestOf([]byte("another secret")) || claimed.TextBytes != int64(len("another secret")) {
			t.Errorf("the claim is recorded as %+v", claimed)
		}
	})
}

// TestNoRecordNoStep: what cannot be recorded does not happen.
func TestNoRecordNoStep(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		i := d.queued(w, "x", writ.DeliverCheckpoint)
		revision := d.work(w).Revision
		before := len(d.Events(t))
		private, _, err := audit.GenerateKey("other.test")
		if err != nil {
			t.Fatal(err)
		}
		other, err := audit.New(private) // the log does not take its records
		if err != nil {
			t.Fatal(err)
		}
		s := work.New(d.DB, other, d, d)
		if _, err := s.ClaimNext(t.Context(), builder, w.ID); err == nil {
			t.Error("a claim without a record")
		}
		if _, err := s.StopWork(t.Context(), olga, w.ID, writ.StopRequest{}); err == nil || len(d.Stopped()) != 0 {
			t.Errorf("a stop without a record: %v, %v", err, d.Stopped())
		}
		if _, err := s.Open(t.Context(), builder, "docs", ""); err == nil {
			t.Error("a work without a record")
		}
		after := d.intents(w)
		if len(after) != 1 || after[0].State != writ.IntentQueued || after[0].ID != i.ID || d.work(w).Revision != revision {
			t.Errorf("afterwards %+v", after)
		}
		if n := len(d.Events(t)); n != before {
			t.Errorf("%d events, want %d", n, before)
		}
	})
}
