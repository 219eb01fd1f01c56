package mcpclients

import (
	"encoding/json"
	"fmt"
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

// patience bounds one command of a client.
const patience = 2 * time.Minute

// program is what is tested.
var program = testkit.Program{Root: filepath.Join("..", "..")}

func TestMain(m *testing.M) { os.Exit(program.Main(m)) }

// desk is a data folder with three workspaces that differ in who must agree to a
// change, named after that, and a client's entry that leads to them.
type desk struct {
	t     *testing.T
	dir   string
	entry map[string]any // of a client's list of servers
}

// newDesk makes them.
func newDesk(t *testing.T) *desk {
	t.Helper()
	dir, err := os.MkdirTemp("", "writ-c-") // short, for the sockets' sake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &desk{t: t, dir: dir}
	config := "listen: 127.0.0.1:0\nidentities:\n  - {id: coder, scopes: [read, patch]}\nworkspaces:\n"
	for _, mode := range []string{"off", "confirm", "review"} {
		config += fmt.Sprintf("  - {id: %s, root: %s, profile: workspace-write, approvals: %q}\n", mode, d.root(mode), mode)
		testkit.PutFiles(t, d.root(mode), map[string]string{"greeting.txt": "hello\n", "deep/notes.md": "# Notes\n"})
	}
	config += fmt.Sprintf("runner: {warm: 0, uid_base: %d}\nlog: {level: warn}\n", 100_000_000+os.Getpid()%50_000*1000)
	testkit.PutFiles(t, d.data(), map[string]string{"config.yaml": config})
	for _, private := range []string{d.data(), filepath.Join(d.data(), "config.yaml")} {
		if err := os.Chmod(private, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *desk) data() string            { return filepath.Join(d.dir, "data") }
func (d *desk) root(mode string) string { return filepath.Join(d.dir, "w", mode) }

// greeting is what is in the file that clients change.
func (d *desk) greeting(mode string) string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.root(mode), "greeting.txt"))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

// overStdio has clients start writ mcp.
func (d *desk) overStdio() {
	d.entry = map[string]any{"command": program.Path(d.t), "args": []string{"--data", d.data(), "mcp", filepath.Join(d.dir, "w")}}
}

var endpoint = regexp.MustCompile(`(?m)^MCP: +(http://\S+)`)

// overHTTP starts writ serve and has clients go there with a key.
func (d *desk) overHTTP() {
	d.t.Helper()
	log := filepath.Join(d.dir, "server.log")
	said, err := os.Create(log)
	if err != nil {
		d.t.Fatal(err)
	}
	defer said.Close()
	cmd := exec.Command(program.Path(d.t), "--data", d.data(), "serve")
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	text := func() string { b, _ := os.ReadFile(log); return string(b) }
	d.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		// One that does not end says where it stands.
		defer time.AfterFunc(patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }).Stop()
		if err := cmd.Wait(); err != nil || d.t.Failed() {
			d.t.Logf("the server: %v\n%s", err, text())
		}
	})
	var url []string
	testkit.Eventually(d.t, "the server says where it serves", func() bool {
		url = endpoint.FindStringSubmatch(text())
		return url != nil
	}, text)
	key := strings.TrimSpace(d.writ("keys", "create", "--identity", "coder"))
	d.entry = map[string]any{"type": "streamable-http", "url": url[1], "headers": map[string]string{"Authorization": "Bearer " + key}}
}

// writ is what the operator's command answers.
func (d *desk) writ(args ...string) string {
	d.t.Helper()
	out, err := exec.CommandContext(d.t.Context(), program.Path(d.t), append([]string{"--data", d.data()}, args...)...).Output()
	if err != nil {
		d.t.Fatalf("writ %v: %v\n%s%s", args, err, out, stderrOf(err))
	}
	return string(out)
}

// list is a client's list of servers, which has the desk as "writ".
func (d *desk) list() (file string) {
	d.t.Helper()
	b, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"writ": d.entry}})
	if err != nil {
		d.t.Fatal(err)
	}
	testkit.PutFiles(d.t, d.dir, map[string]string{"servers.json": string(b)})
	return filepath.Join(d.dir, "servers.json")
}

// way is a transport and an era of the protocol, as the clients call them.
type way struct{ transport, era string }

// ways are all; across has each transport and each era once.
var (
	ways   = []way{{"stdio", "legacy"}, {"stdio", "modern"}, {"http", "legacy"}, {"http", "modern"}}
	across = []way{{"stdio", "legacy"}, {"http", "modern"}}
)

// over runs f with a desk of its own for each way.
func over(t *testing.T, ways []way, f func(t *testing.T, d *desk, era string)) {
	for _, w := range ways {
		t.Run(w.transport+"_"+w.era, func(t *testing.T) {
			d := newDesk(t)
			if w.transport == "stdio" {
				d.overStdio()
			} else {
				d.overHTTP()
			}
			f(t, d, w.era)
		})
	}
}

// change is the patch of greeting.txt from one line to another.
func change(from, to string) string {
	return fmt.Sprintf("*** Begin Patch\n*** Update File: greeting.txt\n@@\n-%s\n+%s\n*** End Patch\n", from, to)
}
