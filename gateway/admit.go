package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"writ"
	"writ/approval"
	"writ/lang"
	"writ/policy"
	"writ/store"
)

// Submit takes a request of who: it decides, and records the task with the
// decision in one transaction. The task it answers is denied, held, noted or
// queued; a queued one is launched at once. created is false when the request's
// key named an earlier task, which is then the answer.
//
// Errors: Invalid for a malformed request, Denied when who may not ask in that
// identity's name (both are recorded as refusals, and nothing else is), Conflict
// when the key names a task with other content.
func (g *Gateway) Submit(ctx context.Context, who writ.Principal, req writ.TaskRequest) (t writ.Task, created bool, err error) {
	if err := g.check(&req, who); err != nil {
		return writ.Task{}, false, g.refuse(ctx, who, err)
	}
	return g.submit(ctx, g.order(who, req))
}

// submit is Submit for what was checked.
func (g *Gateway) submit(ctx context.Context, o order) (t writ.Task, created bool, err error) {
	d := g.decide(o)
	runs := d.Effect == writ.Allow && o.spec != nil
	var full error
	launch := writ.TaskID("")
	if runs {
		if full = g.reserve(shareOf(o.task)); full == nil {
			defer func() { g.release(shareOf(o.task), launch) }()
		}
	}
	defer g.tells(o.task.ID)()
	err = g.db.Update(ctx, func(tx *store.Tx) (err error) {
		t, created, err = g.admitOnce(ctx, tx, o, d, full)
		return err
	})
	if err != nil {
		return writ.Task{}, false, g.refuse(ctx, o.who, err)
	}
	if created {
		g.watch.Changed(t)
		if t.State == writ.TaskQueued {
			launch = t.ID
		}
	}
	return t, created, nil
}

// admitOnce answers the task that the key of the request names already, or admits
// the request, unless full says why there is no room for it.
func (g *Gateway) admitOnce(ctx context.Context, tx *store.Tx, o order, d writ.Decision, full error) (t writ.Task, created bool, err error) {
	first, err := earlier(ctx, tx, o.task)
	switch {
	case err != nil:
		return t, false, err
	case first == nil && full != nil:
		return t, false, full
	case first == nil:
		t = o.task
		refused := g.admit(ctx, tx, &t, o, d)
		if writ.KindOf(refused) != writ.Conflict {
			return t, refused == nil, refused
		}
		// Where writers do not queue, a request of the same key can have been committed
		// since the look above.
		if first, err = earlier(ctx, tx, o.task); err != nil {
			return t, false, err
		}
		if first == nil {
			return t, false, refused
		}
	}
	return *first, false, sameRequest(*first, o.task)
}

// earlier is the task that t's key names already, nil when there is none.
func earlier(ctx context.Context, tx *store.Tx, t writ.Task) (*writ.Task, error) {
	if t.Key == "" {
		return nil, nil
	}
	first, err := tx.TaskByKey(ctx, t.Tenant, t.Identity, t.Key)
	if writ.KindOf(err) == writ.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &first, nil
}

// refuse records that a request was turned down for what it is, and answers why;
// other errors pass as they are.
func (g *Gateway) refuse(ctx context.Context, who writ.Principal, cause error) error {
	switch writ.KindOf(cause) {
	case writ.Invalid, writ.Denied, writ.Conflict:
		if err := g.Refuse(ctx, who, writ.Message(cause)); err != nil {
			return err
		}
	}
	return cause
}

// Refuse records a request that is too malformed to become a task. One caller can
// have so many a minute recorded; the rest is counted in the next record.
func (g *Gateway) Refuse(ctx context.Context, who writ.Principal, reason string) error {
	dropped, due := g.refusals.Due(who.Ref().String(), writ.Now())
	if !due {
		return nil
	}
	return g.db.Update(ctx, func(tx *store.Tx) error {
		return g.record(ctx, tx, writ.Event{
			Type: writ.EventTaskRefused, Tenant: who.Tenant, Actor: who.Ref(),
			Data: writ.EventData{Reason: cut(reason, maxReason), Count: dropped},
		})
	})
}

// maxReason bounds what a record keeps of words that a caller had influence on.
const maxReason = 2000

func cut(s string, n int) string {
	if len(s) > n {
		return string(writ.CutRune([]byte(s[:n]))) + "…"
	}
	return s
}

// check answers why who may not send req, and normalises its language.
func (g *Gateway) check(req *writ.TaskRequest, who writ.Principal) error {
	const op = "create task"
	if err := req.Validate(); err != nil {
		return &writ.Error{Op: op, Kind: writ.Invalid, Msg: err.Error()}
	}
	if req.Spec != nil {
		l, err := lang.Lookup(req.Spec.Language)
		if err != nil {
			return err
		}
		spec := *req.Spec
		spec.Language = l.Name
		req.Spec = &spec
	}
	switch {
	case req.Identity == "" && who.Kind != writ.KindAgent:
		return &writ.Error{Op: op, Kind: writ.Invalid, Msg: "identity is missing: name the registered identity that the task is for"}
	case req.Identity == "":
		req.Identity = writ.IdentityID(who.ID)
	case !writ.ValidName(string(req.Identity)):
		return &writ.Error{Op: op, Kind: writ.Invalid, Msg: fmt.Sprintf("identity %q is not a name", req.Identity)}
	case string(req.Identity) != who.ID && !who.Administers():
		return &writ.Error{Op: op, Kind: writ.Denied, Msg: fmt.Sprintf("%s may not ask in the name of %q", who.Ref(), req.Identity)}
	}
	return nil
}

// order is a request with all that decides about it.
type order struct {
	task  writ.Task // as it will be stored, without state
	who   writ.Principal
	as    writ.Principal // whom it runs for; zero when there is nobody of that name
	known bool
	spec  *writ.RunSpec // normalised; nil for a plan step
	now   time.Time
}

func (g *Gateway) order(who writ.Principal, req writ.TaskRequest) order {
	now := writ.Now()
	o := order{who: who, now: now}
	o.as, o.known = g.registered(req.Identity)
	if o.known && who.Kind != writ.KindLocal && o.as.Tenant != who.Tenant {
		o.as, o.known = writ.Principal{}, false // another tenant's identity does not exist for this one
	}
	o.task = writ.Task{
		ID: writ.TaskID(writ.NewID("task")), Key: req.Key, Tenant: who.Tenant, Identity: req.Identity, Role: req.Role,
		Requester: who.Ref(), Step: req.Step, RetryOf: req.RetryOf,
		Created: now, Updated: now, RequestDigest: requestDigest(req),
	}
	if o.known {
		o.task.Tenant = o.as.Tenant
	}
	if req.Spec != nil {
		g.bind(&o, *req.Spec)
	}
	return o
}

// bind makes spec, with its limits within the bounds, what o is about.
func (g *Gateway) bind(o *order, spec writ.RunSpec) {
	spec.Limits, o.task.Clamped = spec.Limits.Within(g.opt.Defaults, g.opt.Max)
	if spec.Compile != nil {
		compile, _ := spec.Compile.Within(g.opt.Defaults, g.opt.Max)
		spec.Compile = &compile
	}
	o.spec = &spec
	o.task.Language, o.task.Digest = spec.Language, spec.Digest()
}

// registered is the identity of that name as one who asks, and whether there is one.
func (g *Gateway) registered(id writ.IdentityID) (writ.Principal, bool) {
	as, known := g.identities[id]
	return as.Principal(), known
}

// runsAs is whom a stored task runs for, with the rights that are in force now. Of a
// user's roles the one that it asked in is kept with the task.
func (g *Gateway) runsAs(t writ.Task) (writ.Principal, bool) {
	if t.Requester.Kind != writ.KindUser {
		return g.registered(t.Identity)
	}
	as := writ.Principal{Kind: writ.KindUser, ID: t.Requester.ID, Tenant: t.Tenant, Scopes: g.opt.Users}
	if t.Role != "" {
		as.Roles = []string{t.Role}
	}
	return as, as.Owner() == t.Identity
}

// requestDigest covers all of a request but its key, so that a resend is told
// from another request under the same key.
func requestDigest(req writ.TaskRequest) writ.Digest {
	req.Key = ""
	b, err := json.Marshal(req)
	if err != nil {
		panic("gateway: a TaskRequest always encodes: " + err.Error())
	}
	return writ.DigestOf(b)
}

func sameRequest(first, again writ.Task) error {
	if first.RequestDigest == again.RequestDigest {
		return nil
	}
	return &writ.Error{Op: "create task", Kind: writ.Conflict, Msg: fmt.Sprintf(
		"key %q names task %s, which has other content: what was asked or approved stays as it was; send the change under another key", first.Key, first.ID)}
}

// decide answers in the order of spec/01 §2 rule 5: identity, role, scope, policy.
func (g *Gateway) decide(o order) writ.Decision {
	rules := g.rules.Load()
	scope, d := screen(o, rules.Version())
	if d != nil {
		return *d
	}
	return rules.Decide(o.request(scope))
}

// Explain says what would be decided about req now, and why. Nothing is stored and
// nothing runs.
func (g *Gateway) Explain(who writ.Principal, req writ.TaskRequest) (policy.Explanation, error) {
	if err := g.check(&req, who); err != nil {
		return policy.Explanation{}, err
	}
	o := g.order(who, req)
	rules := g.rules.Load()
	scope, d := screen(o, rules.Version())
	if d != nil {
		return policy.Explanation{Decision: *d}, nil
	}
	return rules.Explain(o.request(scope)), nil
}

// screen decides what needs no policy. A nil decision means that policy is asked,
// with the scope that the language needs.
func screen(o order, version writ.Digest) (writ.Scope, *writ.Decision) {
	deny := func(format string, args ...any) (writ.Scope, *writ.Decision) {
		return "", &writ.Decision{Effect: writ.Deny, Reason: fmt.Sprintf(format, args...), Policy: version}
	}
	if !o.known {
		return deny("identity %q is not registered", o.task.Identity)
	}
	if o.task.Role != "" && !slices.Contains(o.as.Roles, o.task.Role) {
		return deny("identity %q is not registered to role %q", o.task.Identity, o.task.Role)
	}
	if o.spec == nil {
		return "", &writ.Decision{Effect: writ.Allow, Reason: "a plan step executes nothing", Policy: version}
	}
	l, err := lang.For(o.spec.Kind).Lookup(o.spec.Language)
	if err != nil {
		return deny("%s", writ.Message(err)) // a language that the table lost since the task was stored
	}
	if !slices.Contains(o.as.Scopes, l.Scope) {
		return deny("identity %q has no scope %q, which %s needs", o.task.Identity, l.Scope, l.Name)
	}
	return l.Scope, nil
}

// request is the order in the words of policy.
func (o order) request(scope writ.Scope) policy.Request {
	by := o.who
	by.Tenant = o.task.Tenant // the owner of the data folder acts in the identity's
	return policy.Request{
		Principal: o.as, Requester: by, Action: writ.ActionRun, Role: o.task.Role,
		Scope: scope, Run: policy.FactsOf(*o.spec), Now: o.now,
	}
}

// admit stores the task as d decides, with its events, and what carries it on.
func (g *Gateway) admit(ctx context.Context, tx *store.Tx, t *writ.Task, o order, d writ.Decision) error {
	if t.RetryOf != "" {
		if err := g.checkRetry(ctx, tx, o); err != nil {
			return err
		}
	}
	events := []writ.Event{o.received()}
	if d.Effect == writ.Hold {
		if err := g.checkApprovers(ctx, tx, approval.Request(*t, d, o.now, g.opt.ApprovalTTL), &d); err != nil {
			return err
		}
	}
	if d.Effect == writ.Hold {
		if err := g.checkHeld(ctx, tx, t.Tenant, t.Identity); err != nil {
			return err
		}
	}
	t.Reason, t.Rules = d.Reason, d.Rules
	switch {
	case d.Effect == writ.Deny:
		t.State, t.Finished = writ.TaskDenied, &o.now
	case o.spec == nil:
		t.State, t.Finished = writ.TaskNoted, &o.now
	case d.Effect == writ.Hold:
		t.State = writ.TaskHeld
	default:
		t.State = writ.TaskQueued
	}
	events = append(events, decided(*t, d))
	var a writ.Approval
	if t.State == writ.TaskHeld {
		a = approval.Request(*t, d, o.now, g.opt.ApprovalTTL)
		t.Approval = a.ID
		events = append(events, requested(a))
	}
	if err := tx.InsertTask(ctx, *t); err != nil {
		return err
	}
	if o.spec != nil && !t.State.Terminal() {
		if err := putSpec(ctx, tx, t.ID, *o.spec); err != nil {
			return err
		}
	}
	if err := g.enqueue(ctx, tx, *t, a); err != nil {
		return err
	}
	return g.record(ctx, tx, events...)
}

// enqueue stores the approval of a held task and the job that carries the task on
// when nobody in this process does.
func (g *Gateway) enqueue(ctx context.Context, tx *store.Tx, t writ.Task, a writ.Approval) error {
	switch t.State {
	case writ.TaskQueued:
		return tx.Enqueue(ctx, store.Job{Kind: store.JobDispatch, Task: t.ID})
	case writ.TaskHeld:
		if err := tx.InsertApproval(ctx, a); err != nil {
			return err
		}
		return tx.Enqueue(ctx, store.Job{Kind: store.JobExpire, Task: t.ID, Approval: a.ID, At: a.Expires})
	}
	return nil
}

func (g *Gateway) checkRetry(ctx context.Context, tx *store.Tx, o order) error {
	old, err := tx.Task(ctx, o.task.RetryOf)
	if err != nil && writ.KindOf(err) != writ.NotFound {
		return err
	}
	if err != nil || !o.who.Sees(old.Tenant, old.Identity) {
		return &writ.Error{Op: "create task", Kind: writ.Invalid, Msg: fmt.Sprintf("retry_of: there is no task %q", o.task.RetryOf), Err: err}
	}
	if !old.State.Terminal() {
		return &writ.Error{Op: "create task", Kind: writ.Conflict, Msg: fmt.Sprintf("retry_of: task %s is %s, only a task that is over can be repeated", old.ID, old.State)}
	}
	return nil
}

// checkApprovers turns d, which asks for the approval a, into a denial when nobody
// could give it (spec/01 §2 rule 3).
func (g *Gateway) checkApprovers(ctx context.Context, tx *store.Tx, a writ.Approval, d *writ.Decision) error {
	ops, err := tx.Operators(ctx, a.Tenant)
	if err != nil {
		return err
	}
	n := 0
	for _, op := range ops {
		if op.Disabled == nil && approval.Eligible(a, op.Principal()) == nil {
			n++
		}
	}
	if n < a.Need.Grants {
		*d = writ.Decision{
			Effect: writ.Deny, Rules: d.Rules, Policy: d.Policy,
			Reason: fmt.Sprintf("%s; that needs %d approver(s) of tenant %q and there are %d: add one with `writ operators add`", d.Reason, a.Need.Grants, a.Tenant, n),
		}
	}
	return nil
}

// checkHeld bounds what one identity can have people look at, and store meanwhile.
func (g *Gateway) checkHeld(ctx context.Context, tx *store.Tx, tenant writ.Tenant, identity writ.IdentityID) error {
	n, err := tx.PendingApprovals(ctx, tenant, identity)
	if err == nil && n >= g.opt.Held {
		err = &writ.Error{Op: "hold request", Kind: writ.Exhausted, Msg: fmt.Sprintf(
			"%d requests of %q are held already, no more are taken: wait for their approvals, or cancel some", n, identity)}
	}
	return err
}

func putSpec(ctx context.Context, tx *store.Tx, id writ.TaskID, spec writ.RunSpec) error {
	b, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode spec of %s: %w", id, err)
	}
	return tx.PutBody(ctx, id, store.BodySpec, b)
}
