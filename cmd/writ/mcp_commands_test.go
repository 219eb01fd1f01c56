package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
)

// agents are the clients of a script that are connected, by name.
type agents struct{ byName map[string]*agent }

// agent is a coding agent as scripts play it: a client of `writ mcp` that speaks lines
// of JSON-RPC. What the program writes to its standard output must be messages alone.
type agent struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   chan string // closed at the end of the program's output
	calls   int
	mu      sync.Mutex
	stderr  bytes.Buffer // guarded by mu
	stopped bool
}

// Write keeps what the program writes to its standard error.
func (a *agent) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stderr.Write(p)
}

func (a *agent) said() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stderr.String()
}

// agentsKey is where a script keeps its agents.
type agentsKey struct{}

func setupAgents(e *testscript.Env) {
	all := &agents{map[string]*agent{}}
	e.Values[agentsKey{}] = all
	e.Defer(func() {
		for _, a := range all.byName {
			if !a.stopped {
				_ = a.cmd.Process.Kill()
				_ = a.cmd.Wait()
			}
		}
	})
}

// agentCommand is
//
//	agent NAME start [ARGS...]            writ mcp ARGS... and initialize
//	[!] agent NAME TOOL [ARGUMENT...]     a call, which must (not) fail; prints the text of the result
//	agent NAME until REGEXP TOOL [ARGUMENT...]  such calls until the text of a result matches
//	agent NAME stop [CODE]                hang up; the program must end with CODE, 0 by default
//	agent NAME term [CODE]                SIGTERM instead
//	agent NAME gone CODE                  the program ends by itself
//	agent NAME hangup                     hang up, and do not wait
//	agent NAME says TEXT                  wait until TEXT is on its standard error
//
// An ARGUMENT is name=text, name=@file, or name:=JSON. After stop, term and gone stderr is
// what the program wrote to its standard error.
func agentCommand(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) > 1, "[!] agent NAME start|stop|term|gone|TOOL ...")
	all := ts.Value(agentsKey{}).(*agents)
	name, verb, rest := args[0], args[1], args[2:]
	if verb == "start" {
		usage(ts, !neg && all.byName[name] == nil, "agent NEW-NAME start [ARGS...]")
		all.byName[name] = startAgent(ts, rest)
		return
	}
	a := all.byName[name]
	if a == nil {
		ts.Fatalf("there is no agent %s", name)
	}
	code := "0"
	if len(rest) > 0 {
		code = rest[0]
	}
	switch verb {
	case "stop":
		ts.Check(a.in.Close())
		a.ended(ts, code)
	case "term":
		ts.Check(a.cmd.Process.Signal(syscall.SIGTERM))
		a.ended(ts, code)
	case "gone":
		a.ended(ts, code)
	case "hangup":
		ts.Check(a.in.Close())
	case "until":
		usage(ts, !neg && len(rest) > 1, "agent NAME until REGEXP TOOL [ARGUMENT...]")
		a.until(ts, rest[0], rest[1], rest[2:])
	case "says":
		eventually(ts, fmt.Sprintf("agent %s says %s: %s", name, code, a.said()), func() bool { return strings.Contains(a.said(), code) })
	default:
		a.call(ts, neg, verb, rest)
	}
}

func startAgent(ts *testscript.TestScript, args []string) *agent {
	a := &agent{lines: make(chan string, 100)}
	a.cmd = exec.Command("writ", append([]string{"mcp"}, args...)...)
	a.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "WORK", "TMPDIR", "WRIT_DATA", "WRIT_MCP_CONFIG", "GORACE", "GOCOVERDIR"} {
		a.cmd.Env = append(a.cmd.Env, name+"="+ts.Getenv(name))
	}
	a.cmd.Stderr, a.cmd.WaitDelay = a, patience // for what it started and left
	out, err := a.cmd.StdoutPipe()
	ts.Check(err)
	a.in, err = a.cmd.StdinPipe()
	ts.Check(err)
	ts.Check(a.cmd.Start())
	go func() { // ends with the program
		defer close(a.lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				if line != "" {
					a.lines <- line
				}
				return
			}
			a.lines <- line
		}
	}()
	a.send(ts, map[string]any{"id": 0, "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "script", "version": "1"},
	}})
	a.answer(ts, 0)
	a.send(ts, map[string]any{"method": "notifications/initialized"})
	return a
}

func (a *agent) send(ts *testscript.TestScript, msg map[string]any) {
	msg["jsonrpc"] = "2.0"
	b, err := json.Marshal(msg)
	ts.Check(err)
	_, err = a.in.Write(append(b, '\n'))
	ts.Check(err)
}

// answer is the result of the call of that id.
func (a *agent) answer(ts *testscript.TestScript, id int) json.RawMessage {
	select {
	case line, ok := <-a.lines:
		if !ok {
			ts.Fatalf("the program ended without an answer: %s", a.said())
		}
		var msg struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      *int            `json:"id"`
			Result  json.RawMessage `json:"result"`
			Error   json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal([]byte(line), &msg); err != nil || msg.JSONRPC != "2.0" || msg.ID == nil || *msg.ID != id || msg.Error != nil {
			ts.Fatalf("got %q, want the answer to %d (stderr: %s)", line, id, a.said())
		}
		return msg.Result
	case <-time.After(patience):
		ts.Fatalf("no answer to call %d: %s", id, a.said())
	}
	return nil
}

func (a *agent) call(ts *testscript.TestScript, neg bool, tool string, args []string) {
	text, isError := a.result(ts, tool, toolArguments(ts, args))
	fmt.Fprint(ts.Stdout(), text)
	if isError != neg {
		ts.Fatalf("%s: isError is %t: %s", tool, isError, text)
	}
}

// until calls a tool until its text matches, whether it fails meanwhile or not. What it
// writes to the script's stdout is the text that did.
func (a *agent) until(ts *testscript.TestScript, pattern, tool string, args []string) {
	re, err := regexp.Compile("(?m)" + pattern)
	ts.Check(err)
	arguments := toolArguments(ts, args)
	for over := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text, _ := a.result(ts, tool, arguments)
		switch {
		case re.MatchString(text):
			fmt.Fprint(ts.Stdout(), text)
			return
		case time.Now().After(over):
			ts.Fatalf("%s does not answer %q in %v: %s", tool, pattern, patience, text)
		}
	}
}

// result is the text of a tool's result, a line for each part.
func (a *agent) result(ts *testscript.TestScript, tool string, args map[string]any) (text string, isError bool) {
	a.calls++
	a.send(ts, map[string]any{"id": a.calls, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args}})
	var res struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	ts.Check(json.Unmarshal(a.answer(ts, a.calls), &res))
	for _, c := range res.Content {
		text += c.Text + "\n"
	}
	return text, res.IsError
}

func toolArguments(ts *testscript.TestScript, args []string) map[string]any {
	out := map[string]any{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		usage(ts, ok, "name=text, name=@file or name:=JSON")
		switch file, isFile := strings.CutPrefix(value, "@"); {
		case strings.HasSuffix(name, ":"):
			var v any
			ts.Check(json.Unmarshal([]byte(value), &v))
			out[strings.TrimSuffix(name, ":")] = v
		case isFile:
			out[name] = ts.ReadFile(file)
		default:
			out[name] = value
		}
	}
	return out
}

// ended waits for the end of the program, which must have written nothing more.
func (a *agent) ended(ts *testscript.TestScript, code string) {
	for over := time.After(patience); ; {
		select {
		case line, ok := <-a.lines:
			if ok {
				ts.Fatalf("at its end the program wrote %q", line)
			}
			err := a.cmd.Wait()
			a.stopped = true
			got := 0
			if e, ok := errors.AsType[*exec.ExitError](err); ok {
				got = e.ExitCode()
			} else if err != nil {
				ts.Fatalf("%v", err)
			}
			fmt.Fprint(ts.Stderr(), a.said())
			if fmt.Sprint(got) != code {
				ts.Fatalf("exit code %d, want %s: %s", got, code, a.said())
			}
			return
		case <-over:
			ts.Fatalf("the program does not end: %s", a.said())
		}
	}
}

// remoteTool URL KEYFILE TOOL [ARGUMENT...] calls a tool over HTTP, as the official client
// does, and prints the text of the result. It must (not) fail as for agent.
func remoteTool(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) > 2, "[!] tool URL KEYFILE TOOL [ARGUMENT...]")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	client := sdk.NewClient(&sdk.Implementation{Name: "script", Version: "1"}, nil)
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: args[0], HTTPClient: &http.Client{Transport: withKey{strings.TrimSpace(ts.ReadFile(args[1])), tr}},
	}, nil)
	ts.Check(err)
	defer session.Close()
	res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: args[2], Arguments: toolArguments(ts, args[3:])})
	ts.Check(err)
	for _, c := range res.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			fmt.Fprintln(ts.Stdout(), text.Text)
		}
	}
	if res.IsError != neg {
		ts.Fatalf("%s: isError is %t", args[2], res.IsError)
	}
}

type withKey struct {
	key  string
	next http.RoundTripper
}

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return k.next.RoundTrip(r)
}

// post STATUS URL FILE [NAME:VALUE...] sends a file as JSON, with further headers, and
// prints the headers and the body of the answer.
func post(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) >= 3, "post STATUS URL FILE [NAME:VALUE...]")
	req, err := http.NewRequest(http.MethodPost, args[1], strings.NewReader(ts.ReadFile(args[2])))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Close = true
	for _, h := range args[3:] {
		name, value, _ := strings.Cut(h, ":")
		req.Header.Set(name, value)
	}
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	ts.Check(resp.Header.Write(ts.Stdout()))
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
	if got := fmt.Sprint(resp.StatusCode); got != args[0] {
		ts.Fatalf("POST %s: status %s, want %s", args[1], got, args[0])
	}
}
