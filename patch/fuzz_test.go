package patch_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"writ/patch"
)

var seeds = []string{
	body("*** Add File: dir/new", "+1", "+"),
	body("*** Update File: a", "@@ one", "+x", "@@", " two", "-three", "+3", "*** End of File", "*** Delete File: dir/c"),
	body("*** Update File: a", "*** Move to: dir/d", "*** Update File: b", "*** Move to: a", "*** Add File: b", "+"),
	body("*** Delete File: b", "*** Add File: b", "+\ufeffx", "*** Update File: b", "-x", "+y"),
	update("a", " one", "", "-four", "-", "+", ""),
	update("a", "@@ one", "@@ two", " two", "+", "-three"),
	"<<'EOF'\r\n" + update("./dir/../a", "-one", "+\u2013") + "\r\nEOF",
	body("*** Add File: ../x", "+1"),
	body("*** Add File: a/b", "+1"),
	update("/srv/ws/a", "+end"),
}

// contents are those of file a.
var contents = []string{"one\ntwo\nthree\n\nfour", "one\r\ntwo\nthree\r\n", "\ufeffone\n", "caf\xe9\none\n", "", "\n\n\n", "one\none\none\n"}

func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := patch.Parse(text)
		if err != nil {
			checkError(t, err)
			return
		}
		for _, name := range p.Paths() {
			if !fs.ValidPath(name) || name == "." {
				t.Errorf("path %q is not clean and beneath the workspace", name)
			}
		}
		for _, s := range p.Sections {
			for _, c := range s.Chunks {
				if len(c.Lines) == 0 || c.Line <= s.Line {
					t.Errorf("chunk %+v of the section at line %d has no lines or no place", c, s.Line)
				}
			}
		}
	})
}

func FuzzApply(f *testing.F) {
	for _, s := range seeds {
		for _, c := range contents {
			f.Add(s, []byte(c))
		}
	}
	f.Fuzz(func(t *testing.T, text string, content []byte) {
		before := tree{
			"a":     {Content: content, Mode: 0o755},
			"b":     {Content: []byte("x\n"), Mode: 0o600},
			"dir/c": {Content: []byte("y\n"), Mode: 0o644},
		}
		after, changes, err := compute(before, text) // with its checks
		_, changes2, err2 := compute(before, text)
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("twice the same gave %v and %v", err, err2)
		}
		if err != nil {
			if !errors.Is(err, errNotDir) && !errors.Is(err, errFolder) {
				checkError(t, err)
			}
			return
		}
		if !slices.EqualFunc(changes, changes2, func(a, b patch.Change) bool {
			return a.Path == b.Path && a.Kind == b.Kind && a.From == b.From && a.After.Version() == b.After.Version()
		}) {
			t.Errorf("twice the same gave %v and %v", changes, changes2)
		}
		for _, c := range changes {
			if !fs.ValidPath(c.Path) || c.Path == "." {
				t.Errorf("path %q is not clean and beneath the workspace", c.Path)
			}
		}
		if patch.Unified(changes) == "" {
			t.Error("changes, but an empty diff")
		}
		for name := range after {
			if _, there := before[name]; !there && !slices.ContainsFunc(changes, func(c patch.Change) bool { return c.Path == name }) {
				t.Errorf("%s is there and no change made it", name)
			}
		}
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	e, ok := errors.AsType[*patch.Error](err)
	if !ok {
		t.Fatalf("%v is not an *Error", err)
	}
	if e.Code == "" || e.Msg == "" || len(e.Error()) > 64<<10 || !utf8.ValidString(e.Error()) {
		t.Errorf("bad error %q of code %q", e.Error(), e.Code)
	}
}

// FuzzExactChunk takes lines of a file that a chunk quotes exactly and checks that
// these lines and no others become the new ones.
func FuzzExactChunk(f *testing.F) {
	for _, c := range contents {
		f.Add([]byte(c), uint8(0), uint8(1), "new")
		f.Add([]byte(c), uint8(1), uint8(2), "")
	}
	f.Fuzz(func(t *testing.T, content []byte, from, n uint8, added string) {
		lines := strings.SplitAfter(string(content), "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		at, end := int(from), int(from)+int(n)
		if !utf8.Valid(content) || !utf8.ValidString(added) || strings.ContainsAny(added, "\r\n") || n == 0 || end > len(lines) ||
			strings.HasPrefix(string(content), "\ufeff") || strings.ContainsRune(added, '\ufeff') || strings.HasPrefix(string(content), "\xff\xfe") {
			return
		}
		eol := "\n"
		if strings.HasSuffix(lines[0], "\r\n") {
			eol = "\r\n"
		}
		text := func(i int) string { return strings.TrimSuffix(strings.TrimSuffix(lines[i], "\n"), "\r") }
		var chunk []string
		for i := at; i < end; i++ {
			if strings.HasSuffix(text(i), "\r") || !strings.HasSuffix(lines[i], "\n") && strings.HasSuffix(lines[i], "\r") {
				return // a line of a patch cannot end in CR
			}
			chunk = append(chunk, "-"+text(i))
		}
		// The first place with these lines is the one that changes.
		for at = 0; ; at++ {
			same := true
			for i := range int(n) {
				same = same && text(at+i) == text(int(from)+i)
			}
			if same {
				break
			}
		}
		want := strings.Join(lines[:at], "") + added + eol + strings.Join(lines[at+int(n):], "")
		if !strings.HasSuffix(want, "\n") {
			want += eol
		}
		after, _, err := compute(tree{"f": {Content: content, Mode: 0o644}}, update("f", append(append([]string{"@@"}, chunk...), "+"+added)...))
		if err != nil {
			if want == string(content) && strings.Contains(err.Error(), "no changes") {
				return
			}
			t.Fatalf("content %q, chunk %q: %v", content, chunk, err)
		}
		if got := string(after["f"].Content); got != want {
			t.Errorf("content %q, chunk %q, added %q: got %q, want %q", content, chunk, added, got, want)
		}
	})
}
