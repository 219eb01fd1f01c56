package blob

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
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

	// mu is held while a blob gets its name, and while a sweep looks at one for the last
	// time and removes it: what was put meanwhile is not what the sweep found.
	mu sync.Mutex

	step func(string) // of tests, which die there; called with the name of what was just done
}

// OpenFolder opens the folder dir, which it makes when it is not there, but not the
// folders around it. The caller must call Close.
func OpenFolder(dir string) (*Folder, error) {
	fail := func(err error) (*Folder, error) { return nil, fmt.Errorf("open the folder of blobs: %w", err) }
	if err := private(dir, os.Mkdir, os.Lstat, os.Chmod); err != nil {
		return fail(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fail(err)
	}
	err = errors.Join(private(blobs, root.Mkdir, root.Lstat, root.Chmod), private(drafts, root.Mkdir, root.Lstat, root.Chmod))
	if err == nil {
		err = syncFolder(root, ".")
	}
	if err != nil {
		return fail(errors.Join(err, root.Close()))
	}
	return &Folder{root: root, step: func(string) {}}, nil
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
func (f *Folder) Close() error { return f.root.Close() }

// Put keeps the bytes of r, at most limit of them, and answers their digest and how many
// they are once both the bytes and their name are on the disk. More bytes are Invalid
// with writ.CodeFileTooLarge, found on the byte after the limit. An error of r comes back wrapped.
// After an error nothing new has a name, unless the last sync failed: then the blob may
// be there, named by nobody.
//
// ctx is looked at between reads; who calls ends a read that blocks. A draft to which
// nothing was written since the time of a sweep is removed by it, and Put fails.
func (f *Folder) Put(ctx context.Context, r io.Reader, limit int64) (writ.Digest, int64, error) {
	if limit < 0 {
		return "", 0, errors.New("put blob: the limit is below zero")
	}
	name := path.Join(drafts, rand.Text())
	draft, err := f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	f.step("draft")
	digest, n, err := f.fill(ctx, draft, r, limit)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = f.publish(name, digest)
	}
	if err != nil {
		if gone := f.root.Remove(name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return "", 0, fmt.Errorf("put blob: %w", err)
	}
	return digest, n, nil
}

// fill copies r into draft and has it on the disk.
func (f *Folder) fill(ctx context.Context, draft *os.File, r io.Reader, limit int64) (writ.Digest, int64, error) {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(draft, sum), &untilDone{ctx, io.LimitReader(r, limit)})
	if err != nil {
		return "", 0, err
	}
	if n == limit { // is that all?
		more, err := io.CopyN(io.Discard, &untilDone{ctx, r}, 1)
		if err != nil && err != io.EOF {
			return "", 0, err
		}
		if more > 0 {
			return "", 0, &writ.Error{Kind: writ.Invalid, Code: writ.CodeFileTooLarge, Msg: fmt.Sprintf("the file has more than %d bytes: send a smaller one", limit)}
		}
	}
	f.step("written")
	if err := draft.Sync(); err != nil {
		return "", 0, err
	}
	f.step("synced")
	return writ.Digest(hex.EncodeToString(sum.Sum(nil))), n, nil
}

// publish gives a draft its name.
func (f *Folder) publish(draft string, digest writ.Digest) error {
	if err := f.rename(draft, digest); err != nil {
		return err
	}
	f.step("named")
	// Not under the lock: others need not wait for the disk.
	if err := syncFolder(f.root, blobs); err != nil {
		return err
	}
	f.step("done")
	return nil
}

func (f *Folder) rename(draft string, digest writ.Digest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	// The age that a sweep looks at begins here, however long the last byte took.
	now := time.Now()
	if err := f.root.Chtimes(draft, now, now); err != nil {
		return err
	}
	// Over what is there: the same bytes, but perhaps old enough to be swept.
	return f.root.Rename(draft, path.Join(blobs, string(digest)))
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
	missing := &writ.Error{Kind: writ.NotFound, Op: "open blob", Msg: "there is no such file"}
	if !digest.Valid() {
		return nil, 0, missing
	}
	name := path.Join(blobs, string(digest))
	was, err := f.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, missing
	case err != nil:
		return nil, 0, fmt.Errorf("open blob: %w", err)
	case !was.Mode().IsRegular():
		return nil, 0, fmt.Errorf("open blob: %s is not a regular file", digest)
	}
	file, err := f.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, missing
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
