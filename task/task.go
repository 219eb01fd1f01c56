package task

import (
	"context"
	"encoding/json"
	"fmt"

	"writ"
	"writ/audit"
	"writ/gateway"
	"writ/store"
)

// Service answers what callers ask of tasks. It is safe for concurrent use.
type Service struct {
	gw  *gateway.Gateway
	db  *store.DB
	hub *Hub
	log *audit.Log

	look func(context.Context, writ.Principal, writ.TaskID) (writ.Task, error) // Get, which a test counts
}

// New is a service on the gateway's own store and log; hub is the gateway's observer.
func New(gw *gateway.Gateway, db *store.DB, hub *Hub, log *audit.Log) *Service {
	s := &Service{gw: gw, db: db, hub: hub, log: log}
	s.look = s.Get
	return s
}

// Submit is gateway.Gateway.Submit.
func (s *Service) Submit(ctx context.Context, who writ.Principal, req writ.TaskRequest) (writ.Task, bool, error) {
	t, created, err := s.gw.Submit(ctx, who, req)
	if err != nil || created {
		return t, created, err
	}
	t, err = s.Get(ctx, who, t.ID)
	return t, false, err
}

// Interpret is gateway.Gateway.Interpret.
func (s *Service) Interpret(ctx context.Context, who writ.Principal, spec writ.RunSpec) (writ.Task, error) {
	return s.gw.Interpret(ctx, who, spec)
}

// Refuse is gateway.Gateway.Refuse.
func (s *Service) Refuse(ctx context.Context, who writ.Principal, reason string) error {
	return s.gw.Refuse(ctx, who, reason)
}

// Cancel is gateway.Gateway.Cancel.
func (s *Service) Cancel(ctx context.Context, who writ.Principal, id writ.TaskID, reason string) (writ.Task, error) {
	return s.gw.Cancel(ctx, who, id, reason)
}

// Get is a task with the text of its outputs and its files, as far as that was not deleted.
// NotFound when there is none that who may see.
func (s *Service) Get(ctx context.Context, who writ.Principal, id writ.TaskID) (t writ.Task, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		if t, err = visible(ctx, tx, who, id); err != nil {
			return err
		}
		return fill(ctx, tx, &t)
	})
	return t, err
}

func visible(ctx context.Context, tx *store.Tx, who writ.Principal, id writ.TaskID) (writ.Task, error) {
	t, err := tx.Task(ctx, id)
	if err != nil && writ.KindOf(err) != writ.NotFound {
		return t, err
	}
	if err != nil || !who.Sees(t.Tenant, t.Identity) {
		return writ.Task{}, &writ.Error{Op: "read task", Kind: writ.NotFound, Msg: fmt.Sprintf("there is no task %q", id), Err: err}
	}
	return t, nil
}

// fill puts the stored output and the names of files into a result that has only its facts.
func fill(ctx context.Context, tx *store.Tx, t *writ.Task) error {
	if t.Result == nil || !t.Result.Started {
		return nil
	}
	for name, o := range map[string]*writ.Output{store.BodyStdout: &t.Result.Stdout, store.BodyStderr: &t.Result.Stderr} {
		b, err := body(ctx, tx, t.ID, name)
		if err != nil {
			return err
		}
		if b != nil {
			full := writ.NewOutput(b, int64(len(b)))
			o.Text, o.Raw = full.Text, full.Raw
		}
	}
	return gateway.GetFiles(ctx, tx, t.ID, t.Result)
}

// body is a stored body, nil when it was deleted or never was.
func body(ctx context.Context, tx *store.Tx, id writ.TaskID, name string) ([]byte, error) {
	b, err := tx.Body(ctx, id, name)
	if writ.KindOf(err) == writ.NotFound {
		return nil, nil
	}
	if err == nil && b == nil {
		b = []byte{} // a driver may read an empty one as nil
	}
	return b, err
}

// Spec is what the task runs, as admitted.
func (s *Service) Spec(ctx context.Context, who writ.Principal, id writ.TaskID) (spec writ.RunSpec, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		if _, err := visible(ctx, tx, who, id); err != nil {
			return err
		}
		b, err := body(ctx, tx, id, store.BodySpec)
		if err != nil {
			return err
		}
		if b == nil {
			return &writ.Error{Op: "read spec", Kind: writ.NotFound, Msg: fmt.Sprintf("task %s has no spec: it is a plan step, was denied at once, or its bodies were deleted", id)}
		}
		return json.Unmarshal(b, &spec)
	})
	return spec, err
}

// Output is the kept bytes of one stream, exactly; NotFound when there are none.
func (s *Service) Output(ctx context.Context, who writ.Principal, id writ.TaskID, stream writ.Stream) (b []byte, err error) {
	if stream != writ.Stdout && stream != writ.Stderr {
		return nil, &writ.Error{Op: "read output", Kind: writ.Invalid, Msg: fmt.Sprintf("stream %q: want stdout or stderr", stream)}
	}
	err = s.db.View(ctx, func(tx *store.Tx) error {
		t, err := visible(ctx, tx, who, id)
		if err != nil {
			return err
		}
		if b, err = body(ctx, tx, id, string(stream)); err == nil && b == nil {
			err = &writ.Error{Op: "read output", Kind: writ.NotFound, Msg: fmt.Sprintf("task %s (%s) has no stored %s", id, t.State, stream)}
		}
		return err
	})
	return b, err
}

// List is one page of the tasks that who may see, newest first, without the text of
// their outputs, and the cursor of the next page.
func (s *Service) List(ctx context.Context, who writ.Principal, f writ.TaskFilter) (list []writ.Task, next string, err error) {
	f.Tenant, f.Identity = who.Narrow(f.Tenant, f.Identity)
	err = s.db.View(ctx, func(tx *store.Tx) error {
		list, next, err = tx.Tasks(ctx, f)
		return err
	})
	return list, next, err
}

// DeleteBodies removes code, inputs and output of a task that is over. The record
// of it stays and still verifies.
func (s *Service) DeleteBodies(ctx context.Context, who writ.Principal, id writ.TaskID) error {
	const op = "delete bodies"
	if !who.Administers() {
		return &writ.Error{Op: op, Kind: writ.Denied, Msg: "only an operator may delete what a task ran and wrote"}
	}
	return s.db.Update(ctx, func(tx *store.Tx) error {
		t, err := visible(ctx, tx, who, id)
		if err != nil {
			return err
		}
		if !t.State.Terminal() {
			return &writ.Error{Op: op, Kind: writ.Conflict, Msg: fmt.Sprintf("task %s is %s: wait for its end or cancel it", id, t.State)}
		}
		n, err := tx.DeleteBodies(ctx, id)
		if err != nil {
			return err
		}
		_, err = s.log.Append(ctx, tx, writ.Event{
			Type: writ.EventBodiesDeleted, Tenant: t.Tenant, Task: id, Actor: who.Ref(), Data: writ.EventData{Count: n},
		})
		return err
	})
}
