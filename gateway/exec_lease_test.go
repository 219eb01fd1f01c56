package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// started is how a call of Exec ended.
type started struct {
	p   writ.Process
	err error
}

// goExec calls Exec in the background; the channel gets its end.
func goExec(ctx context.Context, s *testkit.Workshop, argv ...string) <-chan started {
	done := make(chan started, 1)
	go func() {
		p, err := s.Tools.Exec(ctx, s.Agent("coder"), command(argv...))
		done <- started{p, err}
	}()
	return done
}

// Scenarios 105 and 108: a command waits behind a patch, and whoever came first is first.
func TestScenario105_108_ACommandWaitsBehindAPatch(t *testing.T) {
	s, ws := bench(t, nil)
	coder := s.Agent("coder")
	arrived, release := s.Files.Hangs("Patch")
	holder := goPatch(s, coder, change(add("x", "x")...))
	testkit.Receive(t, "a patch holds the lease", arrived)
	second := goPatch(s, coder, change(edit("x", "x", "y")...))
	waits(t, 1)
	third := goExec(t.Context(), s, "sh", "-c", "cat x > seen; sleep 25")
	waits(t, 2)
	fourth := goPatch(s, coder, change(edit("x", "y", "z")...))
	waits(t, 3)
	wantNothingStarted(t, s)
	release()
	for _, p := range []<-chan patched{holder, second} {
		if p := testkit.Receive(t, "a patch before it", p); p.err != nil {
			t.Error(p.err)
		}
	}
	p := testkit.Receive(t, "the command", third)
	if p.err != nil {
		t.Fatal(p.err)
	}
	// Scenario 109: who waits behind it is refused.
	wantCode(t, "the patch behind it", testkit.Receive(t, "the patch behind it", fourth).err, "WORKSPACE_BUSY")
	testkit.Eventually(t, "it has seen the file", func() bool { return testkit.FilesBeneath(t, ws.Root)["seen"] == "y\n" })
	kill(t, s, coder, p.p.ID)
	wantFree(t, s)
}

// Scenario 109: once a command runs, commands and patches that wait are refused;
// scenario 110: when it does not come to run, the next is served.
func TestScenario109_110_WhoWaitsBehindAStart(t *testing.T) {
	for name, program := range map[string]string{"started": "sleep", "not started": "no-such-program"} {
		t.Run(name, func(t *testing.T) {
			s, ws := bench(t, nil)
			coder := s.Agent("coder")
			arrived, release := s.Processes.Hangs("Start")
			first := goExec(t.Context(), s, program, "25")
			testkit.Receive(t, "it is being started", arrived)
			patch := goPatch(s, coder, change(add("x", "x")...))
			waits(t, 1)
			next := goExec(t.Context(), s, "touch", "made")
			waits(t, 2)
			release()
			f := testkit.Receive(t, "the first", first)
			p, n := testkit.Receive(t, "the patch", patch), testkit.Receive(t, "the next", next)
			if program == "sleep" {
				wantCode(t, "the patch", p.err, "WORKSPACE_BUSY")
				wantCode(t, "the next", n.err, "WORKSPACE_BUSY")
				kill(t, s, coder, f.p.ID)
				wantDisk(t, ws, map[string]string{})
				return
			}
			wantCode(t, "the first", f.err, "PROCESS_SPAWN_FAILED")
			if p.err != nil || n.err != nil {
				t.Fatalf("the patch: %v, the next: %v", p.err, n.err)
			}
			ends(t, s, coder, n.p.ID, writ.TerminationExited)
			wantDisk(t, ws, map[string]string{"x": "x\n", "made": ""})
		})
	}
}

// Scenarios 107 and 111, invariant 10: a call that goes before its command is dispatched
// starts nothing and leaves nothing; one that goes after that leaves the process alone.
func TestScenario107_111_TheCallGoes(t *testing.T) {
	t.Run("while it waits", func(t *testing.T) {
		s, _ := bench(t, nil)
		coder := s.Agent("coder")
		arrived, release := s.Files.Hangs("Patch")
		holder := goPatch(s, coder, change(add("x", "x")...))
		testkit.Receive(t, "a patch holds the lease", arrived)
		ctx, cancel := context.WithCancel(t.Context())
		waiter := goExec(ctx, s, "touch", "made")
		waits(t, 1)
		cancel()
		if w := testkit.Receive(t, "the waiter goes", waiter); !errors.Is(w.err, context.Canceled) {
			t.Error(w.err)
		}
		release()
		testkit.Receive(t, "the patch ends", holder)
		wantNothingStarted(t, s)
		wantFree(t, s)
	})
	t.Run("before it is dispatched", func(t *testing.T) {
		s, ws := bench(t, nil)
		arrived, _ := s.Processes.Hangs("Start") // until the call goes
		ctx, cancel := context.WithCancel(t.Context())
		call := goExec(ctx, s, "touch", "made")
		testkit.Receive(t, "it is being started", arrived)
		cancel()
		wantCode(t, "exec", testkit.Receive(t, "the call goes", call).err, "PROCESS_SPAWN_FAILED")
		wantFree(t, s)
		wantDisk(t, ws, map[string]string{})
		wantTrace(t, s, "process.started effect=allow action=exec program=touch args=1 by agent:coder", "process.finished end=unknown",
			"patch.started effect=allow action=patch by local:0", "patch.finished count=1")
	})
	t.Run("after that", func(t *testing.T) {
		s, _ := bench(t, nil)
		coder := s.Agent("coder")
		ctx, cancel := context.WithCancel(t.Context())
		s.Processes.After("Start", func(err error) error { cancel(); return err })
		p := testkit.Receive(t, "the call goes", goExec(ctx, s, "sleep", "25"))
		if p.err != nil {
			t.Fatal(p.err)
		}
		wantBusy(t, s, p.p.ID)
		kill(t, s, coder, p.p.ID)
	})
}

func TestScenario113_CommandsInOtherWorkspaces(t *testing.T) {
	app := inside(t)
	same := func(w *writ.Workspace) { w.ID, w.Root = "same", app.Root }
	all := []writ.Workspace{app, inside(t, same), inside(t, func(w *writ.Workspace) { w.ID = "other" })}
	s := testkit.Workspaces(t, all)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sleep", "25")
	in := func(id writ.WorkspaceID) writ.CommandRequest {
		return writ.CommandRequest{Workspace: id, Command: []string{"true"}}
	}
	// Weakness 17 of spec/02: it is the folder that is held, by whatever name.
	_, err := s.Tools.Exec(t.Context(), coder, in("same"))
	wantCode(t, "in the same folder", err, "WORKSPACE_BUSY")
	q, err := s.Tools.Exec(t.Context(), coder, in("other"))
	if err != nil {
		t.Fatal(err)
	}
	ends(t, s, coder, q.ID, writ.TerminationExited)
	wantBusy(t, s, p.ID)
	kill(t, s, coder, p.ID)
}

// Invariant 8: whatever becomes of many commands at once, in the end every root is free
// and every end is recorded.
func TestManyCommandsAtOnce(t *testing.T) {
	var all []writ.Workspace
	for i := range 6 {
		all = append(all, inside(t, func(w *writ.Workspace) { w.ID = writ.WorkspaceID(fmt.Sprint("w", i)) }))
	}
	s := testkit.Workspaces(t, all, func(g *testkit.GatewaySetup) { g.Live = 4 })
	coder := s.Agent("coder")
	argv := [][]string{{"true"}, {"sh", "-c", "exit 3"}, {"no-such-program"}, {"sleep", "60"}, {"sh", "-c", "kill -9 $$"}, {"sh", "-c", "echo x"}}
	together(24, func(i int) {
		req := writ.CommandRequest{Workspace: all[i%len(all)].ID, Command: argv[(i+i/6)%len(argv)]}
		p, err := s.Tools.Exec(context.Background(), coder, req)
		switch code := writ.CodeOf(err); {
		case err != nil && code != "WORKSPACE_BUSY" && code != "PROCESS_SPAWN_FAILED":
			t.Errorf("%q: %v", req.Command, err)
		case err == nil && req.Command[0] == "sleep":
			if err := s.Tools.Terminate(context.Background(), coder, p.ID, writ.Kill{}); err != nil {
				t.Error(err)
			}
		}
	})
	testkit.Eventually(t, "all are over", func() bool {
		for _, p := range s.StoredProcesses() {
			if p.Ended == nil {
				return false
			}
		}
		return true
	})
	finished := 0
	for _, e := range s.Events("") {
		if e.Type == writ.EventProcessFinished {
			finished++
		}
	}
	if n := len(s.StoredProcesses()); n != finished || n == 0 {
		t.Errorf("%d processes, %d ends are recorded", n, finished)
	}
	for _, w := range all {
		testkit.Eventually(t, string(w.ID)+" is free", func() bool {
			req := change("*** Add File: free", "+x")
			req.Workspace, req.CheckOnly = w.ID, true
			_, _, err := s.Tools.Patch(context.Background(), testkit.Local(), req)
			return err == nil
		})
	}
}
