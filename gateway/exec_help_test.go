package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// Rules about commands and inputs beside testkit.WorkspacePolicy.
const (
	noSudo = `@id("no-sudo") @reason("nobody is root here")
forbid (principal, action == Action::"exec", resource) when { context.program == "sudo" };
`
	noCommands = `@id("frozen-commands") @reason("nothing runs today")
forbid (principal, action == Action::"exec", resource);
`
	holdCommands = `@id("look-at-commands") @hold("a person looks")
permit (principal, action == Action::"exec", resource);
`
	leadsLookAtTouch = `@id("touch") @hold("it makes files") @grants("2") @approvers("lead") @require_reason("true")
permit (principal, action == Action::"exec", resource) when { context.program == "touch" };
`
	holdInputs = `@id("look-at-inputs") @hold("a person looks at what is typed")
permit (principal, action == Action::"input", resource);
`
	noInputs = `@id("mute") @reason("nobody types")
forbid (principal, action == Action::"input", resource);
`
)

// inside is a workspace of acme at a fresh folder, in which commands may run.
func inside(t *testing.T, adjust ...func(*writ.Workspace)) writ.Workspace {
	t.Helper()
	return testkit.Workspace(t, "app", nil, adjust...)
}

// bench is a Workshop with one workspace.
func bench(t *testing.T, adjust func(*writ.Workspace), on ...func(*testkit.GatewaySetup)) (*testkit.Workshop, writ.Workspace) {
	t.Helper()
	return app(t, nil, adjust, on...)
}

func command(argv ...string) writ.CommandRequest {
	return writ.CommandRequest{Workspace: "app", Command: argv}
}

// mustExec starts a command, or t fails.
func mustExec(t *testing.T, s *testkit.Workshop, who writ.Principal, argv ...string) writ.Process {
	t.Helper()
	p, err := s.Tools.Exec(context.Background(), who, command(argv...))
	if err != nil || p.ID == "" || p.Dispatch != writ.DispatchConfirmed || p.State != writ.ProcessRunning {
		t.Fatalf("exec %q: %+v, %v\n%s", argv, p, err, s.Slog)
	}
	return p
}

// over waits until the process has ended and answers it.
func over(t *testing.T, s *testkit.Workshop, who writ.Principal, id writ.ProcessID) (p writ.Process) {
	t.Helper()
	testkit.Eventually(t, "end of process "+string(id), func() bool {
		var err error
		p, err = s.Tools.Process(context.Background(), who, id)
		return err == nil && p.State == writ.ProcessExited
	})
	return p
}

// ends waits for the end of a process, which must be that, and be recorded so.
func ends(t *testing.T, s *testkit.Workshop, who writ.Principal, id writ.ProcessID, want writ.Termination) writ.Process {
	t.Helper()
	p := over(t, s, who, id)
	if p.Termination != want || p.Ended == nil || (p.ExitCode != nil) != (want == writ.TerminationExited) || (p.Signal != nil) != (want == writ.TerminationSignaled) {
		t.Errorf("%s ended as %+v, want %s", id, p.ProcessStatus, want)
	}
	if got := s.StoredProcess(id); got.State != writ.ProcessExited || got.Termination != p.Termination || got.Ended == nil {
		t.Errorf("%s is recorded as %+v, was answered as %+v", id, got.ProcessStatus, p.ProcessStatus)
	}
	return p
}

// kill ends a process.
func kill(t *testing.T, s *testkit.Workshop, who writ.Principal, id writ.ProcessID) {
	t.Helper()
	if err := s.Tools.Terminate(context.Background(), who, id, writ.Kill{}); err != nil {
		t.Fatal(err)
	}
	ends(t, s, who, id, writ.TerminationTerminated)
}

// printed waits until what the process wrote ends with that, and answers all of it.
func printed(t *testing.T, s *testkit.Workshop, who writ.Principal, id writ.ProcessID, want string) (all string) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%s writes %q", id, want), func() bool {
		out, err := s.Tools.Output(context.Background(), who, id, writ.OutputQuery{})
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		all = string(out.Chunk)
		return strings.HasSuffix(all, want)
	}, func() string { return all })
	return all
}

// mustHoldCommand is the hold that answers a request.
func mustHoldCommand(t *testing.T, s *testkit.Workshop, who writ.Principal, argv ...string) writ.Approval {
	t.Helper()
	p, err := s.Tools.Exec(context.Background(), who, command(argv...))
	return heldIn(t, s, p.ID, err)
}

func heldIn(t *testing.T, s *testkit.Workshop, id writ.ProcessID, err error) writ.Approval {
	t.Helper()
	h, ok := errors.AsType[*writ.Held](err)
	if !ok || id != "" {
		t.Fatalf("process %q, %v; want a hold", id, err)
	}
	wantCode(t, "the hold", err, "APPROVAL_REQUIRED")
	return s.StoredApproval(h.Approval)
}

// mustStart carries out the granted hold of a command.
func mustStart(t *testing.T, s *testkit.Workshop, who writ.Principal, id writ.ApprovalID) writ.Process {
	t.Helper()
	r, err := s.Tools.Resume(context.Background(), who, id)
	if err != nil || r.Process == nil || r.Operation != nil || r.Approval.State != writ.ApprovalConsumed || r.Process.Approval != id || r.Approval.Call.Process != r.Process.ID {
		t.Fatalf("resumed: %+v, %v", r, err)
	}
	return *r.Process
}

// resumeFails is the error of a resume, which must be that.
func resumeFails(t *testing.T, s *testkit.Workshop, who writ.Principal, id writ.ApprovalID, code string) error {
	t.Helper()
	r, err := s.Tools.Resume(context.Background(), who, id)
	wantCode(t, "resume "+string(id), err, code)
	if r.Process != nil && code != "APPROVAL_AMBIGUOUS" {
		t.Errorf("resume answers %s and process %s", code, r.Process.ID)
	}
	return err
}

func wantState(t *testing.T, s *testkit.Workshop, id writ.ApprovalID, want writ.ApprovalState) {
	t.Helper()
	if got := s.StoredApproval(id).State; got != want {
		t.Errorf("approval %s is %s, want %s", id, got, want)
	}
}

// wantFree fails t if nothing can be changed in the workspace.
func wantFree(t *testing.T, s *testkit.Workshop) {
	t.Helper()
	req := change("*** Add File: free", "+x")
	req.CheckOnly = true
	op, _, err := s.Tools.Patch(context.Background(), testkit.Local(), req)
	if err != nil || op.Result.Status != writ.PatchChecked {
		t.Errorf("the workspace is not free: %q, %v", op.Result.Status, err)
	}
}

// wantBusy fails t unless a process holds the workspace, and is named.
func wantBusy(t *testing.T, s *testkit.Workshop, id writ.ProcessID) {
	t.Helper()
	_, _, err := s.Tools.Patch(context.Background(), s.Agent("mate"), change("*** Add File: busy", "+x"))
	wantCode(t, "a patch beside process "+string(id), err, "WORKSPACE_BUSY")
	if !strings.Contains(writ.Message(err), string(id)) {
		t.Errorf("%q does not name %s", writ.Message(err), id)
	}
}

// wantNothingStarted fails t if the runner was asked to start something, or a process is
// recorded.
func wantNothingStarted(t *testing.T, s *testkit.Workshop) {
	t.Helper()
	if n := s.Processes.Calls("Start"); n != 0 || len(s.StoredProcesses()) != 0 {
		t.Errorf("%d were started, recorded are %+v", n, s.StoredProcesses())
	}
}

// executing counts the processes of this host that have that text in their arguments.
func executing(text string) (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(text)) { // else it has ended
			n++
		}
	}
	return n
}

// trace is an event of a process, in one line.
func trace(e writ.Event) string {
	d := e.Data
	line := string(e.Type)
	add := func(name string, v any) {
		if text := fmt.Sprint(v); text != "" && text != "0" {
			line += " " + name + "=" + text
		}
	}
	add("effect", d.Effect)
	add("status", d.Status)
	add("action", d.Action)
	add("code", d.ErrorCode)
	add("program", d.Program)
	add("args", d.Args)
	add("bytes", d.CodeBytes)
	add("end", d.Termination)
	if d.ExitCode != nil {
		add("exit", fmt.Sprint("(", *d.ExitCode, ")"))
	}
	add("signal", d.Signal)
	add("count", d.Count)
	if e.Approval != "" {
		line += " held"
	}
	if e.Actor.ID != "" {
		line += " by " + e.Actor.String()
	}
	return line
}

func wantTrace(t *testing.T, s *testkit.Workshop, want ...string) {
	t.Helper()
	var got []string
	for _, e := range s.Events("") {
		got = append(got, trace(e))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

// endedProcess is one of many that ended now.
func endedProcess(i int, by writ.Principal, ws writ.Workspace) writ.Process {
	now, code := writ.Now(), 0
	return writ.Process{
		Workspace: ws.ID, Root: ws.Root, Tenant: ws.Tenant, By: by.Ref(), Owner: "gw_test", Program: "true",
		Fingerprint: writ.DigestOf([]byte(fmt.Sprint(i))),
		ProcessStatus: writ.ProcessStatus{
			ID: writ.NewProcessID(), State: writ.ProcessExited, Termination: writ.TerminationExited, ExitCode: &code, EOF: true, Started: now, Ended: &now,
		},
	}
}

// record stores processes as they are, with output.
func record(t *testing.T, s *testkit.Workshop, list ...writ.Process) {
	t.Helper()
	err := s.DB.Update(t.Context(), func(tx *store.Tx) error {
		for _, p := range list {
			if err := tx.InsertProcess(t.Context(), p); err != nil {
				return err
			}
			if p.Ended == nil {
				continue
			}
			if err := tx.PutProcessOutput(t.Context(), p.ID, writ.StoredOutput{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
