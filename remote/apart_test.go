package remote

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
)

// startApart starts this binary as a runner that no parent watches over, which ends with t.
func startApart(t *testing.T, socket string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(self, "runner", "--socket", socket, "--mode", "apart")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

// reach is a client of the runner at socket, which may still be starting.
func reach(t *testing.T, socket string) *Client {
	t.Helper()
	var c *Client
	var err error
	testkit.Eventually(t, "the runner is reached", func() bool { c, err = Dial(t.Context(), socket); return err == nil })
	t.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	return c
}

// Issue 4 §1: with a runner apart processes survive the gateway, and are found again.
func TestProcessesSurviveTheirGateway(t *testing.T) {
	needBubblewrap(t)
	socket := filepath.Join(socketDir(t), "r")
	server := startApart(t, socket)
	w := testkit.WorkspaceAt(t.TempDir())
	mark := writ.NewID("mark")
	o := testkit.Order(w, "bash", "-c", `echo before; read x; echo "after $x"; read x`, mark)
	short := testkit.Order(w, "bash", "-c", "sleep 0.2; exit 7")

	first := reach(t, socket)
	testkit.Begin(t, first.Processes(), o).Sees("before\n")
	if err := first.Processes().Start(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	polled := make(chan error, 1)
	go func() { // ends with its client
		_, err := first.Processes().Output(context.Background(), o.ID, writ.OutputQuery{Cursor: 7, Wait: writ.MaxOutputWait})
		polled <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, "the end of a call", polled); err == nil {
		t.Error("a call went on without its client")
	}

	second := reach(t, socket)
	p := testkit.Begun{T: t, M: second.Processes(), ID: o.ID}
	p.Types("typed\n")
	p.Sees("before\nafter typed\n")
	told := make(chan writ.ProcessStatus, 10)
	over := make(chan error, 1)
	go func() { // ends with the runner
		over <- second.Processes().Exits(context.Background(), func(s writ.ProcessStatus) error { told <- s; return nil })
	}()
	if s := testkit.Receive(t, "the end that nobody saw", told); s.ID != short.ID || s.ExitCode == nil || *s.ExitCode != 7 {
		t.Errorf("the first end is %+v", s)
	}
	all, err := second.Processes().Processes(t.Context())
	if err != nil || len(all) != 2 || all[0].ID != o.ID || all[0].State != writ.ProcessRunning || all[1].State != writ.ProcessExited {
		t.Errorf("the runner knows %+v, %v", all, err)
	}

	// A signal ends it in good order: the last ends are told.
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if s := testkit.Receive(t, "the last end", told); s.ID != o.ID || s.Termination != writ.TerminationTerminated {
		t.Errorf("the last end is %+v", s)
	}
	if err := testkit.Receive(t, "the end of the ends", over); writ.KindOf(err) != writ.Unavailable || errors.Is(err, writ.ErrDispatchUnknown) {
		t.Errorf("the ends ended with %v", err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the runner: %v", err)
	}
	testkit.NoneAlive(t, mark)

	// The next takes the socket over, and knows nothing of them; the client reaches it.
	startApart(t, socket)
	testkit.Eventually(t, "the next runner is reached", func() bool {
		_, err := second.Processes().Status(t.Context(), o.ID)
		return writ.CodeOf(err) == "PROCESS_NOT_FOUND"
	})
}

// Scenario 97: a runner that is killed takes its processes with it, and what was asked of
// it is unknown.
func TestScenario97_AKilledRunner(t *testing.T) {
	needBubblewrap(t)
	p := startProcess(t)
	procs := p.Client().Processes()
	w := testkit.WorkspaceAt(t.TempDir())
	mark := writ.NewID("mark")
	b := testkit.Begin(t, procs, testkit.Order(w, "bash", "-c", `trap "" TERM HUP; setsid sleep 600 & echo up; cat; :`, mark))
	b.Sees("up")
	if len(testkit.Alive(t, mark)) == 0 {
		t.Error("the process is not seen on this host, so no check of its end shows anything")
	}
	over := make(chan error, 2)
	go func() { over <- procs.Exits(context.Background(), func(writ.ProcessStatus) error { return nil }) }()
	silent := testkit.Begin(t, procs, testkit.Order(w, "sleep", "600"))
	go func() { // a full pipe: it waits
		_, err := procs.Input(context.Background(), silent.ID, make([]byte, 1<<20))
		over <- err
	}()
	testkit.Eventually(t, "both run", func() bool { all, _ := procs.Processes(t.Context()); return len(all) == 2 })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := testkit.Receive(t, "the end of a call", over); writ.KindOf(err) != writ.Unavailable || writ.CodeOf(err) != "TIMEOUT" {
			t.Errorf("a call ended with %v", err)
		}
	}
	testkit.NoneAlive(t, mark)
	testkit.Receive(t, "Done", errOnClose(p.Done()))
	// Nothing more is sent (spec/02 §12, before dispatch).
	for what, err := range map[string]error{
		"start": procs.Start(t.Context(), testkit.Order(w, "true")), "terminate": procs.Terminate(t.Context(), b.ID, writ.Kill{}),
	} {
		if writ.KindOf(err) != writ.Unavailable || writ.CodeOf(err) != "TIMEOUT" || errors.Is(err, writ.ErrDispatchUnknown) {
			t.Errorf("%s afterwards: %v", what, err)
		}
	}
}

func TestDialSaysWhatIsWrong(t *testing.T) {
	dir := socketDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(dir, "dead")
	ln, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	silent := filepath.Join(dir, "silent")
	if ln, err = net.Listen("unix", silent); err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for socket, want := range map[string]string{
		filepath.Join(dir, "none"): "writ runner --socket", file: "refused", dead: "refused", silent: "does not answer", "": "writ runner",
	} {
		patience := time.Minute
		if socket == silent {
			patience = 200 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		c, err := Dial(ctx, socket)
		cancel()
		if writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), want) || !strings.Contains(writ.Message(err), socket) {
			t.Errorf("Dial %q = %v, want an error with %q", socket, err, want)
		}
		if err == nil {
			_ = c.Close()
		}
	}
	// A sandbox that does not work is the runner's to tell.
	socket, _ := listenParts(t, Parts{Runner: fake{probe: func(context.Context) (writ.Enforcement, error) {
		return writ.Enforcement{}, &writ.Error{Kind: writ.Unavailable, Msg: "no bubblewrap"}
	}}}, ownUID())
	c, err := Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// Both ends look at who the other is.
func TestServerOfAnotherUserIsNotTrusted(t *testing.T) {
	if os.Getuid() != 0 {
		testkit.Missing(t, "root", "only root can be another user")
	}
	dir := socketDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(self, "runner", "--socket", socket, "--bwrap", "/nonexistent", "--mode", "apart")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	out := &logBuffer{}
	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	testkit.Eventually(t, "it listens", func() bool { _, err := os.Stat(socket); return err == nil }, out.String)
	var err error
	testkit.Eventually(t, "it is refused for its user", func() bool {
		_, err = Dial(t.Context(), socket)
		return err != nil && strings.Contains(err.Error(), "another user")
	}, func() string { return err.Error() })
	c, err := dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Processes().Start(t.Context(), testkit.Order(testkit.WorkspaceAt("/srv"), "true")); writ.KindOf(err) != writ.Unavailable || errors.Is(err, writ.ErrDispatchUnknown) {
		t.Errorf("Start = %v", err)
	}
}

// A socket that somebody serves is not taken from them, and what is no socket stays.
func TestOnlyAnAbandonedSocketIsReplaced(t *testing.T) {
	socket, stop := listenParts(t, Parts{Runner: idle{}}, ownUID())
	if ln, err := listen(socket); err == nil {
		_ = ln.Close()
		t.Error("a socket in use was taken over")
	}
	stop()
	file := filepath.Join(socketDir(t), "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ln, err := listen(file); err == nil {
		_ = ln.Close()
		t.Error("a file was taken for a socket")
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "kept" {
		t.Errorf("the file is %q, %v", b, err)
	}
}

// A runner that ended well did so whoever has its log open after it.
func TestCloseOfARunnerWhoseLogOutlivesIt(t *testing.T) {
	p := startProcess(t, "--mode", "heir")
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}
