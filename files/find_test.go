package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func find(t testing.TB, tree *Tree, q Query) Listing {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = MaxFindPaths
	}
	l, err := tree.Find(t.Context(), q)
	must(t, err)
	return l
}

func TestScenario73_FindListsRegularFiles(t *testing.T) {
	tree := newTree(t, layout{
		"b.rs": "", "a.rs": "", "src/lib.rs": "", "src-old/x.rs": "", ".hidden/h.rs": "", "src/deep/er/m.go": "", "README": "", "docs/README": "",
		"link.rs": "-> a.rs", "dirlink": "-> src", "empty/": "", "page[id].tsx": "",
		".writ-0123456789abcdef0123456789abcdef-0.new": "", ".writ-notes.txt": "",
	})
	must(t, unix.Mkfifo(filepath.Join(tree.Root(), "fifo.rs"), 0o644))
	all := []string{".hidden/h.rs", ".writ-notes.txt", "README", "a.rs", "b.rs", "docs/README", "page[id].tsx", "src-old/x.rs", "src/deep/er/m.go", "src/lib.rs"}
	rs := []string{".hidden/h.rs", "a.rs", "b.rs", "src-old/x.rs", "src/lib.rs"}
	for glob, want := range map[string][]string{
		"": all, "*": all, "**": all, "**/*": all,
		"*.rs":           rs,
		"**/*.rs":        rs,
		"README":         {"README", "docs/README"},
		"docs/README":    {"docs/README"},
		"er/m.go":        {"src/deep/er/m.go"}, // the end of a path
		"src/*.rs":       {"src/lib.rs"},
		"src/**":         {"src/deep/er/m.go", "src/lib.rs"},
		"src/":           {"src/deep/er/m.go", "src/lib.rs"},
		"src":            nil,
		"src*/*.rs":      {"src-old/x.rs", "src/lib.rs"},
		"**/deep/**":     {"src/deep/er/m.go"},
		"READ*":          {"README", "docs/README"},
		"?.rs":           {"a.rs", "b.rs", ".hidden/h.rs", "src-old/x.rs"},
		"[!a].rs":        {"b.rs", ".hidden/h.rs", "src-old/x.rs"},
		"*.{rs,go}":      append([]string{"src/deep/er/m.go"}, rs...),
		"{src,docs}/*":   {"docs/README", "src/lib.rs"},
		"page[id].tsx":   {"page[id].tsx"},
		"page[id].*":     nil,
		`page\[id\].*`:   {"page[id].tsx"},
		"*.nothing":      nil,
		"nothing*at*all": nil,
	} {
		slices.Sort(want)
		got := find(t, tree, Query{Glob: glob})
		if diff := cmp.Diff(want, got.Paths, cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
			t.Errorf("glob %q (-want +got):\n%s", glob, diff)
		}
		if got.Incomplete || got.Next != 0 || got.Total != len(want) {
			t.Errorf("glob %q: %+v", glob, got)
		}
	}
	for _, glob := range []string{"../app-secrets", "/etc/*", "a/../../b", "..", "a\x00"} { // MCP-26
		_, err := tree.Find(t.Context(), Query{Glob: glob, Limit: 1})
		wantCode(t, "glob "+quoted(glob), err, CodePathEscape)
	}
	for _, q := range []Query{{Limit: 0}, {Limit: MaxFindPaths + 1}, {Limit: 1, Offset: -1}, {Limit: 1, Glob: strings.Repeat("a", MaxGlobBytes+1)}, {Limit: 1, Glob: strings.Repeat("{a,b}", 6)}, {Limit: 1, Content: "a\nb"}} {
		_, err := tree.Find(t.Context(), q)
		wantCode(t, fmt.Sprintf("query %.50v", q), err, CodeOutputLimit)
	}
}

func TestScenario73_FindPages(t *testing.T) {
	l := layout{}
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("d%d/f%02d", i%3, i)
		l[name] = ""
		want = append(want, name)
	}
	slices.Sort(want)
	tree := newTree(t, l)
	var got []string
	first := find(t, tree, Query{Limit: 10})
	for offset := 0; ; {
		page := find(t, tree, Query{Offset: offset, Limit: 10})
		got = append(got, page.Paths...)
		if page.Version != first.Version || page.Total != 25 {
			t.Errorf("page at %d: version or total differ", offset)
		}
		if page.Next == 0 {
			break
		}
		offset = page.Next
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if past := find(t, tree, Query{Offset: 99, Limit: 10}); len(past.Paths) != 0 || past.Next != 0 || past.Version != first.Version {
		t.Errorf("page past the end: %+v", past)
	}
	put(t, tree.Root(), layout{"zz": ""})
	if find(t, tree, Query{Limit: 1}).Version == first.Version {
		t.Error("the list changed and its version did not")
	}
}

func TestScenario74_DeletedRoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ws")
	put(t, dir, layout{"a": "x"})
	tree := openTree(t, dir)
	must(t, os.RemoveAll(dir))
	_, err := tree.Find(t.Context(), Query{Limit: 1})
	wantCode(t, "find", err, CodeOperationFailed)
	_, err = tree.Read(t.Context(), "a", 0, 1)
	wantCode(t, "read", err, CodeFileNotFound)
	put(t, dir, layout{"a": "new"}) // the folder that the tree holds is still the old one
	_, err = tree.Find(t.Context(), Query{Limit: 1})
	wantCode(t, "find", err, CodeOperationFailed)
	if !tree.Stale() {
		t.Error("the root is another folder and the tree is not stale")
	}
}

func TestScenario75_CapsSetIncomplete(t *testing.T) {
	deep := strings.Repeat("d/", MaxDepth)
	tree := newTree(t, layout{"a": "", deep + "last": ""})
	if l := find(t, tree, Query{}); l.Incomplete || !slices.Contains(l.Paths, deep+"last") {
		t.Errorf("%d folders: %+v", MaxDepth, l)
	}
	put(t, tree.Root(), layout{deep + "e/beyond": ""})
	if l := find(t, tree, Query{}); !l.Incomplete || len(l.Paths) != 2 {
		t.Errorf("%d folders: %+v", MaxDepth+1, l)
	}
	long := strings.Repeat(strings.Repeat("n", 250)+"/", 17)
	fd, err := unix.Open(tree.Root(), unix.O_PATH, 0)
	must(t, err)
	for name := range strings.SplitSeq(strings.TrimSuffix(long, "/"), "/") {
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_PATH, 0)
		must(t, err)
		closeAll(fd)
		fd = next
	}
	closeAll(fd)
	must(t, os.RemoveAll(filepath.Join(tree.Root(), "d")))
	if l := find(t, tree, Query{}); !l.Incomplete {
		t.Error("a path longer than any open takes, and not incomplete")
	}
}

func TestEntryCap(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 50,001 files")
	}
	tree := newTree(t, nil)
	for i := range 6 {
		dir := filepath.Join(tree.Root(), fmt.Sprint(i))
		must(t, os.Mkdir(dir, 0o755))
		for j := range 8400 {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(j)), nil, 0o644))
		}
	}
	l := find(t, tree, Query{})
	if !l.Incomplete || l.Total != MaxEntries-6 || len(l.Paths) != MaxFindPaths || l.Next != MaxFindPaths {
		t.Errorf("incomplete %v, %d of %d paths, next %d", l.Incomplete, len(l.Paths), l.Total, l.Next)
	}
	if again := find(t, tree, Query{}); again.Version != l.Version {
		t.Error("the caps cut another list the second time")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tree.Find(ctx, Query{Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestIO06_NamesThatNothingCouldAskFor(t *testing.T) {
	tree := newTree(t, layout{"good": "", "new\nline": ""})
	must(t, os.WriteFile(filepath.Join(tree.Root(), "bad\xff"), nil, 0o644))
	l := find(t, tree, Query{})
	if diff := cmp.Diff([]string{"good", "new\nline"}, l.Paths); diff != "" || !l.Incomplete {
		t.Errorf("incomplete %v, %s", l.Incomplete, diff)
	}
}

func TestFS20_ClashingNamesStayApart(t *testing.T) {
	tree := newTree(t, layout{"Data.csv": "1", "data.csv": "2", "\u00e9": "nfc", "e\u0301": "nfd"})
	if l := find(t, tree, Query{}); l.Total != 4 {
		t.Errorf("%d files, want 4", l.Total)
	}
	for name, want := range map[string]string{"Data.csv": "1", "data.csv": "2", "\u00e9": "nfc", "e\u0301": "nfd"} {
		if got := read(t, tree, name, 0, 9); string(got.Content) != want {
			t.Errorf("%q has %q", name, got.Content)
		}
	}
}

func TestMCP31_SearchOverBinaryAndDamagedFiles(t *testing.T) {
	tree := newTree(t, layout{
		"a.txt": "\xff\xfe junk\nneedle\n", "b.txt": "needle\n", "c.zip": "PK\x03\x04\x00\x00needle",
		"d.txt": "no\r\n\r\nneedle needle\r\nlast needle", "e.txt": "nee\ndle", "link.txt": "-> a.txt",
	})
	l := find(t, tree, Query{Content: "needle"})
	want := []Match{{"a.txt", 2, "needle"}, {"b.txt", 1, "needle"}, {"d.txt", 3, "needle needle"}, {"d.txt", 4, "last needle"}}
	if diff := cmp.Diff(want, l.Matches); diff != "" || l.Skipped != 1 || l.Incomplete {
		t.Errorf("skipped %d, incomplete %v: %s", l.Skipped, l.Incomplete, diff)
	}
	if diff := cmp.Diff([]string{"a.txt", "b.txt", "d.txt"}, l.Paths); diff != "" {
		t.Error(diff)
	}
	if l := find(t, tree, Query{Content: "needle", Glob: "b*", Limit: 1}); len(l.Matches) != 1 || l.Total != 1 {
		t.Errorf("with a glob: %+v", l)
	}
	put(t, tree.Root(), layout{"many.txt": strings.Repeat("xyzzy\n", maxFileMatches+1), "long.txt": strings.Repeat("é", 400) + "xyzzy"})
	l = find(t, tree, Query{Content: "xyzzy"})
	if len(l.Paths) != 2 || !l.Incomplete || len(l.Matches) != maxFileMatches+1 {
		t.Errorf("%v, incomplete %v, %d lines", l.Paths, l.Incomplete, len(l.Matches))
	}
	if text := l.Matches[0].Text; len(text) > maxLineBytes+len("…") || !strings.HasPrefix(text, "éé") {
		t.Errorf("a long line gives %d bytes", len(text))
	}
}

func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		glob, path string
		want       bool
	}{
		{"a/**/z", "a/z", true}, {"a/**/z", "a/b/c/z", true}, {"a/**/z", "a/b/c", false}, {"**/a/**/b", "x/a/y/a/b", true},
		{"a/**", "a", true}, {"a/**", "a/b/c", true}, {"a/**", "ab", false}, {"**", "", true},
		{"a*b*c", "aXbXbc", true}, {"a*b*c", "abX", false}, {"*", "a/b", false}, {"a**b", "aXb", true}, {"a**b", "a/b", false},
		{"[a-c]", "b", true}, {"[a-c]", "d", false}, {"[^a-c]", "d", true}, {"[]]", "]", true}, {"[a", "[a", true}, {"[]", "[]", true},
		{"[-a]", "-", true}, {"[a-]", "-", true}, {`[\]]`, "]", true}, {"?", "é", true}, {"??", "é", false}, {"[é]", "é", true},
		{"{a,b{c,d}}", "bd", true}, {"{a,b{c,d}}", "b", false}, {"{a}", "{a}", true}, {"{a,b", "{a,b", true}, {`\{a,b}`, "{a,b}", true}, {"x{,y}", "x", true},
		{`\*`, "*", true}, {`\*`, "a", false}, {`a\`, `a\`, true}, {"./a//b/", "a/b", true},
	} {
		globs, err := parseGlob(c.glob)
		must(t, err)
		got := slices.ContainsFunc(globs, func(g glob) bool { return g.matches(c.path) })
		if got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.glob, c.path, got, c.want)
		}
	}
}

// POL-11: no pattern makes matching explode.
func TestPOL11_GlobBombs(t *testing.T) {
	name := strings.Repeat("a", 255)
	deep := strings.Repeat("a/", 2000) + "b"
	for _, text := range []string{strings.Repeat("*a", 500) + "b", strings.Repeat("**/a/", 200) + "c", strings.Repeat("a*/**/", 170)} {
		globs, err := parseGlob(text)
		must(t, err)
		for range 20 {
			globs[0].matches(name)
			globs[0].matches(deep)
		}
	}
}

// FuzzGlob holds the matcher against path.Match, which knows one name, for patterns
// that both take alike.
func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{{"a*b", "axxb"}, {"[a-c]?", "bd"}, {"*a*a*", "banana"}, {"**/a", "x/a"}, {"{a,b}*", "bx"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		globs, err := parseGlob(pattern)
		if err != nil {
			return
		}
		got := false
		for _, g := range globs {
			got = g.matches(name) || got
			g.leadsTo(name)
		}
		if strings.ContainsAny(pattern+name, "/{}[]\\") || pattern == "**" || pattern == "." || pattern == "" || name == "" || !utf8.ValidString(name) {
			return
		}
		want, err := path.Match(pattern, name)
		if err == nil && got != want {
			t.Errorf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
	})
}
