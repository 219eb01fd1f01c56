package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"writ"
	"writ/audit"
	"writ/policy"
	"writ/store"
)

// measureParts measures what a request pays for beside its run: the decision with
// 10 and with 100 rules, and what the store takes.
func measureParts(ctx context.Context, dir string, n int) ([]*series, error) {
	var parts []*series
	for _, rules := range []int{10, 100} {
		s, err := decisions(rules)
		if err != nil {
			return nil, err
		}
		parts = append(parts, s)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	synced, err := syncs(filepath.Join(dir, "file"), n)
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "writ.db"), store.Options{})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	key, _, err := audit.GenerateKey("bench")
	if err != nil {
		return nil, err
	}
	log, err := audit.New(key)
	if err != nil {
		return nil, err
	}
	appended := &series{name: "audit: append one event, committed"}
	created := &series{name: "task: the transaction that creates one"}
	for range n {
		if err := errors.Join(
			appended.measure(timed(func() error {
				return db.Update(ctx, func(tx *store.Tx) error {
					_, err := log.Append(ctx, tx, writ.Event{Type: writ.EventTaskReceived})
					return err
				})
			})),
			created.measure(timed(func() error { return db.Update(ctx, create(ctx, log)) })),
		); err != nil {
			return nil, err
		}
	}
	return append(parts, synced, appended, created), nil
}

// batch is how many decisions are timed as one, so that the clock is no part of it.
const batch = 100

func decisions(rules int) (*series, error) {
	var src strings.Builder
	src.WriteString(everything)
	for i := range rules - 1 {
		fmt.Fprintf(&src, "@id(\"r%d\") forbid (principal in Role::\"r%d\", action == Action::\"run\", resource in Scope::\"python\")\n"+
			"when { context.code_bytes > %d && context.limits.wall_ms > 10 };\n", i, i%2+1, i)
	}
	set, err := policy.Compile([]policy.File{{Name: "bench.cedar", Content: []byte(src.String())}})
	if err != nil {
		return nil, err
	}
	bot := writ.Identity{ID: "bot", Tenant: writ.DefaultTenant, Roles: []string{"r0"}, Scopes: []writ.Scope{"python"}}
	req := policy.Request{
		Principal: bot.Principal(), Requester: bot.Principal(), Action: writ.ActionRun, Scope: "python",
		Run: policy.FactsOf(writ.RunSpec{Language: "python", Code: "print(1)", Limits: writ.DefaultLimits}), Now: writ.Now(),
	}
	s := &series{name: fmt.Sprintf("policy: a decision with %d rules", rules)}
	for range 100 {
		began := time.Now()
		for range batch {
			if d := set.Decide(req); d.Effect != writ.Allow {
				return nil, fmt.Errorf("policy says %s: %s", d.Effect, d.Reason)
			}
		}
		s.took = append(s.took, time.Since(began)/batch)
	}
	return s, nil
}

// create is the transaction of a task that was allowed: its row, its spec, two
// events, and the job that carries it over a crash.
func create(ctx context.Context, log *audit.Log) func(*store.Tx) error {
	now := writ.Now()
	t := writ.Task{
		ID: writ.TaskID(writ.NewID("task")), Tenant: writ.DefaultTenant, Identity: "bot", State: writ.TaskQueued,
		Requester: writ.Ref{Kind: writ.KindAgent, ID: "bot"}, Created: now, Updated: now,
	}
	return func(tx *store.Tx) error {
		_, err := log.Append(ctx, tx, writ.Event{Type: writ.EventTaskReceived, Task: t.ID}, writ.Event{Type: writ.EventTaskDecided, Task: t.ID})
		return errors.Join(err, tx.InsertTask(ctx, t), tx.PutBody(ctx, t.ID, store.BodySpec, make([]byte, 512)),
			tx.Enqueue(ctx, store.Job{Kind: store.JobDispatch, Task: t.ID}))
	}
}

// syncs is the floor of every commit: one page to the disk.
func syncs(path string, n int) (*series, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &series{name: "disk: write and sync 4 KiB"}
	page := make([]byte, 4<<10)
	for range n {
		if err := s.measure(timed(func() error {
			_, err := f.Write(page)
			return errors.Join(err, f.Sync())
		})); err != nil {
			return nil, err
		}
	}
	return s, nil
}
