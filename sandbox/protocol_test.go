package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"writ"
	"writ/sandbox/jail"
)

// The jail executes nothing from a file that could still be changed.
func TestJailRefusesAFileThatIsNotSealed(t *testing.T) {
	b := newProvider(t, Options{})
	header := jail.Command{Argv: []string{"/bin/true"}, Dir: "/"}.AppendHeader(nil)
	for name, seals := range map[string]int{
		"no seals":       0,
		"still writable": unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL,
		"may be resized": unix.F_SEAL_WRITE | unix.F_SEAL_SEAL,
	} {
		t.Run(name, func(t *testing.T) {
			fd, err := unix.MemfdCreate("command", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
			if err != nil {
				t.Fatal(err)
			}
			f := os.NewFile(uintptr(fd), "command")
			defer f.Close()
			if _, err := f.Write(header); err != nil {
				t.Fatal(err)
			}
			if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
				t.Fatal(err)
			}
			if rec := tell(t, b, f, len(header)); rec.Kind != jail.Failed || rec.Step != jail.StepCommand || rec.Errno != syscall.EPERM {
				t.Errorf("got %+v", rec)
			}
		})
	}
	f, err := sealedBytes("command", header)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if rec := tell(t, b, f, len(header)); rec.Kind != jail.Started {
		t.Errorf("sealed: got %+v", rec)
	}
	if rec := tell(t, b, f, len(header)+1); rec.Kind != jail.Failed || rec.Step != jail.StepCommand {
		t.Errorf("a header longer than its file: got %+v", rec)
	}
}

// tell sends the command file f to a fresh box and gives its answer.
func tell(t *testing.T, b *Bubblewrap, f *os.File, header int) jail.Record {
	t.Helper()
	box := prepareBox(t, b, writ.DefaultLimits).(*bubblewrapBox)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	n := int(null.Fd())
	if _, _, err := box.process.conn.WriteMsgUnix(jail.CommandMessage(header), unix.UnixRights(int(f.Fd()), n, n, n), nil); err != nil {
		t.Fatal(err)
	}
	if err := box.process.conn.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		t.Fatal(err)
	}
	rec, _, err := (&run{box: box}).receive()
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// A command file that nobody can change, not even we.
func TestSealedFile(t *testing.T) {
	f, err := sealedBytes("x", []byte("onetwo"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 10)
	if n, _ := f.Read(b); string(b[:n]) != "onetwo" {
		t.Errorf("content %q", b[:n])
	}
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("it can be written")
	}
	if w, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_WRONLY, 0); err == nil {
		if _, err := w.WriteAt([]byte("x"), 0); err == nil {
			t.Error("it can be opened again and written")
		}
		_ = w.Close()
	}
	if err := f.Truncate(0); err == nil {
		t.Error("it can be cut")
	}
}

// Under the limits of a command the jail may not get another thread, so it must not
// need one.
func TestJailHasItsThreadsBeforeTheLimits(t *testing.T) {
	b := newProvider(t, Options{})
	for range 5 {
		box := prepareBox(t, b, writ.DefaultLimits).(*bubblewrapBox)
		cmd := shell("echo up; read x < /dev/zero & read y")
		cmd.Input = true
		run, err := box.Start(t.Context(), cmd)
		if err != nil {
			t.Fatal(err)
		}
		before, err := readStatus(box.process.pid)
		if err != nil {
			t.Fatal(err)
		}
		var after map[string]string
		eventually(t, "the program waits", func() bool {
			after, err = readStatus(box.process.pid)
			return err != nil || after["State"] == "S (sleeping)"
		})
		if err != nil || before["Threads"] != after["Threads"] {
			t.Errorf("%s threads when it started, %s later, %v", before["Threads"], after["Threads"], err)
		}
		if err := run.CloseInput(); err != nil {
			t.Fatal(err)
		}
		wantExit(t, run.Wait(), 1) // as read does at the end
	}
	// All memory that there is, at once, on a host that counts no memory.
	b.groups = nil
	cmd := python(t, "b = []\ntry:\n    while True: b.append(bytearray(1 << 16))\nexcept MemoryError: pass\nprint('end')")
	cmd.Limits.MemoryBytes = 64 << 20
	for range 5 {
		r := runIn(t, b, cmd)
		if r.Outcome != writ.Succeeded && r.Outcome != writ.Failed {
			t.Fatalf("the jail did not hold: %s", show(r))
		}
	}
}

// What speaks on the socket of a jail may be anything.
func TestHostileRecords(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	before := openFiles(t)
	fds := make([]int, 50)
	for i := range fds {
		fds[i] = int(null.Fd())
	}
	for name, record := range map[string][]byte{
		"empty":    {},
		"short":    make([]byte, jail.RecordBytes-1),
		"long":     make([]byte, jail.RecordBytes+100),
		"no kind":  make([]byte, jail.RecordBytes),
		"any kind": append([]byte{99}, make([]byte, jail.RecordBytes-1)...),
		"exited":   append([]byte{byte(jail.Exited)}, make([]byte, jail.RecordBytes-1)...),
		"ready":    append([]byte{byte(jail.Ready)}, make([]byte, jail.RecordBytes-1)...),
	} {
		ours, theirs, err := socketPair()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := unix.Sendmsg(int(theirs.Fd()), record, unix.UnixRights(fds...), nil, 0); err != nil {
				t.Fatal(err)
			}
		}
		p := &process{conn: ours, dirs: make([]*os.File, len(jail.Dirs))}
		if r, err := p.awaitReady(t.Context(), time.Now().Add(time.Second)); err == nil && name != "ready" {
			t.Errorf("%s was taken as ready: %+v", name, r)
		}
		r := &run{box: &bubblewrapBox{process: p}}
		if rec, err := r.awaitStart(Command{}); err == nil {
			t.Errorf("%s was taken as a start: %+v", name, rec)
		}
		for _, f := range p.dirs {
			_ = f.Close() // nil or open
		}
		_, _, _ = p.jail.Close(), theirs.Close(), ours.Close()
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// A jail that ends before it has read a signal has said how its program ended.
func TestExitIsHeardThoughASignalCrossedIt(t *testing.T) {
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	exited := append([]byte{byte(jail.Exited)}, make([]byte, jail.RecordBytes-1)...)
	if err := unix.Sendmsg(int(theirs.Fd()), exited, nil, nil, 0); err != nil {
		t.Fatal(err)
	}
	r := &run{box: &bubblewrapBox{process: &process{conn: ours}}, finished: make(chan struct{})}
	if err := r.Signal(SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	if rec, _, err := r.receive(); err != nil || rec.Kind != jail.Exited {
		t.Errorf("got %+v, %v", rec, err)
	}
	if rec, _, err := r.receive(); err == nil {
		t.Errorf("after the end came %+v", rec)
	}
}

// Whoever does not want a box any more does not wait for it, also when that was so before
// the wait began.
func TestNobodyWaitsForABoxThatIsNotWanted(t *testing.T) {
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	p := &process{conn: ours, dirs: make([]*os.File, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		began := time.Now()
		_, err := p.awaitReady(ctx, began.Add(longEnough))
		if !errors.Is(err, context.Canceled) || time.Since(began) >= longEnough {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
	}
	// One that is ready by then is not given away half cancelled.
	ready := append([]byte{byte(jail.Ready)}, make([]byte, jail.RecordBytes-1)...)
	if err := unix.Sendmsg(int(theirs.Fd()), ready, nil, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := p.awaitReady(ctx, time.Now().Add(longEnough)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	_ = p.jail.Close() // nil, or open
}

// A Close that begins while a command is put together either finds the run or is found.
func TestNothingIsSentToABoxThatIsClosed(t *testing.T) {
	box := prepareBox(t, newProvider(t, Options{}), writ.DefaultLimits).(*bubblewrapBox)
	box.closed.Store(true) // as far as Close is when it looks for a run
	r, err := box.send(t.Context(), program("/bin/true"))
	if r != nil || writ.KindOf(err) != writ.Unavailable {
		t.Errorf("it was sent: %v", err)
	}
}
