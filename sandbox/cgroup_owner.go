package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// owner is the process whose provider made a group, as the group's name has it. A
// number alone would not do: it is given again when the process is gone, and each pid
// namespace counts for itself.
type owner struct {
	pidns uint64 // inode number of its pid namespace
	pid   int
	start uint64 // as startTime gives it
}

// ourselves is this process as an owner.
func ourselves() (owner, error) {
	var ns unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &ns); err != nil {
		return owner{}, fmt.Errorf("looking at our pid namespace: %w", err)
	}
	start, err := startTime(os.Getpid())
	return owner{pidns: ns.Ino, pid: os.Getpid(), start: start}, err
}

// prefix is how the names of an owner's groups begin.
func (o owner) prefix() string { return fmt.Sprintf("writ-ns%d-%d-%d-", o.pidns, o.pid, o.start) }

// ownerOf reads the name of a group. It is not ok when no provider made it.
func ownerOf(name string) (o owner, ok bool) {
	parts := strings.Split(name, "-")
	if len(parts) < 5 || parts[0] != "writ" || !strings.HasPrefix(parts[1], "ns") {
		return owner{}, false
	}
	var errs [3]error
	o.pidns, errs[0] = strconv.ParseUint(strings.TrimPrefix(parts[1], "ns"), 10, 64)
	o.pid, errs[1] = strconv.Atoi(parts[2])
	o.start, errs[2] = strconv.ParseUint(parts[3], 10, 64)
	return o, errors.Join(errs[:]...) == nil && o.pid > 0
}

// gone reports whether an owner of our own pid namespace has ended. A start time that
// differs means that another process has its number now.
func (o owner) gone() bool {
	now, err := startTime(o.pid)
	return errors.Is(err, fs.ErrNotExist) || err == nil && now != o.start
}

// unusedAfter is how old a group of an unknown owner must be: between making a group
// and starting a process in it lie milliseconds.
const unusedAfter = time.Minute

// removeUnused removes a group that is old and has no processes. It kills nobody: the
// kernel refuses to remove a group in use, which is no error here.
func removeUnused(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && time.Since(info.ModTime()) < unusedAfter {
		return nil
	}
	if err == nil {
		err = unix.Rmdir(dir)
	}
	if err != nil && !errors.Is(err, unix.EBUSY) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a leftover control group %s: %w", dir, err)
	}
	return nil
}

// startTime is when the process was started, in clock ticks after boot. The error
// is fs.ErrNotExist when there is no such process.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, syscall.ESRCH) {
		err = fs.ErrNotExist // it ended between open and read
	}
	if err != nil {
		return 0, fmt.Errorf("reading when process %d started: %w", pid, err)
	}
	// The name, in parentheses, may hold anything. Field 22 is the 20th after it.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("reading when process %d started: its stat has %d fields", pid, len(fields))
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
