package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"writ"
)

// The folders within the folder.
const (
	blobs  = "blobs"
	drafts = "drafts"
)

// Folder keeps blobs in a folder. Its methods may be called at once.
type Folder struct {
	root *os.Root // set once

	// mu, and the lock of the file, are held while a blob gets its name, and while a sweep
	// looks at one for the last time and removes it: what was put meanwhile is not what the
	// sweep found.
	mu   sync.Mutex
	lock *os.File // set once; locked by who has mu

	step func(string) // of tests, which die there; called with the name of what was just done
}

// OpenFolder opens the folder dir, which it makes when it is not there, but not the
// folders around it. One that holds other things, and no blobs, is left as it is, with an
// error. The caller must call Close.
func OpenFolder(dir string) (*Folder, error) {
	fail := func(err error) (*Folder, error) { return nil, fmt.Errorf("open the folder of blobs: %w", err) }
	if err := others(dir); err != nil {
		return fail(err)
	}
	if err := private(dir, os.Mkdir, os.Lstat, os.Chmod); err != nil {
		return fail(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fail(err)
	}
	f := &Folder{root: root, step: func(string) {}}
	err = errors.Join(private(blobs, root.Mkdir, root.Lstat, root.Chmod), private(drafts, root.Mkdir, root.Lstat, root.Chmod))
	if err == nil {
		f.lock, err = root.OpenFile(lockName, os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err == nil {
		err = syncFolder(root, ".")
	}
	if err == nil { // that folder's own name
		err = syncAround(dir)
	}
	if err != nil {
		return fail(errors.Join(err, f.Close()))
	}
	return f, nil
}

// others says what is in dir that makes it a folder of somebody else's.
func others(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	other := ""
	for _, e := range entries {
		switch e.Name() {
		case blobs:
			return nil
		case drafts, ownerName, lockName, "lost+found":
		default:
			other = e.Name()
		}
	}
	if other != "" {
		return fmt.Errorf("%s is none: it holds %s; name a folder that is empty or not there", dir, other)
	}
	return nil
}

// syncAround has the name of dir on the disk.
func syncAround(dir string) error {
	around, err := os.Open(filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return err
	}
	return errors.Join(around.Sync(), around.Close())
}

// private makes a folder that is its owner's alone, or makes the one there so. A link to
// a folder is refused.
func private(name string, mkdir func(string, fs.FileMode) error, lstat func(string) (fs.FileInfo, error), chmod func(string, fs.FileMode) error) error {
	if err := mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	is, err := lstat(name)
	if err != nil {
		return err
	}
	if !is.IsDir() {
		return fmt.Errorf("%s is not a folder: move it away", name)
	}
	return chmod(name, 0o700)
}

// Close lets go of the folder. Readers that are open may still be read.
func (f *Folder) Close() error {
	err := f.root.Close()
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

// Put keeps the bytes of r, at most limit of them, and answers their digest and how many
// they are once both the bytes and their name are on the disk. More bytes are Invalid
// with writ.CodeFileTooLarge, found on the byte after the limit. A disk that is full, or
// takes no bytes, is Unavailable. An error of r comes back wrapped. After an error nothing
// new has a name, unless the last sync failed: then the blob may be there, named by nobody.
//
// ctx is looked at between reads; who calls ends a read that blocks. A draft to which
// nothing was written since the time of a sweep is removed by it, and Put fails.
func (f *Folder) Put(ctx context.Context, r io.Reader, limit int64) (writ.Digest, int64, error) {
	d, err := f.Draft(ctx, r, limit)
	if err == nil {
		err = f.Publish(ctx, d)
	}
	if err != nil {
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	return d.Digest, d.Size, nil
}

// Renew keeps a blob as if it had been put now, for sweeps, and answers how many bytes it
// has. NotFound means that there is no such blob.
func (f *Folder) Renew(ctx context.Context, digest writ.Digest) (size int64, err error) {
	const op = "renew blob"
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("%s: %w", op, err)
	}
	if !digest.Valid() {
		return 0, missing(op)
	}
	name := path.Join(blobs, string(digest))
	err = f.alone(func() error {
		is, err := f.regular(op, name)
		if err != nil {
			return err
		}
		size = is.Size()
		// Not synced: after a crash whoever would have recorded the digest is gone as well.
		now := time.Now()
		if err := f.root.Chtimes(name, now, now); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return size, nil
}

func missing(op string) error {
	return &writ.Error{Kind: writ.NotFound, Op: op, Msg: "there is no such file"}
}

// regular describes the file at name, which must not be anything else.
func (f *Folder) regular(op, name string) (fs.FileInfo, error) {
	is, err := f.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing(op)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", op, err)
	case !is.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %s is not a regular file", op, path.Base(name))
	}
	return is, nil
}

// Open answers n bytes of a blob from an offset on, or all that follow it when n is
// negative; the caller must close it. NotFound means that there is no such blob, Invalid
// that the blob ends before from+n. A blob that is read whole is hashed on the way: other
// bytes than those that were put are an error in the place of io.EOF, as is an early end.
func (f *Folder) Open(ctx context.Context, digest writ.Digest, from, n int64) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	file, size, err := f.open(digest)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		n = size - from
	}
	if from < 0 || n < 0 || n > size-from {
		return nil, errors.Join(&writ.Error{Kind: writ.Invalid, Op: "open blob", Msg: fmt.Sprintf("the file has %d bytes: ask for a range within", size)}, file.Close())
	}
	r := &reader{section: io.NewSectionReader(file, from, n), file: file, want: digest, left: n}
	if n == size {
		r.sum = sha256.New()
	}
	return r, nil
}

func (f *Folder) open(digest writ.Digest) (*os.File, int64, error) {
	if !digest.Valid() {
		return nil, 0, missing("open blob")
	}
	name := path.Join(blobs, string(digest))
	if _, err := f.regular("open blob", name); err != nil {
		return nil, 0, err
	}
	file, err := f.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, missing("open blob")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open blob: %w", err)
	}
	is, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open blob: %w", err), file.Close())
	}
	return file, is.Size(), nil
}

// reader is a part of a blob.
type reader struct {
	section *io.SectionReader
	file    *os.File
	want    writ.Digest
	left    int64
	sum     hash.Hash // nil unless the whole is read
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.section.Read(p)
	r.left -= int64(n)
	if r.sum != nil {
		r.sum.Write(p[:n]) // never fails
	}
	if err != io.EOF {
		return n, err
	}
	if r.left > 0 {
		return n, fmt.Errorf("read blob %s: %w", r.want, io.ErrUnexpectedEOF)
	}
	if r.sum != nil && hex.EncodeToString(r.sum.Sum(nil)) != string(r.want) {
		return n, fmt.Errorf("read blob %s: its bytes are not those that were put", r.want)
	}
	return n, io.EOF
}

func (r *reader) Close() error { return r.file.Close() }

// untilDone reads until ctx ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

func syncFolder(r *os.Root, name string) error {
	dir, err := r.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
