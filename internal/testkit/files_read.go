package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/patch"
)

const mib = 1 << 20

func (s filesSuite) windows(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"a.txt": "abcdef"})
	version := patch.Version([]byte("abcdef"))
	for _, c := range []struct{ offset, limit, next int64 }{{0, 3, 3}, {3, 3, 0}, {0, mib, 0}, {1, 2, 3}} {
		got, err := f.Read(t.Context(), w, "./x/../a.txt", c.offset, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		want := writ.FileWindow{Path: "a.txt", Version: version, Offset: c.offset, Next: c.next, Content: []byte("abcdef"[c.offset:min(6, c.offset+c.limit)])}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d bytes from %d (-want +got):\n%s", c.limit, c.offset, d)
		}
	}
	// The version follows what is there.
	PutFiles(t, w.Root, map[string]string{"a.txt": "abcdeg"})
	if got, err := f.Read(t.Context(), w, "a.txt", 0, 1); err != nil || got.Version != patch.Version([]byte("abcdeg")) {
		t.Errorf("after a change: %+v, %v", got, err)
	}
}

func (s filesSuite) pastTheEnd(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"a.txt": "abc", "empty": ""})
	for _, c := range []struct {
		path   string
		offset int64
	}{{"a.txt", 3}, {"a.txt", 1 << 40}, {"empty", 0}} {
		got, err := f.Read(t.Context(), w, c.path, c.offset, 10)
		if err != nil || len(got.Content) != 0 || got.Next != 0 || !strings.HasPrefix(got.Version, "sha256:") {
			t.Errorf("%s from %d: %+v, %v", c.path, c.offset, got, err)
		}
	}
}

func (s filesSuite) limits(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"a.txt": "abc"})
	for _, limit := range []int64{0, -1, mib + 1} {
		_, err := f.Read(t.Context(), w, "a.txt", 0, limit)
		wantFault(t, fmt.Sprint("read limit ", limit), err, writ.Invalid, "OUTPUT_LIMIT")
	}
	_, err := f.Read(t.Context(), w, "a.txt", -1, 1)
	wantFault(t, "read offset -1", err, writ.Invalid, "OUTPUT_LIMIT")
	for _, limit := range []int{0, -1, 10_001} {
		_, err := f.Find(t.Context(), w, writ.FileQuery{Limit: limit})
		wantFault(t, fmt.Sprint("find limit ", limit), err, writ.Invalid, "OUTPUT_LIMIT")
	}
}

func (s filesSuite) bytes(t *testing.T) {
	text := "a\xffb\x00\xe2\x82"
	f, w := s.files(t), tree(t, map[string]string{"bytes": text, "large": strings.Repeat("0123456789abcdef", mib/8)})
	got, err := f.Read(t.Context(), w, "bytes", 0, 100)
	if err != nil || string(got.Content) != text {
		t.Errorf("read %q, %v", got.Content, err)
	}
	large, err := f.Read(t.Context(), w, "large", 1, mib)
	if err != nil || len(large.Content) != mib || large.Next != mib+1 {
		t.Errorf("read %d bytes, next %d, %v", len(large.Content), large.Next, err)
	}
}

func (s filesSuite) codes(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"file": "x", "dir/inner": "y"})
	for link, target := range map[string]string{"link": "file", "linkdir": "dir", "out": "/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(w.Root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(w.Root, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		kind writ.Kind
		code string
	}{
		{"missing", writ.NotFound, "FILE_NOT_FOUND"},
		{"file/bar", writ.Conflict, "PATH_NOT_DIRECTORY"},
		{"../x", writ.Denied, "PATH_ESCAPE"},
		{"ok/../../etc", writ.Denied, "PATH_ESCAPE"},
		{filepath.Join(w.Root, "file"), writ.Denied, "PATH_ESCAPE"},
		{"", writ.Denied, "PATH_ESCAPE"},
		{"nul\x00", writ.Denied, "PATH_ESCAPE"},
		{"not\xffutf8", writ.Denied, "PATH_ESCAPE"},
		{"link", writ.Denied, "SYMLINK_REJECTED"},
		{"out", writ.Denied, "SYMLINK_REJECTED"},
		{"linkdir/inner", writ.Denied, "SYMLINK_REJECTED"},
		{"pipe", writ.Denied, "SPECIAL_FILE_REJECTED"},
		{"dir", writ.Denied, "SPECIAL_FILE_REJECTED"},
	} {
		_, err := f.Read(t.Context(), w, c.path, 0, 10)
		wantFault(t, fmt.Sprintf("read %q", c.path), err, c.kind, c.code)
	}
}

func (s filesSuite) find(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"b.go": "", "a.go": "", "d/c.go": "", ".h/x.go": "", "d/t.txt": "", "é.go": ""})
	if err := os.Symlink("a.go", filepath.Join(w.Root, "link.go")); err != nil {
		t.Fatal(err)
	}
	all, err := f.Find(t.Context(), w, writ.FileQuery{Glob: "*.go", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".h/x.go", "a.go", "b.go", "d/c.go", "é.go"}
	if d := cmp.Diff(writ.FileListing{Paths: want, Total: 5, Version: all.Version}, all); d != "" || all.Version == "" {
		t.Errorf("version %q (-want +got):\n%s", all.Version, d)
	}
	var paged []string
	for offset := 0; ; {
		page, err := f.Find(t.Context(), w, writ.FileQuery{Glob: "*.go", Offset: offset, Limit: 2})
		if err != nil || page.Version != all.Version {
			t.Fatalf("page from %d: %+v, %v", offset, page, err)
		}
		paged = append(paged, page.Paths...)
		if offset = page.Next; offset == 0 {
			break
		}
	}
	if !slices.Equal(paged, want) {
		t.Errorf("pages give %q", paged)
	}
	none, err := f.Find(t.Context(), w, writ.FileQuery{Glob: "none", Limit: 5})
	if err != nil || len(none.Paths) != 0 || none.Total != 0 {
		t.Errorf("nothing to find: %+v, %v", none, err)
	}
	if _, err := f.Find(t.Context(), w, writ.FileQuery{Glob: "../*", Limit: 5}); writ.CodeOf(err) != "PATH_ESCAPE" {
		t.Errorf("a glob that leads out: %v", err)
	}
	_, err = f.Find(t.Context(), w, writ.FileQuery{Glob: "a\xff", Limit: 5})
	if got := writ.KindOf(err); err != nil && got != writ.Invalid && got != writ.Denied {
		t.Errorf("a glob that is not UTF-8: %v", err)
	}
}

func (s filesSuite) content(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"a": "one\ntwo words\n", "b": "two\ntwo\n", "c": "three\n", "binary": "two\x00"})
	got, err := f.Find(t.Context(), w, writ.FileQuery{Content: "two", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	want := writ.FileListing{Paths: []string{"a", "b"}, Total: 2, Version: got.Version, Skipped: 1, Matches: []writ.FileMatch{
		{Path: "a", Line: 2, Text: "two words"}, {Path: "b", Line: 1, Text: "two"}, {Path: "b", Line: 2, Text: "two"},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func (s filesSuite) deletedRoot(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"a": "x"})
	if _, err := f.Read(t.Context(), w, "a", 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(w.Root); err != nil {
		t.Fatal(err)
	}
	_, err := f.Find(t.Context(), w, writ.FileQuery{Limit: 1})
	wantFault(t, "find", err, writ.NotFound, "FILE_OPERATION_FAILED")
	_, err = f.Read(t.Context(), w, "a", 0, 1)
	wantFault(t, "read", err, writ.NotFound, "FILE_OPERATION_FAILED")
	// It comes back as another folder.
	PutFiles(t, w.Root, map[string]string{"a": "new"})
	if got, err := f.Read(t.Context(), w, "a", 0, 9); err != nil || string(got.Content) != "new" {
		t.Errorf("read %q, %v", got.Content, err)
	}
}

func (s filesSuite) replacedRoot(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"a": "old"})
	if _, err := f.Read(t.Context(), w, "a", 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(w.Root, w.Root+".old"); err != nil {
		t.Fatal(err)
	}
	PutFiles(t, w.Root, map[string]string{"a": "new"})
	if got, err := f.Read(t.Context(), w, "a", 0, 9); err != nil || string(got.Content) != "new" {
		t.Errorf("read %q, %v", got.Content, err)
	}
}

// A root that is a symlink is the operator's to choose, and to change.
func (s filesSuite) linkedRoot(t *testing.T) {
	f, dir := s.files(t), t.TempDir()
	PutFiles(t, dir, map[string]string{"one/a": "1", "two/a": "2"})
	w := WorkspaceAt(filepath.Join(dir, "current"))
	for _, name := range []string{"one", "two"} {
		if err := os.RemoveAll(w.Root); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(name, w.Root); err != nil {
			t.Fatal(err)
		}
		got, err := f.Read(t.Context(), w, "a", 0, 9)
		if want := map[string]string{"one": "1", "two": "2"}[name]; err != nil || string(got.Content) != want {
			t.Errorf("through a link to %s: %q, %v", name, got.Content, err)
		}
	}
}

func (s filesSuite) rules(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{".env": "secret", "a": "x", ".git/hooks/pre": "x"})
	open := w
	w.Rules = writ.PathRules{DenyRead: []string{".env"}, DenyWrite: []string{".git/hooks"}}
	_, err := f.Read(t.Context(), w, ".env", 0, 9)
	wantFault(t, "read", err, writ.Denied, "UNAUTHORIZED")
	l, err := f.Find(t.Context(), w, writ.FileQuery{Limit: 10})
	if err != nil || !slices.Equal(l.Paths, []string{".git/hooks/pre", "a"}) {
		t.Errorf("found %q, %v", l.Paths, err)
	}
	_, err = f.Patch(t.Context(), w, writ.NewOperationID(), request(w, "*** Update File: .git/hooks/pre", "@@", "-x", "+y"), "")
	wantFault(t, "patch", err, writ.Denied, "UNAUTHORIZED")
	// Rules are of the workspace, not of the root.
	if got, err := f.Read(t.Context(), open, ".env", 0, 9); err != nil || string(got.Content) != "secret" {
		t.Errorf("without rules: %q, %v", got.Content, err)
	}
	w.Rules = writ.PathRules{DenyRead: []string{""}}
	if _, err := f.Read(t.Context(), w, "a", 0, 9); writ.KindOf(err) != writ.Invalid {
		t.Errorf("a rule that is no pattern: %v", err)
	}
}

func (s filesSuite) container(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"a": "x"})
	w.EnvironmentKind = writ.EnvironmentContainer
	req := request(w, "*** Delete File: a")
	_, err := f.Read(t.Context(), w, "a", 0, 1)
	wantFault(t, "read", err, writ.Denied, "UNAUTHORIZED")
	_, err = f.Find(t.Context(), w, writ.FileQuery{Limit: 1})
	wantFault(t, "find", err, writ.Denied, "UNAUTHORIZED")
	_, err = f.Plan(t.Context(), w, req)
	wantFault(t, "plan", err, writ.Denied, "UNAUTHORIZED")
	_, err = f.Patch(t.Context(), w, writ.NewOperationID(), req, "")
	wantFault(t, "patch", err, writ.Denied, "UNAUTHORIZED")
}

func (s filesSuite) manyRoots(t *testing.T) {
	f, _ := s.start(t, filesOptions(t, 2))
	var all []writ.Workspace
	for i := range 6 {
		all = append(all, tree(t, map[string]string{"n": fmt.Sprint(i)}))
	}
	for range 2 {
		for i, w := range all {
			if got, err := f.Read(t.Context(), w, "n", 0, 9); err != nil || string(got.Content) != fmt.Sprint(i) {
				t.Errorf("root %d: %q, %v", i, got.Content, err)
			}
		}
	}
}
