package session

import (
	"context"
	"errors"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// twoRunsOfOneThatIsOver: a run that waits for the row of a runtime session, which another
// run makes anew or a pass removes meanwhile, has it after that as one that is new.
func twoRunsOfOneThatIsOver(t *testing.T, url string) {
	d, ada, ctx := newDeskAt(t, url, Defaults()), user("ada"), context.Background()
	for name, meanwhile := range map[string]func(*store.Tx, store.Runtime) error{
		"removed": func(tx *store.Tx, is store.Runtime) error { return tx.DeleteRuntime(ctx, is) },
		"made anew": func(tx *store.Tx, is store.Runtime) error {
			return errors.Join(tx.DeleteRuntime(ctx, is), tx.AddRuntime(ctx, is.Key, ada.Tenant, d.now()))
		},
	} {
		r := d.acquire(t, ada, hint)
		d.save(t, r, d.input(t, "a", "a"))
		release(t, r)
		d.pass(d.opt.RuntimeTTL + time.Millisecond)
		type answer struct {
			r   *Runtime
			err error
		}
		got := make(chan answer, 1)
		err := d.db.Update(ctx, func(tx *store.Tx) error {
			is, err := tx.Runtime(ctx, r.key)
			if err != nil {
				return err
			}
			go func() {
				r, err := NewRuntimes(d.Service).Acquire(ctx, ada, hint, time.Minute)
				got <- answer{r, err}
			}()
			select { // time for it to come to the row, which is not given up before
			case a := <-got:
				t.Errorf("%s: it did not wait: %+v, %v", name, a.r, a.err)
			case <-time.After(300 * time.Millisecond):
			}
			return meanwhile(tx, is)
		})
		if err != nil {
			t.Fatal(err)
		}
		a := testkit.Receive(t, "the one that waits", got)
		if a.err != nil {
			t.Errorf("%s: %v (%v)", name, a.err, writ.KindOf(a.err))
			continue
		}
		if !a.r.New || len(a.r.Files) != 0 {
			t.Errorf("%s: it found %v, new %v", name, a.r.Files, a.r.New)
		}
		release(t, a.r)
	}
}

// TestLeaseIsLostWithoutAnAnswer: who holds a runtime session learns that its lease is over
// also while the store leaves it without an answer.
func TestLeaseIsLostWithoutAnAnswer(t *testing.T) {
	opt := Defaults()
	opt.RuntimeLease = 300 * time.Millisecond
	d, ctx := newDesk(t, opt), context.Background()
	r := d.acquire(t, user("ada"), hint)
	err := d.db.Update(ctx, func(*store.Tx) error { // which keeps every other writer waiting
		select {
		case <-r.Lost():
			return nil
		case <-time.After(time.Minute):
			return errors.New("it is not told that its lease is over")
		}
	})
	if err != nil {
		t.Error(err)
	}
}
