package mcpclients

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"writ/internal/testkit"
)

// client is a program that calls tools.
type client interface {
	// tools are the names that it is shown.
	tools() []string
	// call is the answer to a tool's call.
	call(tool string, args map[string]any) answer
}

// answer is what a client prints of a tool's result.
type answer struct {
	failed  bool // by the tool's own word
	pending string
	body
}

// body is what the tools of these tests answer, each some of it.
type body struct {
	Workspaces []string `json:"workspaces"`
	Content    string   `json:"content"`
	Version    string   `json:"version"`
	Paths      []string `json:"paths"`
	Status     string   `json:"status"`
	Operation  string   `json:"operation_id"`
	Replayed   bool     `json:"replayed"`
	Code       string   `json:"code"`
	Message    string   `json:"message"`
	Approval   string   `json:"approval_id"`
	State      string   `json:"state"`
	Resumed    struct {
		Status string `json:"status"`
	} `json:"apply_patch"` // by operation_resume
}

// printed is a result of a tool as both clients print it.
type printed struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
	Pending    struct {
		ID string `json:"elicitationId"`
	} `json:"elicitationPending"`
}

// answer reads what the client printed. Every result says as text what it says in
// structured form, and an error only as text.
func (p printed) answer(t *testing.T) answer {
	t.Helper()
	a := answer{failed: p.IsError, pending: p.Pending.ID}
	if a.pending != "" {
		return a
	}
	if len(p.Content) != 1 || p.IsError != (p.Structured == nil) {
		t.Fatalf("a result of another form: %+v", p)
	}
	if err := json.Unmarshal([]byte(p.Content[0].Text), &a.body); err != nil {
		t.Fatalf("%v: %s", err, p.Content[0].Text)
	}
	return a
}

// listed is a list of tools as both clients print it.
type listed struct {
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

func (l listed) names() (names []string) {
	for _, tool := range l.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// inspector is the inspector's command, which connects anew for every call. It asks
// nobody.
type inspector struct {
	t   *testing.T
	era string
	d   *desk
}

func (i inspector) tools() []string {
	i.t.Helper()
	var out struct {
		Result listed `json:"result"`
	}
	// strict: fails over a schema that a client may not take.
	i.run(&out, false, "--method", "tools/list", "--strict")
	return out.Result.names()
}

func (i inspector) call(tool string, args map[string]any) answer {
	i.t.Helper()
	var out struct {
		Result printed `json:"result"`
	}
	i.run(&out, true, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", encode(i.t, args))
	return out.Result.answer(i.t)
}

func (i inspector) run(out any, mayFail bool, args ...string) {
	i.t.Helper()
	base := []string{"--cli", "--format", "json", "--config", i.d.list(), "--server", "writ", "--protocol-era", i.era, "--connect-timeout", "60000"}
	execute(i.t, i.d, "mcp-inspector", out, mayFail, append(base, args...)...)
}

// mcpdo is a client that keeps its connection in a daemon, and answers the server's
// questions when it is told to.
type mcpdo struct {
	t *testing.T
	d *desk
}

// connect opens the connection. elicit says what the server is told that the client can
// be asked: "off", or "both".
func connect(t *testing.T, d *desk, era, elicit string) mcpdo {
	t.Helper()
	m := mcpdo{t, d}
	t.Cleanup(func() {
		var out struct {
			Stopping bool `json:"stopping"`
		}
		m.run(&out, false, "daemon", "stop")
	})
	var out struct {
		Era string `json:"protocolEra"`
	}
	m.run(&out, false, "connect", "writ", "--config", d.list(), "--era", era, "--elicit", elicit, "--connect-timeout", "60000")
	if out.Era != era {
		t.Fatalf("the connection is of era %q, want %q", out.Era, era)
	}
	return m
}

func (m mcpdo) tools() []string {
	m.t.Helper()
	var out listed
	m.run(&out, false, "--connection", "writ", "tools/list")
	return out.names()
}

func (m mcpdo) call(tool string, args map[string]any) answer {
	m.t.Helper()
	var out printed
	m.run(&out, true, "--connection", "writ", "tools/call", tool, "--tool-args-json", encode(m.t, args))
	return out.answer(m.t)
}

// respond answers the question of a call that is pending: with a form, or with one of
// "--decline" and "--cancel". What comes is the end of that call.
func (m mcpdo) respond(pending, with string) answer {
	m.t.Helper()
	var out printed
	m.run(&out, true, "elicitation/respond", pending, with)
	return out.answer(m.t)
}

func (m mcpdo) run(out any, mayFail bool, args ...string) {
	m.t.Helper()
	execute(m.t, m.d, "mcpdo", out, mayFail, append([]string{"--format", "json"}, args...)...)
}

// toolFailed is the exit status of both clients when a tool answers with an error.
const toolFailed = 5

// execute runs a client and reads what it prints as JSON. It has a home of its own, and
// so has its daemon.
func execute(t *testing.T, d *desk, name string, out any, mayFail bool, args ...string) {
	t.Helper()
	home := filepath.Join(d.dir, "home")
	if err := os.MkdirAll(filepath.Join(home, "daemon"), 0o700); err != nil {
		t.Fatal(err)
	}
	command := testkit.MCPClient(t, name)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], append(command[1:], args...)...)
	cmd.WaitDelay = patience // for what a daemon of it holds
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "MCP_INSPECTOR_SECRET_STORE=memory",
		"MCP_INSPECTOR_DAEMON_DIR="+filepath.Join(home, "daemon"), "MCP_INSPECTOR_DAEMON_TOKEN=of-this-test")
	said, err := cmd.Output()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if err != nil && !(mayFail && exit != nil && exit.ExitCode() == toolFailed) {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, said, stderrOf(err))
	}
	if err := json.Unmarshal(said, out); err != nil {
		t.Fatalf("%s %q prints no JSON: %v\n%s%s", name, args, err, said, stderrOf(err))
	}
}

func stderrOf(err error) []byte {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.Stderr
	}
	return nil
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
