package agents

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ/internal/testkit"
)

// patience bounds every wait for something that should happen soon. Nothing waits it out
// but a failure.
const patience = 3 * time.Minute

// program is what is tested.
var program = testkit.Program{Root: filepath.Join("..", "..")}

func TestMain(m *testing.M) { os.Exit(program.Main(m)) }

// uidsEach is how many user ids the boxes of one server have, at most.
const uidsEach = 1000

// host is a data folder, folders to work in, and the server on it if there is one.
type host struct {
	t    testing.TB
	dir  string
	tmp  string // TMPDIR of what is started
	uids int    // first of the user ids of its boxes
	cmd  *exec.Cmd
	url  string // of its tools over HTTP
}

// newHost makes a data folder with these lines of configuration, where ROOT is the folder
// in which its workspaces are.
func newHost(t testing.TB, config string) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "writ-a-") // short, for the sockets' sake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &host{t: t, dir: dir, tmp: filepath.Join(dir, "tmp"), uids: 200_000_000 + os.Getpid()%50_000*uidsEach}
	config = fmt.Sprintf("listen: 127.0.0.1:0\nrunner: {warm: 0, uid_base: %d}\nlog: {level: warn}\n%s", h.uids, strings.ReplaceAll(config, "ROOT", h.root("")))
	for _, d := range []string{h.data(), h.tmp, h.root("")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.data(), "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) data() string            { return filepath.Join(h.dir, "data") }
func (h *host) log() string             { return filepath.Join(h.dir, "log") }
func (h *host) root(name string) string { return filepath.Join(h.dir, "w", name) }

// command is writ with these arguments, on the data folder.
func (h *host) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program.Path(h.t), append([]string{"--data", h.data()}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+h.tmp)
	return cmd
}

// serve starts a server, which ends with t.
func (h *host) serve() {
	h.t.Helper()
	said, err := os.OpenFile(h.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer said.Close()
	began, err := said.Seek(0, io.SeekEnd)
	if err != nil {
		h.t.Fatal(err)
	}
	h.cmd = h.command("serve")
	h.cmd.Stderr = said
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		h.stop()
		if h.t.Failed() {
			h.t.Logf("the server said:\n%s", h.said(began))
		}
	})
	var where, boxes []string
	testkit.Eventually(h.t, "the server says where it is, and what holds a run", func() bool {
		where, boxes = endpointLine.FindStringSubmatch(h.said(began)), sandboxLine.FindStringSubmatch(h.said(began))
		return where != nil && boxes != nil
	}, func() string { return h.said(began) })
	h.url = where[1]
	if strings.Contains(boxes[1], "UNAVAILABLE") {
		testkit.Missing(h.t, "userns", boxes[1])
	}
}

var (
	endpointLine = regexp.MustCompile(`(?m)^MCP: +(http://\S+)`)
	sandboxLine  = regexp.MustCompile(`(?m)^sandbox: +(.+)$`)
)

// stop ends the server as a supervisor would.
func (h *host) stop() {
	h.t.Helper()
	if h.cmd.ProcessState != nil {
		return
	}
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	// One that does not end says where it stands.
	defer time.AfterFunc(patience, func() { _ = h.cmd.Process.Signal(syscall.SIGQUIT) }).Stop()
	if err := h.cmd.Wait(); err != nil {
		h.t.Errorf("a server that is told to stop ends with %v", err)
	}
}

// said is the last of what the servers wrote, from a place in the log on.
func (h *host) said(from int64) string {
	b, err := os.ReadFile(h.log())
	if err != nil {
		return err.Error()
	}
	return string(b[max(from, int64(len(b))-16<<10):])
}

// writ is what an operator's command answers.
func (h *host) writ(args ...string) string {
	h.t.Helper()
	var said bytes.Buffer
	cmd := h.command(args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("writ %q: %v\n%s%s", args, err, out, said.Bytes())
	}
	return string(out)
}
