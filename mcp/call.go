package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
	"writ/response"
)

// callTime is the longest that a call takes: clients give up at about a minute.
const callTime = 50 * time.Second

// MaxResultBytes bounds the text and the structured form of a result together.
const MaxResultBytes = 4 << 20

// call is one call of a tool by who.
type call struct {
	*Server
	who      writ.Principal
	tool     tool
	args     []byte // a JSON object; the guard has seen it
	req      *sdk.CallToolRequest
	approval writ.ApprovalID // that the call is about, set by the tool
	process  writ.ProcessID  // that the call started, set by the tool
}

// call runs t for who and makes the one log line of it.
func (s *Server) call(ctx context.Context, t tool, who writ.Principal, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()

	c := &call{Server: s, who: who, tool: t, args: req.Params.Arguments, req: req}
	if len(c.args) == 0 || string(c.args) == "null" {
		c.args = []byte("{}")
	}
	out, err := c.attempt(ctx)
	res, answer := c.answer(ctx, out, err)
	s.logCall(ctx, c, res, err, time.Since(start))
	return res, answer
}

// attempt runs the tool. A panic is an internal error: the SDK has no net under it.
func (c *call) attempt(ctx context.Context) (out any, err error) {
	defer response.Catch(&err)
	return c.tool.run(ctx, c)
}

// answer is the outcome of a call in the contract's envelopes (spec/02 §2), or an
// error of the protocol.
func (c *call) answer(ctx context.Context, out any, err error) (*sdk.CallToolResult, error) {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, e
	}
	if err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "cancelled"}
		}
		return failure(bodyOf(err, c.tool.faults, c.approval)), nil
	}
	if res, ok := out.(*sdk.CallToolResult); ok {
		return res, nil
	}
	body, done := out.(jsontext.Value)
	if !done {
		if body, err = json.Marshal(out); err != nil {
			return nil, fmt.Errorf("encoding the result of %s: %w", c.tool.name, err)
		}
	}
	// Its text, the same, comes when it is encoded.
	return &sdk.CallToolResult{StructuredContent: body}, nil
}

// failure is the error envelope: one text item, and nothing structured, which would
// have to fit the tool's output schema.
func failure(b body) *sdk.CallToolResult {
	text, err := json.Marshal(b)
	if err != nil {
		panic("mcp: an error body always encodes: " + err.Error()) // valid UTF-8 strings
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}
}

// decode reads the arguments of c into a T. What is not known is left alone
// (spec/02 §2); what is missing or of another type is an error of the protocol.
func decode[T any](c *call) (T, error) {
	var v T
	var given map[string]jsontext.Value
	if err := json.Unmarshal(c.args, &given); err != nil {
		return v, invalidParams("arguments: want an object")
	}
	for _, name := range c.tool.in.required() {
		if arg, ok := given[name]; !ok || arg.Kind() == jsontext.KindNull {
			return v, invalidParams("arguments: " + name + " is missing")
		}
	}
	if err := json.Unmarshal(c.args, &v); err != nil {
		where := "arguments"
		if e, ok := errors.AsType[*json.SemanticError](err); ok && e.JSONPointer != "" {
			where += shorten(string(e.JSONPointer))
		}
		return v, invalidParams(where + ": not of the type that the tool's input schema says")
	}
	return v, nil
}

// logCall writes the one line of a call. Messages for clients stay out of it: they
// may quote what the client sent.
func (s *Server) logCall(ctx context.Context, c *call, res *sdk.CallToolResult, err error, took time.Duration) {
	level := slog.LevelInfo
	attrs := []slog.Attr{slog.String("tool", c.tool.name), slog.String("by", c.who.Ref().String()), slog.Duration("took", took)}
	switch {
	case err == nil && res != nil && res.InputRequests != nil:
		attrs = append(attrs, slog.String("outcome", "input_required"))
	case err == nil:
		attrs = append(attrs, slog.String("outcome", "ok"))
	default:
		b := bodyOf(err, c.tool.faults, c.approval)
		attrs = append(attrs, slog.String("outcome", b.Code))
		if _, protocol := errors.AsType[*jsonrpc.Error](err); protocol {
			attrs[len(attrs)-1] = slog.String("outcome", "invalid_params")
		} else if ctx.Err() != nil {
			attrs = append(attrs, slog.Bool("ended", true)) // by the client, the server, or the time
		} else if k := writ.KindOf(err); k == writ.Internal || k == writ.Unavailable {
			level = slog.LevelError
			attrs = append(attrs, slog.String("error", writ.Reveal(err)))
		}
		if b.Operation != "" {
			attrs = append(attrs, slog.String("operation", string(b.Operation)))
		}
		if b.Approval != "" {
			attrs = append(attrs, slog.String("approval", string(b.Approval)))
		}
	}
	if c.process != "" {
		attrs = append(attrs, slog.String("process", string(c.process)))
	}
	if p, ok := errors.AsType[*response.Panic](err); ok {
		attrs = append(attrs, slog.String("stack", string(p.Stack)))
	}
	s.log.LogAttrs(context.WithoutCancel(ctx), level, "tool called", attrs...)
}
