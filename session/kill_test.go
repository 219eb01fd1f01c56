package session

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/blob"
	"writ/internal/testkit"
	"writ/store"
)

// childDir is, in the environment of a child, the folder in which it works until it is
// killed. childURL is its store, and childRole what it does.
const (
	childDir  = "WRIT_SESSION_TEST_DIR"
	childURL  = "WRIT_SESSION_TEST_URL"
	childRole = "WRIT_SESSION_TEST_ROLE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Println("error:", child(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func child(dir string) error {
	ctx := context.Background()
	blobs, err := blob.OpenFolder(filepath.Join(dir, "blobs"))
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, os.Getenv(childURL), store.Options{})
	if err != nil {
		return err
	}
	s, err := New(db, blobs, killOptions())
	if err != nil {
		return err
	}
	if os.Getenv(childRole) == "runtime" {
		return saveForEver(ctx, s)
	}
	return putForEver(ctx, s)
}

// killOptions let what a killed process held be free soon.
func killOptions() Options {
	opt := Defaults()
	opt.RuntimeLease = time.Second
	return opt
}

// startChild starts a child, whose lines are to be read.
func startChild(t *testing.T, role, dir, url string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childURL+"="+url, childRole+"="+role)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// putForEver puts, adopts and deletes, and says what is done.
func putForEver(ctx context.Context, s *Service) error {
	ada := user("ada")
	in, err := s.Create(ctx, ada, own)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		body := strings.Repeat(fmt.Sprint(n%7, " "), 50_000)
		var o writ.Object
		if n%2 == 0 {
			if o, err = s.Put(ctx, ada, own, in.ID, text(fmt.Sprint(n), body)); err != nil {
				return err
			}
		} else {
			digest, size, err := s.blobs.Put(ctx, strings.NewReader(body), int64(len(body)))
			if err != nil {
				return err
			}
			os, err := s.Adopt(ctx, ada, own, in.ID, []Kept{{Name: fmt.Sprint(n), Digest: digest, Size: size}})
			if err != nil {
				return err
			}
			o = os[0]
		}
		fmt.Println("put", in.ID, o.ID)
		if n%3 == 0 {
			if err := s.Delete(ctx, ada, own, in.ID, o.ID); err != nil {
				return err
			}
			fmt.Println("deleted", in.ID, o.ID)
		}
	}
}

// TestKilledWhileItPuts kills a process in the middle of its work, again and again: every
// object that is listed has its bytes, what was said to be put is there, and a pass leaves
// nothing else.
func TestKilledWhileItPuts(t *testing.T) {
	t.Parallel()
	dir, ctx, ada := t.TempDir(), context.Background(), user("ada")
	there, sessions := map[writ.ObjectID]bool{}, map[writ.SessionID]bool{}
	url := "sqlite:" + filepath.Join(dir, "writ.db")
	for round := range 3 {
		cmd, lines := startChild(t, "put", dir, url)
		for n := 0; lines.Scan(); n++ {
			if n == 5+round { // and read on: it had said more before it died
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			var what string
			var s writ.SessionID
			var o writ.ObjectID
			if _, err := fmt.Sscan(lines.Text(), &what, &s, &o); err != nil || what != "put" && what != "deleted" {
				t.Fatalf("the child says %q", lines.Text())
			}
			sessions[s], there[o] = true, what == "put"
		}
		_ = cmd.Wait() // killed
	}

	d := &desk{dir: filepath.Join(dir, "blobs")}
	blobs, err := blob.OpenFolder(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	d.db = testkit.OpenStore(t, url)
	if d.Service, err = New(d.db, blobs, Defaults()); err != nil {
		t.Fatal(err)
	}
	found, digests := map[writ.ObjectID]bool{}, map[string]bool{}
	for s := range sessions {
		list, err := d.List(ctx, ada, own, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			if _, err := d.bytesOf(ada, own, s, o.ID); err != nil {
				t.Errorf("an object without its bytes: %v", err)
			}
			found[o.ID], digests[string(o.SHA256)] = true, true
		}
	}
	missing := 0
	for o, put := range there {
		if put && !found[o] {
			missing++ // its deletion may have been done and not said
		}
		if !put && found[o] {
			t.Errorf("%s was deleted and is listed", o)
		}
	}
	if missing > 3 || len(found) == 0 {
		t.Errorf("%d of %d objects that were put are not there, at most one for each kill", missing, len(there))
	}
	d.now = func() time.Time { return writ.Now().Add(2 * d.opt.Grace) }
	d.retain(t, false)
	if left := d.blobNames(t); len(left) != len(digests) {
		t.Errorf("%d blobs are left of %d that are named", len(left), len(digests))
	}
	if drafts, err := os.ReadDir(filepath.Join(d.dir, "drafts")); len(drafts) != 0 || err != nil {
		t.Errorf("drafts are left: %v, %v", drafts, err)
	}
}
