package blob

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// The files beside the folders within the folder.
const (
	ownerName = "owner"
	lockName  = "lock"
)

// maxOwner bounds the name of an owner, in bytes.
const maxOwner = 256

// Path is where the folder is.
func (f *Folder) Path() string { return f.root.Name() }

// Owner is the name of the records that the blobs belong to, empty for a folder that was
// given to none.
func (f *Folder) Owner() (string, error) {
	file, err := f.root.Open(ownerName)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the owner of files: %w", err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxOwner+1))
	if err != nil {
		return "", fmt.Errorf("read the owner of files: %w", err)
	}
	name := strings.TrimSpace(string(b))
	if name == "" || len(name) > maxOwner {
		return "", fmt.Errorf("the owner of files in %s is not the name of one", path.Join(f.Path(), ownerName))
	}
	return name, nil
}

// Own gives the folder to the records of that name, for good; it answers once that is on
// the disk. One that has another owner, also since a moment, is an error.
func (f *Folder) Own(owner string) error {
	if owner == "" || len(owner) > maxOwner || strings.TrimSpace(owner) != owner {
		return fmt.Errorf("own the folder of files: %q is no name", owner)
	}
	if err := f.own(owner); err != nil {
		return fmt.Errorf("own the folder of files: %w", err)
	}
	return nil
}

func (f *Folder) own(owner string) error {
	draft := path.Join(drafts, rand.Text())
	file, err := f.root.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, owner+"\n")
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		// Not renamed: over the name of another that is quicker.
		if err = f.root.Link(draft, ownerName); errors.Is(err, fs.ErrExist) {
			var is string
			if is, err = f.Owner(); err == nil && is != owner {
				err = fmt.Errorf("it belongs to %s", is)
			}
		}
	}
	return errors.Join(err, f.root.Remove(draft), syncFolder(f.root, "."))
}

// alone calls fn while nobody else, of this process and of others, names a blob or removes
// one.
func (f *Folder) alone(fn func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	fd := int(f.lock.Fd())
	if err := flock(fd, syscall.LOCK_EX); err != nil {
		return err
	}
	return errors.Join(fn(), flock(fd, syscall.LOCK_UN))
}

func flock(fd, how int) error {
	for {
		if err := syscall.Flock(fd, how); err != syscall.EINTR {
			return os.NewSyscallError("flock", err)
		}
	}
}
