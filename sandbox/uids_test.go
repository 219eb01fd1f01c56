package sandbox

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"writ"
)

func onlyRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user has one user id")
	}
}

func TestUserIDsAreLentOnce(t *testing.T) {
	onlyRoot(t)
	b := newProvider(t, Options{UIDBase: 871_000, UIDs: 2})
	other := newProvider(t, Options{UIDBase: 871_000, UIDs: 2})
	first := prepareBox(t, b, writ.DefaultLimits)
	prepareBox(t, other, writ.DefaultLimits)
	wantNoUID(t, b, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	prepareBox(t, b, writ.DefaultLimits)
}

func wantNoUID(t *testing.T, b *Bubblewrap, all int) {
	t.Helper()
	_, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits})
	if writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), fmt.Sprintf("all %d user ids", all)) {
		t.Errorf("one box more: %v", err)
	}
}

// A server in another network namespace holds its ids against us, until it is killed.
func TestUserIDsAreLentOnceOverNamespaces(t *testing.T) {
	onlyRoot(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), helperEnv+"=lend")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		missing(t, "userns", err)
	}
	defer cmd.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "lent\n" {
		t.Fatalf("the helper said %q: %v", line, err)
	}
	ids := newUIDs(helperUID, 1, uidFile)
	if id, err := ids.acquire(); err == nil {
		t.Errorf("user id %d is lent twice", id)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "the id of a killed server is free", func() bool { _, err := ids.acquire(); return err == nil })
	ids.release(helperUID)
	if err := ids.close(); err != nil {
		t.Error(err)
	}
}

// Nobody but root can hold an id back: names that anybody may take reserve nothing.
func TestUserIDsCannotBeSquatted(t *testing.T) {
	onlyRoot(t)
	l, err := net.Listen("unix", "@writ/uid/873000")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	prepareBox(t, newProvider(t, Options{UIDBase: 873_000, UIDs: 1}), writ.DefaultLimits)
	info, err := os.Stat(uidFile)
	if err != nil || info.Mode().Perm()&0o077 != 0 || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("others can lock in %s: %v %v", uidFile, info, err)
	}
	ids := newUIDs(873_000, 1, filepath.Join(t.TempDir(), "no", "such"))
	_, err = ids.acquire()
	checkUnavailable(t, err, []string{"cannot be reserved", "/no/such", "ordinary user"})
}

// An id is lent again only when all that ran as it is known to be gone.
func TestUserIDOfABoxThatDidNotGoStaysReserved(t *testing.T) {
	onlyRoot(t)
	c := liveCgroups(t)
	b := newProvider(t, Options{UIDBase: 874_000, UIDs: 1})
	box, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits})
	if err != nil {
		t.Fatal(err)
	}
	g := box.(*bubblewrapBox).group
	inner := filepath.Join(g.dirs()[len(c.tree.parents())-1], "inner") // a group that has one cannot be removed
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := box.Close(); err == nil || !strings.Contains(err.Error(), "user id 874000 stays reserved") {
		t.Errorf("close: %v", err)
	}
	wantNoUID(t, b, 1)
	if err := unix.Rmdir(inner); err != nil {
		t.Fatal(err)
	}
	if err := g.remove(); err != nil {
		t.Error(err)
	}
	b.uids.release(874_000) // for the next round of this test
}

// That bwrap is gone does not say that its box is.
func TestGoneIsSeenAndNotAssumed(t *testing.T) {
	sleeper := exec.Command("/bin/sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(sleeper.Process.Pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{jail: os.NewFile(uintptr(fd), "jail"), pid: sleeper.Process.Pid}
	defer p.jail.Close()
	began := time.Now()
	if err := p.confirmGone(); err == nil || time.Since(began) < goneGrace {
		t.Errorf("a living process is gone, after %v: %v", time.Since(began), err)
	}
	_ = sleeper.Process.Kill()
	if err := p.confirmGone(); err != nil {
		t.Errorf("a killed process: %v", err)
	}
	_ = sleeper.Wait()
	// A bwrap that somebody killed before the box was ready may have left anything.
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	early := &process{cmd: sleeper, conn: ours, gone: make(chan struct{})}
	close(early.gone)
	if err := early.end(); err == nil || !strings.Contains(err.Error(), "may be alive") {
		t.Errorf("nobody knows what a killed bwrap left: %v", err)
	}
	failed := exec.Command("/bin/false")
	_ = failed.Run()
	if err := (&process{cmd: failed}).confirmGone(); err != nil {
		t.Errorf("a bwrap that ended by itself: %v", err)
	}
}
