package jail

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// exitSetup is the exit status of a jail that did not get ready.
const exitSetup = 70

// Main is the whole life of a jail; it does not return. main calls it before
// anything else when the first argument is Arg. Without the surroundings that a
// box gives, it says what is missing and exits with status 70.
func Main() {
	args := os.Args[2:]
	if len(args) > 1 && args[0] == HoldArg {
		// It goes on as the jail, unless this fails.
		fmt.Fprintln(os.Stderr, "writ jail:", raise(args[1], args[2:]))
		os.Exit(exitSetup)
	}
	j := jail{dirs: args}
	if len(args) == 0 {
		j.dirs = Dirs[:]
	}
	if err := j.prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "writ jail:", err)
		os.Exit(exitSetup)
	}
	if err := j.serve(); err != nil {
		fmt.Fprintln(os.Stderr, "writ jail:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// jail is what this process keeps for its one command.
type jail struct {
	dirs []string // that READY reports
	// oomScore is open on our own /proc/self/oom_score_adj, or -1 where we cannot
	// write it: it says whom the kernel kills when memory runs out.
	oomScore int
}

// prepare makes this process unreadable and unkillable, checks where it is, and
// reports READY. It runs before any byte of a run is in the box.
func (j *jail) prepare() error {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		// Before dumps are off, since all of /proc/self is then somebody else's.
		{"open the oom score", func() (err error) { j.oomScore, err = openOOMScore(); return err }},
		// Before anything else, so that no later process of the box can look into this one.
		{"turn off dumps", func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }},
		// Somebody may kill bwrap alone; the server's own end comes by the socket.
		{"die with bwrap", func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) }},
		{"check the surroundings", surroundings},
		{"ignore signals", func() error { ignoreSignals(); return nil }},
		// Before the program is forked; the descriptor of the executable goes at once.
		{"keep descriptors", func() error {
			_ = unix.Close(ExecutableFD)
			return unix.CloseRange(SocketFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
		}},
		// Now, as under the limits of a command there may be no room for another thread,
		// and a runtime that cannot start one gives up.
		{"start threads", func() error { startThreads(4); return nil }},
		{"set the umask", func() error { unix.Umask(0o022); return nil }},
		{"report ready", j.ready},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func surroundings() error {
	if os.Getpid() != 1 {
		return errors.New("this is not the first process of a box: writ starts it there, nobody else does anywhere")
	}
	if os.Geteuid() == 0 || os.Getuid() == 0 {
		return errors.New("the user is root")
	}
	// The value comes back as the result, which Prctl does not give.
	on, _, errno := unix.Syscall6(unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0)
	if errno != 0 || on != 1 {
		return errors.New("no_new_privs is not set")
	}
	return nil
}

func openOOMScore() (int, error) {
	fd, err := unix.Open("/proc/self/oom_score_adj", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == unix.EACCES {
		return -1, nil // an executable that its user cannot read has dumps off from the start
	}
	return fd, err
}

// startThreads makes the runtime start n threads and keep them for later. The jail
// blocks in two system calls at most (serve), and runs on one processor.
func startThreads(n int) {
	arrived, release := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	for range n {
		done.Go(func() {
			runtime.LockOSThread() // so that each waits on a thread of its own
			defer runtime.UnlockOSThread()
			arrived <- struct{}{}
			<-release
		})
	}
	for range n {
		<-arrived
	}
	close(release)
	done.Wait() // and all but the one that goes on here are idle
}

// ready opens the folders that it was told and reports them with the namespaces.
func (j *jail) ready() error {
	r := Record{Kind: Ready}
	for i, kind := range Namespaces {
		var st unix.Stat_t
		if err := unix.Stat("/proc/self/ns/"+kind, &st); err != nil {
			return fmt.Errorf("namespace %s: %w", kind, err)
		}
		r.Values[i] = st.Ino
	}
	var fds []int
	for _, dir := range j.dirs {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", dir, err)
		}
		fds = append(fds, fd)
	}
	if err := unix.Sendmsg(SocketFD, r.encode(), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	return nil
}

// serve runs one command. It returns nil when the server has gone or the program
// has ended, and the caller then exits, which ends everything in the box.
func (j *jail) serve() error {
	m, err := receive()
	if err != nil || m == nil {
		return err
	}
	var p program
	go p.obeyServer()
	s, failed := m.start(j.oomScore)
	if failed != nil {
		return report(*failed, -1)
	}
	p.lead(s.pid)
	// Our end of the terminal shall be the server's alone.
	if err := errors.Join(report(Record{Kind: Started}, s.ours), closeAll(s.ours)); err != nil {
		return err
	}
	return reap(&p, s)
}

// report sends a record, with a descriptor unless it is negative.
func report(r Record, fd int) error {
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	if err := unix.Sendmsg(SocketFD, r.encode(), rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// closeAll closes descriptors; negative ones are none.
func closeAll(fds ...int) error {
	var errs []error
	for _, fd := range fds {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}

// program is the process that the command started.
type program struct {
	mu  sync.Mutex
	pid int // guarded by mu; 0 before it started and once it has ended
}

// lead sets whose group signals are for.
func (p *program) lead(pid int) {
	p.mu.Lock()
	p.pid = pid
	p.mu.Unlock()
}

// obeyServer passes on the signals that the server sends, until its end of the socket
// is gone, or it says what no server says: that ends the box.
func (p *program) obeyServer() {
	b := make([]byte, signalBytes+1)
	for {
		n, err := unix.Read(SocketFD, b)
		if err == unix.EINTR {
			continue
		}
		sig, ok := parseSignalMessage(b[:max(n, 0)])
		if !ok {
			os.Exit(0)
		}
		p.mu.Lock()
		if p.pid > 0 {
			_ = syscall.Kill(-p.pid, syscall.Signal(sig)) // there may be nobody any more
		}
		p.mu.Unlock()
	}
}

// reap waits for every process of the box, orphans too, until the program ended.
// Then it ends what is left, and reports when nothing is: the report means that the
// jail is alone.
func reap(p *program, s started) error {
	r := Record{Kind: Exited}
	// Outside of the loop, which hostile code can make run long: it allocates nothing.
	var status syscall.WaitStatus
	var use, all syscall.Rusage
	for ended := false; ; {
		pid, err := syscall.Wait4(-1, &status, 0, &use)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.ECHILD && ended:
			if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &all) == nil {
				r.Values[1], r.Values[2] = uint64(cpu(all)), uint64(all.Maxrss)<<10
			}
			// Until now, as a program may close its terminal and open it again.
			_ = closeAll(s.theirs)
			return report(r, -1)
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		case pid == s.pid:
			ended = true
			p.lead(0) // its number may be another's now
			r.Status, r.Values[0] = status, uint64(cpu(use))
			// All at once, and none can fork its way out: a process with a signal
			// pending does not fork. An error means that there is nobody.
			_ = syscall.Kill(-1, syscall.SIGKILL)
		}
	}
}

func cpu(u syscall.Rusage) int64 { return u.Utime.Nano() + u.Stime.Nano() }
