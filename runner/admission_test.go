package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"writ"
)

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := newFake(t, Options{Slots: 1, Queue: 10})
		first, cancel := context.WithCancel(t.Context())
		wait, wd := specOf("wait")
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = r.Run(first, "first", wait, wd, nil) })
		synctest.Wait()
		for i := range 5 {
			spec, d := specOf(fmt.Sprint(i))
			wg.Go(func() {
				if _, err := r.Run(t.Context(), fmt.Sprint(i), spec, d, nil); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		cancel()
		wg.Wait()
		var order []string
		for _, cmd := range p.started {
			order = append(order, cmd.Argv[len(cmd.Argv)-1])
		}
		if want := []string{"wait", "0", "1", "2", "3", "4"}; !slices.Equal(order, want) {
			t.Errorf("ran in order %v, want %v", order, want)
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := newFake(t, Options{Slots: 2, Queue: 1, QueueWait: 30 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		wait, wd := specOf("wait")
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() { _, _ = r.Run(ctx, fmt.Sprint("running", i), wait, wd, nil) })
		}
		synctest.Wait()

		spec, d := specOf("x")
		start := time.Now()
		wg.Go(func() {
			_, err := r.Run(t.Context(), "waits", spec, d, nil)
			if writ.KindOf(err) != writ.Exhausted || time.Since(start) != 30*time.Second || !strings.Contains(writ.Message(err), "within 30s") {
				t.Errorf("after %v: %v; want exhausted after 30 s", time.Since(start), err)
			}
		})
		synctest.Wait()
		_, err := r.Run(t.Context(), "too many", spec, d, nil)
		if writ.KindOf(err) != writ.Exhausted || time.Since(start) != 0 || !strings.Contains(writ.Message(err), "all 2 slots") {
			t.Errorf("over the bound: %v; want exhausted at once", err)
		}
		time.Sleep(time.Minute) // fake time
		if _, started, _ := p.counts(); started != 2 {
			t.Errorf("%d started, want 2", started)
		}
		cancel()
		wg.Wait()
		for _, id := range []string{"waits", "too many"} {
			if _, err := r.Run(t.Context(), id, spec, d, nil); err != nil {
				t.Errorf("%s was refused once and now again: %v", id, err)
			}
		}
	})
}

func TestCancelledWaiterLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := newFake(t, Options{Slots: 1, Queue: 1})
		first, cancelFirst := context.WithCancel(t.Context())
		wait, wd := specOf("wait")
		spec, d := specOf("x")
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = r.Run(first, "first", wait, wd, nil) })
		synctest.Wait()

		second, cancelSecond := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			res, err := r.Run(second, "second", spec, d, nil)
			if err != nil || res.Outcome != writ.Killed || res.Started || res.Reason == "" {
				t.Errorf("cancelled while queued: %+v, %v; want killed, not started", res, err)
			}
		}()
		synctest.Wait()
		cancelSecond()
		<-gone

		wg.Go(func() { // its place is free again
			if res, err := r.Run(t.Context(), "third", spec, d, nil); err != nil || res.Outcome != writ.Succeeded {
				t.Errorf("third: %+v, %v", res, err)
			}
		})
		synctest.Wait()
		cancelFirst()
		wg.Wait()
		if _, started, _ := p.counts(); started != 2 {
			t.Errorf("%d started, want 2", started)
		}
	})
}

// TestAdmissionLosesNoSlot: whatever waiters do, the slots in use are those that
// were acquired and not released.
func TestAdmissionLosesNoSlot(t *testing.T) {
	const slots = 3
	a := newAdmission(slots, 50, time.Millisecond)
	var mu sync.Mutex
	inside, most := 0, 0
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*300*time.Microsecond)
			defer cancel()
			if err := a.acquire(ctx); err != nil {
				if writ.KindOf(err) != writ.Exhausted && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("acquire: %v", err)
				}
				return
			}
			mu.Lock()
			inside++
			most = max(most, inside)
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			inside--
			mu.Unlock()
			a.release()
		})
	}
	wg.Wait()
	if a.taken != 0 || len(a.waiters) != 0 || most > slots {
		t.Errorf("%d slots taken, %d waiters left, at most %d of %d inside", a.taken, len(a.waiters), most, slots)
	}
}
