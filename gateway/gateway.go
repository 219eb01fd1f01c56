package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"writ"
	"writ/audit"
	"writ/policy"
	"writ/store"
)

// Runner executes specs in sandboxes.
type Runner interface {
	// Run blocks until the run is over; cancelling ctx ends it. emit is called in
	// order and never after Run returned. An error means that it is certain that no
	// code was executed; otherwise the result says how it ended.
	Run(ctx context.Context, id string, spec writ.RunSpec, digest writ.Digest, x *writ.Exchange) (writ.Result, error)
}

// Observer hears of what changes, after it was committed. Its methods must not
// block.
type Observer interface {
	Changed(writ.Task)
	Output(writ.TaskID, writ.Chunk)
}

// Options are the gateway's settings. All are required but where it says so.
type Options struct {
	Owner       string        // names this gateway among those on one database
	Defaults    writ.Limits   // of a run that asks for nothing
	Max         writ.Limits   // of any run
	ApprovalTTL time.Duration // how long a held request waits for a person
	Slots       int           // runs under way at one time
	Backlog     int           // queued tasks that may wait for a slot; one more is refused as exhausted, but to a tenant that has none
	Share       int           // of Slots and Backlog together that one identity may take, so that others get in
	Held        int           // pending approvals of one identity; one more is refused as exhausted
	Identities  []writ.Identity
	// Users is what the users of a front end may ask for, none if that is empty; Blobs has
	// the files of their runs, nil where there are no such runs.
	Users  []writ.Scope
	Blobs  Blobs
	Insist time.Duration // how long a failing store is tried to record an outcome; 0 means 8 s
}

// Gateway is the one path. It is safe for concurrent use. Close it before its
// store, its runner and its log.
type Gateway struct {
	db         *store.DB
	runner     Runner
	log        *audit.Log
	watch      Observer
	slog       *slog.Logger
	opt        Options
	identities map[writ.IdentityID]writ.Identity
	rules      atomic.Pointer[policy.Set]

	slots   *slots
	closing chan struct{} // closed when nothing more may be claimed

	ctx    context.Context // ends when Close gives up waiting; parent of every run
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	closed bool                     // guarded by mu; no run is launched once it is set
	live   map[writ.TaskID]*carried // guarded by mu; tasks in the hands of this gateway: they run or wait for a slot
	// reserved counts the places for tasks that are being admitted.
	reserved map[share]int            // guarded by mu; no count is zero
	telling  map[writ.TaskID]*telling // guarded by mu; tasks that are made ready to run

	refusals audit.Bound // of what callers can have recorded by being refused
}

// New is a gateway that decides with rules. It starts nothing by itself: call
// Sweep to settle what an earlier process left.
func New(db *store.DB, runner Runner, log *audit.Log, rules *policy.Set, watch Observer, logger *slog.Logger, opt Options) *Gateway {
	ctx, cancel := context.WithCancelCause(context.Background())
	g := &Gateway{
		db: db, runner: runner, log: log, watch: watch, slog: logger, opt: opt,
		identities: make(map[writ.IdentityID]writ.Identity, len(opt.Identities)),
		slots:      newSlots(opt.Slots),
		closing:    make(chan struct{}),
		ctx:        ctx, cancel: cancel,
		live: map[writ.TaskID]*carried{}, reserved: map[share]int{}, telling: map[writ.TaskID]*telling{},
	}
	for _, id := range opt.Identities {
		g.identities[id.ID] = id
	}
	g.rules.Store(rules)
	return g
}

// Policy is the set in force.
func (g *Gateway) Policy() *policy.Set { return g.rules.Load() }

// SetPolicy puts another set in force, for what is decided from now on, also for
// tasks that wait. The change is recorded first; when that fails the old set stays.
func (g *Gateway) SetPolicy(ctx context.Context, by writ.Principal, rules *policy.Set) error {
	err := g.db.Update(ctx, func(tx *store.Tx) error {
		return g.record(ctx, tx, writ.Event{
			Type: writ.EventPolicyLoaded, Tenant: by.Tenant, Actor: by.Ref(),
			Data: writ.EventData{Policy: rules.Version()},
		})
	})
	if err == nil {
		g.rules.Store(rules)
	}
	return err
}

// Identity is the registered identity of that name as it is in force now.
func (g *Gateway) Identity(id writ.IdentityID) (writ.Identity, bool) {
	i, ok := g.identities[id]
	return i, ok
}

// record appends events in the caller's transaction.
func (g *Gateway) record(ctx context.Context, tx *store.Tx, events ...writ.Event) error {
	_, err := g.log.Append(ctx, tx, events...)
	return err
}

// Close stops launching runs and waits for those under way; queued tasks stay
// queued and are carried after the next start. When ctx ends first the runs
// are cancelled, which ends and records them as killed. The store must stay
// open until Close returns.
func (g *Gateway) Close(ctx context.Context) {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.closing)
	}
	g.mu.Unlock()
	done := make(chan struct{})
	go func() { g.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		g.cancel(&cancelled{reason: "the server stopped"})
		<-done
	}
	g.cancel(nil)
	// Others need not wait for the lease to end. When it fails they do.
	leave, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if err := g.db.Update(leave, func(tx *store.Tx) error { return tx.Leave(leave, g.opt.Owner) }); err != nil {
		g.slog.Warn("end lease", "err", err)
	}
}

// Announce records that a server starts, with all that decides about requests: the
// policy, the identities and the most that a run may get. What changed while no
// server ran is seen by comparing two of these.
func (g *Gateway) Announce(ctx context.Context, by writ.Principal) error {
	ids, err := json.Marshal(g.opt.Identities)
	if err != nil {
		return fmt.Errorf("encode identities: %w", err)
	}
	return g.db.Update(ctx, func(tx *store.Tx) error {
		return g.record(ctx, tx, writ.Event{
			Type: writ.EventServerStarted, Tenant: by.Tenant, Actor: by.Ref(),
			Data: writ.EventData{
				Policy: g.rules.Load().Version(), Subject: "identities " + string(writ.DigestOf(ids)),
				Count: int64(len(g.opt.Identities)), Limits: g.opt.Max,
			},
		})
	})
}

// recordAlone appends events in a transaction of their own.
func (g *Gateway) recordAlone(ctx context.Context, events ...writ.Event) error {
	return g.db.Update(ctx, func(tx *store.Tx) error { return g.record(ctx, tx, events...) })
}
