package work_test

import (
	"slices"
	"strings"
	"testing"

	"writ"
)

func TestScenario131_DraftsAreInvisible(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		draft := d.draft(w, "the draft", writ.DeliverCheckpoint)
		if body, _ := d.claim(w); body != "" {
			t.Errorf("an agent claimed the draft %q", body)
		}
		st, claimed, err := d.Status(t.Context(), builder, w.ID)
		if err != nil || st.WorkCounts != (writ.WorkCounts{}) || len(claimed) != 0 {
			t.Errorf("status with a draft: %+v, %v, %v", st, claimed, err)
		}
		hint, found, err := d.Hint(t.Context(), builder, "site", "")
		if err != nil || !found || hint.Pending != 0 {
			t.Errorf("hint with a draft: %+v, %v, %v", hint, found, err)
		}
		_, err = d.Complete(t.Context(), builder, w.ID, draft.ID, writ.IntentDone)
		wantCode(t, "complete a draft", err, "INTENT_NOT_FOUND")
		d.wantFinish(w, true, 0, writ.WorkClosed)
	})
}

func TestScenario132_ClaimFreezes(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		i := d.queued(w, "before", writ.DeliverCheckpoint)
		i, err := d.EditIntent(t.Context(), olga, i.ID, writ.IntentEdit{Revision: i.Revision, Body: "after"})
		if err != nil || i.Delivery != writ.DeliverCheckpoint {
			t.Fatalf("edit of a queued intent: %+v, %v", i, err)
		}
		item, err := d.ClaimNext(t.Context(), builder, w.ID)
		if err != nil || item == nil || item.Body != "after" || item.ID != i.ID || item.Revision != i.Revision || item.State != writ.IntentClaimed {
			t.Fatalf("claimed %+v, %v; want revision %d", item, err, i.Revision)
		}
		_, err = d.EditIntent(t.Context(), olga, i.ID, writ.IntentEdit{Revision: i.Revision, Body: "too late"})
		wantCode(t, "edit", err, "INTENT_ALREADY_CLAIMED")
		_, err = d.QueueIntent(t.Context(), olga, i.ID, i.Revision)
		wantCode(t, "queue", err, "INTENT_ALREADY_CLAIMED")
		_, err = d.CancelIntent(t.Context(), olga, i.ID)
		wantCode(t, "cancel", err, "INTENT_ALREADY_CLAIMED")
		if got := d.bodies(w); got != "claimed after" {
			t.Errorf("then it is %s", got)
		}

		done, err := d.Complete(t.Context(), builder, w.ID, i.ID, writ.IntentBlocked)
		if err != nil || done.State != writ.IntentBlocked || done.Body != "after" {
			t.Errorf("completed: %+v, %v", done, err)
		}
		_, err = d.Complete(t.Context(), builder, w.ID, i.ID, writ.IntentDone)
		wantCode(t, "complete twice", err, "INTENT_NOT_EDITABLE")
		_, err = d.EditIntent(t.Context(), olga, i.ID, writ.IntentEdit{Revision: done.Revision, Body: "too late"})
		wantCode(t, "edit what is over", err, "INTENT_NOT_EDITABLE")
		_, err = d.CancelIntent(t.Context(), olga, i.ID)
		wantCode(t, "cancel what is over", err, "INTENT_NOT_EDITABLE")
	})
}

func TestScenario133_StaleRevision(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		i := d.draft(w, "one", writ.DeliverAfter)
		edited, err := d.EditIntent(t.Context(), olga, i.ID, writ.IntentEdit{Revision: i.Revision, Body: "two", Delivery: writ.DeliverNextWork})
		if err != nil || edited.Revision <= i.Revision || edited.Delivery != writ.DeliverNextWork {
			t.Fatalf("edited: %+v, %v", edited, err)
		}
		_, err = d.EditIntent(t.Context(), olga, i.ID, writ.IntentEdit{Revision: i.Revision, Body: "three"})
		wantCode(t, "edit", err, "INTENT_REVISION_CONFLICT")
		_, err = d.QueueIntent(t.Context(), olga, i.ID, i.Revision)
		wantCode(t, "queue", err, "INTENT_REVISION_CONFLICT")
		if got := d.bodies(w); got != "draft two" {
			t.Errorf("then it is %s", got)
		}
		if _, err = d.QueueIntent(t.Context(), olga, i.ID, edited.Revision); err != nil {
			t.Fatal(err)
		}
		_, err = d.QueueIntent(t.Context(), olga, i.ID, edited.Revision+1)
		wantCode(t, "queue twice", err, "INTENT_NOT_EDITABLE")
	})
}

func TestScenario134_FinishWithPending(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		d.queued(w, "now", writ.DeliverCheckpoint)
		d.queued(w, "after", writ.DeliverAfter)
		d.queued(w, "next", writ.DeliverNextWork)
		before := d.work(w).Revision
		d.wantFinish(w, false, 2, writ.WorkActive)
		if got := d.work(w).Revision; got != before {
			t.Errorf("a finish that changed nothing made revision %d of %d", got, before)
		}
		body, id := d.claim(w)
		if body != "now" {
			t.Fatalf("claimed %q", body)
		}
		if body, _ := d.claim(w); body != "" {
			t.Errorf("an active work gave %q, which is for after it", body)
		}
		st, claimed, err := d.Status(t.Context(), builder, w.ID)
		if err != nil || st.WorkCounts != (writ.WorkCounts{Queued: 1, Claimed: 1}) || len(claimed) != 1 || claimed[0].ID != id {
			t.Errorf("status: %+v, %v, %v", st.WorkCounts, claimed, err)
		}
		d.wantFinish(w, false, 2, writ.WorkActive) // what is claimed counts
		d.complete(w, id)
	})
}

func TestScenario135_ActiveToClosingForWhatComesAfter(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		d.queued(w, "after", writ.DeliverAfter)
		d.wantFinish(w, false, 1, writ.WorkClosing)
		d.wantFinish(w, false, 1, writ.WorkClosing)
		st, _, err := d.Status(t.Context(), builder, w.ID)
		if err != nil || st.WorkCounts != (writ.WorkCounts{Queued: 1, Claimable: 1}) {
			t.Errorf("status: %+v, %v", st.WorkCounts, err)
		}
		d.queued(w, "now", writ.DeliverCheckpoint) // a closing work takes more
		body, id := d.claim(w)
		if body != "after" {
			t.Fatalf("claimed %q", body)
		}
		d.complete(w, id)
		body, id = d.claim(w)
		if body != "now" {
			t.Fatalf("claimed %q", body)
		}
		d.wantFinish(w, false, 1, writ.WorkClosing)
		d.complete(w, id)
		d.wantFinish(w, true, 0, writ.WorkClosed)

		_, err = d.Finish(t.Context(), builder, w.ID)
		wantCode(t, "finish twice", err, "WORK_CLOSED")
		_, err = d.ClaimNext(t.Context(), builder, w.ID)
		wantCode(t, "claim from a closed work", err, "WORK_CLOSED")
		_, err = d.ReorderIntents(t.Context(), olga, w.ID, writ.ReorderRequest{})
		wantCode(t, "reorder a closed work", err, "WORK_CLOSED")
		if st, _, err := d.Status(t.Context(), builder, w.ID); err != nil || st.State != writ.WorkClosed || st.Closed == nil {
			t.Errorf("status of a closed work: %+v, %v", st, err)
		}
		if _, found, err := d.Hint(t.Context(), builder, "site", ""); found || err != nil {
			t.Errorf("a closed work gives a hint: %v", err)
		}
	})
}

func TestScenario136_NextWorkIsCarriedOver(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		d.queued(w, "next", writ.DeliverNextWork)
		d.draft(w, "draft", writ.DeliverCheckpoint)
		if body, _ := d.claim(w); body != "" {
			t.Errorf("claimed %q, which is for the next work", body)
		}
		if hint, _, _ := d.Hint(t.Context(), builder, "site", w.ID); hint.Pending != 0 {
			t.Errorf("hint %+v counts what is for the next work", hint)
		}
		d.wantFinish(w, true, 0, writ.WorkClosed)
		late := d.draft(w, "late", writ.DeliverCheckpoint) // on a closed work
		if late.Work != "" || late.Delivery != writ.DeliverNextWork || late.State != writ.IntentDraft {
			t.Errorf("an intent for a closed work is %+v", late)
		}
		if _, err := d.QueueIntent(t.Context(), olga, late.ID, late.Revision); err != nil {
			t.Fatal(err)
		}
		gone := d.draft(w, "gone", "")
		if _, err := d.CancelIntent(t.Context(), olga, gone.ID); err != nil {
			t.Fatal(err)
		}
		if got, want := d.bodies(w), "queued next (loose), queued late (loose), draft draft (loose), cancelled gone (loose)"; got != want {
			t.Errorf("left are %s, want %s", got, want)
		}
		before := d.intents(w)

		elsewhere, err := d.Open(t.Context(), builder, "docs", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := d.bodies(elsewhere); got != "" {
			t.Errorf("a work elsewhere has %s", got)
		}
		next := d.open()
		if got, want := d.bodies(next), "queued next, queued late, draft draft, cancelled gone (loose)"; got != want {
			t.Errorf("the next work has %s, want %s", got, want)
		}
		for n, i := range d.intents(next)[:3] {
			if i.Work != next.ID || i.Revision <= before[n].Revision || i.Delivery == writ.DeliverNextWork {
				t.Errorf("adopted: %+v, was %+v", i, before[n])
			}
		}
		d.wantFinish(next, false, 2, writ.WorkClosing) // what was for the next work is for after this one
		if body, _ := d.claim(next); body != "next" {
			t.Errorf("claimed %q", body)
		}
	})
}

func TestScenario137_ReorderNamesExactlyWhatIsQueued(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		a, b, c := d.queued(w, "a", writ.DeliverCheckpoint), d.queued(w, "b", writ.DeliverCheckpoint), d.queued(w, "c", writ.DeliverCheckpoint)
		draft := d.draft(w, "draft", writ.DeliverCheckpoint)
		before := d.work(w).Revision
		for name, order := range map[string][]writ.IntentID{
			"none": nil, "one missing": {a.ID, b.ID}, "a draft too": {a.ID, b.ID, c.ID, draft.ID}, "one twice": {a.ID, b.ID, b.ID},
			"one twice more": {a.ID, b.ID, c.ID, c.ID}, "another": {a.ID, b.ID, "fb-none"},
		} {
			_, err := d.ReorderIntents(t.Context(), olga, w.ID, writ.ReorderRequest{Intents: order})
			wantCode(t, name, err, "INTENT_REVISION_CONFLICT")
		}
		if got := d.work(w).Revision; got != before {
			t.Errorf("refused orders made revision %d of %d", got, before)
		}
		list, err := d.ReorderIntents(t.Context(), olga, w.ID, writ.ReorderRequest{Intents: []writ.IntentID{c.ID, a.ID, b.ID}})
		if err != nil || !slices.Equal(ids(list, writ.IntentQueued), []writ.IntentID{c.ID, a.ID, b.ID}) || len(list) != 4 {
			t.Fatalf("reordered: %v, %v", list, err)
		}
		if got := d.work(w).Revision; got <= before {
			t.Error("a new order did not raise the queue's revision")
		}
		// An editor who saw the text before may still change it.
		if _, err := d.EditIntent(t.Context(), olga, a.ID, writ.IntentEdit{Revision: d.intents(w)[1].Revision, Body: "A"}); err != nil {
			t.Error(err)
		}
		var got []string
		for range 3 {
			body, _ := d.claim(w)
			got = append(got, body)
		}
		if strings.Join(got, " ") != "c A b" {
			t.Errorf("claimed in the order %v", got)
		}
	})
}

func TestScenario138_StopLeavesAClaimedNotice(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		stop, err := d.StopWork(t.Context(), olga, w.ID, writ.StopRequest{Reason: "it deletes the wrong files"})
		if err != nil || !stop.OK || stop.Killed != 2 {
			t.Fatalf("stop: %+v, %v", stop, err)
		}
		notice := stop.Intent
		if notice.Kind != writ.IntentStopNotice || notice.State != writ.IntentClaimed || notice.Work != w.ID || notice.Body != "it deletes the wrong files" {
			t.Errorf("the notice is %+v", notice)
		}
		if got := d.Stopped(); !slices.Equal(got, []string{"site /srv/site"}) {
			t.Errorf("stopped: %v", got)
		}
		d.wantFinish(w, false, 1, writ.WorkActive)
		// The agent finds it without having claimed it.
		_, claimed, err := d.Status(t.Context(), builder, w.ID)
		if err != nil || len(claimed) != 1 || claimed[0].Kind != writ.IntentStopNotice {
			t.Fatalf("status: %v, %v", claimed, err)
		}
		d.complete(w, claimed[0].ID)
		d.wantFinish(w, true, 0, writ.WorkClosed)

		// On a closed work the notice is for the next one.
		stop, err = d.StopWork(t.Context(), olga, w.ID, writ.StopRequest{})
		if err != nil || stop.Intent.State != writ.IntentQueued || stop.Intent.Work != "" || stop.Intent.Body == "" {
			t.Fatalf("stop of a closed work: %+v, %v", stop, err)
		}
		next := d.open()
		d.wantFinish(next, false, 1, writ.WorkClosing)
		if body, _ := d.claim(next); body != stop.Intent.Body {
			t.Errorf("the next work gave %q", body)
		}
	})
}

func TestScenario138_StopThatFailsLeavesTheNotice(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		d.FailStops(&writ.Error{Kind: writ.Unavailable, Msg: "the runner does not answer"})
		_, err := d.StopWork(t.Context(), olga, w.ID, writ.StopRequest{})
		if writ.KindOf(err) != writ.Unavailable {
			t.Errorf("stop: %v", err)
		}
		if got := len(ids(d.intents(w), writ.IntentClaimed)); got != 1 {
			t.Errorf("%d notices, want one: what was asked for is recorded", got)
		}
	})
}

func TestScenario139_HintsAreOfOneOpenWork(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		hint := func(workspace writ.WorkspaceID, id writ.WorkID) (writ.WorkHint, bool) {
			t.Helper()
			h, found, err := d.Hint(t.Context(), builder, workspace, id)
			if err != nil {
				t.Fatal(err)
			}
			return h, found
		}
		if h, found := hint("site", ""); found {
			t.Errorf("a hint without a work: %+v", h)
		}
		w := d.open()
		d.queued(w, "now", writ.DeliverCheckpoint)
		d.queued(w, "after", writ.DeliverAfter)
		d.queued(w, "next", writ.DeliverNextWork)
		d.claim(w)
		want := writ.WorkHint{Work: w.ID, Pending: 2, Revision: d.work(w).Revision}
		for _, id := range []writ.WorkID{"", w.ID} {
			if h, found := hint("site", id); !found || h != want {
				t.Errorf("hint for %q: %+v, %v, want %+v", id, h, found, want)
			}
		}
		for what, id := range map[string]writ.WorkID{"wrong": "work-none", "hostile": "' OR 1=1 --"} {
			if h, found := hint("site", id); found {
				t.Errorf("a hint for the %s work: %+v", what, h)
			}
		}
		if h, found := hint("docs", w.ID); found {
			t.Errorf("a hint elsewhere: %+v", h)
		}
		other := d.open()
		if h, found := hint("site", ""); found {
			t.Errorf("a hint though two works are open: %+v", h)
		}
		if h, found := hint("site", other.ID); !found || h.Work != other.ID {
			t.Errorf("hint for the second work: %+v, %v", h, found)
		}
		d.finish(other)
		if h, found := hint("site", other.ID); found {
			t.Errorf("a hint for a closed work: %+v", h)
		}
		if h, found := hint("site", ""); !found || h != want {
			t.Errorf("hint when the second work is closed: %+v, %v", h, found)
		}
	})
}
