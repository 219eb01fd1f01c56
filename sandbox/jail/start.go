package jail

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// seals are what a command file must have: nobody can change what was approved
// between its check and its use.
const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// message is a received command and its descriptors, which belong to it.
type message struct {
	header int
	file   int
	stdio  []int // three, or none for a program with a terminal
}

// receive waits for the command. It answers nil without an error when the server
// closed the socket instead.
func receive() (*message, error) {
	b := make([]byte, commandBytes+1)
	oob := make([]byte, unix.CmsgSpace(4*4))
	for {
		n, oobn, flags, _, err := unix.Recvmsg(SocketFD, b, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, fmt.Errorf("receive the command: %w", err)
		case n == 0:
			return nil, nil
		case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
			return nil, errors.New("receive the command: too long")
		}
		header, err := parseCommandMessage(b[:n])
		if err != nil {
			return nil, err
		}
		msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil || len(msgs) != 1 {
			return nil, fmt.Errorf("receive the command: %d control messages: %w", len(msgs), err)
		}
		fds, err := unix.ParseUnixRights(&msgs[0])
		if err != nil || len(fds) != 1 && len(fds) != 4 {
			return nil, fmt.Errorf("receive the command: %d descriptors: %w", len(fds), err)
		}
		return &message{header: header, file: fds[0], stdio: fds[1:]}, nil
	}
}

// started is a program that has been executed. The ends of its terminal are -1 when it
// has none.
type started struct {
	pid          int
	ours, theirs int
}

// start executes the command, or gives the record that says which step failed: then
// nothing was executed. oomScore is jail's.
func (m *message) start(oomScore int) (started, *Record) {
	s := started{ours: -1, theirs: -1}
	fail := func(step Step, index int, err error) (started, *Record) {
		r := &Record{Kind: Failed, Step: step, Index: uint32(index), Errno: syscall.EIO}
		_ = errors.As(err, &r.Errno)
		return s, r
	}
	cmd, err := m.read()
	if err == nil && (len(m.stdio) == 0) != cmd.terminal() {
		err = unix.EBADMSG
	}
	if err != nil {
		return fail(StepCommand, 0, err)
	}
	if i, err := m.place(cmd.Files); err != nil {
		return fail(StepFile, i, err)
	}
	_ = unix.Close(m.file)
	if err := unix.Chdir(cmd.Dir); err != nil {
		return fail(StepDir, 0, err)
	}
	stdio := m.stdio
	if cmd.terminal() {
		if s.ours, s.theirs, err = openTerminal(cmd.Rows, cmd.Cols); err != nil {
			return fail(StepTerminal, 0, err)
		}
		stdio = []int{s.theirs, s.theirs, s.theirs}
	}
	file, err := lookUp(cmd)
	if err != nil {
		return fail(StepExec, 0, err)
	}
	lower := raiseOOMScore(oomScore)
	// Last, so that only the fork inherits them and nothing above is in their way.
	for i, l := range cmd.Limits {
		if err := limit(l); err != nil {
			return fail(StepLimits, i, err)
		}
	}
	s.pid, err = syscall.ForkExec(file, cmd.Argv, &syscall.ProcAttr{
		Env:   cmd.Env,
		Files: []uintptr{uintptr(stdio[0]), uintptr(stdio[1]), uintptr(stdio[2])},
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: cmd.terminal()}, // Ctty: its descriptor 0
	})
	lower()
	if err != nil {
		return fail(StepExec, 0, err)
	}
	_ = closeAll(m.stdio...) // else the output would not end with the program
	return s, nil
}

// lookUp is the path of the program. Like execvp it tells a program that may not be
// executed from one that is not there, and looks on for another.
func lookUp(cmd Command) (string, error) {
	name := cmd.Argv[0]
	if name == "" || strings.Contains(name, "/") {
		return name, nil
	}
	var list string
	for _, e := range cmd.Env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			list = v
			break // the first one counts, as in the C library
		}
	}
	missing := unix.ENOENT
	for dir := range strings.SplitSeq(list, ":") {
		if !path.IsAbs(dir) {
			continue // the working folder is no place for programs that are not named with it
		}
		p := path.Join(dir, name)
		var st unix.Stat_t
		if unix.Stat(p, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if unix.Access(p, unix.X_OK) == nil {
			return p, nil
		}
		missing = unix.EACCES
	}
	return "", missing
}

// raiseOOMScore makes us, and so what we fork, the first that the kernel kills when
// memory runs out, until lower is called: what we forked stays first, and we are there
// to report how it ended. The memory of a box may lie in files, and then we would be
// the largest process. It is no wall: a program may lower its own score to where ours
// is, and then the control group still tells what happened.
func raiseOOMScore(fd int) (lower func()) {
	const worst = "1000"
	before := make([]byte, 16)
	n, err := unix.Pread(fd, before, 0)
	if err == nil {
		_, err = unix.Pwrite(fd, []byte(worst), 0)
	}
	if err != nil {
		return func() {}
	}
	return func() { _, _ = unix.Pwrite(fd, before[:n], 0) } // allowed: it is no lower than it was
}

// read checks the seals of the command file and decodes its header.
func (m *message) read() (Command, error) {
	got, err := unix.FcntlInt(uintptr(m.file), unix.F_GET_SEALS, 0)
	if err != nil {
		return Command{}, err
	}
	if got&seals != seals {
		return Command{}, unix.EPERM
	}
	b := make([]byte, m.header)
	if err := readFull(m.file, b, 0); err != nil {
		return Command{}, err
	}
	cmd, err := ParseHeader(b)
	if err != nil {
		return Command{}, unix.EBADMSG
	}
	return cmd, nil
}

func readFull(fd int, b []byte, at int64) error {
	for len(b) > 0 {
		n, err := unix.Pread(fd, b, at)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return unix.EBADMSG // shorter than its header says
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}

// place places files, symlinks last, so that none of the others goes where one leads. On
// error i is the one that failed.
func (m *message) place(files []File) (i int, err error) {
	buf := make([]byte, 256<<10)
	for _, links := range []bool{false, true} {
		at := int64(m.header)
		for i, f := range files {
			switch {
			case (f.Kind == Link) != links:
			case f.Kind == Folder:
				err = makeFolder(f)
			case f.Kind == Link:
				err = makeLink(m.file, at, f, buf)
			default:
				err = makeFile(m.file, at, f, buf)
			}
			if err != nil {
				return i, err
			}
			at += f.Size
		}
	}
	return 0, nil
}

// makeLink makes one symlink.
func makeLink(from int, at int64, f File, buf []byte) error {
	if err := makeParents(f.Path); err != nil {
		return err
	}
	to := buf[:f.Size] // fault saw that it is short
	if err := readFull(from, to, at); err != nil {
		return err
	}
	return unix.Symlink(string(to), f.Path)
}

// makeFile writes one file. The box has run nothing yet, so no name in it can be a
// trap; O_EXCL makes two files of one path an error. buf is for copying.
func makeFile(from int, at int64, f File, buf []byte) (err error) {
	if err := makeParents(f.Path); err != nil {
		return err
	}
	fd, err := unix.Open(f.Path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	for left := f.Size; left > 0; {
		b := buf[:min(left, int64(len(buf)))]
		if err := readFull(from, b, at); err != nil {
			return err
		}
		at, left = at+int64(len(b)), left-int64(len(b))
		for len(b) > 0 {
			n, err := unix.Write(fd, b)
			if err != nil && err != unix.EINTR {
				return err
			}
			b = b[max(n, 0):]
		}
	}
	return unix.Fchmod(fd, f.Mode&0o777)
}

// makeFolder makes one folder, or gives the one that is there its mode.
func makeFolder(f File) error {
	if err := makeParents(f.Path); err != nil {
		return err
	}
	if err := unix.Mkdir(f.Path, 0o700); err != nil && err != unix.EEXIST {
		return err
	}
	fd, err := unix.Open(f.Path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fchmod(fd, f.Mode&0o777), unix.Close(fd))
}

// makeParents makes the folders above p that are missing.
func makeParents(p string) error {
	dir := path.Dir(p)
	err := unix.Mkdir(dir, 0o755)
	switch err {
	case nil, unix.EEXIST:
		return nil
	case unix.EROFS:
		// A mount point below a read-only root: present, or the open will say so.
		return nil
	case unix.ENOENT:
		if err := makeParents(dir); err != nil {
			return err
		}
		return unix.Mkdir(dir, 0o755)
	}
	return err
}

// limit lowers one limit. What the server itself may not exceed stays.
func limit(l Limit) error {
	if raceDetector && l.Resource == unix.RLIMIT_DATA {
		return nil // the detector maps memory whenever it likes and dies when it gets none
	}
	var now syscall.Rlimit
	if err := syscall.Getrlimit(l.Resource, &now); err != nil {
		return err
	}
	hard := min(l.Hard, now.Max)
	// syscall's, not unix's: it also forgets the value of RLIMIT_NOFILE that the Go
	// runtime saved at its start and would give back to the program at exec.
	return syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: min(l.Soft, hard), Max: hard})
}
