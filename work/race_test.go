package work_test

import (
	"fmt"
	"sync"
	"testing"

	"writ"
)

// together runs fn n times at once and counts the answers.
func together(n int, fn func(int) string) map[string]int {
	var wg sync.WaitGroup
	out := make([]string, n)
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-start; out[i] = fn(i) })
	}
	close(start)
	wg.Wait()
	counts := map[string]int{}
	for _, s := range out {
		counts[s]++
	}
	return counts
}

// TestTwoClaimersGetTwoIntents, and more get one each, whoever they are.
func TestTwoClaimersGetTwoIntents(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		for i := range 6 {
			d.queued(w, fmt.Sprint("intent ", i), writ.DeliverCheckpoint)
		}
		got := together(8, func(n int) string {
			who := builder
			if n%2 == 0 {
				who = tester
			}
			i, err := d.ClaimNext(t.Context(), who, w.ID)
			switch {
			case err != nil:
				return err.Error()
			case i == nil:
				return "nothing"
			}
			return i.Body
		})
		if len(got) != 7 || got["nothing"] != 2 {
			t.Errorf("8 claim 6 intents: %v, want each once and nothing for two", got)
		}
		if n := len(d.Events(t, writ.EventIntentClaimed)); n != 6 {
			t.Errorf("%d claims are recorded, want 6", n)
		}
	})
}

// TestClaimOrCancel: one of the two happens.
func TestClaimOrCancel(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		for round := range 10 {
			i := d.queued(w, "x", writ.DeliverCheckpoint)
			got := together(4, func(n int) string {
				if n == 0 {
					item, err := d.ClaimNext(t.Context(), builder, w.ID)
					if err != nil {
						return err.Error()
					}
					return fmt.Sprint("claimed ", item != nil)
				}
				if n == 1 {
					_, err := d.EditIntent(t.Context(), olga, i.ID, writ.IntentEdit{Revision: i.Revision, Body: "y"})
					return "edit " + writ.CodeOf(err)
				}
				_, err := d.CancelIntent(t.Context(), olga, i.ID)
				return "cancel " + writ.CodeOf(err)
			})
			claimed, cancelled := got["claimed true"], got["cancel "]
			if claimed+cancelled != 1 || claimed == 1 && got["cancel INTENT_ALREADY_CLAIMED"] != 2 || claimed == 0 && got["cancel INTENT_NOT_EDITABLE"] != 1 {
				t.Fatalf("round %d: %v: want it to be claimed or to be cancelled, once", round, got)
			}
			state := d.intents(w)[0]
			if claimed == 1 {
				d.complete(w, state.ID)
			}
		}
	})
}

// TestOneEditorOfARevision: of those who saw one revision, one changes it.
func TestOneEditorOfARevision(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		w := d.open()
		i := d.draft(w, "x", "")
		got := together(6, func(n int) string {
			_, err := d.EditIntent(t.Context(), olga, i.ID, writ.IntentEdit{Revision: i.Revision, Body: fmt.Sprint(n)})
			return writ.CodeOf(err)
		})
		if got[""] != 1 || got["INTENT_REVISION_CONFLICT"] != 5 {
			t.Errorf("6 edit one revision: %v, want one to do it", got)
		}
	})
}

// TestOneWorkAdoptsAnIntent: of works that are opened at once, and an editor at the same
// moment.
func TestOneWorkAdoptsAnIntent(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		closed := d.open()
		d.finish(closed)
		var loose []writ.Intent
		for range 4 {
			loose = append(loose, d.draft(closed, "x", ""))
		}
		got := together(5, func(n int) string {
			if n == 0 {
				_, err := d.EditIntent(t.Context(), olga, loose[0].ID, writ.IntentEdit{Revision: loose[0].Revision, Body: "y"})
				return "edit " + writ.CodeOf(err)
			}
			_, err := d.Open(t.Context(), builder, "site", "")
			return fmt.Sprint("open ", err)
		})
		if got["open <nil>"] != 4 {
			t.Fatalf("4 works: %v", got)
		}
		of := map[writ.WorkID]int{}
		for _, i := range d.intents(closed) { // those of no work
			of[i.Work]++
		}
		works, _, err := d.Works(t.Context(), olga, writ.WorkFilter{})
		if err != nil {
			t.Fatal(err)
		}
		adopted := 0
		for _, w := range works {
			for _, i := range d.intents(w) {
				if i.Work == w.ID {
					adopted++
				}
			}
		}
		if of[""] != 0 || adopted != 4 {
			t.Errorf("%d intents have no work, %d were adopted; want 0 and 4", of[""], adopted)
		}
	})
}

// TestFinishOrQueue: a work does not close under an instruction that was given before.
func TestFinishOrQueue(t *testing.T) {
	engines(t, func(t *testing.T, d desk) {
		for round := range 8 {
			w := d.open()
			draft := d.draft(w, "x", writ.DeliverCheckpoint)
			got := together(2, func(n int) string {
				if n == 0 {
					f, err := d.Finish(t.Context(), builder, w.ID)
					return fmt.Sprintf("closed %v, %v", f.Closed, err)
				}
				_, err := d.QueueIntent(t.Context(), olga, draft.ID, draft.Revision)
				return "queued " + writ.CodeOf(err)
			})
			after := d.work(w)
			i := d.intents(w)[0]
			switch {
			case got["closed false, <nil>"] == 1 && got["queued "] == 1 && i.State == writ.IntentQueued && i.Work == w.ID && after.State == writ.WorkActive:
				_, id := d.claim(w)
				d.complete(w, id)
				d.finish(w)
			case got["closed true, <nil>"] == 1 && i.Work == "" && after.State == writ.WorkClosed:
				// It closed first: the draft had left it, and was queued or was not.
				if _, err := d.CancelIntent(t.Context(), olga, i.ID); err != nil {
					t.Fatal(err)
				}
			default:
				t.Fatalf("round %d: %v, the work is %s, the intent %+v", round, got, after.State, i)
			}
		}
	})
}
