package work_test

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"writ"
	"writ/work"
)

// TestModel runs the service beside the rules of spec/02 §10 as they stand there, for
// one workspace, and compares all that anybody can see after each step.
func TestModel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "sqlite:"+filepath.Join(t.TempDir(), "writ.db"))
	var folders atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		// A folder that nobody worked in: the store stays, its works do not matter.
		root := fmt.Sprintf("/srv/%d", folders.Add(1))
		m := &model{Service: d.With(d.Moved(t, space("site", "acme", root))), ctx: context.Background()}
		m.open(rt) // without a work only one of the actions below is valid, and a hundred draws may miss it
		rt.Repeat(map[string]func(*rapid.T){
			"open": m.open, "add": m.add, "edit": m.edit, "queue": m.queue, "cancel": m.cancel, "claim": m.claim,
			"complete": m.complete, "finish": m.finish, "reorder": m.reorder, "stop": m.stop, "": m.compare,
		})
	})
}

// model is what the rules say, beside the service.
type model struct {
	*work.Service
	ctx     context.Context
	works   []*modelWork
	intents []*modelIntent
	places  int64
}

type modelWork struct {
	id       writ.WorkID
	state    string
	revision int64
}

type modelIntent struct {
	id       writ.IntentID
	work     *modelWork
	state    string
	delivery writ.Delivery
	body     string
	position int64
	seen     int64 // its revision
}

// pick draws one of all, or none.
func pick[T any](rt *rapid.T, what string, all []*T) *T {
	if len(all) == 0 {
		rt.Skip("there is no " + what)
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(rt, what)]
}

// step checks that a call failed with the code that the rules say, empty for none.
func step(rt *rapid.T, what string, err error, code string) {
	if writ.CodeOf(err) != code || (err == nil) != (code == "") {
		rt.Fatalf("%s: %v with code %q, the rules say %q", what, err, writ.CodeOf(err), code)
	}
}

func (w *modelWork) closed() bool { return w.state == "closed" }

// of are the intents of w in some of the states, in their order; w may be nil.
func (m *model) of(w *modelWork, states ...string) (out []*modelIntent) {
	for _, i := range m.intents {
		if i.work == w && slices.Contains(states, i.state) {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b *modelIntent) int { return cmp.Compare(a.position, b.position) })
	return out
}

func with(all []*modelIntent, d writ.Delivery) (out []*modelIntent) {
	for _, i := range all {
		if i.delivery == d {
			out = append(out, i)
		}
	}
	return out
}

func (m *model) next() int64 { m.places++; return m.places }

func (m *model) open(rt *rapid.T) {
	if len(m.works) >= 4 {
		rt.Skip("enough works")
	}
	got, err := m.Open(m.ctx, builder, "site", "t")
	step(rt, "open", err, "")
	w := &modelWork{id: got.ID, state: "active", revision: got.Revision}
	m.works = append(m.works, w)
	for _, i := range m.of(nil, "draft", "queued") {
		i.work, i.seen = w, i.seen+1
		if i.delivery == "next_work" {
			i.delivery = "after_current_work"
		}
	}
}

func (m *model) add(rt *rapid.T) {
	w := pick(rt, "work", m.works)
	body, delivery := rapid.StringMatching(`[a-z ☃]{0,5}x`).Draw(rt, "body"), rapid.SampledFrom(append(writ.Deliveries, "")).Draw(rt, "delivery")
	got, err := m.AddIntent(m.ctx, olga, w.id, writ.IntentRequest{Body: body, Delivery: delivery})
	step(rt, "add", err, "")
	i := &modelIntent{id: got.ID, work: w, state: "draft", delivery: cmp.Or(delivery, "after_current_work"), body: body, position: m.next(), seen: 1}
	if w.closed() {
		i.work, i.delivery = nil, "next_work"
	} else {
		w.revision++
	}
	m.intents = append(m.intents, i)
}

// fixed is why an intent does not change, when it does only in the states.
func fixed(i *modelIntent, states ...string) string {
	switch {
	case slices.Contains(states, i.state):
		return ""
	case i.state == "claimed":
		return "INTENT_ALREADY_CLAIMED"
	}
	return "INTENT_NOT_EDITABLE"
}

func revision(rt *rapid.T, i *modelIntent) (n int64, code string) {
	if rapid.IntRange(0, 4).Draw(rt, "stale") == 0 {
		return i.seen + rapid.SampledFrom([]int64{-1, 1}).Draw(rt, "by"), "INTENT_REVISION_CONFLICT"
	}
	return i.seen, ""
}

func (i *modelIntent) changed() {
	i.seen++
	if i.work != nil {
		i.work.revision++
	}
}

func (m *model) edit(rt *rapid.T) {
	i := pick(rt, "intent", m.intents)
	n, stale := revision(rt, i)
	delivery := rapid.SampledFrom(append(writ.Deliveries, "")).Draw(rt, "delivery")
	code := cmp.Or(fixed(i, "draft", "queued"), stale)
	_, err := m.EditIntent(m.ctx, olga, i.id, writ.IntentEdit{Revision: n, Body: i.body + "!", Delivery: delivery})
	step(rt, "edit", err, code)
	if code == "" {
		i.body, i.delivery = i.body+"!", cmp.Or(delivery, i.delivery)
		i.changed()
	}
}

func (m *model) queue(rt *rapid.T) {
	i := pick(rt, "intent", m.intents)
	n, stale := revision(rt, i)
	code := cmp.Or(fixed(i, "draft"), stale)
	_, err := m.QueueIntent(m.ctx, olga, i.id, n)
	step(rt, "queue", err, code)
	if code == "" {
		i.state, i.position = "queued", m.next()
		i.changed()
	}
}

func (m *model) cancel(rt *rapid.T) {
	i := pick(rt, "intent", m.intents)
	code := fixed(i, "draft", "queued")
	_, err := m.CancelIntent(m.ctx, olga, i.id)
	step(rt, "cancel", err, code)
	if code == "" {
		i.state = "cancelled"
		i.changed()
	}
}

// claimable are the intents that an agent may have of w now, the first one first.
func (m *model) claimable(w *modelWork) (out []*modelIntent) {
	for _, i := range m.of(w, "queued") {
		if i.delivery == "next_checkpoint" && !w.closed() || i.delivery == "after_current_work" && w.state == "closing" {
			out = append(out, i)
		}
	}
	return out
}

func (m *model) claim(rt *rapid.T) {
	w := pick(rt, "work", m.works)
	got, err := m.ClaimNext(m.ctx, builder, w.id)
	if w.closed() {
		step(rt, "claim", err, "WORK_CLOSED")
		return
	}
	step(rt, "claim", err, "")
	want := m.claimable(w)
	if (got == nil) != (len(want) == 0) {
		rt.Fatalf("claimed %+v of %d that are claimable", got, len(want))
	}
	if got == nil {
		return
	}
	i := want[0]
	if got.ID != i.id || got.Body != i.body || got.Revision != i.seen || got.Delivery != i.delivery {
		rt.Fatalf("claimed %+v, the rules say %+v", got, i)
	}
	i.state = "claimed"
	w.revision++
}

func (m *model) complete(rt *rapid.T) {
	w, i := pick(rt, "work", m.works), pick(rt, "intent", m.intents)
	outcome := rapid.SampledFrom([]writ.IntentState{writ.IntentDone, writ.IntentBlocked}).Draw(rt, "outcome")
	_, err := m.Complete(m.ctx, builder, w.id, i.id, outcome)
	switch {
	case i.work != w || i.state == "draft":
		step(rt, "complete", err, "INTENT_NOT_FOUND")
	case i.state != "claimed":
		step(rt, "complete", err, "INTENT_NOT_EDITABLE")
	default:
		step(rt, "complete", err, "")
		i.state = string(outcome)
		i.changed()
	}
}

func (m *model) finish(rt *rapid.T) {
	w := pick(rt, "work", m.works)
	got, err := m.Finish(m.ctx, builder, w.id)
	if w.closed() {
		step(rt, "finish", err, "WORK_CLOSED")
		return
	}
	step(rt, "finish", err, "")
	claimed, queued := m.of(w, "claimed"), m.of(w, "queued")
	now, after := with(queued, "next_checkpoint"), with(queued, "after_current_work")
	want := writ.Finish{Queued: len(claimed) + len(now) + len(after)}
	switch {
	case len(claimed)+len(now) > 0:
	case len(after) > 0:
		if w.state != "closing" {
			w.state = "closing"
			w.revision++
		}
	default:
		want.Closed, w.state = true, "closed"
		w.revision++
		for _, i := range m.of(w, "draft", "queued") {
			i.work, i.seen = nil, i.seen+1
		}
	}
	if got.Closed != want.Closed || got.Queued != want.Queued || string(got.Work.State) != w.state {
		rt.Fatalf("finish answers %v %d %s, the rules say %+v %s", got.Closed, got.Queued, got.Work.State, want, w.state)
	}
}

func (m *model) reorder(rt *rapid.T) {
	w := pick(rt, "work", m.works)
	queued := m.of(w, "queued")
	order := rapid.Permutation(queued).Draw(rt, "order")
	code := ""
	if rapid.IntRange(0, 4).Draw(rt, "wrong") == 0 && len(m.intents) > 0 {
		order, code = append(slices.Clone(order), pick(rt, "intent", m.intents)), "INTENT_REVISION_CONFLICT"
	}
	if w.closed() {
		code = "WORK_CLOSED"
	}
	var req writ.ReorderRequest
	for _, i := range order {
		req.Intents = append(req.Intents, i.id)
	}
	_, err := m.ReorderIntents(m.ctx, olga, w.id, req)
	step(rt, "reorder", err, code)
	if code != "" {
		return
	}
	var places []int64
	for _, i := range queued {
		places = append(places, i.position)
	}
	for n, i := range order {
		i.position = places[n]
	}
	w.revision++
}

func (m *model) stop(rt *rapid.T) {
	w := pick(rt, "work", m.works)
	got, err := m.StopWork(m.ctx, olga, w.id, writ.StopRequest{Reason: "enough"})
	step(rt, "stop", err, "")
	i := &modelIntent{id: got.Intent.ID, work: w, state: "claimed", delivery: "next_checkpoint", body: "enough", position: m.next(), seen: 1}
	if w.closed() {
		i.work, i.state, i.delivery = nil, "queued", "next_work"
	} else {
		w.revision++
	}
	m.intents = append(m.intents, i)
}

// line is an intent as people see it.
type line struct {
	ID       writ.IntentID
	Work     writ.WorkID
	State    string
	Delivery writ.Delivery
	Body     string
	Position int64
	Revision int64
}

func (i *modelIntent) line() line {
	l := line{ID: i.id, State: i.state, Delivery: i.delivery, Body: i.body, Position: i.position, Revision: i.seen}
	if i.work != nil {
		l.Work = i.work.id
	}
	return l
}

// compare holds what the service shows against the rules.
func (m *model) compare(rt *rapid.T) {
	var open []*modelWork
	for _, w := range m.works {
		if !w.closed() {
			open = append(open, w)
		}
		var want []line
		for _, states := range [][]string{{"claimed"}, {"queued"}, {"draft"}} {
			all := append(m.of(w, states...), m.of(nil, states...)...)
			slices.SortFunc(all, func(a, b *modelIntent) int { return cmp.Compare(a.position, b.position) })
			for _, i := range all {
				want = append(want, i.line())
			}
		}
		rest := append(m.of(w, "done", "blocked", "cancelled"), m.of(nil, "done", "blocked", "cancelled")...)
		slices.SortFunc(rest, func(a, b *modelIntent) int { return cmp.Compare(b.position, a.position) })
		for _, i := range rest {
			want = append(want, i.line())
		}
		intents, err := m.Intents(m.ctx, olga, w.id)
		step(rt, "intents", err, "")
		var got []line
		for _, i := range intents {
			got = append(got, line{i.ID, i.Work, string(i.State), i.Delivery, i.Body, i.Position, i.Revision})
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			rt.Fatalf("intents of %s (rules -, service +):\n%s", w.id, diff)
		}

		claimed, queued := m.of(w, "claimed"), m.of(w, "queued")
		pending := len(queued) - len(with(queued, "next_work"))
		counts := writ.WorkCounts{Queued: pending, Claimed: len(claimed), Claimable: len(m.claimable(w))}
		st, items, err := m.Status(m.ctx, builder, w.id)
		step(rt, "status", err, "")
		if string(st.State) != w.state || st.Revision != w.revision || st.WorkCounts != counts || len(items) != len(claimed) {
			rt.Fatalf("status %s %d %+v with %d items, the rules say %s %d %+v", st.State, st.Revision, st.WorkCounts, len(items), w.state, w.revision, counts)
		}
		hint, found, err := m.Hint(m.ctx, builder, "site", w.id)
		step(rt, "hint", err, "")
		if found == w.closed() || found && hint != (writ.WorkHint{Work: w.id, Pending: pending + len(claimed), Revision: w.revision}) {
			rt.Fatalf("hint %+v, %v of %+v with %d pending", hint, found, w, pending+len(claimed))
		}
	}
	hint, found, err := m.Hint(m.ctx, builder, "site", "")
	step(rt, "hint", err, "")
	if found != (len(open) == 1) || found && hint.Work != open[0].id {
		rt.Fatalf("the hint for no work is %+v, %v, with %d open", hint, found, len(open))
	}
}
