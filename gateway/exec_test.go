package gateway_test

import (
	"context"
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// inside is a workspace of acme at a fresh folder, in which commands may run.
func inside(t *testing.T, adjust ...func(*writ.Workspace)) writ.Workspace {
	w := writ.Workspace{
		ID: "main", Tenant: "acme", Root: t.TempDir(), Profile: writ.WorkspaceWrite, Environment: "local",
		EnvironmentKind: writ.EnvironmentHost, Network: writ.NetworkRestricted, Approvals: writ.ApprovalsOff,
	}
	for _, a := range adjust {
		a(&w)
	}
	return w
}

func command(argv ...string) writ.CommandRequest {
	return writ.CommandRequest{Workspace: "main", Command: argv}
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

func TestScenario81_Echo(t *testing.T) {
	s := testkit.Workspaces(t, []writ.Workspace{inside(t)})
	coder := s.Agent("coder")
	p, err := s.Tools.Exec(t.Context(), coder, command("echo", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	p = over(t, s, coder, p.ID)
	if p.Termination != writ.TerminationExited || p.ExitCode == nil || *p.ExitCode != 0 {
		t.Errorf("it ended as %+v", p.ProcessStatus)
	}
	out, err := s.Tools.Output(t.Context(), coder, p.ID, writ.OutputQuery{})
	if err != nil || string(out.Chunk) != "hello\n" || !out.EOF {
		t.Errorf("output %q, eof %v, %v", out.Chunk, out.EOF, err)
	}
}

func TestScenario83_84_ALiveProcessHoldsTheWorkspace(t *testing.T) {
	s := testkit.Workspaces(t, []writ.Workspace{inside(t)})
	coder := s.Agent("coder")
	p, err := s.Tools.Exec(t.Context(), coder, command("sleep", "25"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Tools.Exec(t.Context(), coder, command("true"))
	if writ.CodeOf(err) != "WORKSPACE_BUSY" || !strings.Contains(writ.Message(err), string(p.ID)) {
		t.Errorf("a second command: %v", err)
	}
	if _, _, err := s.Tools.Patch(t.Context(), coder, writ.PatchRequest{Workspace: "main", Patch: "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}); writ.CodeOf(err) != "WORKSPACE_BUSY" {
		t.Errorf("a patch: %v", err)
	}
	if _, err := s.Tools.Find(t.Context(), coder, "main", writ.FileQuery{Limit: 10}); err != nil {
		t.Errorf("find: %v", err)
	}
	if err := s.Tools.Terminate(t.Context(), coder, p.ID, writ.Kill{}); err != nil {
		t.Fatal(err)
	}
	if p = over(t, s, coder, p.ID); p.Termination != writ.TerminationTerminated {
		t.Errorf("it ended as %+v", p.ProcessStatus)
	}
	p, err = s.Tools.Exec(t.Context(), coder, command("true"))
	if err != nil {
		t.Fatalf("after that: %v", err)
	}
	over(t, s, coder, p.ID)
}
