package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"writ"
)

func TestEX07_TruncationInsideACharacter(t *testing.T) {
	b := newProvider(t, Options{})
	for k := range 4 {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			cmd := python(t, fmt.Sprintf(`print('x'*%d + '\u20ac'*2000000)`, k))
			cmd.Limits.OutputBytes = 100_000
			r := runIn(t, b, cmd)
			wantExit(t, r, 0)
			o := r.Stdout
			text := strings.Repeat("x", k) + strings.Repeat("€", int(o.Kept-int64(k))/3)
			if !utf8.ValidString(o.Text) || o.Text != text || !o.Truncated || o.Bytes != int64(k+6_000_001) ||
				o.Kept > 100_000 || o.Kept < 100_000-3 || o.Raw != nil {
				t.Errorf("kept %d of %d, truncated %t, valid %t", o.Kept, o.Bytes, o.Truncated, utf8.ValidString(o.Text))
			}
		})
	}
}

func TestEX09_RS09_OutputThatIsNotText(t *testing.T) {
	r := runIn(t, newProvider(t, Options{}), shell(`head -c 300 /dev/urandom; printf '\0\xff\xc0\033]0;x\007end'`))
	wantExit(t, r, 0)
	wire, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back writ.Result
	if err := json.Unmarshal(wire, &back); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(back.Stdout.Data(), []byte("\x00\xff\xc0\x1b]0;x\aend")) || len(back.Stdout.Raw) != 300+12 || !strings.HasSuffix(back.Stdout.Text, "end") {
		t.Errorf("result: %s", wire)
	}
}

func TestEX10_FloodOfStderr(t *testing.T) {
	r := runIn(t, newProvider(t, Options{}), python(t, "import sys;sys.stderr.write('e'*3000000);print('ok');sys.stderr.write('f'*3000000)"))
	wantExit(t, r, 0)
	if r.Stdout.Text != "ok\n" || !r.Stderr.Truncated || r.Stderr.Bytes != 6_000_000 || r.Stderr.Kept != writ.DefaultLimits.OutputBytes {
		t.Errorf("result: stdout %q, stderr kept %d of %d", r.Stdout.Text, r.Stderr.Kept, r.Stderr.Bytes)
	}
}

func TestScenario17_RS08_HundredMegabytesOfOutput(t *testing.T) {
	cmd := shell("head -c 100000000 /dev/zero | tr '\\0' x")
	cmd.Limits.OutputBytes = 1 << 20
	var mu sync.Mutex
	var streamed bytes.Buffer
	var most uint64
	cmd.Stdout = writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(p) > writ.MaxChunkBytes {
			t.Errorf("a chunk of %d bytes", len(p))
		}
		return streamed.Write(p)
	})
	before := heapInUse()
	run, _ := start(t, newProvider(t, Options{}), t.Context(), cmd)
	r := run.Wait()
	most = heapInUse()
	wantExit(t, r, 0)
	if r.Stdout.Bytes != 100_000_000 || r.Stdout.Kept != 1<<20 || !r.Stdout.Truncated || r.Stdout.Text != strings.Repeat("x", 1<<20) {
		t.Errorf("kept %d of %d, truncated %t", r.Stdout.Kept, r.Stdout.Bytes, r.Stdout.Truncated)
	}
	if streamed.String() != r.Stdout.Text {
		t.Errorf("streamed %d bytes, kept %d: want the same", streamed.Len(), r.Stdout.Kept)
	}
	if grown := int64(most) - int64(before); grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func TestRS08_ShapesOfAFlood(t *testing.T) {
	b := newProvider(t, Options{})
	for name, c := range map[string]struct {
		script         string
		stdout, stderr int64
	}{
		"one byte per write":   {"import os\nfor i in range(20000): os.write(1, b'x')", 20000, 0},
		"alternating":          {"import os\nfor i in range(5000): os.write(1, b'o'*100); os.write(2, b'e'*100)", 500000, 500000},
		"stdout closed early":  {"import os\nos.close(1)\nos.write(2, b'still here')\n", 0, 10},
		"no newline, at limit": {"import os\nos.write(1, b'y'*(1<<20))", 1 << 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := runIn(t, b, python(t, c.script))
			wantExit(t, r, 0)
			if r.Stdout.Bytes != c.stdout || r.Stderr.Bytes != c.stderr || r.Stdout.Truncated || r.Stderr.Truncated {
				t.Errorf("result: stdout %d of %d, stderr %d of %d", r.Stdout.Kept, r.Stdout.Bytes, r.Stderr.Kept, r.Stderr.Bytes)
			}
		})
	}
}

func TestRS08_EndlessOutputTimesOut(t *testing.T) {
	cmd := program("/usr/bin/yes")
	cmd.Limits.OutputBytes = 1000
	if r := intoTimeout(t, newProvider(t, Options{}), cmd, 500, strings.Repeat("y\n", 500)); !r.Stdout.Truncated {
		t.Errorf("result: %s", show(r))
	}
}

// A writer that fails does not end the run and does not change what is kept.
func TestWriterThatFails(t *testing.T) {
	cmd := shell("echo one; sleep 0.1; echo two")
	calls := 0
	cmd.Stdout = writerFunc(func([]byte) (int, error) { calls++; return 0, fmt.Errorf("no more") })
	r := runIn(t, newProvider(t, Options{}), cmd)
	wantExit(t, r, 0)
	if r.Stdout.Text != "one\ntwo\n" || calls != 1 {
		t.Errorf("%d calls, %s", calls, show(r))
	}
}

// What a program wrote is there to be read after its end, whoever comes to it when the time
// for that is over, and whoever may still write.
func TestOutputThatIsThereIsReadHoweverLate(t *testing.T) {
	for _, open := range []bool{false, true} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		want := bytes.Repeat([]byte("0123456789abcdef"), 3000) // in more than one piece
		if _, err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		if !open {
			_ = w.Close()
		}
		d := newDrain(r, nil, 1<<20)
		d.endBy(time.Unix(1, 0))
		go d.run() // ends by that
		if got := d.output(); !bytes.Equal(got.Data(), want) || got.Bytes != int64(len(want)) {
			t.Errorf("open %v: %d bytes of %d", open, got.Bytes, len(want))
		}
	}
}
