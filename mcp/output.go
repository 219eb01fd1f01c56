package mcp

import (
	"context"
	"fmt"
	"math"
	"time"

	"writ"
)

// Bounds of one read_process.
const (
	outputMaxBytes = 1 << 20
	outputMaxWait  = 45 * time.Second // it leaves time to answer within callTime
)

func readProcessTool() tool {
	return tool{
		name: "read_process", title: "Read output of a process",
		description: "What a process wrote from a cursor on, as far as it is kept, as text: stdout and stderr as they came. Bytes that are not UTF-8 come as U+FFFD. Go on at the cursor that is answered. eof is not success. When it was ended because its time was over, TIMEOUT comes after all its output.",
		hints:       hints{readOnly: true, idempotent: true},
		faults:      aboutProcesses,
		in: object{
			processID(),
			may("cursor", count(0, 0, "First byte of the output; default 0. Each stream has its own.")),
			may("limit", count(1, outputMaxBytes, "Most bytes; default all that is kept.")),
			may("wait_ms", count(0, int(outputMaxWait.Milliseconds()), "How long to wait for something to read, or the end; default 0. More is taken for the most.")),
			may("stream", oneOf("Only this one; default both.", string(writ.Stdout), string(writ.Stderr))),
		},
		out: object{
			must("process_id", text("")),
			must("cursor", count(0, 0, "Where to go on.")),
			must("chunk", text("")),
			must("eof", flag("True when the chunk ends where the output does.")),
			must("output_lost", flag("True when output was dropped: what lies before retained_from.")),
			must("retained_from", count(0, 0, "First byte that is kept.")),
			coordination(),
		},
		run: readProcess,
	}
}

type outputResult struct {
	Process  writ.ProcessID `json:"process_id"`
	Cursor   int64          `json:"cursor"`
	Chunk    string         `json:"chunk"`
	EOF      bool           `json:"eof"`
	Lost     bool           `json:"output_lost"`
	Retained int64          `json:"retained_from"`

	Coordination *writ.WorkHint `json:"coordination,omitempty"`
}

func readProcess(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Process writ.ProcessID `json:"process_id"`
		Cursor  uint64         `json:"cursor"`
		Limit   *uint32        `json:"limit"`
		WaitMS  uint32         `json:"wait_ms"`
		Stream  writ.Stream    `json:"stream"`
	}](c)
	if err != nil {
		return nil, err
	}
	q := writ.OutputQuery{
		Cursor: int64(min(in.Cursor, math.MaxInt64)), Stream: in.Stream,
		Wait: min(time.Duration(in.WaitMS)*time.Millisecond, outputMaxWait),
	}
	if in.Stream != "" && in.Stream != writ.Stdout && in.Stream != writ.Stderr {
		return nil, invalidParams(fmt.Sprintf("arguments/stream: want %s or %s", writ.Stdout, writ.Stderr))
	}
	if in.Limit != nil {
		if *in.Limit < 1 || *in.Limit > outputMaxBytes {
			return nil, &writ.Error{Kind: writ.Invalid, Code: codeOutputLimit, Msg: fmt.Sprintf("a limit of %d bytes: want 1 to %d", *in.Limit, outputMaxBytes)}
		}
		q.Limit = int(*in.Limit)
	}
	out, err := c.processes.Output(ctx, c.who, in.Process, q)
	if err != nil {
		return nil, err
	}
	if out.Termination == writ.TerminationTimeout && q.Cursor >= out.Total {
		return nil, &writ.Error{Kind: writ.Exhausted, Code: codeTimeout, Msg: "the process was ended because its time was over; all that it wrote has been read"}
	}
	chunk := textOf(out)
	whole := len(chunk) == len(out.Chunk)
	return outputResult{
		Process: in.Process, Chunk: valid(chunk), EOF: out.EOF && whole,
		Cursor: out.Cursor - int64(len(out.Chunk)-len(chunk)),
		Lost:   out.Lost, Retained: out.Retained, Coordination: c.hintAt(ctx, in.Process),
	}, nil
}

// textOf is what a result has of the chunk of out: what fits, and at its end no part of a
// character whose rest is still to come, but where there would be nothing else.
func textOf(out writ.ProcessOutput) []byte {
	chunk := out.Chunk
	if n := fitting(chunk, MaxResultBytes-envelopeBytes); n < len(chunk) {
		return chunk[:n] // fitting ends between two characters
	}
	if whole := writ.CutRune(chunk); !out.EOF && len(whole) > 0 {
		return whole
	}
	return chunk
}
