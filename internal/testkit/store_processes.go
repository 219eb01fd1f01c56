package testkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/store"
)

func newProcess(id string) writ.Process {
	return writ.Process{
		Workspace: "site", Root: "/srv/site", Tenant: "acme", By: writ.Ref{Kind: writ.KindAgent, ID: "builder"},
		Fingerprint: writ.DigestOf([]byte(id)), Program: "make", Owner: "gw-1",
		ProcessStatus: writ.ProcessStatus{ID: writ.ProcessID(id), State: writ.ProcessRunning, Started: epoch},
	}
}

// ended is p as it exited, some seconds after the epoch.
func ended(p writ.Process, seconds int) writ.Process {
	at, code := epoch.Add(time.Duration(seconds)*time.Second), 0
	p.State, p.Termination, p.ExitCode, p.EOF, p.Ended = writ.ProcessExited, writ.TerminationExited, &code, true, &at
	return p
}

func insertProcesses(t testing.TB, db *store.DB, ps ...writ.Process) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		for _, p := range ps {
			if err := tx.InsertProcess(ctx, p); err != nil {
				return err
			}
		}
		return nil
	})
}

func readProcess(t testing.TB, db *store.DB, id writ.ProcessID) writ.Process {
	t.Helper()
	return view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Process, error) { return tx.Process(ctx, id) })
}

func updateProcess(t testing.TB, db *store.DB, p writ.Process) (ok bool) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) (err error) { ok, err = tx.UpdateProcess(ctx, p); return err })
	return ok
}

func processIDs(ps []writ.Process) (ids []string) {
	for _, p := range ps {
		ids = append(ids, string(p.ID))
	}
	return ids
}

func processRoundTrip(t *testing.T, s storeSuite) {
	db := s.open(t)
	want := newProcess("proc-1")
	want.Root, want.Program, want.TTY, want.Approval = "/srv/ä b/'site", "a\x00 \u202e ☃", true, "appr-1"
	insertProcesses(t, db, want)
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		wantKind(t, "second process with the id", tx.InsertProcess(ctx, newProcess("proc-1")), writ.Conflict)
		return nil
	})
	if d := cmp.Diff(want, readProcess(t, db, want.ID)); d != "" {
		t.Errorf("process changed as it was stored (-stored +read):\n%s", d)
	}

	want.Dispatch, want.Total, want.Retained = writ.DispatchConfirmed, 1<<40, 7
	if !updateProcess(t, db, want) {
		t.Error("a running process was not updated")
	}
	if d := cmp.Diff(want, readProcess(t, db, want.ID)); d != "" {
		t.Errorf("running process changed (-stored +read):\n%s", d)
	}

	want = ended(want, 2)
	want.Termination, want.ExitCode, want.Signal = writ.TerminationSignaled, nil, &writ.Signal{Number: 9, Name: "SIGKILL"}
	if !updateProcess(t, db, want) {
		t.Error("a running process was not ended")
	}
	if updateProcess(t, db, ended(want, 3)) || updateProcess(t, db, newProcess("proc-1")) {
		t.Error("a process that had ended was changed")
	}
	if updateProcess(t, db, ended(newProcess("proc-none"), 3)) {
		t.Error("a process that is not there was ended")
	}
	if d := cmp.Diff(want, readProcess(t, db, want.ID)); d != "" {
		t.Errorf("process changed after its end (-stored +read):\n%s", d)
	}
}

// processIdentity ends a process with everything else of it changed, too.
func processIdentity(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	p := newProcess("proc-1")
	insertProcesses(t, db, p)
	thief := ended(newProcess("proc-1"), 1)
	thief.Tenant, thief.Workspace, thief.Root, thief.By, thief.Owner = "evil", "theirs", "/root", writ.Ref{Kind: writ.KindUser, ID: "spy"}, "gw-9"
	thief.Fingerprint, thief.Started = "f", epoch.Add(time.Hour)
	if !updateProcess(t, db, thief) {
		t.Fatal("a running process was not ended")
	}
	if d := cmp.Diff(ended(p, 1), readProcess(t, db, p.ID)); d != "" {
		t.Errorf("what identifies a process changed with its end (-stored +read):\n%s", d)
	}
	// One that has ended without a time, or has a time and has not ended.
	half, other := newProcess("proc-2"), newProcess("proc-3")
	half.State, other.Ended = writ.ProcessExited, &epoch
	for _, p := range []writ.Process{half, other} {
		err := db.Update(ctx, func(tx *store.Tx) error { return tx.InsertProcess(ctx, p) })
		if err == nil {
			t.Errorf("a process that is %s and ended at %v was stored", p.State, p.Ended)
		}
	}
}

func processEndRace(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	insertProcesses(t, db, newProcess("proc-1"))
	got := race(8, func(i int) string {
		mine := ended(newProcess("proc-1"), i)
		mine.Reason = fmt.Sprint(i)
		var won bool
		if err := db.Update(ctx, func(tx *store.Tx) (err error) { won, err = tx.UpdateProcess(ctx, mine); return err }); err != nil {
			return err.Error()
		}
		if won {
			return "won " + mine.Reason
		}
		return "lost"
	})
	if by := readProcess(t, db, "proc-1").Reason; got["lost"] != 7 || got["won "+by] != 1 {
		t.Errorf("8 ends: %v, stored that of %s; want one winner, stored", got, by)
	}
}

// processLocked decides from what it has read, in many transactions at once.
func processLocked(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	for round := range 20 {
		id := writ.ProcessID(fmt.Sprint("proc-", round))
		insertProcesses(t, db, newProcess(string(id)))
		got := race(8, func(int) string {
			var did bool
			err := db.Update(ctx, func(tx *store.Tx) error {
				did = false
				p, err := tx.Process(ctx, id)
				if err != nil || p.Ended != nil {
					return err
				}
				did, err = tx.UpdateProcess(ctx, ended(p, 1))
				if err == nil && !did {
					err = errors.New("it was ended by another since it was read")
				}
				return err
			})
			return fmt.Sprint(did, err)
		})
		if got["true <nil>"] != 1 || got["false <nil>"] != 7 {
			t.Fatalf("8 read a process and end it: %v, want one to do it and the rest to see it done", got)
		}
	}
}

func processLists(t *testing.T, s storeSuite) {
	db := s.open(t)
	add := func(id string, age time.Duration, change func(*writ.Process)) {
		p := newProcess(id)
		p.Started = epoch.Add(-age)
		change(&p)
		insertProcesses(t, db, p)
	}
	add("proc-1", 3*time.Second, func(p *writ.Process) { p.Owner = "gw-2" })
	add("proc-2", 2*time.Second, func(p *writ.Process) { p.By.ID = "tester" })
	add("proc-3", 2*time.Second, func(p *writ.Process) { *p = ended(*p, 1); p.Workspace = "docs" })
	add("proc-4", time.Second, func(p *writ.Process) { p.By.Kind = writ.KindUser })
	add("proc-5", 0, func(p *writ.Process) { p.Tenant = "evil" })
	builder := writ.Ref{Kind: writ.KindAgent, ID: "builder"}
	list := func(f writ.ProcessFilter) (ids []string, next string) {
		ps := view(t, db, func(ctx context.Context, tx *store.Tx) (ps []writ.Process, err error) {
			ps, next, err = tx.Processes(ctx, f)
			return ps, err
		})
		return processIDs(ps), next
	}
	for _, c := range []struct {
		filter writ.ProcessFilter
		want   []string
	}{
		{writ.ProcessFilter{}, []string{"proc-5", "proc-4", "proc-3", "proc-2", "proc-1"}},
		{writ.ProcessFilter{Tenant: "acme"}, []string{"proc-4", "proc-3", "proc-2", "proc-1"}},
		{writ.ProcessFilter{Tenant: "acme", By: builder}, []string{"proc-3", "proc-1"}},
		{writ.ProcessFilter{Tenant: "evil", By: builder}, []string{"proc-5"}},
		{writ.ProcessFilter{Tenant: "acme", Workspace: "docs"}, []string{"proc-3"}},
		{writ.ProcessFilter{States: []writ.ProcessState{writ.ProcessExited}}, []string{"proc-3"}},
		{writ.ProcessFilter{Tenant: "acme", States: []writ.ProcessState{writ.ProcessRunning}}, []string{"proc-4", "proc-2", "proc-1"}},
		{writ.ProcessFilter{Workspace: "none"}, nil},
		{writ.ProcessFilter{By: writ.Ref{ID: "a\x00b"}}, nil},
	} {
		if got, next := list(c.filter); !slices.Equal(got, c.want) || next != "" {
			t.Errorf("%+v: got %v, then %q, want %v", c.filter, got, next, c.want)
		}
	}
	kept := writ.ProcessFilter{Tenant: "acme", Kept: true}
	if got, _ := list(kept); !slices.Equal(got, []string{"proc-4", "proc-2", "proc-1"}) {
		t.Errorf("kept without any output are %v", got)
	}
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		return tx.PutProcessOutput(ctx, "proc-3", writ.StoredOutput{})
	})
	if got, _ := list(kept); !slices.Equal(got, []string{"proc-4", "proc-3", "proc-2", "proc-1"}) {
		t.Errorf("kept are %v", got)
	}
	f := writ.ProcessFilter{Page: writ.Page{Limit: 2}}
	var pages []string
	for {
		ids, next := list(f)
		pages = append(pages, strings.Join(ids, " "))
		if f.Page.Cursor = next; next == "" || len(pages) > 3 {
			break
		}
	}
	if d := cmp.Diff([]string{"proc-5 proc-4", "proc-3 proc-2", "proc-1"}, pages); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	for owner, want := range map[string][]string{"gw-1": {"proc-2", "proc-4", "proc-5"}, "gw-2": {"proc-1"}, "gw-9": nil, "": {"proc-1", "proc-2", "proc-4", "proc-5"}} {
		got := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Process, error) {
			return tx.RunningProcesses(ctx, owner)
		})
		if !slices.Equal(processIDs(got), want) {
			t.Errorf("running processes of %q: %v, want %v", owner, processIDs(got), want)
		}
	}
}

// processOutputs is what of scenario 94 is the store's: the last output of processes
// is kept for a time, and of so many.
func processOutputs(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	big := strings.Repeat("\x00\xff☃ \x1b[31m", 30_000)
	put := func(id, data string, from int64) {
		t.Helper()
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.PutProcessOutput(ctx, writ.ProcessID(id), writ.StoredOutput{Data: []byte(data), Retained: from})
		})
	}
	for i := range 6 {
		p := newProcess(fmt.Sprint("proc-", i))
		if i > 0 {
			p = ended(p, 10*i)
		}
		insertProcesses(t, db, p, ended(newProcess(fmt.Sprint("silent-", i)), 100)) // those without output take nobody's place
		put(string(p.ID), fmt.Sprint("output ", i), int64(i))
	}
	put("proc-3", big, 1<<40)
	got := view(t, db, func(ctx context.Context, tx *store.Tx) (writ.StoredOutput, error) {
		return tx.ProcessOutput(ctx, "proc-3")
	})
	if string(got.Data) != big || got.Retained != 1<<40 {
		t.Errorf("output of %d bytes from %d, want %d from %d", len(got.Data), got.Retained, len(big), int64(1<<40))
	}
	err := db.Update(ctx, func(tx *store.Tx) error { return tx.PutProcessOutput(ctx, "proc-none", writ.StoredOutput{}) })
	if err == nil {
		t.Error("output of a process that is not there was stored")
	}
	kept := func() (ids []string) {
		for i := range 6 {
			id := fmt.Sprint("proc-", i)
			err := db.View(ctx, func(tx *store.Tx) error { _, err := tx.ProcessOutput(ctx, writ.ProcessID(id)); return err })
			if err == nil {
				ids = append(ids, id)
			} else {
				wantKind(t, "deleted output", err, writ.NotFound)
			}
		}
		return ids
	}
	for _, c := range []struct {
		before  int // seconds after the epoch
		keep    int
		deleted int64
		want    []string
	}{
		{10, 9, 0, []string{"proc-0", "proc-1", "proc-2", "proc-3", "proc-4", "proc-5"}},
		{11, 9, 1, []string{"proc-0", "proc-2", "proc-3", "proc-4", "proc-5"}},
		{11, 2, 2, []string{"proc-0", "proc-4", "proc-5"}},
		{45, 1, 1, []string{"proc-0", "proc-5"}},
		{999, 9, 1, []string{"proc-0"}}, // that one still runs
		{999, 0, 0, []string{"proc-0"}},
	} {
		var n int64
		update(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.DeleteProcessOutputs(ctx, epoch.Add(time.Duration(c.before)*time.Second), c.keep)
			return err
		})
		if got := kept(); n != c.deleted || !slices.Equal(got, c.want) {
			t.Errorf("keep %d that ended from %d s on: %d deleted, left %v; want %d, %v", c.keep, c.before, n, got, c.deleted, c.want)
		}
	}
	if readProcess(t, db, "proc-5").Total != 0 || len(view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Process, error) {
		ps, _, err := tx.Processes(ctx, writ.ProcessFilter{})
		return ps, err
	})) != 12 {
		t.Error("processes went with their outputs")
	}
}
