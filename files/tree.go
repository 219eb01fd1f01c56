package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"writ"
)

// Tree is the files beneath one root, under one set of rules. Its methods may be
// called at the same time, also from several trees on one root: the caller's lease
// keeps two patches apart, and where there is none the later one fails clean.
type Tree struct {
	root  string
	rules ruleset

	mu sync.RWMutex // held for reading by every call, so that Close waits for them
	fd int          // of the root; guarded by mu; -1 once closed

	versions *versions

	// Of tests, set before the first call: at is called before each step of a
	// transaction, plain makes as if the file system had no exchange.
	at    func(Step)
	plain bool
}

// Open opens the folder root, which must be absolute. The root itself may be, or lead
// through, a symlink: it is the operator's to choose, and is resolved here, once.
// Nothing beneath it is followed. The caller must Close the tree.
//
// Errors are *writ.Error: Invalid when root is not absolute or a rule is no pattern,
// NotFound when nothing is there, Conflict when it is no folder, Unavailable when
// this host has no openat2 (Linux before 5.6).
func Open(root string, rules Rules) (*Tree, error) {
	compiled, err := rules.compile()
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(root) {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "open workspace", Msg: fmt.Sprintf("root %s is not absolute", quoted(root))}
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, rootFault(root, err)
	}
	fd, err := unix.Open(real, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, rootFault(root, err)
	}
	probe, err := openFolder(fd, ".")
	if err != nil {
		closeAll(fd)
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			return nil, &writ.Error{Kind: writ.Unavailable, Code: CodeOperationFailed, Op: "open workspace", Msg: "this host does not allow openat2, without which paths cannot be opened safely: use Linux 5.6 or newer, and a container profile that allows it", Err: err}
		}
		return nil, rootFault(root, err)
	}
	closeAll(probe)
	return &Tree{root: real, rules: compiled, fd: fd, versions: newVersions()}, nil
}

func rootFault(root string, err error) error {
	e := &writ.Error{Kind: writ.Unavailable, Code: CodeOperationFailed, Op: "open workspace", Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Kind, e.Msg = writ.NotFound, fmt.Sprintf("root %s does not exist: make the folder, or mend the registry", quoted(root))
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		e.Kind, e.Code, e.Msg = writ.Conflict, CodeNotDirectory, fmt.Sprintf("root %s is not a folder", quoted(root))
	default:
		e.Msg = fmt.Sprintf("root %s cannot be opened: %v", quoted(root), errors.Unwrap(err))
	}
	return e
}

// Root is the canonical path of the root. Leases are keyed by it.
func (t *Tree) Root() string { return t.root }

// Stale reports whether the root's path no longer leads to the folder that this tree
// holds: it was removed, moved away or replaced. A new tree sees what is there now.
func (t *Tree) Stale() bool {
	fd, done, err := t.use()
	if err != nil {
		return true
	}
	defer done()
	held, err := statOf(fd)
	if err != nil {
		return true
	}
	var now unix.Stat_t
	err = unix.Lstat(t.root, &now)
	return err != nil || now.Dev != held.Dev || now.Ino != held.Ino
}

// Close ends the tree, after the calls that are under way. Later ones fail with kind
// Unavailable. It may be called more than once.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	closeAll(t.fd)
	t.fd = -1
	return nil
}

// use gives the descriptor of the root until done is called.
func (t *Tree) use() (fd int, done func(), err error) {
	t.mu.RLock()
	if t.fd < 0 {
		t.mu.RUnlock()
		return -1, nil, fault(CodeOperationFailed, "the workspace is being closed: try again")
	}
	return t.fd, t.mu.RUnlock, nil
}
