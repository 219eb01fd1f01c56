package patch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"writ/internal/testkit"
	"writ/patch"
)

// everything is a patch of every kind over sixteen lines and more.
func everything() (tree, string) {
	var long strings.Builder
	for i := range 30 {
		long.WriteString("line " + string(rune('a'+i%26)) + "\n")
	}
	before := files("long", long.String(), "gone", "lost\n", "moved", "1\n2\n3\n4\n5\n6\n7\n8\n", "short", "x\ny", "crlf", "1\r\n2\r\n", "lost", "precious\n", "over", "o\n")
	before["script"] = patch.File{Content: []byte("echo\n"), Mode: 0o755}
	return before, body(
		"*** Update File: long", "@@", "-line c", "+line C", "@@", "-line x", "+line X", "+more",
		"*** Delete File: gone",
		"*** Update File: moved", "*** Move to: sub/moved", "@@", "-3", "+three",
		"*** Update File: short", "@@", "-x", "+X",
		"*** Update File: crlf", "@@", "-2", "+two",
		"*** Add File: sub/new", "+n",
		"*** Add File: empty",
		"*** Delete File: lost", "*** Update File: over", "*** Move to: lost",
		"*** Update File: script", "*** Move to: bin/script")
}

func TestUnified(t *testing.T) {
	before, text := everything()
	_, changes, err := compute(before, text)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "unified.golden", patch.Unified(changes))
	golden(t, "unified-reverse.golden", patch.Unified(patch.Reverse(changes)))

	_, changes, err = compute(files("logo", "\x00\x01\n"), body("*** Delete File: logo"))
	if err != nil {
		t.Fatal(err)
	}
	if got := patch.Unified(changes); !strings.Contains(got, "Binary files a/logo (3 bytes) and /dev/null (0 bytes) differ\n") {
		t.Errorf("the diff of a binary file is\n%s", got)
	}
}

// git applies the diff and comes to the same files: it says all that changes.
func TestUnifiedSaysAllThatGitNeeds(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		testkit.Missing(t, "git", "git is not installed")
	}
	before, text := everything()
	after, changes, err := compute(before, text)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, f := range before {
		if err := os.WriteFile(filepath.Join(dir, name), f.Content, f.Mode); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(git, "apply", "--whitespace=nowarn")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(dir, "none"), "GIT_CEILING_DIRECTORIES="+dir)
	cmd.Stdin = strings.NewReader(patch.Unified(changes))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s", err, out)
	}
	for _, c := range changes {
		got, err := os.ReadFile(filepath.Join(dir, c.Path))
		f, there := after[c.Path]
		if there != (err == nil) || string(got) != string(f.Content) {
			t.Errorf("%s: git made %q (%v), want %q", c.Path, got, err, f.Content)
		}
		if there {
			info, err := os.Stat(filepath.Join(dir, c.Path))
			if err != nil || info.Mode().Perm()&0o111 != f.Mode&0o111 {
				t.Errorf("%s: git made mode %v, want %o", c.Path, info.Mode(), f.Mode)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	const empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := patch.Version(nil); got != empty {
		t.Errorf("version of nothing is %s, want %s", got, empty)
	}
	var none *patch.File
	if got := none.Version(); got != "absent" {
		t.Errorf("version of no file is %s, want absent", got)
	}
}

func TestPaths(t *testing.T) {
	p, err := patch.Parse(body("*** Update File: b", "*** Move to: ./a", "*** Add File: b", "*** Delete File: c/../a"))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Paths(); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("paths are %q, want b and a", got)
	}
}
