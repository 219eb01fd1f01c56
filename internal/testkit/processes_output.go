package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"writ"
	"writ/runner"
)

func (s processSuite) bothStreams(t *testing.T) {
	m := s.processes(t)
	b := Begin(t, m, script(tree(t, nil), "echo out; echo err >&2"))
	if got := b.ExitsWith(0); !strings.Contains(got, "out\n") || !strings.Contains(got, "err\n") || len(got) != 8 {
		t.Errorf("it wrote %q", got)
	}
}

func (s processSuite) streamsApart(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	b := Begin(t, m, script(w, "printf abc; printf 12345 >&2"))
	b.ExitsWith(0)
	for _, tt := range []struct {
		q    writ.OutputQuery
		want string
	}{
		{writ.OutputQuery{Stream: writ.Stdout}, "abc"},
		{writ.OutputQuery{Stream: writ.Stderr}, "12345"},
		{writ.OutputQuery{Stream: writ.Stderr, Cursor: 3}, "45"},
		{writ.OutputQuery{Stream: writ.Stdout, Cursor: 3}, ""},
		{writ.OutputQuery{Stream: writ.Stdout, Cursor: 99}, ""},
	} {
		out, err := m.Output(t.Context(), b.ID, tt.q)
		if err != nil || string(out.Chunk) != tt.want || !out.EOF || out.Cursor != tt.q.Cursor+int64(len(tt.want)) {
			t.Errorf("%+v: %+v, %v", tt.q, out, err)
		}
	}
	b = Begin(t, m, inTerminal(script(w, "printf abc; printf 12345 >&2")))
	b.ExitsWith(0)
	for stream, want := range map[writ.Stream]string{writ.Stdout: "abc12345", writ.Stderr: "", "": "abc12345"} {
		out, err := m.Output(t.Context(), b.ID, writ.OutputQuery{Stream: stream})
		if err != nil || string(out.Chunk) != want || !out.EOF {
			t.Errorf("%q of a terminal: %+v, %v", stream, out, err)
		}
	}
	for _, q := range []writ.OutputQuery{{Cursor: -1}, {Limit: -1}, {Wait: -1}, {Stream: "stdlog"}} {
		_, err := m.Output(t.Context(), b.ID, q)
		wantFault(t, fmt.Sprintf("%+v", q), err, writ.Invalid, "OUTPUT_LIMIT")
	}
}

func (s processSuite) ring(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	b := Begin(t, m, script(w, "head -c 300000 /dev/zero | tr '\\0' x; printf end"))
	b.ExitsWith(0)
	out, err := m.Output(t.Context(), b.ID, writ.OutputQuery{})
	const kept, total = 262_144, 300_003
	if err != nil || len(out.Chunk) != kept || !bytes.HasSuffix(out.Chunk, []byte("xend")) || !out.Lost || out.Retained != total-kept || out.Cursor != total || out.Total != total || !out.EOF {
		out.Chunk = nil
		t.Errorf("%d bytes of %+v, %v", len(out.Chunk), out, err)
	}
	// EX-07: characters of three bytes, cut at each place.
	for k := range 4 {
		b := Begin(t, m, Order(w, "python3", "-c", fmt.Sprintf(`print("x"*%d + "\u20ac"*2000000)`, k)))
		b.ExitsWith(0)
		text := b.Text()
		if !utf8.ValidString(text) || strings.Trim(text, "\u20ac") != "\n" || len(text) < kept-3 {
			t.Errorf("shifted by %d: %d bytes, valid %v, begins with %q", k, len(text), utf8.ValidString(text), text[:min(9, len(text))])
		}
		if st := b.Status(); st.Total != int64(k+6_000_001) || st.Retained != st.Total-int64(len(text)) {
			t.Errorf("shifted by %d: %+v", k, st)
		}
	}
	// Less can be kept.
	o := Order(w, "seq", "1000")
	o.Limits.OutputBytes = 10
	if got := Begin(t, m, o).ExitsWith(0); got != "\n999\n1000\n" {
		t.Errorf("the last ten bytes are %q", got)
	}
}

func (s processSuite) anyBytes(t *testing.T) {
	m := s.processes(t)
	b := Begin(t, m, script(tree(t, nil), `for i in $(seq 0 255); do printf "\\x$(printf %x $i)"; done; printf '\0\xff\xc0end'; exit 0`))
	got := b.ExitsWith(0)
	var want []byte
	for i := range 256 {
		want = append(want, byte(i))
	}
	want = append(want, "\x00\xff\xc0end"...)
	if got != string(want) {
		t.Errorf("it wrote %q", got)
	}
	// What only looks like the beginning of a character is there in the end.
	b = Begin(t, m, script(tree(t, nil), `printf 'a\xe2\x82'`))
	if got := b.ExitsWith(0); got != "a\xe2\x82" {
		t.Errorf("it wrote %q", got)
	}
}

func (s processSuite) stderrFlood(t *testing.T) {
	m := s.processes(t)
	b := Begin(t, m, Order(tree(t, nil), "python3", "-c", "import sys;sys.stderr.write('e'*3000000);print('ok');sys.stderr.write('f'*3000000)"))
	b.ExitsWith(0)
	if st := b.Status(); st.Total != 6_000_003 {
		t.Errorf("%+v", st)
	}
	out, err := m.Output(t.Context(), b.ID, writ.OutputQuery{Stream: writ.Stdout})
	if err != nil || string(out.Chunk) != "ok\n" || out.Lost {
		t.Errorf("stdout is %+v, %v", out, err)
	}
}

func (s processSuite) lines(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	for _, tty := range []bool{false, true} {
		o := script(w, `while read line; do echo "got $line"; done; echo over`)
		o.TTY = tty
		b := Begin(t, m, o)
		b.Types("first\n")
		b.Sees("got first")
		b.Types("sec")
		b.Types("ond\nnaïve\n")
		b.Sees("got second")
		b.Sees("got naïve")
		if err := m.CloseInput(t.Context(), b.ID); err != nil {
			t.Error(err)
		}
		b.Sees("over")
		b.ExitsWith(0)
		_, err := m.Input(t.Context(), b.ID, []byte("x"))
		wantFault(t, "input after the end", err, writ.Conflict, "PROCESS_NOT_FOUND")
	}
}

func (s processSuite) closedInput(t *testing.T) {
	m := s.processes(t)
	b := Begin(t, m, script(tree(t, nil), "cat; echo after; exec sleep 600"))
	for range 2 {
		if err := m.CloseInput(t.Context(), b.ID); err != nil {
			t.Error(err)
		}
	}
	b.Sees("after\n")
	_, err := m.Input(t.Context(), b.ID, []byte("x"))
	wantFault(t, "input that was closed", err, writ.Conflict, "PROCESS_NOT_FOUND")
}

func (s processSuite) fullPipe(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	b := Begin(t, m, Order(w, "sleep", "600"))
	_, err := m.Input(t.Context(), b.ID, make([]byte, writ.MaxInputChunk+1))
	wantFault(t, "too much at once", err, writ.Invalid, "INVALID_COMMAND")
	done := make(chan error, 2)
	for range 2 {
		go func() { // ends after the bound of Input
			n, err := m.Input(t.Context(), b.ID, make([]byte, writ.MaxInputChunk))
			if n >= writ.MaxInputChunk || err == nil {
				t.Errorf("%d bytes went into a pipe, %v", n, err)
			}
			done <- err
		}()
	}
	// Meanwhile nobody else waits.
	freeSlot(t, m, w)
	if st := b.Status(); st.State != writ.ProcessRunning {
		t.Errorf("%+v", st)
	}
	for range 2 {
		wantFault(t, "a full pipe", Receive(t, "input gives up", done), writ.Exhausted, "TIMEOUT")
	}
	// Much is taken by who reads.
	b = Begin(t, m, Order(w, "wc", "-c"))
	for range 3 {
		b.Types(strings.Repeat("y", writ.MaxInputChunk))
	}
	if err := m.CloseInput(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if got := b.ExitsWith(0); got != fmt.Sprintln(3*writ.MaxInputChunk) {
		t.Errorf("it read %q", got)
	}
}

func (s processSuite) longPoll(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	b := Begin(t, m, script(w, "echo one; read x; echo two; read x; exit 4"))
	wait := func(cursor int64) writ.ProcessOutput {
		out, err := m.Output(t.Context(), b.ID, writ.OutputQuery{Cursor: cursor, Wait: writ.MaxOutputWait})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := wait(0)
	if string(out.Chunk) != "one\n" || out.State != writ.ProcessRunning || out.EOF {
		t.Errorf("%+v", out)
	}
	// Several wait for the same.
	got := make(chan string, 3)
	for range 3 {
		go func() { // ends with what is written next
			out, err := m.Output(t.Context(), b.ID, writ.OutputQuery{Cursor: 4, Wait: writ.MaxOutputWait})
			got <- fmt.Sprintf("%s%v", out.Chunk, err)
		}()
	}
	b.Types("\n")
	for range 3 {
		if text := Receive(t, "what was waited for", got); text != "two\n<nil>" {
			t.Errorf("got %q", text)
		}
	}
	// The end is waited for, too.
	last := make(chan writ.ProcessOutput, 1)
	go func() { last <- wait(8) }() // ends with the process
	b.Types("\n")
	if out := Receive(t, "the end", last); !out.EOF || len(out.Chunk) != 0 || out.Termination != writ.TerminationExited {
		t.Errorf("%+v", out)
	}
	b.ExitsWith(4)

	// It is waited for in vain, or no longer.
	b = Begin(t, m, Order(w, "sleep", "600"))
	out, err := m.Output(t.Context(), b.ID, writ.OutputQuery{Cursor: 7, Wait: 30 * time.Millisecond})
	if err != nil || len(out.Chunk) != 0 || out.EOF || out.Cursor != 7 || out.State != writ.ProcessRunning {
		t.Errorf("in vain: %+v, %v", out, err)
	}
	_, err = m.Output(within(t, 30*time.Millisecond), b.ID, writ.OutputQuery{Wait: time.Hour})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("given up: %v", err)
	}
}

func (s processSuite) characters(t *testing.T) {
	m, _ := s.start(t, runner.ProcessesOptions{Live: 2})
	w := tree(t, nil)
	// One byte at a time, on both streams at once.
	o := Order(w, "python3", "-c", `
import os, time
a, b = "\u20ac\U0001f600e\u0301".encode() * 40, "\u4e2d\u6587".encode() * 60
for i in range(max(len(a), len(b))):
    os.write(1, a[i:i+1]); os.write(2, b[i:i+1])
    if i % 8 == 0: time.sleep(0.001)
`)
	b := Begin(t, m, o)
	for _, stream := range []writ.Stream{"", writ.Stdout, writ.Stderr} {
		var all []byte
		for limit := 0; ; limit = (limit + 1) % 11 {
			out, err := m.Output(t.Context(), b.ID, writ.OutputQuery{Cursor: int64(len(all)), Limit: limit, Wait: writ.MaxOutputWait, Stream: stream})
			if err != nil {
				t.Fatal(err)
			}
			if !utf8.Valid(out.Chunk) {
				t.Fatalf("stream %q: a chunk of limit %d is %q", stream, limit, out.Chunk)
			}
			if limit > 0 && len(out.Chunk) > max(limit, 4) {
				t.Errorf("a chunk of limit %d has %d bytes", limit, len(out.Chunk))
			}
			if all = append(all, out.Chunk...); int64(len(all)) != out.Cursor {
				t.Fatalf("the cursor is %d after %d bytes", out.Cursor, len(all))
			}
			if out.EOF {
				break
			}
		}
		one, two := strings.Repeat("\u20ac\U0001f600e\u0301", 40), strings.Repeat("\u4e2d\u6587", 60)
		want := map[writ.Stream]string{writ.Stdout: one, writ.Stderr: two}
		switch text := string(all); {
		case stream != "" && text != want[stream]:
			t.Errorf("%s is %q", stream, text)
		case stream == "":
			is := func(of string) string {
				return strings.Map(func(r rune) rune {
					if strings.ContainsRune(of, r) {
						return r
					}
					return -1
				}, text)
			}
			if is(one) != one || is(two) != two {
				t.Errorf("both are %q", text)
			}
		}
	}
	b.ExitsWith(0)
}
