package jail

import (
	"golang.org/x/sys/unix"
)

// openTerminal makes a terminal of the box's own devpts, so that the program finds its
// name in /dev/pts. ours does not block, since the server reads and writes it.
func openTerminal(rows, cols uint16) (ours, theirs int, err error) {
	ours, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	if theirs, err = openOther(ours); err == nil {
		err = prepareTerminal(theirs, rows, cols)
	}
	if err != nil {
		_ = closeAll(ours, theirs)
		return -1, -1, err
	}
	return ours, theirs, nil
}

// openOther opens the program's end of the terminal whose other end is ours.
func openOther(ours int) (int, error) {
	if err := unix.IoctlSetPointerInt(ours, unix.TIOCSPTLCK, 0); err != nil {
		return -1, err
	}
	// Not by its name, which would have to be put together and opened.
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(ours), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func prepareTerminal(fd int, rows, cols uint16) error {
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		return err
	}
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Iflag |= unix.IUTF8 // so that erasing a character takes all of its bytes
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}
