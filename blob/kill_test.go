package blob

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"writ"
)

// The environment of a child that puts and dies: in which folder, after which step.
const (
	childDir  = "WRIT_BLOB_TEST_DIR"
	childStep = "WRIT_BLOB_TEST_STEP"
)

// blobText is what a child puts: larger than what is copied at a time.
var blobText = bytes.Repeat([]byte("0123456789abcdef"), 10_000)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir, os.Getenv(childStep))
		return
	}
	if dir := os.Getenv(smallDir); dir != "" {
		fmt.Println(fillDisk(dir))
		return
	}
	os.Exit(m.Run())
}

func child(dir, at string) {
	f, err := OpenFolder(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	die := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
	f.step = func(step string) {
		if step == at {
			die()
		}
	}
	src := bytes.NewReader(blobText)
	_, _, err = f.Put(context.Background(), readFunc(func(p []byte) (int, error) {
		if at == "half" && src.Len() < len(blobText)/2 {
			die()
		}
		return src.Read(p)
	}), int64(len(blobText)))
	fmt.Println("put", err)
}

// TestKilledAtEachStep looks at what is left by a process that was killed as it put:
// whole blobs alone have names, and a sweep finds the rest.
func TestKilledAtEachStep(t *testing.T) {
	steps := []string{"draft", "half", "written", "synced", "named", "done"}
	for _, step := range append(steps, "none") {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			before := put(t, open(t, dir), "from before")
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childDir+"="+dir, childStep+"="+step)
			out, err := cmd.CombinedOutput()
			if killed := cmd.ProcessState.String() == "signal: killed"; killed == (step == "none") {
				t.Fatalf("the child ended with %v: %s", err, out)
			}
			f := open(t, dir)
			want := []string{string(before)}
			if i := slices.Index(steps, step); i < 0 || i >= slices.Index(steps, "named") {
				want = append(want, string(writ.DigestOf(blobText)))
			}
			slices.Sort(want)
			if got := names(t, dir, blobs); !slices.Equal(got, want) {
				t.Errorf("blobs are %v, want %v", got, want)
			}
			if drafts := names(t, dir, drafts); len(drafts) != 1-(len(want)-1) {
				t.Errorf("drafts are %v", drafts)
			}
			for _, name := range names(t, dir, blobs) {
				if _, err := read(f, writ.Digest(name), 0, -1); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			n, _, err := f.Sweep(context.Background(), later(), func(context.Context, []writ.Digest) ([]writ.Digest, error) {
				return []writ.Digest{before}, nil
			}, false)
			if n != len(want)-1 || err != nil {
				t.Errorf("swept %d, %v", n, err)
			}
			left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
			if err != nil || len(left) != 1 || !strings.HasSuffix(left[0], string(before)) {
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
}
