package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"writ"
	"writ/approval"
	"writ/store"
)

// share is who takes places among the tasks under way: an identity, or a user of a tenant.
type share struct {
	tenant   writ.Tenant
	identity writ.IdentityID
}

func shareOf(t writ.Task) share { return share{t.Tenant, t.Identity} }

// carried is a task in the hands of this gateway, from its launch until it is over
// or waits for something else than a slot.
type carried struct {
	share  share                   // whose it is; zero while only the id is known
	cancel context.CancelCauseFunc // ends its waiting, or its run
	again  bool                    // guarded by Gateway.mu; launched anew since it was last looked at
}

// launch carries a task in the background if it is queued, once however often it is
// called. What cannot be carried, since the gateway closes or the claim fails, stays
// queued for a later sweep.
func (g *Gateway) launch(id writ.TaskID, of share) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.launchLocked(id, of)
}

// launchLocked is launch for who holds g.mu.
func (g *Gateway) launchLocked(id writ.TaskID, of share) {
	if g.closed || g.delayed(id, of) {
		return
	}
	if c := g.live[id]; c != nil {
		c.again = true // it may have been held when it was looked at, and granted since
		return
	}
	ctx, cancel := context.WithCancelCause(g.ctx)
	c := &carried{share: of, cancel: cancel}
	g.live[id] = c // before the claim commits, so that whoever sees the task running can cancel it
	g.work.Go(func() {
		defer cancel(nil)
		for {
			over, err := g.carry(ctx, id, of)
			if err != nil {
				g.slog.Error("task was not carried", "task", id, "err", err)
			}
			if g.drop(id, c, over) {
				return
			}
		}
	})
}

// drop takes a task out of the gateway's hands, unless there is more to do with it.
func (g *Gateway) drop(id writ.TaskID, c *carried, over bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.again && !over && !g.closed {
		c.again = false
		return false
	}
	delete(g.live, id)
	return true
}

// reserve takes a place among the tasks that run or may wait for a slot, for one of
// identity that is about to be queued. It is Exhausted when there is none left for
// it; else the place must be released. A tenant that has none yet finds one beyond the
// backlog, as many as that again: so no other can keep it out.
func (g *Gateway) reserve(of share) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var own, tenant, all int
	count := func(s share, n int) {
		all += n
		if s.tenant == of.tenant {
			tenant += n
		}
		if s == of {
			own += n
		}
	}
	for s, n := range g.reserved {
		count(s, n)
	}
	for _, c := range g.live {
		count(c.share, 1)
	}
	most := g.opt.Slots + g.opt.Backlog
	if tenant == 0 {
		most += g.opt.Backlog
	}
	switch {
	case all >= most:
		return &writ.Error{Op: "create task", Kind: writ.Exhausted, Msg: fmt.Sprintf(
			"%d tasks wait for a slot, no more are taken: try again later", all-g.opt.Slots)}
	case own >= g.opt.Share:
		return &writ.Error{Op: "create task", Kind: writ.Exhausted, Msg: fmt.Sprintf(
			"%d tasks of %q run or wait for a slot, no more of it are taken: try again later", own, of.identity)}
	}
	g.reserved[of]++
	return nil
}

// release gives a place back, or to the task id, which is launched, if there is one.
func (g *Gateway) release(of share, id writ.TaskID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reserved[of]--; g.reserved[of] == 0 {
		delete(g.reserved, of)
	}
	if id != "" {
		g.launchLocked(id, of)
	}
}

// Carrying is how many tasks run here or wait for a slot.
func (g *Gateway) Carrying() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.live)
}

// carries reports whether the task is in the hands of this gateway.
func (g *Gateway) carries(id writ.TaskID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.live[id] != nil
}

// Do is what a job of the store asks for: to carry a task whose own request did
// not live to, or to expire an approval. It does nothing when that was done
// before. It returns at once; a task that is launched may still wait for a slot.
func (g *Gateway) Do(ctx context.Context, j store.Job) error {
	switch j.Kind {
	case store.JobDispatch:
		g.launch(j.Task, share{})
		return nil
	case store.JobExpire:
		return g.Expire(ctx, j.Approval)
	}
	return fmt.Errorf("job of unknown kind %q", j.Kind)
}

// carry waits for a slot, then claims, runs and records one task. When the gateway
// closes first the task stays queued. over means that there is no more to do with
// the task, whoever asks for it.
func (g *Gateway) carry(ctx context.Context, id writ.TaskID, of share) (over bool, err error) {
	if !g.slots.acquire(ctx, g.closing, of) {
		return true, nil
	}
	defer g.slots.release(of)
	t, spec, claimed, err := g.claim(ctx, id)
	if err != nil && ctx.Err() != nil {
		return true, nil // cancelled, or the gateway stopped; if it was claimed all the same, a sweep finds it
	}
	if err != nil || !claimed {
		return err == nil && t.State != writ.TaskHeld, err
	}
	res := g.run(ctx, t, spec)
	// Not ctx: the outcome of a cancelled run is recorded too.
	return true, g.finish(context.WithoutCancel(ctx), t, res)
}

// claim moves a queued task to running and records the intent, in one
// transaction; or, when the rules have moved since it was decided, to where they
// say. A task that is not queued any more, or that is for another gateway to run, is
// answered as it stands.
//
// claimed means that this call moved it to running: whoever else finds it running
// must leave it alone.
func (g *Gateway) claim(ctx context.Context, id writ.TaskID) (t writ.Task, spec writ.RunSpec, claimed bool, err error) {
	moved := false
	err = g.db.Update(ctx, func(tx *store.Tx) error {
		moved = false
		if t, err = tx.Task(ctx, id); err != nil || t.State != writ.TaskQueued || !g.serves(t) {
			return err
		}
		a, err := approvalOf(ctx, tx, t)
		if err != nil && writ.KindOf(err) != writ.NotFound {
			return err
		}
		moved = true
		if err != nil {
			a = nil
		} else {
			spec, err = getSpec(ctx, tx, t)
		}
		if err != nil {
			if k := writ.KindOf(err); k != writ.Conflict && k != writ.NotFound {
				return err
			}
			// What was admitted is lost: it would be lost at every further try.
			return g.denyNow(ctx, tx, &t, a, writ.Decision{Effect: writ.Deny, Reason: writ.Message(err), Policy: g.rules.Load().Version()})
		}
		d := g.decideAgain(t, spec)
		switch {
		case d.Effect == writ.Deny:
			return g.denyNow(ctx, tx, &t, a, d)
		case d.Effect == writ.Hold && (a == nil || approval.Covers(*a, t, t.Digest, d.Policy) != nil || !approval.Meets(*a, *d.Need)):
			return g.holdAgain(ctx, tx, &t, a, d)
		}
		return g.begin(ctx, tx, &t, spec, a, d)
	})
	if err == nil && moved {
		g.watch.Changed(t)
	}
	return t, spec, err == nil && moved && t.State == writ.TaskRunning, err
}

// serves reports whether this gateway has what t needs: of those that share a store some
// may have no files of users. Who has them finds t by its own launch, or by its sweep.
func (g *Gateway) serves(t writ.Task) bool {
	return t.Requester.Kind != writ.KindUser || g.opt.Blobs != nil
}

// decideAgain asks the rules in force now. The requester's rights beyond its name
// are not kept with the task, so rules see it without roles.
func (g *Gateway) decideAgain(t writ.Task, spec writ.RunSpec) writ.Decision {
	o := order{task: t, spec: &spec, now: writ.Now(), who: writ.Principal{Kind: t.Requester.Kind, ID: t.Requester.ID, Tenant: t.Tenant}}
	if o.as, o.known = g.runsAs(t); o.known && o.as.Tenant != t.Tenant {
		o.known = false
	}
	return g.decide(o)
}

// begin records the intent: from here on the task may have started.
func (g *Gateway) begin(ctx context.Context, tx *store.Tx, t *writ.Task, spec writ.RunSpec, a *writ.Approval, d writ.Decision) error {
	var binds writ.Digest
	if a != nil {
		binds = a.Digest
		if err := approval.Resume(a); err != nil {
			return err
		}
		if err := approval.Consume(a); err != nil {
			return err
		}
		if err := swapApproval(ctx, tx, *a, writ.ApprovalQueued); err != nil {
			return err
		}
	}
	now := writ.Now()
	t.State, t.Started, t.Updated, t.Owner = writ.TaskRunning, &now, now, g.opt.Owner
	if err := swapTask(ctx, tx, *t, writ.TaskQueued); err != nil {
		return err
	}
	// With the claim, so that no other gateway takes this one for dead after it.
	if err := tx.Beat(ctx, g.opt.Owner, leaseFor); err != nil {
		return err
	}
	return g.record(ctx, tx,
		event(*t, writ.EventAgentStarted, writ.EventData{Identity: t.Identity, Role: t.Role}),
		invoked(*t, spec, d.Policy, binds))
}

// denyNow ends a queued task that the rules in force do not allow any more.
func (g *Gateway) denyNow(ctx context.Context, tx *store.Tx, t *writ.Task, a *writ.Approval, d writ.Decision) error {
	if a != nil {
		if err := g.voidApproval(ctx, tx, a, d.Reason); err != nil {
			return err
		}
	}
	end(t, writ.TaskDenied, d.Reason)
	t.Rules = d.Rules
	if err := swapTask(ctx, tx, *t, writ.TaskQueued); err != nil {
		return err
	}
	return g.record(ctx, tx, decided(*t, d))
}

// holdAgain asks a person (again): what was approved was approved under other
// rules, or none asked for an approval before.
func (g *Gateway) holdAgain(ctx context.Context, tx *store.Tx, t *writ.Task, old *writ.Approval, d writ.Decision) error {
	now := writ.Now()
	next := approval.Request(*t, d, now, g.opt.ApprovalTTL)
	if err := g.checkApprovers(ctx, tx, next, &d); err != nil {
		return err
	}
	if d.Effect == writ.Deny {
		return g.denyNow(ctx, tx, t, old, d)
	}
	if old != nil {
		next.Replaces = old.ID
		moved := fmt.Sprintf("the policy moved from %.12s to %.12s", old.Policy, d.Policy)
		if old.Policy == d.Policy {
			moved = "more is asked for now"
		}
		next.Reason = fmt.Sprintf("%s (asked again: %s after %s was granted)", d.Reason, moved, old.ID)
		if err := g.voidApproval(ctx, tx, old, moved+" before the run started"); err != nil {
			return err
		}
	}
	t.State, t.Approval, t.Reason, t.Rules, t.Updated = writ.TaskHeld, next.ID, next.Reason, d.Rules, now
	if err := swapTask(ctx, tx, *t, writ.TaskQueued); err != nil {
		return err
	}
	if err := g.enqueue(ctx, tx, *t, next); err != nil {
		return err
	}
	return g.record(ctx, tx, decided(*t, d), requested(next))
}

// run calls the runner and turns every way it can end into a result.
func (g *Gateway) run(ctx context.Context, t writ.Task, spec writ.RunSpec) writ.Result {
	left := map[writ.Stream]int64{writ.Stdout: spec.Limits.OutputBytes, writ.Stderr: spec.Limits.OutputBytes}
	kept := g.keeper(spec)
	x := kept.exchange()
	x.Emit = func(c writ.Chunk) {
		if c.Data = c.Data[:min(int64(len(c.Data)), left[c.Stream])]; len(c.Data) > 0 {
			left[c.Stream] -= int64(len(c.Data))
			g.watch.Output(t.ID, c)
		}
	}
	res, err := g.runner.Run(ctx, string(t.ID), spec, t.Digest, x)
	bound(&res, spec.Limits.OutputBytes)
	res.Code = "" // of errors alone
	kept.settle(ctx, &res)
	if kept.lost > 0 {
		g.slog.Error("files of a run were not kept", "task", t.ID, "files", kept.lost, "err", kept.fault)
	}
	why, wasCancelled := errors.AsType[*cancelled](context.Cause(ctx))
	if err == nil && (!slices.Contains(writ.Outcomes, res.Outcome) || res.Outcome == writ.Succeeded && !res.Started) {
		g.slog.Error("runner reported what cannot be", "task", t.ID, "outcome", res.Outcome, "started", res.Started)
		res = writ.Result{Outcome: writ.Interrupted, Started: true, Reason: "the runner's report makes no sense: it may have run"}
	}
	if err != nil {
		res = writ.Result{Outcome: writ.Failed, Started: false, Reason: "not started: " + writ.Message(err)}
		if code := writ.CodeOf(err); writ.IsInputCode(code) {
			res.Code = code
			if kept.unread != nil {
				g.slog.Error("an input of a run could not be read", "task", t.ID, "err", kept.unread)
			}
		}
		if wasCancelled {
			res.Outcome = writ.Killed
		} else if writ.KindOf(err) == writ.Internal {
			g.slog.Error("runner failed", "task", t.ID, "err", err)
		}
	}
	if wasCancelled && res.Outcome == writ.Killed {
		res.Reason = why.Error()
	}
	res.Reason = cut(res.Reason, maxReason)
	return res
}

// Bounds of what a runner may say of itself.
const (
	maxWord   = 64
	maxLayers = 64
)

// bound holds a report to what was asked for: a runner is trusted to run things, not
// with the gateway's memory.
func bound(r *writ.Result, output int64) {
	for _, o := range []*writ.Output{&r.Stdout, &r.Stderr} {
		b := o.Data()
		*o = writ.NewOutput(b[:min(int64(len(b)), output)], max(o.Bytes, int64(len(b))))
	}
	r.Signal, r.Sandbox.Provider = cut(r.Signal, maxWord), cut(r.Sandbox.Provider, maxWord)
	for _, layers := range []*[]string{&r.Sandbox.Active, &r.Sandbox.Missing} {
		*layers = slices.Clone((*layers)[:min(len(*layers), maxLayers)])
		for i, l := range *layers {
			(*layers)[i] = cut(l, maxWord)
		}
	}
}

// finish records the outcome. It tries for as long as the store may be restarting;
// when it gives up the task stays running, and a later sweep calls it interrupted.
// It is a Conflict when another gateway took this one for dead and did that.
func (g *Gateway) finish(ctx context.Context, t writ.Task, res writ.Result) error {
	err := g.insist(func() error { return g.recordOutcome(ctx, &t, res) })
	if writ.KindOf(err) == writ.Conflict {
		// Or an earlier try did commit, although its answer was lost.
		if g.tell(ctx, t.ID).State == res.Outcome.State() {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("record outcome of %s: %w", t.ID, err)
	}
	g.watch.Changed(t)
	g.slog.Info("run finished", "task", t.ID, "tenant", t.Tenant, "identity", t.Identity, "language", t.Language,
		"outcome", res.Outcome, "started", res.Started, "wall_ms", res.WallMS)
	return nil
}

// tell shows the observer how a task stands that somebody else moved. Without it
// the observer would take a run that was under way here to be so for ever.
func (g *Gateway) tell(ctx context.Context, id writ.TaskID) (t writ.Task) {
	err := g.db.View(ctx, func(tx *store.Tx) (err error) {
		t, err = tx.Task(ctx, id)
		return err
	})
	if err == nil {
		g.watch.Changed(t)
	}
	return t
}

func (g *Gateway) recordOutcome(ctx context.Context, t *writ.Task, res writ.Result) error {
	return g.db.Update(ctx, func(tx *store.Tx) error {
		end(t, res.Outcome.State(), res.Reason)
		t.Result = facts(res)
		if err := swapTask(ctx, tx, *t, writ.TaskRunning); err != nil {
			return err
		}
		if res.Started {
			if err := tx.PutBody(ctx, t.ID, store.BodyStdout, res.Stdout.Data()); err != nil {
				return err
			}
			if err := tx.PutBody(ctx, t.ID, store.BodyStderr, res.Stderr.Data()); err != nil {
				return err
			}
			if err := putFiles(ctx, tx, t.ID, res); err != nil {
				return err
			}
		}
		return g.record(ctx, tx, reported(*t, res), finished(*t))
	})
}

// facts is a result without the bytes of its outputs and the names of its files, which
// live apart and can be deleted.
func facts(r writ.Result) *writ.Result {
	r.Stdout.Text, r.Stdout.Raw = "", nil
	r.Stderr.Text, r.Stderr.Raw = "", nil
	r.Files, r.Dropped = nil, nil
	return &r
}

func end(t *writ.Task, s writ.TaskState, reason string) {
	now := writ.Now()
	t.State, t.Reason, t.Updated, t.Finished = s, reason, now, &now
}

// swapTask stores t if the stored task is still in state from.
func swapTask(ctx context.Context, tx *store.Tx, t writ.Task, from ...writ.TaskState) error {
	ok, err := tx.UpdateTask(ctx, t, from...)
	if err == nil && !ok {
		err = &writ.Error{Op: "update task", Kind: writ.Conflict, Msg: fmt.Sprintf("task %s is no longer %v", t.ID, from)}
	}
	return err
}

func swapApproval(ctx context.Context, tx *store.Tx, a writ.Approval, from ...writ.ApprovalState) error {
	ok, err := tx.UpdateApproval(ctx, a, from...)
	if err == nil && !ok {
		err = &writ.Error{Op: "update approval", Kind: writ.Conflict, Msg: fmt.Sprintf("approval %s is no longer %v", a.ID, from)}
	}
	return err
}

// getSpec reads what was admitted and refuses it when it is not that any more.
func getSpec(ctx context.Context, tx *store.Tx, t writ.Task) (writ.RunSpec, error) {
	b, err := tx.Body(ctx, t.ID, store.BodySpec)
	if err != nil {
		return writ.RunSpec{}, fmt.Errorf("read spec of %s: %w", t.ID, err)
	}
	var spec writ.RunSpec
	if err := json.Unmarshal(b, &spec); err != nil {
		return writ.RunSpec{}, &writ.Error{Op: "read spec", Kind: writ.Conflict, Err: err, Msg: fmt.Sprintf(
			"the stored spec of task %s is not what was admitted: it is not run", t.ID)}
	}
	if d := spec.Digest(); d != t.Digest {
		return writ.RunSpec{}, &writ.Error{Op: "read spec", Kind: writ.Conflict, Msg: fmt.Sprintf(
			"the stored spec of task %s has digest %.12s, admitted was %.12s: it is not run", t.ID, d, t.Digest)}
	}
	return spec, nil
}

func approvalOf(ctx context.Context, tx *store.Tx, t writ.Task) (*writ.Approval, error) {
	if t.Approval == "" {
		return nil, nil
	}
	a, err := tx.Approval(ctx, t.Approval)
	return &a, err
}
