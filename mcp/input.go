package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"writ"
)

const writeStdinName = "write_stdin"

func writeStdinTool(cmds Commands) tool {
	return tool{
		name: writeStdinName, title: "Write to a process",
		description: "Write text to the standard input of a process, or type it at its terminal, where Enter is \\r and Ctrl-C \\u0003. Where policy holds it, the answer is APPROVAL_REQUIRED or a question to the user.",
		hints:       hints{destructive: true, open: cmds.Egress},
		faults:      aboutProcesses,
		in: object{
			processID(),
			must("data", withMost(writ.MaxInputChunk, text("Written as it is, in UTF-8: a line ends with \\n, which is not added."))),
			may("close", flag("True to end the input behind data; at a terminal, Ctrl-D. Default false.")),
		},
		out: object{done(), coordination()},
		run: writeStdin,
	}
}

// done is the property of results that say nothing else.
func done() property { return must("ok", flag("Always true.")) }

type doneResult struct {
	OK           bool           `json:"ok"`
	Coordination *writ.WorkHint `json:"coordination,omitempty"`
}

func (c *call) done(ctx context.Context, id writ.ProcessID) doneResult {
	return doneResult{OK: true, Coordination: c.hintAt(ctx, id)}
}

// inputArgs are the arguments of write_stdin.
type inputArgs struct {
	Process writ.ProcessID `json:"process_id"`
	Data    string         `json:"data"`
	Close   bool           `json:"close"`
}

func writeStdin(ctx context.Context, c *call) (any, error) {
	in, err := decode[inputArgs](c)
	if err != nil {
		return nil, err
	}
	return c.unlessHeld(ctx, in, func() (any, error) {
		if err := c.processes.Input(ctx, c.who, in.Process, []byte(in.Data), in.Close); err != nil {
			return nil, err
		}
		return c.done(ctx, in.Process), nil
	})
}

func (a inputArgs) digest() writ.Digest {
	return writ.DigestOf(fmt.Appendf(nil, "writ mcp write_stdin v1\n%q\n%t\n%s", string(a.Process), a.Close, a.Data))
}

func (a inputArgs) question(ctx context.Context, c *call, id writ.ApprovalID) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Write to the process %s", shown(string(a.Process)))
	if p, err := c.processes.Process(ctx, c.who, a.Process); err == nil { // else its user is told less
		fmt.Fprintf(&b, " (%s in workspace %s)", shown(p.Program), shown(string(p.Workspace)))
	}
	b.WriteString("?\n")
	b.WriteString(strconv.QuoteToGraphic(a.Data[:min(len(a.Data), maxAsked)]))
	if n := len(a.Data) - maxAsked; n > 0 {
		fmt.Fprintf(&b, "…\nThis is the beginning only: %d bytes more.", n)
	}
	if a.Close {
		b.WriteString("\nand end its input")
	}
	fmt.Fprintf(&b, "\nApproval %s: \"writ approvals show %s\" shows all of it.", id, id)
	return b.String()
}

func (a inputArgs) resumed(ctx context.Context, c *call, r writ.Resumed) (any, error) {
	if r.Operation != nil {
		return nil, errors.New("a held input was carried out as something else")
	}
	return c.done(ctx, a.Process), nil
}
