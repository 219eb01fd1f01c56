package crashtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"writ"
	"writ/client"
	"writ/internal/testkit"
)

// program is what is tested.
var program = testkit.Program{Root: filepath.Join("..", "..")}

func TestMain(m *testing.M) { os.Exit(program.Main(m)) }

// setup is what a server is configured with.
type setup struct {
	database     string
	slots, queue int
	workspaces   string // lines of the configuration's list; empty means none
}

// server is one data folder and the processes that serve it, one after the other.
// Its methods are for one goroutine.
type server struct {
	t    testing.TB
	exe  string
	data string
	tmp  string // TMPDIR of the processes
	uids int    // first of the user ids of its boxes, on the host
	log  string // file

	cmd  *exec.Cmd
	done <-chan struct{} // closed when the process is gone
}

// uidsEach is how many user ids the boxes of one server have, at most.
const uidsEach = 1000

// newServer makes a data folder. What is started on it is killed when t ends, and
// its log is shown when t has failed.
func newServer(t testing.TB, s setup) *server {
	t.Helper()
	exe := program.Path(t)
	dir, err := os.MkdirTemp("", "writ-crash-") // short, for the sockets' sake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	srv := &server{
		t: t, exe: exe, data: filepath.Join(dir, "data"), tmp: filepath.Join(dir, "tmp"), log: filepath.Join(dir, "log"),
		uids: 1_000_000 + os.Getpid()%50_000*uidsEach,
	}
	for _, d := range []string{srv.data, srv.tmp} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := fmt.Sprintf(`
listen: 127.0.0.1:0
database: %q
identities:
  - {id: bot, scopes: [python, shell, read, patch]}
workspaces: [%s]
runner: {slots: %d, queue: %d, warm: 1, uid_base: %d}
log: {level: warn}
`, s.database, s.workspaces, s.slots, s.queue, srv.uids)
	if err := os.WriteFile(filepath.Join(srv.data, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		srv.kill()
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", srv.logged(6<<10))
		}
	})
	return srv
}

// start starts the program and waits for nothing.
func (s *server) start() {
	s.t.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(s.exe, "--data", s.data, "serve")
	cmd.Env = append(os.Environ(), "TMPDIR="+s.tmp)
	cmd.Stderr = log
	s.cmd, s.done = cmd, testkit.Spawn(s.t, cmd)
}

// ready waits until the server answers. A host that cannot sandbox skips the test.
func (s *server) ready() {
	s.t.Helper()
	c := s.client()
	defer c.Close()
	testkit.Eventually(s.t, "the server answers", func() bool {
		select {
		case <-s.done:
			s.t.Fatalf("the server ended instead of serving: %v", s.cmd.ProcessState)
		default:
		}
		_, _, err := c.Tasks(s.t.Context(), writ.TaskFilter{})
		return err == nil
	})
}

// needSandbox ends the test where nothing can be run.
func (s *server) needSandbox() {
	s.t.Helper()
	const said = "sandbox:"
	testkit.Eventually(s.t, "the server says what holds a run", func() bool { return strings.Contains(s.logged(1<<20), said) })
	_, line, _ := strings.Cut(s.logged(1<<20), said)
	line, _, _ = strings.Cut(line, "\n")
	if strings.Contains(line, "UNAVAILABLE") {
		if _, err := exec.LookPath("bwrap"); err != nil {
			testkit.Missing(s.t, "bwrap", line)
		}
		testkit.Missing(s.t, "userns", line)
	}
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		testkit.Missing(s.t, "python", err.Error())
	}
}

// signal sends sig to the process, which may be gone.
func (s *server) signal(sig syscall.Signal) { _ = s.cmd.Process.Signal(sig) }

// gone waits until the process is.
func (s *server) gone() *os.ProcessState {
	s.t.Helper()
	testkit.Receive(s.t, "the server's end", s.ended())
	return s.cmd.ProcessState
}

func (s *server) ended() <-chan bool {
	c := make(chan bool, 1)
	go func() { <-s.done; c <- true }() // ends with the process, which the test's end kills
	return c
}

// kill ends the process at once, if there is one, and waits for it alone.
func (s *server) kill() {
	if s.cmd != nil {
		s.signal(syscall.SIGKILL)
		<-s.done
	}
}

// stop ends the server as a supervisor would.
func (s *server) stop() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	if st := s.gone(); !st.Success() {
		s.t.Errorf("a server that is told to stop ends with %v", st)
	}
}

// client is one of the folder's owner, who sees everything.
func (s *server) client() *client.Client { return client.Unix(filepath.Join(s.data, "writ.sock")) }

// operator is a client of the first operator.
func (s *server) operator() *client.Client {
	s.t.Helper()
	key, err := os.ReadFile(filepath.Join(s.data, "operator.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.client().WithKey(writ.Secret(strings.TrimSpace(string(key))))
}

// logged is the last n bytes of all that the processes logged.
func (s *server) logged(n int64) string {
	f, err := os.Open(s.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > n {
		_, _ = f.Seek(-n, io.SeekEnd)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// mustRun is a task of the server that has come to its end.
func (s *server) mustRun(ctx context.Context, c *client.Client, req writ.TaskRequest) writ.Task {
	s.t.Helper()
	task, _, err := c.Submit(ctx, req)
	if err == nil {
		task, err = c.Wait(ctx, task.ID, patience)
	}
	if err != nil || !task.State.Terminal() {
		s.t.Fatalf("task %s is %s, %v", task.ID, task.State, err)
	}
	return task
}
