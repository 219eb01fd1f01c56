package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
	"writ/mcp"
)

// chunk is what read_process answers.
type chunk struct {
	Process  string `json:"process_id"`
	Cursor   int64  `json:"cursor"`
	Chunk    string `json:"chunk"`
	EOF      bool   `json:"eof"`
	Lost     bool   `json:"output_lost"`
	Retained int64  `json:"retained_from"`
}

// running is a desk with one process, which wrote text.
func running(t *testing.T, text string) (*desk, *process, *sdk.ClientSession) {
	t.Helper()
	d := newDesk(writ.ApprovalsOff)
	client := connections[1].client(t, newServer(t, d), nil)
	p := run(t, d, client, `{"workspace_id":"main","command":["x"]}`)
	d.as(func() { p.stdout = []byte(text) })
	return d, p, client
}

func readOutput(t *testing.T, client *sdk.ClientSession, more string) chunk {
	t.Helper()
	var c chunk
	if code, b := callTool(t, client, "read_process", `{"process_id":"proc-1"`+more+`}`, &c); code != "" {
		t.Fatalf("read_process %s: %+v", more, b)
	}
	return c
}

// TestScenario81And82_ReadToTheEnd: the end of what is there is not the end of the output.
func TestScenario81And82_ReadToTheEnd(t *testing.T) {
	d, p, client := running(t, "out err")
	want := chunk{Process: "proc-1", Cursor: 7, Chunk: "out err"}
	if diff := cmp.Diff(want, readOutput(t, client, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(chunk{Process: "proc-1", Cursor: 7}, readOutput(t, client, `,"cursor":7`)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	d.as(func() { p.end(writ.TerminationExited) })
	want.EOF = true
	if diff := cmp.Diff(want, readOutput(t, client, `,"cursor":null,"limit":null`)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var far map[string]any
	callTool(t, client, "read_process", `{"process_id":"proc-1","cursor":18446744073709551615}`, &far)
	if far["eof"] != true || far["chunk"] != "" {
		t.Errorf("far past the end: %v", far)
	}
}

// TestScenario86_LostOutput is always told.
func TestScenario86_LostOutput(t *testing.T) {
	d, p, client := running(t, "tail")
	d.as(func() { p.from = 300_000 })
	for _, cursor := range []string{"0", "299999", "300000"} {
		want := chunk{Process: "proc-1", Cursor: 300_004, Chunk: "tail", Lost: true, Retained: 300_000}
		if diff := cmp.Diff(want, readOutput(t, client, `,"cursor":`+cursor)); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", cursor, diff)
		}
	}
}

// TestScenario87_TimeIsOver: what it wrote can be read, and then the error appears; one
// that wrote nothing has it at once.
func TestScenario87_TimeIsOver(t *testing.T) {
	d, p, client := running(t, "bye")
	d.as(func() { p.end(writ.TerminationTimeout) })
	c := readOutput(t, client, "")
	if c.Chunk != "bye" || !c.EOF {
		t.Errorf("%+v", c)
	}
	for _, more := range []string{`,"cursor":3`, `,"cursor":4`, `,"stream":"stderr"`, `,"cursor":3,"wait_ms":10`} {
		if code, b := callTool(t, client, "read_process", `{"process_id":"proc-1"`+more+`}`, nil); code != "TIMEOUT" {
			t.Errorf("%s: %+v", more, b)
		}
	}
	if c := readOutput(t, client, `,"cursor":2`); c.Chunk != "e" {
		t.Errorf("%+v", c)
	}
	d.as(func() { p.Termination = writ.TerminationTerminated })
	if c := readOutput(t, client, `,"cursor":3`); !c.EOF {
		t.Errorf("terminated: %+v", c)
	}
}

// TestScenario71_EX09_OutputThatIsNotText: each byte that is none is U+FFFD, and counts as
// the byte that it is.
func TestScenario71_EX09_OutputThatIsNotText(t *testing.T) {
	d, p, client := running(t, "a\xffb\x00\xc0end\x1b[0m")
	c := readOutput(t, client, "")
	if c.Chunk != "a\ufffdb\x00\ufffdend\x1b[0m" || c.Cursor != 12 {
		t.Errorf("%+v", c)
	}
	d.as(func() { p.stdout = []byte("no end \xe2\x82"); p.end(writ.TerminationExited) })
	if c := readOutput(t, client, ""); c.Chunk != "no end \ufffd\ufffd" || c.Cursor != 9 || !c.EOF {
		t.Errorf("at the end of the output: %+v", c)
	}
}

// TestEX07_CharactersAreNotCut: one whose rest is still to come is left for the next
// read, whatever the limit cuts.
func TestEX07_CharactersAreNotCut(t *testing.T) {
	d, p, client := running(t, "5 \xe2\x82")
	if c := readOutput(t, client, ""); c.Chunk != "5 " || c.Cursor != 2 || c.EOF {
		t.Errorf("before its rest: %+v", c)
	}
	d.as(func() { p.stdout = append(p.stdout, "\xac!"...) })
	if c := readOutput(t, client, `,"cursor":2`); c.Chunk != "€!" {
		t.Errorf("after it: %+v", c)
	}
	text := strings.Repeat("x€ğ𝄞日", 5)
	for k := range 4 {
		want := strings.Repeat("x", k) + text
		d.as(func() { p.stdout = []byte(want) })
		for limit := 4; limit < 12; limit++ {
			var got strings.Builder
			for c := (chunk{}); c.Cursor < int64(len(want)); {
				before := c.Cursor
				c = readOutput(t, client, fmt.Sprintf(`,"cursor":%d,"limit":%d`, c.Cursor, limit))
				if c.Cursor <= before || c.Cursor-before > int64(limit) {
					t.Fatalf("limit %d: from %d to %d", limit, before, c.Cursor)
				}
				got.WriteString(c.Chunk)
			}
			if got.String() != want {
				t.Errorf("%d before, limit %d: %q", k, limit, got.String())
			}
		}
	}
	// A limit that no character fits in goes on nevertheless.
	d.as(func() { p.stdout = []byte("€") })
	if c := readOutput(t, client, `,"limit":1`); c.Chunk != "\ufffd" || c.Cursor != 1 {
		t.Errorf("limit 1: %+v", c)
	}
}

// TestReadProcess_WhatIsAskedFor reaches the service within its bounds.
func TestReadProcess_WhatIsAskedFor(t *testing.T) {
	d, p, client := running(t, "o")
	d.as(func() { p.stderr = []byte("err") })
	for more, want := range map[string]writ.OutputQuery{
		``:                                 {},
		`,"cursor":1,"limit":1`:            {Cursor: 1, Limit: 1},
		`,"limit":1048576,"wait_ms":45000`: {Limit: 1 << 20, Wait: 45 * time.Second},
		`,"wait_ms":4294967295`:            {Wait: 45 * time.Second},
		`,"wait_ms":1,"stream":"stdout"`:   {Wait: time.Millisecond, Stream: writ.Stdout},
		`,"stream":""`:                     {},
	} {
		readOutput(t, client, more)
		if diff := cmp.Diff(want, p.query); diff != "" {
			t.Errorf("%s (-want +got):\n%s", more, diff)
		}
	}
	if c := readOutput(t, client, `,"stream":"stderr"`); c.Chunk != "err" || c.Cursor != 3 {
		t.Errorf("%+v", c)
	}
	p.query = writ.OutputQuery{}
	for _, limit := range []string{"0", "1048577", "4294967295"} {
		if code, _ := callTool(t, client, "read_process", `{"process_id":"proc-1","limit":`+limit+`}`, nil); code != "OUTPUT_LIMIT" {
			t.Errorf("limit %s: %q", limit, code)
		}
	}
	if p.query != (writ.OutputQuery{}) {
		t.Errorf("a query out of bounds was made: %+v", p.query)
	}
}

// TestMCP15_LargeOutput: whatever a process writes, and however much of it the runner
// keeps, a result stays within the cap, and the rest is read at its cursor.
func TestMCP15_LargeOutput(t *testing.T) {
	for name, unit := range map[string]string{"plain": "x", "control": "\x00\x01", "html": "<&>", "bad": "\xff", "wide": "\u2028日本"} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(writ.ApprovalsOff)
			p := newPipe(t, newServer(t, d))
			p.initialize()
			want := strings.Repeat(unit, 3<<20/len(unit))
			proc := &process{Process: writ.Process{Workspace: "main", ProcessStatus: writ.ProcessStatus{ID: "proc-1"}}, stdout: []byte(want)}
			proc.end(writ.TerminationExited)
			d.as(func() { d.processes = append(d.processes, proc) })
			var got strings.Builder
			for c, rounds := (chunk{}), 0; !c.EOF; rounds++ {
				if rounds > 40 {
					t.Fatal("reading does not come to an end")
				}
				p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_process","arguments":{"process_id":"proc-1","cursor":%d}}}`, c.Cursor))
				select {
				case line := <-p.lines:
					if len(line) > mcp.MaxResultBytes {
						t.Fatalf("a message of %d bytes, the cap is %d", len(line), mcp.MaxResultBytes)
					}
					if err := json.Unmarshal(parse(t, []byte(line)).Result.Structured, &c); err != nil {
						t.Fatal(err)
					}
				case <-time.After(patience):
					t.Fatal("no message came")
				}
				got.WriteString(c.Chunk)
			}
			if name == "bad" {
				want = strings.Repeat("\ufffd", len(want))
			}
			if got.String() != want {
				t.Errorf("%d bytes came, want %d", got.Len(), len(want))
			}
		})
	}
}
