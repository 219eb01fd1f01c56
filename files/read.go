package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"writ"
	"writ/patch"
)

// Limits of reading (spec/02 §3.3).
const (
	MaxReadBytes = 1 << 20 // of one window, and what a caller gets that names no limit
	MaxFileBytes = 8 << 30 // of a file: all of it is hashed for its version
)

// maxReadTries bounds how often a file that changes meanwhile is read again.
const maxReadTries = 8

// Window is a part of a file, and the version of the whole.
type Window struct {
	Path    string // clean, relative
	Version string // of all bytes of the file
	Size    int64  // of the file, bytes
	Offset  int64  // of the window, as asked for
	Content []byte // the caller's; empty at and past the end of the file
	// Next is where more is; zero when the window reaches the end of the file.
	Next int64
}

// Text is the window as UTF-8. Each byte that is not is replaced by U+FFFD, also those
// of a letter that the window cuts; lossy says that this happened.
func (w Window) Text() (text string, lossy bool) {
	if utf8.Valid(w.Content) {
		return string(w.Content), false
	}
	return string([]rune(string(w.Content))), true
}

// Read gives up to limit bytes of a regular file from offset on, in bytes, without
// holding more of it in memory. Window and version are of the same bytes: a file that
// changes while it is read is read again, and given up after some times.
//
// Errors are *writ.Error with the codes of spec/02 §5.2. OUTPUT_LIMIT: limit is not 1
// to MaxReadBytes, or offset is negative. UNAUTHORIZED: the rules deny the path, or
// another name of the same file. Cancelling ctx ends it with the error of ctx.
func (t *Tree) Read(ctx context.Context, name string, offset, limit int64) (Window, error) {
	if limit < 1 || limit > MaxReadBytes || offset < 0 {
		return Window{}, fault(CodeOutputLimit, "limit %d, offset %d: want a limit of 1 to %d bytes and an offset from 0", limit, offset, MaxReadBytes)
	}
	root, done, err := t.use()
	if err != nil {
		return Window{}, err
	}
	defer done()
	f, err := t.opener(ctx, root).open(name)
	if err != nil {
		return Window{}, err
	}
	defer f.close()
	w := Window{Path: f.path, Offset: offset}
	for range maxReadTries {
		if offset < f.st.Size {
			w.Content = make([]byte, min(limit, f.st.Size-offset))
		}
		same, version, err := f.window(ctx, t.versions, w.Content, offset)
		if err != nil {
			return Window{}, err
		}
		if !same {
			w.Content = nil
			continue
		}
		w.Version, w.Size = version, f.st.Size
		if end := offset + int64(len(w.Content)); end < w.Size {
			w.Next = end
		}
		return w, nil
	}
	return Window{}, f.restless()
}

// Version is the version of the file as its bytes are now, patch.Absent when nothing
// is at the path. It always reads the whole file. Errors are those of Read.
func (t *Tree) Version(ctx context.Context, name string) (string, error) {
	root, done, err := t.use()
	if err != nil {
		return "", err
	}
	defer done()
	return t.opener(ctx, root).version(name)
}

// version is Tree.Version.
func (o *opener) version(name string) (string, error) {
	f, err := o.open(name)
	if writ.CodeOf(err) == CodeFileNotFound {
		return patch.Absent, nil
	}
	if err != nil {
		return "", err
	}
	defer f.close()
	for range maxReadTries {
		same, version, err := f.window(o.ctx, nil, nil, 0)
		if err != nil || same {
			return version, err
		}
	}
	return "", f.restless()
}

// file is an open regular file. Whoever opened it closes it.
type file struct {
	fd   int
	path string      // clean, relative
	st   unix.Stat_t // as last looked at
}

// openFile opens the regular file at a clean path beneath the folder dir.
func openFile(dir int, clean string) (*file, error) {
	fd, err := openRead(dir, clean)
	if err != nil {
		return nil, systemFault("read", clean, err)
	}
	f := &file{fd: fd, path: clean}
	if f.st, err = statOf(fd); err != nil {
		f.close()
		return nil, systemFault("read", clean, err)
	}
	if !isKind(&f.st, unix.S_IFREG) {
		what := "it is not a regular file"
		if isKind(&f.st, unix.S_IFDIR) {
			what = "it is a folder"
		}
		f.close()
		return nil, fault(CodeSpecialFile, "read %s: %s", quoted(clean), what)
	}
	return f, nil
}

func (f *file) close() { closeAll(f.fd) }

func (f *file) restless() error {
	return fault(CodeOperationFailed, "read %s: it kept changing while it was read: try again when nothing writes to it", quoted(f.path))
}

// window fills buf from offset on and gives the version of the file that buf is a
// part of. Same is false when the file changed meanwhile; f.st is new then. It asks
// known, when not nil, before it hashes.
func (f *file) window(ctx context.Context, known *versions, buf []byte, offset int64) (same bool, version string, err error) {
	before := f.st
	began := time.Now()
	remembered := false
	if known != nil {
		version, remembered = known.get(&before)
	}
	var n int
	if remembered {
		n, err = readAt(f.fd, buf, offset)
	} else {
		n, version, err = f.hash(ctx, buf, offset)
	}
	if err == nil {
		f.st, err = statOf(f.fd)
	}
	if err != nil {
		if ctx.Err() == nil && writ.CodeOf(err) == "" {
			err = systemFault("read", f.path, err)
		}
		return false, "", err
	}
	if n != len(buf) || !unchanged(&before, &f.st) {
		return false, "", nil
	}
	if known != nil && !remembered {
		known.put(&f.st, version, began)
	}
	return true, version, nil
}

const hashChunk = 256 << 10

// hash reads the file once, as long as f.st says that it is, gives its version and
// copies what is at offset to buf. It counts what it copied.
func (f *file) hash(ctx context.Context, buf []byte, offset int64) (copied int, version string, err error) {
	size := f.st.Size
	if size > MaxFileBytes {
		return 0, "", fault(CodeOperationFailed, "read %s: it has %d bytes, the most is %d", quoted(f.path), size, int64(MaxFileBytes))
	}
	sum := sha256.New()
	chunk := make([]byte, min(size, hashChunk))
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return 0, "", err
		}
		part := chunk[:min(size-at, int64(len(chunk)))]
		n, err := readAt(f.fd, part, at)
		if err != nil {
			return 0, "", err
		}
		part = part[:n]
		sum.Write(part)
		if end := at + int64(n); end > offset && at < offset+int64(len(buf)) {
			copied += copy(buf[max(0, at-offset):], part[max(0, offset-at):])
		}
		if at += int64(n); n < cap(part) && at < size {
			break // it got shorter
		}
	}
	return copied, "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// errTooLarge is a file that a patch cannot hold in memory.
var errTooLarge = errors.New("file too large")

// bytes is the whole content of a file of at most max bytes, and its version.
func (f *file) bytes(ctx context.Context, max int64) (content []byte, version string, err error) {
	for range maxReadTries {
		if f.st.Size > max {
			return nil, "", errTooLarge
		}
		content = make([]byte, f.st.Size)
		same, version, err := f.window(ctx, nil, content, 0)
		if err != nil || same {
			return content, version, err
		}
	}
	return nil, "", f.restless()
}
