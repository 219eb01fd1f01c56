package gateway_test

import (
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
)

func TestScenario81_118_Echo(t *testing.T) {
	s, ws := bench(t, nil)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sh", "-c", "echo hello; pwd")
	p = ends(t, s, coder, p.ID, writ.TerminationExited)
	if *p.ExitCode != 0 || !p.EOF || p.Total == 0 || p.By != coder.Ref() || p.Workspace != "app" || p.Root != ws.Root || p.Program != "sh" {
		t.Errorf("it ended as %+v", p)
	}
	out, err := s.Tools.Output(t.Context(), coder, p.ID, writ.OutputQuery{})
	if err != nil || string(out.Chunk) != "hello\n"+ws.Root+"\n" || !out.EOF {
		t.Errorf("output %q, eof %v, %v", out.Chunk, out.EOF, err)
	}
	wantFree(t, s)
}

func TestScenario83_84_106_ALiveProcessHoldsTheWorkspace(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sleep", "25")
	_, err := s.Tools.Exec(t.Context(), coder, command("true"))
	wantCode(t, "a second command", err, "WORKSPACE_BUSY")
	wantBusy(t, s, p.ID)
	if _, err := s.Tools.Find(t.Context(), coder, "app", writ.FileQuery{Limit: 10}); err != nil {
		t.Errorf("find: %v", err)
	}
	_, err = s.Tools.Read(t.Context(), coder, "app", "none", 0, 10)
	wantCode(t, "read", err, "FILE_NOT_FOUND")
	if n := s.Processes.Calls("Start"); n != 1 || len(s.StoredProcesses()) != 1 {
		t.Errorf("%d started, %d recorded", n, len(s.StoredProcesses()))
	}
	kill(t, s, coder, p.ID)
	p = mustExec(t, s, coder, "true")
	ends(t, s, coder, p.ID, writ.TerminationExited)
}

// Scenarios 88 and 115, POL-14: what the profile, the environment and the registry of
// identities say cannot be asked around.
func TestScenario88_115_NotAllowed(t *testing.T) {
	agent := func(id string, scopes ...writ.Scope) writ.Principal {
		return writ.Principal{Kind: writ.KindAgent, ID: id, Tenant: "acme", Scopes: scopes}
	}
	container := func(w *writ.Workspace) { w.Environment, w.EnvironmentKind = "box", writ.EnvironmentContainer }
	for name, tt := range map[string]struct {
		adjust func(*writ.Workspace)
		who    writ.Principal
		code   string
	}{
		"read-only":             {readOnly, agent("coder"), "UNAUTHORIZED"},
		"read-only, local":      {readOnly, testkit.Local(), "UNAUTHORIZED"},
		"read-only and confirm": {func(w *writ.Workspace) { readOnly(w); confirm(w) }, agent("coder"), "UNAUTHORIZED"},
		"container":             {container, agent("coder"), "UNAUTHORIZED"},
		"without the scope":     {nil, agent("mate"), "UNAUTHORIZED"},
		"claims the scope":      {nil, agent("mate", writ.ScopeExec), "UNAUTHORIZED"},
		"nobody":                {nil, agent("ghost", writ.ScopeExec), "UNAUTHORIZED"},
		"of another tenant":     {nil, writ.Principal{Kind: writ.KindAgent, ID: "guest", Tenant: "globex"}, "WORKSPACE_NOT_FOUND"},
		"resources required":    {func(w *writ.Workspace) { w.Participation = writ.ParticipationRequired }, agent("coder"), "RESOURCE_POLICY_UNSUPPORTED"},
		"network":               {func(w *writ.Workspace) { w.Network = writ.NetworkEnabled }, agent("coder"), "PROCESS_SPAWN_FAILED"},
		"network and confirm":   {func(w *writ.Workspace) { w.Network = writ.NetworkEnabled; confirm(w) }, agent("coder"), "PROCESS_SPAWN_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := bench(t, tt.adjust)
			req := command("touch", "marker")
			_, err := s.Tools.Exec(t.Context(), tt.who, req)
			wantCode(t, "exec", err, tt.code)
			_, err = s.Tools.CreateApproval(t.Context(), tt.who, writ.ToolCall{Command: &req})
			wantCode(t, "hold it", err, tt.code)
			wantNothingStarted(t, s)
			if list, _, err := s.Approvals(t.Context(), testkit.Local(), writ.ApprovalFilter{}); err != nil || len(list) != 0 {
				t.Errorf("%d approvals, %v", len(list), err)
			}
			if tt.code == "UNAUTHORIZED" {
				refused := "workspace.refused effect=deny action=exec code=UNAUTHORIZED by " + tt.who.Ref().String()
				wantTrace(t, s, refused, refused)
			}
		})
	}
}

// Scenarios 89 and 101: faults of the request are said before there is an id or a lease.
func TestScenario89_101_FaultyRequests(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	for name, req := range map[string]writ.CommandRequest{
		"no command":        command(),
		"an empty program":  command("", "x"),
		"NUL":               command("echo", "a\x00b"),
		"not UTF-8":         command("echo", "\xff"),
		"too many elements": command(strings.Split(strings.Repeat("x ", writ.MaxCommandArgs+1), " ")...),
		"too long":          command("echo", strings.Repeat("x", writ.MaxCommandBytes)),
	} {
		_, err := s.Tools.Exec(t.Context(), coder, req)
		wantCode(t, name, err, "INVALID_COMMAND")
		_, err = s.Tools.CreateApproval(t.Context(), coder, writ.ToolCall{Command: &req})
		wantCode(t, name+", held", err, "INVALID_COMMAND")
	}
	req := command("true")
	req.Workspace = "nowhere"
	_, err := s.Tools.Exec(t.Context(), coder, req)
	wantCode(t, "no workspace", err, "WORKSPACE_NOT_FOUND")
	_, err = s.Tools.CreateApproval(t.Context(), coder, writ.ToolCall{})
	wantKind(t, "nothing to hold", err, writ.Invalid)
	wantNothingStarted(t, s)
	wantFree(t, s)
}

// Scenario 90, invariant 8: nothing was started, that is certain and recorded, and
// the workspace is free.
func TestScenario90_NotStarted(t *testing.T) {
	for name, tt := range map[string]struct {
		req  writ.CommandRequest
		code string
	}{
		"no such program": {command("no-such-program", "MARKER"), "PROCESS_SPAWN_FAILED"},
		"no such folder":  {writ.CommandRequest{Workspace: "app", Command: []string{"true", "MARKER"}, Dir: "none"}, "PROCESS_SPAWN_FAILED"},
		"out of the root": {writ.CommandRequest{Workspace: "app", Command: []string{"true", "MARKER"}, Dir: ".."}, "PATH_ESCAPE"},
	} {
		for _, tty := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s, _ := bench(t, nil)
				coder := s.Agent("coder")
				tt.req.TTY = tty
				p, err := s.Tools.Exec(t.Context(), coder, tt.req)
				wantCode(t, "exec", err, tt.code)
				if p.ID != "" {
					t.Errorf("it has the handle %s", p.ID)
				}
				program := tt.req.Command[0]
				wantTrace(t, s,
					"process.started effect=allow action=exec program="+program+" args=1 by agent:coder",
					"process.finished end=unknown")
				stored := s.StoredProcesses()
				if len(stored) != 1 || stored[0].State != writ.ProcessExited || !strings.HasPrefix(stored[0].Reason, "not started: ") {
					t.Fatalf("recorded is %+v", stored)
				}
				_, err = s.Tools.Process(t.Context(), coder, stored[0].ID)
				wantCode(t, "status of what never was", err, "PROCESS_NOT_FOUND")
				if list, err := s.Tools.Processes(t.Context(), coder, ""); err != nil || len(list) != 0 {
					t.Errorf("listed are %+v, %v", list, err)
				}
				wantFree(t, s)
			})
		}
	}
}

// Scenario 95: a command too many is refused, and no child is made.
func TestScenario95_OneTooMany(t *testing.T) {
	first, second := inside(t), inside(t, func(w *writ.Workspace) { w.ID = "second" })
	s := testkit.Workspaces(t, []writ.Workspace{first, second}, func(g *testkit.GatewaySetup) { g.Live = 1 })
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sleep", "25")
	req := writ.CommandRequest{Workspace: "second", Command: []string{"touch", "marker"}}
	_, err := s.Tools.Exec(t.Context(), coder, req)
	wantCode(t, "one too many", err, "WORKSPACE_BUSY")
	wantKind(t, "one too many", err, writ.Exhausted)
	wantDisk(t, second, map[string]string{})
	kill(t, s, coder, p.ID)
	q, err := s.Tools.Exec(t.Context(), coder, req)
	if err != nil {
		t.Fatal(err)
	}
	ends(t, s, coder, q.ID, writ.TerminationExited)
	wantDisk(t, second, map[string]string{"marker": ""})
}

func TestScenario99_TerminateTwice(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sleep", "25")
	for range 2 {
		if err := s.Tools.Terminate(t.Context(), coder, p.ID, writ.Kill{}); err != nil {
			t.Error(err)
		}
	}
	ends(t, s, coder, p.ID, writ.TerminationTerminated)
	for range 2 {
		if err := s.Tools.Terminate(t.Context(), coder, p.ID, writ.Kill{Signal: "TERM"}); err != nil {
			t.Error(err)
		}
	}
	// What ended by itself stays so.
	p = mustExec(t, s, coder, "true")
	ends(t, s, coder, p.ID, writ.TerminationExited)
	if err := s.Tools.Terminate(t.Context(), coder, p.ID, writ.Kill{}); err != nil {
		t.Error(err)
	}
	ends(t, s, coder, p.ID, writ.TerminationExited)
}

// A signal or a grace that is none is refused before it is recorded.
func TestFaultyKills(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sleep", "25")
	before := len(s.Events(""))
	for _, k := range []writ.Kill{{Signal: "STOP"}, {Signal: strings.Repeat("MARKER", 100)}, {Signal: "SIG"}, {Grace: -1}, {Grace: writ.MaxGrace + 1}} {
		wantCode(t, k.Signal, s.Tools.Terminate(t.Context(), coder, p.ID, k), "INVALID_COMMAND")
	}
	if n := len(s.Events("")); n != before {
		t.Errorf("%d events of kills that never were", n-before)
	}
	if err := s.Tools.Terminate(t.Context(), coder, p.ID, writ.Kill{Signal: "SIGTERM"}); err != nil {
		t.Error(err)
	}
	ends(t, s, coder, p.ID, writ.TerminationTerminated)
}

// Scenario 100 and spec/02 §16: a process is its requester's. To others, and to all
// once it never was, it is as if there was none.
func TestScenario100_WhoseProcess(t *testing.T) {
	s, ws := bench(t, nil, func(g *testkit.GatewaySetup) {
		g.Options.Identities = append(g.Options.Identities, writ.Identity{ID: "other", Tenant: "acme", Scopes: []writ.Scope{writ.ScopeExec}})
	})
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sleep", "25")
	old := endedProcess(1, coder, ws)
	record(t, s, old)
	calls := map[string]func(who writ.Principal, id writ.ProcessID) error{
		"status": func(who writ.Principal, id writ.ProcessID) error {
			_, err := s.Tools.Process(t.Context(), who, id)
			return err
		},
		"output": func(who writ.Principal, id writ.ProcessID) error {
			_, err := s.Tools.Output(t.Context(), who, id, writ.OutputQuery{})
			return err
		},
		"input": func(who writ.Principal, id writ.ProcessID) error {
			return s.Tools.Input(t.Context(), who, id, []byte("x"), false)
		},
		"resize": func(who writ.Principal, id writ.ProcessID) error {
			return s.Tools.Resize(t.Context(), who, id, writ.FirstTerminalSize)
		},
		"terminate": func(who writ.Principal, id writ.ProcessID) error {
			return s.Tools.Terminate(t.Context(), who, id, writ.Kill{})
		},
	}
	before := len(s.Events(""))
	for name, call := range calls {
		invented := writ.NewProcessID()
		wantCode(t, name+" of an invented one", call(coder, invented), "PROCESS_NOT_FOUND")
		never := call(s.Agent("other"), invented)
		for _, who := range []writ.Principal{s.Agent("other"), s.Agent("guest"), s.Operator("eve")} {
			for _, id := range []writ.ProcessID{p.ID, old.ID} {
				err := call(who, id)
				wantCode(t, name+" by "+who.Ref().String(), err, "PROCESS_NOT_FOUND")
				if strings.ReplaceAll(writ.Message(err), string(id), "") != strings.ReplaceAll(writ.Message(never), string(invented), "") {
					t.Errorf("%s: %q of one that is there, %q of one that is not", name, writ.Message(err), writ.Message(never))
				}
			}
		}
	}
	for _, who := range []writ.Principal{s.Agent("other"), s.Agent("guest"), s.Operator("eve")} {
		if list, err := s.Tools.Processes(t.Context(), who, ""); err != nil || len(list) != 0 {
			t.Errorf("%s sees %+v, %v", who.Ref(), list, err)
		}
	}
	if n := len(s.Events("")); n != before {
		t.Errorf("%d events", n-before)
	}
	// Who administers the tenant sees it, and may end it.
	ann := s.Operator("ann")
	for _, who := range []writ.Principal{ann, testkit.Local()} {
		if list, err := s.Tools.Processes(t.Context(), who, "app"); err != nil || len(list) != 2 {
			t.Errorf("%s sees %+v, %v", who.Ref(), list, err)
		}
	}
	kill(t, s, ann, p.ID)
}

func TestProcessesOfAWorkspaceThatIsNone(t *testing.T) {
	s := testkit.Workspaces(t, []writ.Workspace{inside(t)})
	p, err := s.Tools.Exec(t.Context(), s.Agent("coder"), command("true"))
	if err != nil {
		t.Fatal(err)
	}
	over(t, s, s.Agent("coder"), p.ID)
	if list, err := s.Tools.Processes(t.Context(), s.Agent("coder"), p.Workspace); err != nil || len(list) != 1 || list[0].ID != p.ID {
		t.Errorf("of main: %+v, %v", list, err)
	}
	if _, err := s.Tools.Processes(t.Context(), s.Agent("coder"), "nowhere"); writ.CodeOf(err) != "WORKSPACE_NOT_FOUND" {
		t.Errorf("of none: %v", err)
	}
	if _, err := s.Tools.Processes(t.Context(), s.Agent("guest"), p.Workspace); writ.CodeOf(err) != "WORKSPACE_NOT_FOUND" {
		t.Errorf("of another tenant: %v", err)
	}
}
