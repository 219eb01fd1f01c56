package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
)

// agent is a client of the tools, with its user beside it. Its methods are for one
// goroutine.
type agent struct {
	t       testing.TB
	session *sdk.ClientSession
	asks    bool // its client can ask the user

	mu    sync.Mutex
	asked []string // guarded by mu; the questions that the user agreed to
}

// Revisions of the protocol, one of each era.
const (
	older = "2025-11-25"
	newer = "2026-07-28"
)

// connect has the transport's server meet an agent that speaks this revision.
func connect(t testing.TB, transport sdk.Transport, revision string, asks bool) *agent {
	t.Helper()
	a := &agent{t: t, asks: asks}
	if err := a.connect(t.Context(), transport, revision); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *agent) connect(ctx context.Context, transport sdk.Transport, revision string) error {
	var opt sdk.ClientOptions
	if a.asks {
		opt.ElicitationHandler = func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.asked = append(a.asked, req.Params.Message)
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		}
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, &opt).
		Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		return fmt.Errorf("the session speaks %s, want %s", got, revision)
	}
	a.session = session
	return nil
}

// over reaches the tools over HTTP with a key.
func over(endpoint, key string) sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: bearer(strings.TrimSpace(key))}}
}

// bearer is a round tripper that sends a key.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// answer is what tools say, each some of it.
type answer struct {
	failed      bool
	Code        string           `json:"code"`
	Message     string           `json:"message"`
	Approval    writ.ApprovalID  `json:"approval_id"`
	Process     writ.ProcessID   `json:"process_id"`
	Dispatch    string           `json:"dispatch_status"`
	State       string           `json:"state"`
	Termination writ.Termination `json:"termination"`
	ExitCode    *int             `json:"exit_code"`
	Chunk       string           `json:"chunk"`
	Cursor      int64            `json:"cursor"`
	EOF         bool             `json:"eof"`
	Content     string           `json:"content"`
	Version     string           `json:"version"`
	Paths       []string         `json:"paths"`
	Status      writ.PatchStatus `json:"status"`
	Operation   writ.OperationID `json:"operation_id"`
	Processes   []answer         `json:"processes"`
	Patched     *answer          `json:"apply_patch"`  // by operation_resume
	Started     *answer          `json:"exec_command"` // the same
	Hint        *writ.WorkHint   `json:"coordination"`
}

// try calls a tool. An error means that there was no answer.
func (a *agent) try(ctx context.Context, tool string, args map[string]any) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res, err := a.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return answer{}, err
	}
	text, ok := res.Content[0].(*sdk.TextContent)
	if !ok || len(res.Content) != 1 {
		return answer{}, fmt.Errorf("a result of another form: %+v", res)
	}
	out := answer{failed: res.IsError}
	return out, json.Unmarshal([]byte(text.Text), &out)
}

// call calls a tool, which must answer, and may answer with an error.
func (a *agent) call(tool string, args map[string]any) answer {
	a.t.Helper()
	out, err := a.try(a.t.Context(), tool, args)
	if err != nil {
		a.t.Fatalf("%s %v: %v", tool, args, err)
	}
	return out
}

// must calls a tool that must not answer with an error. One that is held comes before the
// agent's user, who agrees.
func (a *agent) must(tool string, args map[string]any) answer {
	a.t.Helper()
	out := a.call(tool, args)
	if out.Code == "APPROVAL_REQUIRED" && !a.asks {
		a.asked = append(a.asked, out.Message)
		id := map[string]any{"approval_id": out.Approval}
		a.must("approval_resolve", map[string]any{"approval_id": out.Approval, "decision": "grant"})
		out = a.must("operation_resume", id)
		switch {
		case out.Patched != nil:
			out = *out.Patched
		case out.Started != nil:
			out = *out.Started
		}
	}
	if out.failed {
		a.t.Fatalf("%s %v: %s %s", tool, args, out.Code, out.Message)
	}
	return out
}

// run runs a command to its end, and answers what it wrote and its exit code.
func (a *agent) run(workspace string, argv ...string) (output string, code int) {
	a.t.Helper()
	p := a.must("exec_command", map[string]any{"workspace_id": workspace, "command": argv})
	if p.Dispatch != "confirmed" {
		a.t.Fatalf("%q: %+v", argv, p)
	}
	for cursor := int64(0); ; {
		out := a.must("read_process", map[string]any{"process_id": p.Process, "cursor": cursor, "wait_ms": 10_000})
		output += out.Chunk
		if cursor = out.Cursor; out.EOF {
			break
		}
	}
	s := a.ended(p.Process)
	if s.ExitCode == nil {
		a.t.Fatalf("%q ended %s: %s", argv, s.Termination, output)
	}
	return output, *s.ExitCode
}

// ended waits for the end of a process.
func (a *agent) ended(id writ.ProcessID) answer {
	a.t.Helper()
	for over := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		s := a.must("process_status", map[string]any{"process_id": id})
		if s.State == "exited" {
			return s
		}
		if time.Now().After(over) {
			a.t.Fatalf("process %s does not end: %+v", id, s)
		}
	}
}
