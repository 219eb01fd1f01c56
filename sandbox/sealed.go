package sandbox

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// sealedBytes is sealed for content that is in memory.
func sealedBytes(name string, content []byte) (*os.File, error) {
	return sealed(name, func(w io.Writer) error {
		if _, err := w.Write(content); err != nil {
			return fmt.Errorf("writing memory file %s: %w", name, err)
		}
		return nil
	})
}

// sealed makes a memory file of what write writes, that nobody can change any more,
// opened for reading at its start. An error of write is returned as it is.
func sealed(name string, write func(w io.Writer) error) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("making memory file %s: %w", name, err)
	}
	w := os.NewFile(uintptr(fd), name)
	defer w.Close()
	if err := write(w); err != nil {
		return nil, err
	}
	const all = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(w.Fd(), unix.F_ADD_SEALS, all); err != nil {
		return nil, fmt.Errorf("sealing memory file %s: %w", name, err)
	}
	// Opened again, so that what reads it has no right to write and an offset of its own.
	r, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", w.Fd()))
	if err != nil {
		return nil, fmt.Errorf("opening memory file %s: %w", name, err)
	}
	return r, nil
}
