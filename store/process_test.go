package store_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// The environment of a child: what it does, and with which store.
const (
	childRole = "WRIT_STORE_TEST_ROLE"
	childURL  = "WRIT_STORE_TEST_URL"
)

// child is another writ process. It says one line when it stands where the test
// wants it, and stays there until its standard input ends or it is killed.
func child(role, url string) {
	ctx := context.Background()
	fatal := func(err error) {
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	ready := func() { fmt.Println("ready"); _, _ = io.Copy(io.Discard, os.Stdin) }
	task := writ.Task{ID: "before", State: writ.TaskRunning, Owner: "gw-old", Created: writ.Now(), Updated: writ.Now()}
	db, err := store.Open(ctx, url, store.Options{Poll: 20 * time.Millisecond})
	fatal(err)
	switch role {
	case "hold":
		ready()
	case "write": // dies inside its second transaction
		fatal(db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.Beat(ctx, "gw-old", time.Hour); err != nil {
				return err
			}
			return tx.InsertTask(ctx, task)
		}))
		fatal(db.Update(ctx, func(tx *store.Tx) error {
			task.ID = "inside"
			fatal(tx.InsertTask(ctx, task))
			fatal(tx.PutBody(ctx, task.ID, store.BodySpec, make([]byte, 8<<20))) // more than a page cache holds
			fatal(tx.Enqueue(ctx, store.Job{Kind: store.JobDispatch, Task: task.ID}))
			ready()
			return nil
		}))
	case "forget": // dies when it has deleted a body under a reader
		fatal(db.Update(ctx, func(tx *store.Tx) error { return putBody(ctx, tx, []byte(mark)) }))
		fatal(db.View(ctx, func(tx *store.Tx) error {
			_, err := tx.Body(ctx, "t1", store.BodyStdout)
			fatal(err)
			fatal(db.Update(ctx, func(tx *store.Tx) error { return deleteBodies(ctx, tx) }))
			ready()
			return nil
		}))
	case "work": // dies while it handles a job
		_, err := db.Work(ctx, func(context.Context, store.Job) error { ready(); return nil })
		fatal(err)
		fatal(db.Update(ctx, func(tx *store.Tx) error { return tx.Enqueue(ctx, store.Job{Kind: store.JobDispatch, Task: "orphan"}) }))
		select {}
	}
	os.Exit(0)
}

// start starts a child and waits until it is ready.
func start(t *testing.T, role, url string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childRole+"="+role, childURL+"="+url)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("child said %q (%v)", line, err)
	}
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // says that it was killed
}

// TestSecondProcessIsToldWhoHolds is issue 2 §7: of two processes on one SQLite
// folder the second says who holds it, and may have it once the first is gone.
func TestSecondProcessIsToldWhoHolds(t *testing.T) {
	url := sqliteURL(t)
	before := time.Now().Add(-time.Second)
	first := start(t, "hold", url)
	_, err := store.Open(context.Background(), url, store.Options{})
	if writ.KindOf(err) != writ.Unavailable {
		t.Fatalf("second process: got %v, want Unavailable", err)
	}
	_, who, _ := strings.Cut(writ.Message(err), fmt.Sprintf("writ pid %d since ", first.Process.Pid))
	since, parseErr := time.Parse(time.RFC3339, who[:min(len(who), len("2026-01-01T00:00:00Z"))])
	if parseErr != nil || since.Before(before.Truncate(time.Second)) || since.After(time.Now()) {
		t.Errorf("message %q does not say who and since when (%v)", writ.Message(err), parseErr)
	}
	kill(t, first)
	open(t, url) // its lock died with it
}

// TestKilledInsideTransaction kills a process that has written half of it.
func TestKilledInsideTransaction(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		kill(t, start(t, "write", url))
		db := open(t, url)
		if _, err := readTask(t, db, "before"); err != nil {
			t.Errorf("what was committed: %v", err)
		}
		if _, err := readTask(t, db, "inside"); writ.KindOf(err) != writ.NotFound {
			t.Errorf("what was not committed: %v, want NotFound", err)
		}
		err := db.View(context.Background(), func(tx *store.Tx) error {
			alive, err := tx.Alive(context.Background())
			// Nobody else can hold a folder that we hold; on PostgreSQL only time tells.
			if want := db.Engine() == "postgres"; alive["gw-old"] != want {
				t.Errorf("gateway that was killed counts as alive: %v, want %v", alive["gw-old"], want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		got := make(chan store.Job, 10)
		stop, err := db.Work(context.Background(), func(_ context.Context, j store.Job) error { got <- j; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(context.Background(), func(tx *store.Tx) error {
			return tx.Enqueue(context.Background(), store.Job{Kind: store.JobDispatch, Task: "after"})
		}); err != nil {
			t.Error(err)
		}
		if j := testkit.Receive(t, "a job of this process", got); j.Task != "after" {
			t.Errorf("job of the transaction that was not committed: %+v", j)
		}
		if err := stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// TestKilledWhileHandlingJob finds the job again at once, not after River's rescue:
// the folder lock says that its worker is dead.
func TestKilledWhileHandlingJob(t *testing.T) {
	url := sqliteURL(t)
	kill(t, start(t, "work", url))
	db := open(t, url)
	got := make(chan store.Job, 10)
	stop, err := db.Work(context.Background(), func(_ context.Context, j store.Job) error { got <- j; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if j := testkit.Receive(t, "the orphaned job", got); j.Task != "orphan" {
		t.Errorf("came %+v", j)
	}
	if err := stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestLeasesAreByTheDatabasesClock: gateways of one database have clocks of their own, and
// do not take each other for dead because of that.
func TestLeasesAreByTheDatabasesClock(t *testing.T) {
	ctx := context.Background()
	url := testkit.Postgres(t)(t)
	beat := func(db *store.DB, owner string) {
		t.Helper()
		if err := db.Update(ctx, func(tx *store.Tx) error { return tx.Beat(ctx, owner, 30*time.Second) }); err != nil {
			t.Fatal(err)
		}
	}
	alive := func(db *store.DB, want ...string) {
		t.Helper()
		if err := db.View(ctx, func(tx *store.Tx) error {
			got, err := tx.Alive(ctx)
			if owners := slices.Sorted(maps.Keys(got)); !slices.Equal(owners, want) {
				t.Errorf("alive are %q, want %q", owners, want)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t, url)
	beat(db, "gw-1")
	alive(db, "gw-1")
	// A second view of the same database, whose clock is an hour ahead.
	if _, err := raw(t, url).Exec(`
		CREATE SCHEMA ahead;
		CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$`); err != nil {
		t.Fatal(err)
	}
	ahead := open(t, url+"&search_path=public,ahead,pg_catalog")
	alive(ahead)
	beat(ahead, "gw-2")
	alive(ahead, "gw-2")
	alive(db, "gw-1", "gw-2")
}
