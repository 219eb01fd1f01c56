package mcp

import (
	"context"
	"time"

	"writ"
)

func processResizeTool() tool {
	return tool{
		name: "process_resize", title: "Resize a terminal",
		description: "Set the size of the terminal of a process that runs and has one.",
		hints:       hints{idempotent: true},
		faults:      aboutProcesses,
		in:          object{processID(), must("rows", count(1, maxSide, "")), must("cols", count(1, maxSide, ""))},
		out:         object{done(), must("rows", count(1, maxSide, "")), must("cols", count(1, maxSide, "")), coordination()},
		run:         processResize,
	}
}

const maxSide = 1<<16 - 1 // of a terminal

func processResize(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Process writ.ProcessID `json:"process_id"`
		Rows    uint16         `json:"rows"`
		Cols    uint16         `json:"cols"`
	}](c)
	if err != nil {
		return nil, err
	}
	if in.Rows == 0 || in.Cols == 0 { // before the process is looked for (spec/02 §5.10)
		return nil, &writ.Error{Kind: writ.Invalid, Code: codeInvalidCommand, Msg: "rows and cols: want both positive"}
	}
	if err := c.processes.Resize(ctx, c.who, in.Process, writ.TerminalSize{Rows: in.Rows, Cols: in.Cols}); err != nil {
		return nil, err
	}
	return struct {
		OK           bool           `json:"ok"`
		Rows         uint16         `json:"rows"`
		Cols         uint16         `json:"cols"`
		Coordination *writ.WorkHint `json:"coordination,omitempty"`
	}{true, in.Rows, in.Cols, c.hintAt(ctx, in.Process)}, nil
}

func terminateProcessTool() tool {
	return tool{
		name: "terminate_process", title: "End a process",
		description: "Have a process ended, with all that it started: at once, or by a signal that lets it finish first. It may still run when this answers: process_status says when it has ended. One that has ended already is no error.",
		hints:       hints{destructive: true, idempotent: true},
		faults:      aboutProcesses,
		in: object{
			processID(),
			may("signal", oneOf("Sent first; KILL follows when it still runs after grace_ms. Default KILL, or TERM when grace_ms is given.", "TERM", "INT", "HUP", "QUIT", "KILL")),
			may("grace_ms", count(1, int(writ.MaxGrace.Milliseconds()), "Default 5000.")),
		},
		out: object{done(), coordination()},
		run: terminateProcess,
	}
}

func terminateProcess(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Process writ.ProcessID `json:"process_id"`
		Signal  string         `json:"signal"`
		GraceMS *uint32        `json:"grace_ms"`
	}](c)
	if err != nil {
		return nil, err
	}
	k := writ.Kill{Signal: in.Signal}
	if in.GraceMS != nil {
		k.Grace = time.Duration(max(*in.GraceMS, 1)) * time.Millisecond // a grace of zero is the default's
		if k.Signal == "" {
			k.Signal = "TERM"
		}
	}
	if err := c.processes.Terminate(ctx, c.who, in.Process, k); err != nil {
		return nil, err
	}
	return c.done(ctx, in.Process), nil
}
