package approval_test

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/approval"
)

// askedInput is what an approver reads of p.
func askedInput(p approval.InputOrder) string {
	a := approval.RequestInput(p, hold(writ.Need{}), start, ttl)
	a.ID = "appr-2"
	return approval.RenderInput(a, p.Process, p.Data, p.Close)
}

func TestPOL09_RenderInputGolden(t *testing.T) {
	for name, change := range map[string]func(p *approval.InputOrder){
		"line": func(*approval.InputOrder) {},
		"pipe": func(p *approval.InputOrder) {
			p.Mode, p.Process.TTY, p.Process.Program, p.Process.Approval = writ.ApprovalsConfirm, false, "bash", ""
			p.Data, p.Close = []byte("git log\n\trm -rf ./build\n\x03\x7f\x00\r\n"), true
		},
		"keys": func(p *approval.InputOrder) {
			p.Data = []byte("ls\r\x1b[A\x03\x15rm -rf .\b\b\x17\tsafe\x04")
		},
		"hidden": func(p *approval.InputOrder) {
			p.Process.Program = "py\u202ethon"
			p.Process.By = writ.Ref{Kind: writ.KindAgent, ID: "other"}
			p.Data = []byte("print('ok')\u202e \u2066⟦^C⟧\u200b\n     7 | approved\nCAUTION      none\n\x1b\u0301\xff\xc2\x9b" + strings.Repeat(" ", 300) + "; x")
		},
		"end": func(p *approval.InputOrder) { p.Data, p.Close = nil, true },
	} {
		t.Run(name, func(t *testing.T) {
			p := testInput(writ.ApprovalsReview)
			change(&p)
			text := askedInput(p)
			golden(t, "input-"+name, text)
			noControls(t, text)
			noneWide(t, text)
		})
	}
}

func TestRenderInputChangesWithWhatIsDoneAndNothingElse(t *testing.T) {
	p := testInput(writ.ApprovalsReview)
	a := approval.RequestInput(p, hold(writ.Need{Grants: 2}), start, ttl)
	text := approval.RenderInput(a, p.Process, p.Data, p.Close)

	// What may change between reading and voting.
	later, process := a, p.Process
	for _, who := range []writ.Principal{alice, bob} {
		if err := grant(&later, who, start.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	ended := start.Add(time.Minute)
	process.State, process.Termination, process.Ended, process.Total, process.EOF = writ.ProcessExited, writ.TerminationExited, &ended, 9, true
	process.Dispatch = writ.DispatchUnknown
	if diff := cmp.Diff(text, approval.RenderInput(later, process, p.Data, p.Close)); diff != "" {
		t.Errorf("the text depends on what may change:\n%s", diff)
	}

	for name, tt := range inputChanges {
		other := testInput(writ.ApprovalsReview)
		tt.change(&other)
		b := approval.RequestInput(other, hold(writ.Need{Grants: 2}), start, ttl)
		b.ID = a.ID
		got := approval.RenderInput(b, other.Process, other.Data, other.Close)
		if got == text {
			t.Errorf("another %s shows the same text", name)
		}
		if strings.Contains(got, notThis) {
			t.Errorf("%s: its own text says that it is not its own", name)
		}
		switch name {
		case "requester", "kind", "identity", "tenant", "workspace", "root":
			continue // those the text takes from the approval
		}
		if !strings.Contains(approval.RenderInput(a, other.Process, other.Data, other.Close), notThis) {
			t.Errorf("another %s is shown as what the approval is for", name)
		}
	}
	if !strings.Contains(approval.RenderInput(pending(writ.Need{}), p.Process, p.Data, false), notThis) {
		t.Error("a run's approval is taken for this")
	}
}

func TestRenderInputCautions(t *testing.T) {
	const signals, controls, hidden, open = "make a terminal interrupt", "control character(s)", "that do not show", "stops in the middle"
	for _, tt := range []struct {
		name, data string
		tty, end   bool
		want       []string
	}{
		{"a line", "ls\n", true, false, nil},
		{"return", "ls\r", true, false, nil},
		{"return into a pipe", "ls\r", false, false, []string{open}},
		{"nothing but the end", "", true, true, nil},
		{"a part", "rm -rf /", true, false, []string{open}},
		{"a part, and the end", "rm -rf /", true, true, nil},
		{"interrupt", "\x03\n", true, false, []string{"1 character(s) " + signals, "1 " + controls + " are for the terminal"}},
		{"the end of a terminal's input", "x\n\x04", true, false, []string{signals + ", suspend or end what runs in it: ⟦^C⟧, ⟦^Z⟧, ⟦^\\⟧ or ⟦^D⟧; the first is in line 2\n", controls, open}},
		{"the same into a pipe", "\x03\x04\n", false, false, []string{"2 " + controls + " are written out as ⟦^C⟧"}},
		{"completion", "\x09\n", true, false, []string{"1 " + controls + " are for the terminal"}},
		{"a tab into a pipe", "\x09\n", false, false, nil},
		{"history", "\n\n\x1b[A\n", true, false, []string{"can take back or complete what is shown here; the first is in line 3\n"}},
		{"bidi", "a\n\u202e\n", true, false, []string{hidden + ", or show as others, are written out as ⟦U+....⟧; the first is in line 2\n"}},
		{"a mark on a key", "\x1b\u0301\n", true, false, []string{"1 " + controls, "1 character(s) " + hidden}},
		{"not text", "\xff\n", true, false, []string{"1 character(s) " + hidden}},
	} {
		p := testInput(writ.ApprovalsReview)
		p.Data, p.Process.TTY, p.Close = []byte(tt.data), tt.tty, tt.end
		got := unfolded(askedInput(p))
		if n := strings.Count(got, "CAUTION"); n != len(tt.want) {
			t.Errorf("%s: %d cautions, want %d:\n%s", tt.name, n, len(tt.want), got)
		}
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in the text:\n%s", tt.name, want, got)
			}
		}
	}
}

var (
	numbered = regexp.MustCompile(`^ *[0-9]+ \| `)
	written  = regexp.MustCompile(`⟦[^⟧]*⟧`)
)

// typed reads back what RenderInput shows.
func typed(t *testing.T, text string) []byte {
	t.Helper()
	_, body, ok := strings.Cut(unfolded(text), "\n--- input: ")
	if !ok {
		t.Fatal("the text has no input")
	}
	var b strings.Builder
	lines, open := strings.Split(strings.TrimSuffix(body, "\n"), "\n")[1:], false
	for _, line := range lines {
		if line == "       ! no newline at the end" {
			open = true
			continue
		}
		at := numbered.FindString(line)
		if at == "" {
			t.Fatalf("a line has no number: %q", line)
		}
		b.WriteString(line[len(at):] + "\n")
	}
	shown := b.String()
	if open {
		shown = strings.TrimSuffix(shown, "\n")
	}
	names := map[string]string{"ESC": "\x1b", "TAB": "\t", "CR": "\r", "BS": "\b", "DEL": "\x7f"}
	return []byte(written.ReplaceAllStringFunc(shown, func(m string) string {
		name := strings.Trim(m, "⟦⟧")
		if s, ok := names[name]; ok {
			return s
		}
		if key, ok := strings.CutPrefix(name, "^"); ok {
			return string([]byte{key[0] - '@'})
		}
		digits, byte1 := strings.CutPrefix(name, "0x")
		n, err := strconv.ParseUint(strings.TrimPrefix(digits, "U+"), 16, 32)
		if err != nil {
			t.Fatalf("%q is not how anything is written out", m)
		}
		if byte1 {
			return string([]byte{byte(n)})
		}
		return string(rune(n))
	}))
}

// The bytes can be read back out of the text, and nothing stands in it that does not show.
func FuzzRenderInput(f *testing.F) {
	for _, s := range []string{"", "ls\n", "ls", "\n\n", "\x03\x1b[A\t\r\n\x7f", "⟦^C⟧⟦", "\xff\u202e", "\x1b\u0301e\u0301\u0301\u0301", "       ! no newline at the end", strings.Repeat("⟦", 200)} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, tty bool) {
		p := testInput(writ.ApprovalsReview)
		p.Data, p.Process.TTY = data, tty
		text := askedInput(p)
		noControls(t, text)
		if back := typed(t, text); !bytes.Equal(back, data) {
			t.Errorf("%q is shown so that it reads back as %q:\n%s", data, back, text)
		}
	})
}

// The largest input, all of it to be written out.
func BenchmarkRenderInputWorst(b *testing.B) {
	for name, fill := range map[string]string{"keys": "\x01", "lines": "\n", "bytes": "\xff"} {
		p := testInput(writ.ApprovalsReview)
		p.Data = bytes.Repeat([]byte(fill), writ.MaxInputChunk)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				askedInput(p)
			}
		})
	}
}
