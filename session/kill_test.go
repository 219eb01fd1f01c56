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
// killed.
const childDir = "WRIT_SESSION_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Println("error:", work(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// work puts and deletes for ever, and says what is done.
func work(dir string) error {
	ctx, ada := context.Background(), user("ada")
	blobs, err := blob.OpenFolder(filepath.Join(dir, "blobs"))
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "writ.db"), store.Options{})
	if err != nil {
		return err
	}
	s, err := New(db, blobs, Defaults())
	if err != nil {
		return err
	}
	in, err := s.Create(ctx, ada, own)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		body := strings.Repeat(fmt.Sprint(n%7, " "), 50_000)
		o, err := s.Put(ctx, ada, own, in.ID, text(fmt.Sprint(n), body))
		if err != nil {
			return err
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
	for round := range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
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
	d.db = testkit.OpenStore(t, "sqlite:"+filepath.Join(dir, "writ.db"))
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
