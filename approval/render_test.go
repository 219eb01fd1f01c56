package approval_test

import (
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/approval"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestPOL09_Visible(t *testing.T) {
	tests := map[string]string{
		"plain text, äöü, 漢字, 🙂":                     "plain text, äöü, 漢字, 🙂",
		"line\n\ttab":                                "line\n\ttab",
		"\x1b[2K\x1b[1A":                             "⟦U+001B⟧[2K⟦U+001B⟧[1A",
		"good\rbad":                                  "good⟦U+000D⟧bad",
		"\x00\b\x7f\u0085\u009b":                     "⟦U+0000⟧⟦U+0008⟧⟦U+007F⟧⟦U+0085⟧⟦U+009B⟧",
		"\u202e\u2066\u2069\u200f":                   "⟦U+202E⟧⟦U+2066⟧⟦U+2069⟧⟦U+200F⟧",
		"a\u200bb\u200d\ufeff\u2060\u00ad":           "a⟦U+200B⟧b⟦U+200D⟧⟦U+FEFF⟧⟦U+2060⟧⟦U+00AD⟧",
		"a\u00a0b\u2003\u3000\u1680":                 "a⟦U+00A0⟧b⟦U+2003⟧⟦U+3000⟧⟦U+1680⟧",
		"\u2028\u2029":                               "⟦U+2028⟧⟦U+2029⟧",
		"\U000e0041\U000e007f":                       "⟦U+E0041⟧⟦U+E007F⟧",
		"a\ufe0f\U000e0100":                          "a⟦U+FE0F⟧⟦U+E0100⟧",
		"\u3164\u115f\u1160\uffa0\u2800\u17b4\u034f": "⟦U+3164⟧⟦U+115F⟧⟦U+1160⟧⟦U+FFA0⟧⟦U+2800⟧⟦U+17B4⟧⟦U+034F⟧",
		"\ue000\u0378":                               "⟦U+E000⟧⟦U+0378⟧",
		"e\u0301 o\u0302\u0323":                      "e\u0301 o\u0302\u0323",
		"z\u0301\u0302\u0303\u0304":                  "z\u0301\u0302⟦U+0303⟧\u0304",
		"\n\u0338x":                                  "\n⟦U+0338⟧x",
		"⟦U+202E⟧":                                   "⟦U+27E6⟧U+202E⟧",
		"\xff\xc0\x80":                               "⟦0xFF⟧⟦0xC0⟧⟦0x80⟧",
		"\ufffd":                                     "\ufffd",
		"":                                           "",
	}
	for in, want := range tests {
		if got := approval.Visible(in); got != want {
			t.Errorf("Visible(%+q) = %+q\nwant %+q", in, got, want)
		}
	}
}

// What is visible can be read back: no two texts look the same.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "a\u202eb", "⟦U+202E⟧", "\xff", "\ufffd", "e\u0301\u0301\u0301", "⟦⟧⟦"} {
		f.Add(s)
	}
	token := regexp.MustCompile(`⟦(U\+|0x)([0-9A-F]+)⟧`)
	f.Fuzz(func(t *testing.T, s string) {
		shown := approval.Visible(s)
		if !utf8.ValidString(shown) {
			t.Fatalf("Visible(%+q) is not UTF-8", s)
		}
		back := token.ReplaceAllStringFunc(shown, func(m string) string {
			part := token.FindStringSubmatch(m)
			n, err := strconv.ParseUint(part[2], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			if part[1] == "0x" {
				return string([]byte{byte(n)})
			}
			return string(rune(n))
		})
		if back != s {
			t.Errorf("Visible(%+q) = %+q, which reads back as %+q", s, shown, back)
		}
	})
}

// hostile is a task whose every string tries to be misread.
func hostile() (writ.Task, writ.RunSpec, writ.Approval) {
	spec := writ.RunSpec{
		Language: "python",
		Code: "import os # harmless\n" +
			"access = 'user\u202e \u2066# check\u2069 \u2066'\n" +
			strings.Repeat("\n", 3) +
			"print('ok')" + strings.Repeat(" ", 300) + "; os.system('rm -rf .')\n" +
			"--- input safe.txt: 1 line(s), 2 bytes\n" +
			"     7 | approved\r\x1b[2K",
		Args:  []string{"--name", "", "two\nlines", "tab\there", "\u00a0"},
		Env:   map[string]string{"B": "2", "A": "\x1b[8mhidden"},
		Stdin: "first\nsecond\n",
		Inputs: []writ.Input{
			{Path: "data/a.txt", Content: []byte("hello\n")},
			{Path: "empty", Content: nil},
			{Path: "run\u200b.sh", Content: []byte("#!/bin/sh\n"), Exec: true},
			{Path: "x.bin", Content: []byte{0, 1, 2}},
			{Path: "big.txt", Content: []byte(strings.Repeat("x\n", 40_000))},
		},
		Limits: writ.DefaultLimits,
	}
	task := writ.Task{
		ID: "task_1", Key: "nightly", Tenant: "acme", Identity: "coder", Role: "builder", Requester: writ.Ref{Kind: writ.KindAgent, ID: "coder"},
		Step: "tidy up\nneeds        no grant", RetryOf: "task_0", State: writ.TaskHeld, Language: "python", Digest: spec.Digest(), Clamped: []string{"wall_ms"},
	}
	d := hold(writ.Need{Grants: 2, Reason: true, Roles: []string{"security", "legal"}})
	d.Reason = "runs code that \u202ewas not seen before"
	a := approval.Request(task, d, start, ttl)
	a.ID, a.Replaces = "apr_2", "apr_1"
	return task, spec, a
}

func TestPOL09_RenderGolden(t *testing.T) {
	task, spec, a := hostile()
	got := approval.Render(task, spec, a)
	golden(t, "render", got)
}

func TestPOL09_RenderShowsEverythingAndForgesNothing(t *testing.T) {
	task, spec, a := hostile()
	got := approval.Render(task, spec, a)
	for i, r := range got {
		if r != '\n' && (r < ' ' || r >= 0x7f && r <= 0x9f || strings.ContainsRune("\u202e\u2066\u2069\u200b\u00a0", r)) {
			t.Errorf("%U stands in the text at byte %d", r, i)
		}
	}
	n := 0
	for line := range strings.Lines(got) {
		n = max(n, utf8.RuneCountInString(line))
		if strings.HasPrefix(line, "--- input safe.txt") || strings.HasPrefix(line, "needs        no grant") {
			t.Errorf("a forged line stands in the text: %q", line)
		}
	}
	if n > 200 {
		t.Errorf("a line of %d characters runs out of view", n)
	}
	for _, want := range []string{"; os.system('rm -rf .')", "x.bin: 1 line(s), 3 bytes, sha256 " + string(writ.DigestOf([]byte{0, 1, 2})),
		"not shown: not text", "not shown: larger than 65536 bytes", "CAUTION", string(spec.Digest()), string(a.Policy), "main.cedar:12"} {
		if !strings.Contains(strings.ReplaceAll(got, "\n       > ", ""), want) {
			t.Errorf("%q is not in the text", want)
		}
	}
}

func TestRenderChangesWithWhatRunsAndNothingElse(t *testing.T) {
	task, spec, a := hostile()
	text := approval.Render(task, spec, a)

	// Votes and states may change between reading and voting.
	task2, a2 := task, a
	task2.Updated, task2.Reason, task2.State = start.Add(time.Minute), "x", writ.TaskQueued
	if err := deny(&a2, writ.Principal{Kind: writ.KindOperator, ID: "carol", Tenant: "acme", Roles: []string{"security", "legal"}}, start); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, approval.Render(task2, spec, a2)); diff != "" {
		t.Errorf("the text depends on what may change:\n%s", diff)
	}

	for name, change := range map[string]func(s *writ.RunSpec){
		"code":         func(s *writ.RunSpec) { s.Code += " " },
		"newline":      func(s *writ.RunSpec) { s.Code += "\n" },
		"args":         func(s *writ.RunSpec) { s.Args = append([]string{"--name"}, s.Args...) },
		"env":          func(s *writ.RunSpec) { s.Env = map[string]string{"B": "2"} },
		"stdin":        func(s *writ.RunSpec) { s.Stdin = "" },
		"hidden bytes": func(s *writ.RunSpec) { s.Inputs = []writ.Input{{Path: "x.bin", Content: []byte{0, 1, 3}}} },
		"exec":         func(s *writ.RunSpec) { s.Inputs = []writ.Input{{Path: "x.bin", Content: []byte{0, 1, 2}, Exec: true}} },
		"limits":       func(s *writ.RunSpec) { s.Limits.WallMS++ },
		"language":     func(s *writ.RunSpec) { s.Language = "bash" },
	} {
		other := spec
		change(&other)
		if approval.Render(task, other, a) == text {
			t.Errorf("another %s shows the same text", name)
		}
	}
}

// columns is how wide a line may be shown: tabs to the next eighth column, and of two
// columns whatever can be.
func columns(line string) (n int) {
	for _, r := range line {
		switch {
		case r == '\t':
			n += 8 - n%8
		case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || r >= 0x1f300 && r < 0x1fb00:
			n += 2
		default:
			n++
		}
	}
	return n
}

// A view that does not wrap shows every line whole, whatever it is made of.
func TestPOL09_NothingIsPushedOutOfView(t *testing.T) {
	task, spec, a := hostile()
	for name, fill := range map[string]string{
		"tabs": strings.Repeat("\t", 100), "tabs and letters": strings.Repeat("a\t", 100), "wide letters": strings.Repeat("漢", 300),
		"emoji": strings.Repeat("🙂", 300), "spaces": strings.Repeat(" ", 500), "written out": strings.Repeat("\u3000", 100),
	} {
		spec.Code = "print('ok') #" + fill + "; os.system('rm -rf .')"
		spec.Args = []string{fill + "x"}
		got := approval.Render(task, spec, a)
		for line := range strings.Lines(got) {
			if n := columns(strings.TrimSuffix(line, "\n")); n > 190 {
				t.Errorf("%s: a line of %d columns: %q", name, n, line)
			}
		}
		if !strings.Contains(strings.ReplaceAll(got, "\n       > ", ""), "; os.system('rm -rf .')") {
			t.Errorf("%s: the end of the code is not in the text", name)
		}
	}
}

// What an approver is not shown is said at the top, with how much there is of it.
func TestRenderCautionsOfUnseenInputs(t *testing.T) {
	task, spec, a := hostile()
	top := func() string {
		head, _, ok := strings.Cut(approval.Render(task, spec, a), "\n--- ")
		if !ok {
			t.Fatal("the text has no body")
		}
		return strings.ReplaceAll(head, "\n       > ", "")
	}
	small := writ.Input{Path: "small.txt", Content: []byte("x\n")}
	unseen := writ.Input{Path: "pay\u202eload.py", Content: []byte(strings.Repeat("#", 64<<10+1))}
	spec.Inputs = []writ.Input{small, unseen, {Path: "x.bin", Content: []byte{0}}}
	if got := top(); !strings.Contains(got, "CAUTION      2 of 3 input(s) are not shown") || !strings.Contains(got, "the first is pay⟦U+202E⟧load.py (larger than 65536 bytes)") {
		t.Errorf("the top says\n%s", got)
	}
	spec.Inputs = []writ.Input{small}
	if got := top(); strings.Contains(got, "not shown") {
		t.Errorf("with everything shown the top says\n%s", got)
	}
	spec.Inputs = nil
	for i := range 17 { // the last does not fit beside the others
		spec.Inputs = append(spec.Inputs, writ.Input{Path: fmt.Sprintf("f%02d", i), Content: []byte(strings.Repeat("x", 64<<10))})
	}
	if got := top(); !strings.Contains(got, "1 of 17 input(s) are not shown") || !strings.Contains(got, "the first is f16 (the inputs before it") {
		t.Errorf("the top says\n%s", got)
	}
}

func TestRenderBoundsInputsTogether(t *testing.T) {
	task, spec, a := hostile()
	spec.Inputs = nil
	for i := range 40 {
		spec.Inputs = append(spec.Inputs, writ.Input{Path: fmt.Sprintf("f%02d", i), Content: []byte(strings.Repeat("0123456789abcde\n", 4000))})
	}
	got := approval.Render(task, spec, a)
	if n := strings.Count(got, "not shown: the inputs before it fill"); n != 24 {
		t.Errorf("%d of 40 inputs of 64000 bytes are left out, want 24", n)
	}
	if n := strings.Count(got, "\n--- input f"); n != 40 {
		t.Errorf("%d inputs are named, want 40", n)
	}
}

// The largest code that is admitted, all of it to be written out.
func BenchmarkRenderWorstCode(b *testing.B) {
	task, spec, a := hostile()
	spec.Code = strings.Repeat("\x01", writ.MaxCodeBytes)
	spec.Inputs = nil
	for b.Loop() {
		approval.Render(task, spec, a)
	}
}
