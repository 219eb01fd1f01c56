package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"writ"
)

const execCommandName = "exec_command"

func execCommandTool(cmds Commands) tool {
	command := listOf(text(""), "The program and its arguments. No shell looks at them: for one, run it: [\"bash\", \"-c\", \"...\"].")
	command["minItems"] = 1
	t := tool{
		name: execCommandName, title: "Run a command",
		description: "Start a command in a workspace, in a sandbox, at the workspace's root, and answer its process_id at once. It outlives this call: read_process reads what it writes, process_status says how it ended. Where the workspace wants approval, the answer is APPROVAL_REQUIRED or a question to the user.",
		hints:       hints{destructive: true, open: cmds.Egress},
		faults:      faults{invalid: codeInvalidCommand},
		in: object{
			workspaceID(),
			must("command", command),
			may("tty", flag("True for a terminal of 24x80; default false: pipes.")),
		},
		out: object(append(started(), coordination())),
		run: execCommand,
	}
	if cmds.Dir {
		t.description = strings.Replace(t.description, ", at the workspace's root,", ",", 1)
		t.in = append(t.in, may("cwd", text("Folder to start in, relative to the workspace's root; default the root.")))
	}
	t.in = append(t.in, workID())
	return t
}

// started are the properties of a command that was started.
func started() []property {
	return []property{
		must("process_id", text("The other process tools take it.")),
		must("dispatch_status", oneOf("unknown means that it may be running: look with process_status, and do not start it again blindly.",
			string(writ.DispatchConfirmed), string(writ.DispatchUnknown))),
	}
}

// execArgs are the arguments of exec_command, also where approval_create takes them.
type execArgs struct {
	Workspace writ.WorkspaceID `json:"workspace_id"`
	Command   []element        `json:"command"`
	TTY       bool             `json:"tty"`
	Dir       string           `json:"cwd"`
	Work      writ.WorkID      `json:"work_id"`
}

// element is one element of a command: a string, and no null, which would be one that is
// empty.
type element string

// UnmarshalJSONFrom takes strings only.
func (e *element) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() != jsontext.KindString {
		return errors.New("want a string")
	}
	*e = element(tok.String())
	return nil
}

// decodeExec reads the arguments of an exec_command. A cwd that this server does not take
// is an argument that nobody knows.
func decodeExec(c *call) (execArgs, error) {
	in, err := decode[execArgs](c)
	if !c.commands.Dir {
		in.Dir = ""
	}
	return in, err
}

func (a execArgs) request() writ.CommandRequest {
	req := writ.CommandRequest{Workspace: a.Workspace, Command: make([]string, len(a.Command)), TTY: a.TTY, Dir: a.Dir}
	for i, e := range a.Command {
		req.Command[i] = string(e)
	}
	return req
}

func execCommand(ctx context.Context, c *call) (any, error) {
	in, err := decodeExec(c)
	if err != nil {
		return nil, err
	}
	return c.unlessHeld(ctx, in, func() (any, error) {
		p, err := c.processes.Exec(ctx, c.who, in.request())
		if err != nil {
			return nil, err
		}
		return c.execed(ctx, in, p), nil
	})
}

// startResult is a command that was started.
type startResult struct {
	Process  writ.ProcessID      `json:"process_id"`
	Dispatch writ.DispatchStatus `json:"dispatch_status"`
}

// startOf is p as exec_command answers it. What nobody has confirmed is not known.
func startOf(p writ.Process) startResult {
	return startResult{p.ID, cmp.Or(p.Dispatch, writ.DispatchUnknown)}
}

// execResult is what exec_command answers.
type execResult struct {
	startResult
	Coordination *writ.WorkHint `json:"coordination,omitempty"`
}

func (c *call) execed(ctx context.Context, in execArgs, p writ.Process) execResult {
	c.process = p.ID
	c.homes.put(p.ID, in.Workspace)
	return execResult{startOf(p), c.hint(ctx, in.Workspace, in.Work)}
}

func (a execArgs) digest() writ.Digest {
	return writ.DigestOf([]byte("writ mcp exec_command v1\n" + string(a.request().Fingerprint())))
}

// maxAsked bounds what a question shows of a command, or of an input, in bytes.
const maxAsked = 4000

func (a execArgs) question(_ context.Context, _ *call, id writ.ApprovalID) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Run a command in workspace %s?\n", shown(string(a.Workspace)))
	room := maxAsked
	for i, e := range a.Command {
		if i > 0 {
			b.WriteByte(' ')
		}
		if len(e) >= room {
			fmt.Fprintf(&b, "%s…\nThis is the beginning only: element %d of %d goes on.", strconv.QuoteToGraphic(string(e[:room])), i+1, len(a.Command))
			break
		}
		room -= len(e) + 1
		b.WriteString(strconv.QuoteToGraphic(string(e)))
	}
	if a.Dir != "" {
		fmt.Fprintf(&b, "\nin the folder %s", shown(a.Dir))
	}
	if a.TTY {
		b.WriteString("\nwith a terminal")
	}
	fmt.Fprintf(&b, "\nApproval %s: \"writ approvals show %s\" shows all of it.", id, id)
	return b.String()
}

func (a execArgs) resumed(ctx context.Context, c *call, r writ.Resumed) (any, error) {
	if r.Process == nil {
		return nil, errors.New("a held command was carried out as something else")
	}
	return c.execed(ctx, a, *r.Process), nil
}
