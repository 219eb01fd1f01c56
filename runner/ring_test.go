package runner

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"writ"
)

// A ring is the last bytes of all that was written.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := ring{max: rapid.IntRange(1, 50).Draw(t, "max")}
		var all []byte
		for _, p := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 120)).Draw(t, "writes") {
			r.write(p)
			all = append(all, p...)
			kept := all[max(0, len(all)-r.max):]
			from := r.from()
			if skipped := from - int64(len(all)-len(kept)); r.total != int64(len(all)) || skipped < 0 || skipped > 3 || from > r.total {
				t.Fatalf("total %d, from %d of %d bytes", r.total, from, len(all))
			}
			start := rapid.Int64Range(from, r.total).Draw(t, "start")
			n := rapid.IntRange(0, int(r.total-start)).Draw(t, "n")
			if got := r.copy(start, n); !bytes.Equal(got, all[start:start+int64(n)]) {
				t.Fatalf("bytes %d to %d are %q, want %q", start, start+int64(n), got, all[start:start+int64(n)])
			}
		}
	})
}

// Whatever two streams write in whatever pieces, and however somebody reads on from
// cursor to cursor: what is read is valid when what is written is, each stream is exact
// as long as nothing was lost, and what was lost is said.
func TestEX07_ReadingFromCursorToCursor(t *testing.T) {
	texts := map[writ.Stream]string{writ.Stdout: "aé€😀", writ.Stderr: "zñ中🂡"}
	rapid.Check(t, func(t *rapid.T) {
		p := newProcess(orderIn("/", "x"), rapid.IntRange(4, 60).Draw(t, "kept"))
		p.tty = rapid.Bool().Draw(t, "tty")
		streams := []writ.Stream{"", writ.Stdout}
		if !p.tty {
			streams = append(streams, writ.Stderr)
		}
		read, cursor, lost := map[writ.Stream]string{}, map[writ.Stream]int64{}, map[writ.Stream]bool{}
		take := func(s writ.Stream, limit int) bool {
			p.mu.Lock()
			out := p.read(writ.OutputQuery{Cursor: cursor[s], Limit: limit, Stream: s})
			p.mu.Unlock()
			if !utf8.Valid(out.Chunk) || limit > 0 && len(out.Chunk) > max(limit, utf8.UTFMax) || out.Lost != (out.Retained > 0) {
				t.Fatalf("%q from %d, limit %d: %+v", s, cursor[s], limit, out)
			}
			lost[s] = lost[s] || out.Cursor-int64(len(out.Chunk)) > cursor[s]
			read[s] += string(out.Chunk)
			cursor[s] = out.Cursor
			return out.EOF
		}
		left := map[writ.Stream]string{}
		for s, text := range texts {
			left[s] = strings.Repeat(text, rapid.IntRange(0, 8).Draw(t, string(s)))
		}
		want := map[writ.Stream]string{writ.Stdout: left[writ.Stdout], writ.Stderr: left[writ.Stderr]}
		if p.tty { // one stream, written by one
			left[writ.Stderr], want[writ.Stderr] = "", ""
		}
		for left[writ.Stdout]+left[writ.Stderr] != "" {
			s := rapid.SampledFrom([]writ.Stream{writ.Stdout, writ.Stderr}).Draw(t, "who")
			n := rapid.IntRange(0, len(left[s])).Draw(t, "bytes")
			if _, err := (stream{p, s}).Write([]byte(left[s][:n])); err != nil {
				t.Fatal(err)
			}
			left[s] = left[s][n:]
			take(rapid.SampledFrom(streams).Draw(t, "reader"), rapid.IntRange(0, 9).Draw(t, "limit"))
		}
		zero := 0
		p.end(writ.Result{Outcome: writ.Succeeded, ExitCode: &zero}, nil, p.started)
		for _, s := range streams {
			for !take(s, rapid.IntRange(0, 9).Draw(t, "last limit")) {
			}
			if lost[s] {
				continue
			}
			for _, of := range []writ.Stream{writ.Stdout, writ.Stderr} {
				if s != "" && s != of {
					continue
				}
				got := strings.Map(func(r rune) rune {
					if strings.ContainsRune(texts[of], r) {
						return r
					}
					return -1
				}, read[s])
				if got != want[of] {
					t.Fatalf("%q read of %q: %q, want %q", s, of, got, want[of])
				}
			}
		}
	})
}
