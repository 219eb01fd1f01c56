package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"writ"
	"writ/sandbox/jail"
)

// argsFD is where bwrap reads its NUL separated arguments, so that none is in argv. What
// they name comes behind.
const argsFD = jail.ExecutableFD + 1

// maxDiagnosis bounds what is kept of bwrap's own messages.
const maxDiagnosis = 4 << 10

// process is one bwrap process and everything in its box.
type process struct {
	cmd    *exec.Cmd
	group  *cgroup
	conn   *net.UnixConn // to the jail
	pid    int           // of the box's first process
	names  []string      // of dirs, in the box: its memory file systems, then its workspace if it has one
	dirs   []*os.File    // with names; nil until ready
	stderr diagnosis

	mu   sync.Mutex
	jail *os.File // guarded by mu: kill comes from any goroutine; pidfd of pid; nil until ready and after end

	// gone is closed when bwrap has been waited for. It waits for the jail, and the
	// kernel ends a jail only after everything else in its pid namespace.
	gone chan struct{}
}

// launch starts bwrap in a new process of group g. On error nothing is left of it but g.
func (b *Bubblewrap) launch(bwrap string, g *cgroup, plan boxPlan) (*process, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	rest := fileList{first: argsFD + 1}
	args, argv := plan.assemble(&rest)
	files := fileList{first: jail.SocketFD, err: rest.err}
	files.give(theirs)
	files.lend(b.executable)
	files.pipe(args.bytes())
	files.list, files.owned = append(files.list, rest.list...), append(files.owned, rest.owned...)
	defer files.close()
	p := &process{conn: ours, group: g, names: plan.dirs(), gone: make(chan struct{})}
	p.dirs = make([]*os.File, len(p.names))
	if files.err != nil {
		_ = ours.Close()
		return nil, files.err
	}
	p.cmd = exec.Command(bwrap, append([]string{"--args", strconv.Itoa(argsFD), "--", fmt.Sprintf("/proc/self/fd/%d", jail.ExecutableFD), jail.Arg}, argv...)...)
	p.cmd.Env = []string{}
	p.cmd.Dir = "/"
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = time.Second
	p.cmd.ExtraFiles = files.list
	// No parent-death signal, here or by --die-with-parent: bwrap's child waits for it
	// without end when bwrap is killed before the child may go on. The end of the
	// socket, which is ours alone, ends a jail as surely, and as soon as it starts.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if b.uids != nil { // we are root
		p.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(plan.uid), Gid: uint32(plan.gid), Groups: []uint32{}}
	}
	if fd := g.fd(); fd >= 0 {
		p.cmd.SysProcAttr.UseCgroupFD, p.cmd.SysProcAttr.CgroupFD = true, fd
	}
	err = g.run(p.cmd.Start)
	if p.cmd.Process == nil {
		return nil, errors.Join(b.startError(bwrap, plan, err), ours.Close())
	}
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait() // how it ended is in cmd.ProcessState and in its messages
	}()
	if err != nil { // it runs, but not where it must
		return nil, errors.Join(err, p.end())
	}
	return p, nil
}

// startError says why bwrap itself could not be executed.
func (b *Bubblewrap) startError(bwrap string, plan boxPlan, err error) error {
	e := &writ.Error{Kind: writ.Unavailable, Op: "prepare sandbox", Err: err,
		Msg: fmt.Sprintf("the sandbox is unavailable: %s cannot be started: %v", bwrap, err)}
	denied := errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES)
	switch {
	case b.uids == nil || !denied:
	case plan.workspace != nil:
		e.Msg += fmt.Sprintf(". It is started as user %d, who owns %s: everybody must be able to execute it (chmod a+rx), and a container must map that user and its group",
			plan.uid, plan.workspace.Root)
	default:
		e.Msg += fmt.Sprintf(". It is started as user %d: everybody must be able to execute it (chmod a+rx), and a container must map user ids from %d to %d, "+
			"or the range be set to one that it maps; writ can also be run as an ordinary user", plan.uid, b.uids.base, b.uids.base+b.uids.count-1)
	}
	return e
}

// socketPair makes the socket to a jail. The kernel adds the sender's process id to
// what arrives at our end.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "jail socket")
	mine := os.NewFile(uintptr(fds[0]), "box socket")
	defer mine.Close() // FileConn has a copy
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("asking for credentials: %w", err), theirs.Close())
	}
	c, err := net.FileConn(mine)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("opening a socket: %w", err), theirs.Close())
	}
	return c.(*net.UnixConn), theirs, nil
}

// fileList collects the descriptors of a child, and closes those that are only its. The
// jail inherits what bwrap does not close when it has read it.
type fileList struct {
	first int // number of the first in the child
	list  []*os.File
	owned []*os.File
	err   error
}

// lend adds f and gives its number in the child, as does whatever adds one.
func (l *fileList) lend(f *os.File) string {
	l.list = append(l.list, f)
	return strconv.Itoa(l.first + len(l.list) - 1)
}

func (l *fileList) give(f *os.File) string {
	l.owned = append(l.owned, f)
	return l.lend(f)
}

// pipe adds a pipe from which the child reads content and then end of file.
func (l *fileList) pipe(content []byte) string {
	if l.err == nil && len(content) > 60<<10 { // what a pipe holds, with room to spare
		l.err = fmt.Errorf("%d bytes do not fit into a pipe", len(content))
	}
	if l.err != nil {
		return ""
	}
	r, w, err := os.Pipe()
	if err != nil {
		l.err = fmt.Errorf("making a pipe: %w", err)
		return ""
	}
	_, err = w.Write(content)
	l.err = errors.Join(err, w.Close())
	return l.give(r)
}

// memory adds a file with content that nobody can change.
func (l *fileList) memory(name string, content []byte) string {
	if l.err != nil {
		return ""
	}
	f, err := sealedBytes(name, content)
	if err != nil {
		l.err = err
		return ""
	}
	return l.give(f)
}

func (l *fileList) close() {
	for _, f := range l.owned {
		_ = f.Close() // the child has its own
	}
}

// awaitReady waits until the jail reports READY, at most until deadline. An error comes at
// once when ctx is done, and has its cause.
func (p *process) awaitReady(ctx context.Context, deadline time.Time) (jail.Record, error) {
	if err := p.conn.SetReadDeadline(deadline); err != nil {
		return jail.Record{}, err
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(fired)
		_ = p.conn.SetReadDeadline(time.Unix(1, 0)) // nobody closes it meanwhile
	})
	r, err := p.receiveReady()
	if !stop() {
		<-fired // it must not fall into what is read next
		return jail.Record{}, errors.Join(context.Cause(ctx), err)
	}
	return r, err
}

// receiveReady takes READY, and what comes with it.
func (p *process) receiveReady() (jail.Record, error) {
	b := make([]byte, jail.RecordBytes+1)
	oob := make([]byte, unix.CmsgSpace(4*len(p.dirs))+unix.CmsgSpace(unix.SizeofUcred))
	n, oobn, _, _, err := p.conn.ReadMsgUnix(b, oob)
	if err != nil {
		return jail.Record{}, fmt.Errorf("waiting for the box: %w", err)
	}
	if err := p.takeControl(oob[:oobn]); err != nil {
		return jail.Record{}, err
	}
	r, err := jail.ParseRecord(b[:n])
	switch {
	case err != nil:
		return jail.Record{}, err
	case r.Kind != jail.Ready || p.jail == nil || p.dirs[len(p.dirs)-1] == nil:
		return jail.Record{}, fmt.Errorf("the box sent record %d instead of ready", r.Kind)
	}
	return r, nil
}

// takeControl takes the descriptors and the process id that come with READY.
func (p *process) takeControl(oob []byte) error {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("control message of the box: %w", err)
	}
	for _, m := range msgs {
		if cred, err := unix.ParseUnixCredentials(&m); err == nil {
			// The jail waits for us, so its number is still its own.
			fd, err := unix.PidfdOpen(int(cred.Pid), 0)
			if err != nil {
				return fmt.Errorf("opening process %d of the box: %w", cred.Pid, err)
			}
			p.mu.Lock()
			p.jail, p.pid = os.NewFile(uintptr(fd), "jail process"), int(cred.Pid)
			p.mu.Unlock()
			continue
		}
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fmt.Errorf("descriptors of the box: %w", err)
		}
		for i, fd := range fds {
			f := os.NewFile(uintptr(fd), "box folder")
			if i < len(p.dirs) && p.dirs[i] == nil {
				p.dirs[i] = f
			} else {
				_ = f.Close() // more than a jail sends
			}
		}
	}
	return nil
}

// kill begins to end everything in the box. It may be called at any time before end,
// but not while awaitReady runs.
func (p *process) kill() {
	if p.jail == nil {
		_ = p.conn.CloseWrite() // bwrap goes on to the jail, and that ends; see launch
		return
	}
	// Not bwrap, which would then be gone before the box is. An error means that the
	// jail is gone.
	_ = unix.PidfdSendSignal(int(p.jail.Fd()), unix.SIGKILL, nil, 0)
}

// awaitGone waits until nothing in the box is alive, and helps after grace.
func (p *process) awaitGone(grace time.Duration) {
	select {
	case <-p.gone:
		return
	case <-time.After(grace):
	}
	_ = p.group.kill() // what fails here is seen by remove
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// goneGrace is how long the kernel may take to end the last process of a box of
// which bwrap is gone.
const goneGrace = 2 * time.Second

// confirmGone makes sure, once bwrap is gone, that everything in the box is. An error
// means that something may be alive.
func (p *process) confirmGone() error {
	if p.jail == nil {
		// Where there is a group, that it can be removed says the same and more.
		if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); p.group == nil && ok && status.Signaled() {
			return errors.New("bubblewrap was killed while it made a box: what it had started may be alive")
		}
		return nil
	}
	// The first process of a pid namespace is the last to go.
	deadline := time.Now().Add(goneGrace)
	for {
		wait := max(0, time.Until(deadline))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.jail.Fd()), Events: unix.POLLIN}}, int(wait.Milliseconds()))
		switch {
		case n > 0:
			return nil
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("waiting for the first process of a box: %w", err)
		case wait == 0:
			return fmt.Errorf("the first process of a box, %d, is alive although it was killed", p.pid)
		}
	}
}

// end ends everything in the box and removes all that it had outside. An error means
// that something of it may be left.
func (p *process) end() error {
	p.kill()
	p.awaitGone(time.Second)
	err := errors.Join(p.confirmGone(), p.conn.Close())
	for _, f := range p.dirs {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jail != nil {
		err = errors.Join(err, p.jail.Close())
		p.jail = nil
	}
	return err
}

// diagnosis keeps the first bytes of what bwrap and the jail say.
type diagnosis struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

func (d *diagnosis) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.b = append(d.b, p[:min(len(p), maxDiagnosis-len(d.b))]...)
	return len(p), nil
}

func (d *diagnosis) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.b)
}
