package runner

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"writ"
)

// refilled lets the pool's pause after a take pass, on the fake clock, and its work.
func refilled() {
	time.Sleep(refillAfter)
	synctest.Wait()
}

func TestPoolKeepsBoxesReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := newFake(t, Options{Slots: 1, Warm: 2})
		synctest.Wait()
		if made, _, open := p.counts(); made != 2 || open != 2 {
			t.Fatalf("%d boxes made, %d open; want 2", made, open)
		}
		for i := range 5 {
			spec, d := specOf("x")
			if _, err := r.Run(t.Context(), fmt.Sprint(i), spec, d, nil); err != nil {
				t.Fatal(err)
			}
			refilled()
			// fake fails the test when a box that ran is started again.
			if made, _, open := p.counts(); made != 3+i || open != 2 {
				t.Errorf("after run %d: %d boxes made, %d open; want %d and 2", i, made, open, 3+i)
			}
		}
	})
}

func TestPoolServesItsTemplateOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := newFake(t, Options{Slots: 1, Warm: 1})
		synctest.Wait()
		for _, tt := range []struct {
			name string
			set  func(*writ.Limits)
			warm bool
		}{
			{"default", func(*writ.Limits) {}, true},
			{"time", func(l *writ.Limits) { l.WallMS, l.CPUMS = 1000, 1000 }, true},
			{"memory", func(l *writ.Limits) { l.MemoryBytes = 1 << 30 }, true},
			{"workspace", func(l *writ.Limits) { l.WorkspaceBytes = 1 << 20 }, false},
			{"tmp", func(l *writ.Limits) { l.TmpBytes = 1 << 20 }, false},
			{"files", func(l *writ.Limits) { l.Files = 100 }, false},
		} {
			spec, _ := specOf("x")
			tt.set(&spec.Limits)
			if _, err := r.Run(t.Context(), tt.name, spec, spec.Digest(), nil); err != nil {
				t.Fatal(err)
			}
			refilled()
			last := p.made[len(p.made)-1].Limits
			if tt.warm && last != writ.DefaultLimits || !tt.warm && last != spec.Limits {
				t.Errorf("%s: the last box was made with %+v", tt.name, last)
			}
			if got := p.started[len(p.started)-1].Limits; got != spec.Limits {
				t.Errorf("%s: started with %+v", tt.name, got)
			}
		}
	})
}

func TestDeadWarmBoxIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := newFake(t, Options{Slots: 1, Warm: 1})
		synctest.Wait()
		p.fail(nil, errors.New("the box is gone"))
		spec, d := specOf("x")
		res, err := r.Run(t.Context(), "r", spec, d, nil)
		if err != nil || res.Outcome != writ.Succeeded {
			t.Errorf("Run = %+v, %v; want it to take another box", res, err)
		}
		if _, started, _ := p.counts(); started != 1 {
			t.Errorf("%d started, want 1", started)
		}
	})
}

func TestPoolRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fake{t: t, program: printOrWait, prepErr: errors.New("not yet")}
		r := New(p, Options{Slots: 1, Warm: 1})
		synctest.Wait() // it does not spin: all its goroutines rest
		p.fail(nil, nil)
		spec, d := specOf("x")
		if _, err := r.Run(t.Context(), "r", spec, d, nil); err != nil {
			t.Error(err)
		}
		refilled()
		if _, _, open := p.counts(); open != 1 {
			t.Errorf("%d boxes ready, want 1", open)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
