package files

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"writ"
)

func mustDraw(rt *rapid.T, err error) {
	rt.Helper()
	if err != nil {
		rt.Fatal(err)
	}
}

// drawFiles makes a few files in a few folders, with modes.
func drawFiles(rt *rapid.T, dir string) (paths []string) {
	folders := []string{"", "a/", "a/b/", "c d/", ".h/"}
	for i := range rapid.IntRange(1, 6).Draw(rt, "files") {
		name := rapid.SampledFrom(folders).Draw(rt, "folder") + fmt.Sprintf("f%d", i)
		full := filepath.Join(dir, name)
		mustDraw(rt, os.MkdirAll(filepath.Dir(full), 0o755))
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"one\n", "two\n", "three\r\n", "\n", "é\n", "\ufeffx\n", "end", "\x00\xff\n"}), 1, 6).Draw(rt, "lines")
		mustDraw(rt, os.WriteFile(full, []byte(strings.Join(lines, "")), 0o644))
		mustDraw(rt, os.Chmod(full, rapid.SampledFrom([]os.FileMode{0o644, 0o755, 0o600, 0o444}).Draw(rt, "mode")))
		paths = append(paths, name)
	}
	return paths
}

// drawPatch is the sections of a patch over these files, which change something.
func drawPatch(rt *rapid.T, dir string, paths []string) []string {
	out := []string{"*** Add File: added/deep/file", "+new"}
	for i, name := range paths {
		content, err := os.ReadFile(filepath.Join(dir, name))
		mustDraw(rt, err)
		first, _, _ := strings.Cut(string(content), "\n")
		first = strings.TrimSuffix(first, "\r")
		what := rapid.IntRange(0, 5).Draw(rt, "what")
		if !utf8.Valid(content) { // its lines cannot be written in a patch
			what %= 2
		}
		switch what {
		case 0:
			out = append(out, "*** Delete File: "+name)
		case 1:
			out = append(out, "*** Update File: "+name, fmt.Sprintf("*** Move to: a/moved%d", i))
		case 5:
			out = append(out, "*** Update File: "+name, "-"+first, "+changed")
		case 2:
			out = append(out, "*** Update File: "+name, fmt.Sprintf("*** Move to: moved/x/f%d", i), "-"+first, "+moved")
		case 3:
			out = append(out, "*** Delete File: "+name, "*** Add File: "+name, "+again")
		}
	}
	return out
}

// A patch that fails, at whatever file, changes nothing but what somebody else did;
// one that is applied and undone changes nothing: bytes, modes and folders. Undoing the
// undoing is the patch.
func TestRollbackAndUndoAreIdentity(t *testing.T) {
	base := memoryDir(t)
	j, err := OpenJournals(filepath.Join(base, "journals"), keepSome)
	must(t, err)
	defer func() { must(t, j.Close()) }()
	n, ops := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		ws := filepath.Join(base, fmt.Sprint(n))
		mustDraw(rt, os.Mkdir(ws, 0o755))
		paths := drawFiles(rt, ws)
		tree, err := Open(ws, Rules{})
		mustDraw(rt, err)
		defer func() { _ = tree.Close() }()
		tree.plain = rapid.Bool().Draw(rt, "plain")
		p, err := tryPlan(tree, nil, drawPatch(rt, ws, paths)...)
		mustDraw(rt, err)
		run := func(p Plan, want Status) (id string) {
			rt.Helper()
			ops++
			id = fmt.Sprint("op-", ops)
			o, err := tree.Apply(t.Context(), p, j, id)
			mustDraw(rt, err)
			mustDraw(rt, j.Forget(id))
			if o.Status != want || len(o.Left) > 0 {
				rt.Fatalf("outcome %+v, want %s", o, want)
			}
			return id
		}
		before := disk(t, ws)

		victim := rapid.SampledFrom(p.Changes).Draw(rt, "victim").Path
		full, kept := filepath.Join(ws, victim), filepath.Join(base, "kept")
		_, was := before[victim]
		at(tree, StepLook, 1, func() { // somebody replaces it at the last moment
			if was {
				mustDraw(rt, os.Rename(full, kept))
			}
			mustDraw(rt, os.WriteFile(full, []byte("theirs"), 0o644))
		})
		run(p, RolledBack)
		if got := disk(t, ws)[victim]; got != `-rw-r--r-- "theirs"` {
			rt.Fatalf("%s is %s", victim, got)
		}
		mustDraw(rt, os.Remove(full))
		if was {
			mustDraw(rt, os.Rename(kept, full))
		}
		for dir := filepath.Dir(full); !was && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
			continue // folders that were kept for their file alone
		}
		if got := disk(t, ws); !maps.Equal(got, before) {
			rt.Fatalf("after a failure at %s: %v, want %v", victim, got, before)
		}

		tree.at = nil
		last := run(p, Applied)
		after := disk(t, ws)
		for _, want := range []map[string]string{before, after, before} {
			p, err := tree.PlanUndo(t.Context(), j, last)
			mustDraw(rt, err)
			last = run(p, Applied)
			if diff := cmp.Diff(want, disk(t, ws)); diff != "" {
				rt.Fatalf("after undoing (-want +got): %s", diff)
			}
		}
	})
}

// FuzzResolve: whatever the path, nothing but what is beneath the root is opened, and a
// refusal has a code.
func FuzzResolve(f *testing.F) {
	base := f.TempDir()
	put(f, base, layout{
		"secret": "SECRET", "ws-evil/x": "SECRET", "ws/a": "A", "ws/d/b": "B", "ws/l": "-> ../secret", "ws/dl": "-> ..", "ws/self": "-> .", "ws/abs": "-> " + base,
		"ws/proc": "-> /proc/self/root",
	})
	tree := openTree(f, filepath.Join(base, "ws"))
	for _, s := range []string{"a", "d/b", "../secret", "d/../../secret", "l", "dl/secret", "self/a", base + "/secret", "../ws-evil/x", "abs/secret", "proc/etc/passwd", "", ".", "d/..", "a/..", "a\x00", "./a", "d//b", "%2e%2e/secret"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := resolve(name)
		if err == nil && (filepath.IsAbs(clean) || !filepath.IsLocal(clean) || filepath.Clean(clean) != clean) {
			t.Fatalf("%q resolves to %q", name, clean)
		}
		w, err := tree.Read(t.Context(), name, 0, 100)
		if err != nil {
			if writ.CodeOf(err) == "" {
				t.Fatalf("read %q: %v has no code", name, err)
			}
			return
		}
		if got := string(w.Content); got != "A" && got != "B" {
			t.Fatalf("read %q gave %q", name, got)
		}
	})
}

// FuzzJournal: no text of a journal leads out of the root, or panics.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"v":1,"id":"op-1","root":"/srv","tx":"` + newTX() + `","folders":["a"],"changes":[{"path":"a/f"}]}` + "\n" + `{"status":"applied"}` + "\n"))
	f.Add([]byte("{}\n{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := readLines("op-1", text)
		if err != nil || !l.begun {
			return
		}
		for _, c := range l.first.Changes {
			if !filepath.IsLocal(c.Path) {
				t.Fatalf("path %q", c.Path)
			}
		}
		for _, name := range l.first.Folders {
			if !filepath.IsLocal(name) {
				t.Fatalf("folder %q", name)
			}
		}
		if !reserved(asideName(l.first.TX, 0, "new")) {
			t.Fatalf("tx %q", l.first.TX)
		}
	})
}
