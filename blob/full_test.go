package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// smallDir is the environment of a child that fills a disk of its own, mounted there.
const smallDir = "WRIT_BLOB_TEST_SMALL"

// TestFullDisk: what does not fit is Unavailable and leaves nothing; what does is kept, before
// and after.
func TestFullDisk(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), smallDir+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if cmd.Process == nil {
		testkit.Missing(t, "userns", "no namespace of its own: "+err.Error())
	}
	if err != nil || string(out) != "<nil>\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// fillDisk says what of TestFullDisk does not hold.
func fillDisk(dir string) error {
	if err := syscall.Mount("small", dir, "tmpfs", 0, "size=1m,nr_inodes=64"); err != nil {
		return err
	}
	f, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	keep := func(size int) error {
		_, _, err := f.Put(ctx, bytes.NewReader(make([]byte, size)), 4<<20)
		return err
	}
	leaves := func(want int) error {
		for name, want := range map[string]int{blobs: want, drafts: 0} {
			if in, err := os.ReadDir(dir + "/" + name); err != nil || len(in) != want {
				return fmt.Errorf("%d %s, want %d: %v", len(in), name, want, err)
			}
		}
		return nil
	}
	if err := errors.Join(keep(1000), leaves(1)); err != nil {
		return err
	}
	if err := keep(2 << 20); writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), "cannot keep files now") || !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("too large for the disk: %w", err)
	}
	if err := errors.Join(leaves(1), keep(2000), leaves(2)); err != nil {
		return err
	}
	for i := range 64 { // until there is no inode for a draft
		if err = keep(3000 + i); err != nil {
			break
		}
	}
	if writ.KindOf(err) != writ.Unavailable {
		return fmt.Errorf("no inode is left: %w", err)
	}
	return nil
}
