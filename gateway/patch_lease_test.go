package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// Scenarios 106, 108, 109, 110, 111 and 114 are of commands. That 105 to 114 hold of the
// lease by itself is tested in package workspace; here, that each way through the gateway
// takes it and gives it up.

func TestScenario105_FirstComeFirstServed(t *testing.T) {
	s, ws := app(t, map[string]string{"order": "a\n"}, nil)
	coder := s.Agent("coder")
	arrived, release := s.Files.Hangs("Patch")
	holder := goPatch(s, coder, change(add("x", "x")...))
	testkit.Receive(t, "a patch holds the lease", arrived)
	var waiting []<-chan patched
	for i := range 5 {
		from, to := string(rune('a'+i)), string(rune('b'+i))
		waiting = append(waiting, goPatch(s, coder, change(edit("order", from, to)...)))
		waits(t, i+1)
	}
	release()
	testkit.Receive(t, "the first", holder)
	for i, w := range waiting {
		if p := testkit.Receive(t, "the next", w); p.err != nil || p.op.Result.Status != writ.PatchApplied {
			t.Errorf("patch %d: %s, %v", i, p.op.Result.Status, p.err)
		}
	}
	wantDisk(t, ws, map[string]string{"order": "f\n", "x": "x\n"})
}

func TestScenario107_112_WaitersThatGo(t *testing.T) {
	s, _ := app(t, nil, nil)
	coder := s.Agent("coder")
	arrived, release := s.Files.Hangs("Patch")
	holder := goPatch(s, coder, change(add("x", "x")...))
	testkit.Receive(t, "a patch holds the lease", arrived)
	stop := fillQueue(t, s, coder)
	if n := len(s.Operations()); n != 1 {
		t.Errorf("%d operations while all wait", n)
	}
	stop()
	// A place is free again, and whoever takes it is served.
	next := goPatch(s, coder, change(add("y", "y")...))
	waits(t, 1)
	release()
	for _, p := range []<-chan patched{holder, next} {
		if p := testkit.Receive(t, "a patch ends", p); p.err != nil || p.op.Result.Status != writ.PatchApplied {
			t.Errorf("%s, %v", p.op.Result.Status, p.err)
		}
	}
	if n := len(s.Operations()); n != 2 {
		t.Errorf("%d operations: one is of a waiter that has gone", n)
	}
}

// Weakness 17 of spec/02: it is the folder that is held, by whatever name.
func TestScenario113_WorkspacesAndRoots(t *testing.T) {
	ws := testkit.Workspace(t, "app", map[string]string{"sub/a": "1\n"})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(ws.Root, link); err != nil {
		t.Fatal(err)
	}
	named := func(id writ.WorkspaceID, root string) writ.Workspace {
		w := ws
		w.ID, w.Root = id, root
		return w
	}
	all := []writ.Workspace{ws, named("same", ws.Root), named("linked", link), named("nested", filepath.Join(ws.Root, "sub")), testkit.Workspace(t, "other", nil)}
	s := testkit.Workspaces(t, all)
	coder := s.Agent("coder")
	arrived, release := s.Files.Hangs("Patch")
	holder := goPatch(s, coder, change(add("x", "x")...))
	testkit.Receive(t, "a patch holds the lease", arrived)
	waiting := map[writ.WorkspaceID]<-chan patched{}
	for i, id := range []writ.WorkspaceID{"same", "linked", "nested"} {
		req := change(add(string(id), "x")...)
		req.Workspace = id
		waiting[id] = goPatch(s, coder, req)
		waits(t, i+1)
	}
	req := change(add("free", "x")...)
	req.Workspace = "other"
	other := goPatch(s, coder, req)
	testkit.Receive(t, "another folder is independent", arrived)
	// Reading waits for nobody.
	if _, err := s.Tools.Read(t.Context(), coder, "app", "sub/a", 0, 1); err != nil {
		t.Error(err)
	}
	if _, err := s.Tools.Find(t.Context(), coder, "nested", writ.FileQuery{Limit: 10}); err != nil {
		t.Error(err)
	}
	release()
	waiting["app"], waiting["other"] = holder, other
	for id, w := range waiting {
		if p := testkit.Receive(t, "the others", w); p.err != nil || p.op.Result.Status != writ.PatchApplied {
			t.Errorf("%s: %s, %v", id, p.op.Result.Status, p.err)
		}
	}
}

// Invariant 8 of spec/02 §15: the lease is free after every way out.
func TestTheLeaseIsGivenUp(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil)
	coder := s.Agent("coder")
	granted := func(lines ...string) writ.ApprovalID {
		a, err := s.CreateApproval(t.Context(), coder, change(lines...))
		if err != nil {
			t.Fatal(err)
		}
		s.MustResolve(coder, a.ID, true)
		return a.ID
	}
	drifts, falls := granted(edit("a", "1", "2")...), granted(add("b", "1")...)
	for name, do := range map[string]func(){
		"rejected": func() { _, _, _ = s.Tools.Patch(t.Context(), coder, change("*** Delete File: none")) },
		"not reached": func() {
			s.Files.Before("Patch", func(context.Context) error { return &writ.Error{Kind: writ.Unavailable} })
			_, _, _ = s.Tools.Patch(t.Context(), coder, change(add("c", "1")...))
		},
		"panics": func() {
			s.Files.Before("Patch", func(context.Context) error { panic("a bug") })
			defer func() {
				if recover() == nil {
					t.Error("nothing panics")
				}
			}()
			_, _, _ = s.Tools.Patch(t.Context(), coder, change(add("c", "1")...))
		},
		"panics in a goroutine that ends": func() {
			s.Files.Before("Patch", func(context.Context) error { runtime.Goexit(); return nil })
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _, _ = s.Tools.Patch(t.Context(), coder, change(add("c", "1")...))
			}()
			<-done
		},
		"replayed": func() {
			req := keyed("k", add("d", "1")...)
			_, _, _ = s.Tools.Patch(t.Context(), coder, req)
			_, _, _ = s.Tools.Patch(t.Context(), coder, req)
		},
		"moved since the grant": func() {
			testkit.PutFiles(t, ws.Root, map[string]string{"a": "0\n1\n"})
			_, _, err := s.Resume(t.Context(), coder, drifts)
			wantCode(t, "resume", err, "APPROVAL_REQUIRED")
		},
		"the plan fails": func() {
			s.Files.Before("Plan", func(context.Context) error { return errors.New("a bug") })
			_, _, _ = s.Resume(t.Context(), coder, falls)
		},
	} {
		t.Run(name, func(t *testing.T) {
			do()
			s.Files.Mend()
			file := fmt.Sprintf("after %s", name)
			p := testkit.Receive(t, "the next patch", goPatch(s, coder, change(add(file, "x")...)))
			if p.err != nil || p.op.Result.Status != writ.PatchApplied {
				t.Errorf("%s, %v", p.op.Result.Status, p.err)
			}
		})
	}
	// What a call left behind without an end is settled by the next sweep.
	s.Settle()
	for _, op := range s.Operations() {
		if op.Finished == nil {
			t.Errorf("operation %s is not finished", op.ID)
		}
	}
}

// Never two at one time on one folder, whatever the calls are.
func TestOneMutationAtATime(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s, ws := app(t, map[string]string{"n": "0\n"}, nil, on)
		coder := s.Agent("coder")
		var now, most atomic.Int64
		s.Files.Before("Patch", func(context.Context) error {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return nil
		})
		s.Files.Answer(func(r writ.PatchResult, err error) (writ.PatchResult, error) { now.Add(-1); return r, err })
		var held []writ.ApprovalID
		for i := range 8 {
			a, err := s.CreateApproval(t.Context(), coder, change(add(fmt.Sprint("held", i), "x")...))
			if err != nil {
				t.Fatal(err)
			}
			s.MustResolve(coder, a.ID, true)
			held = append(held, a.ID)
		}
		together(24, func(i int) {
			var err error
			switch i % 3 {
			case 0:
				_, _, err = s.Resume(context.Background(), coder, held[i/3])
			case 1:
				_, _, err = s.Tools.Patch(context.Background(), coder, change(add(fmt.Sprint("f", i), "x")...))
			case 2:
				req := change(edit("n", "0", "1")...)
				req.CheckOnly = true
				_, _, err = s.Tools.Patch(context.Background(), coder, req)
			}
			if err != nil {
				t.Error(err)
			}
		})
		if most.Load() != 1 {
			t.Errorf("%d at one time", most.Load())
		}
		if n := len(testkit.FilesBeneath(t, ws.Root)); n != 17 {
			t.Errorf("%d files", n)
		}
	})
}

func TestCloseWaitsForPatches(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil)
	arrived, release := s.Files.Hangs("Patch")
	patch := goPatch(s, s.Agent("coder"), change(edit("a", "1", "2")...))
	testkit.Receive(t, "the runner is called", arrived)
	closed := make(chan struct{}, 1)
	tools := s.Tools
	go func() { tools.Close(context.Background()); closed <- struct{}{} }()
	testkit.Eventually(t, "nothing new is taken", func() bool {
		_, err := tools.Read(t.Context(), s.Agent("coder"), "app", "a", 0, 1)
		return writ.KindOf(err) == writ.Unavailable
	})
	select {
	case <-closed:
		t.Fatal("closed although a patch is under way")
	default:
	}
	for name, call := range map[string]func() error{
		"patch": func() error {
			_, _, err := tools.Patch(t.Context(), s.Agent("coder"), change(add("b", "1")...))
			return err
		},
		"resume": func() error { _, err := tools.Resume(t.Context(), s.Agent("coder"), "x"); return err },
	} {
		wantKind(t, name, call(), writ.Unavailable)
	}
	release()
	testkit.Receive(t, "Close returns", closed)
	if p := testkit.Receive(t, "the patch ends", patch); p.err != nil || p.op.Result.Status != writ.PatchApplied {
		t.Errorf("%s, %v", p.op.Result.Status, p.err)
	}
	wantDisk(t, ws, map[string]string{"a": "2\n"})
	// When there is no time to wait, what is under way is left to its end.
	s.Restart()
	arrived, release = s.Files.Hangs("Patch")
	patch = goPatch(s, s.Agent("coder"), change(edit("a", "2", "3")...))
	testkit.Receive(t, "the runner is called", arrived)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	s.Tools.Close(over)
	release()
	testkit.Receive(t, "the patch ends", patch)
	if slices.ContainsFunc(s.Operations(), func(op writ.Operation) bool { return op.Finished == nil }) {
		t.Error("a patch is not finished")
	}
}
