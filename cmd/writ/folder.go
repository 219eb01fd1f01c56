package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"writ"
	"writ/config"
	"writ/policy"
)

// dataFolder is a data folder that this process holds: no other process of writ
// works on it. Release it last.
type dataFolder struct {
	path string
	lock *os.File // locked; the kernel unlocks it with this process, whatever that dies of, and its copies
}

// errFolderInUse is in the error of a folder that another process holds.
var errFolderInUse = errors.New("the lock of the data folder is taken")

// openFolder makes the data folder when it is not there and holds it. A first start
// fills it with a commented configuration and the default policy, and says so on w.
// What exists is kept.
//
// Errors: Invalid when others than this user may enter the folder, Unavailable when
// it cannot be made, or with errFolderInUse when another process holds it.
func openFolder(data string, w io.Writer) (*dataFolder, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, &writ.Error{Kind: writ.Unavailable, Op: "make data folder", Err: err, Msg: fmt.Sprintf("cannot make %s: %v (choose another with --data)", data, err)}
	}
	if err := checkPrivate(data); err != nil {
		return nil, err
	}
	lock, err := lockFolder(data)
	if err != nil {
		return nil, err
	}
	f := &dataFolder{data, lock}
	if err := f.fill(w); err != nil {
		f.release()
		return nil, err
	}
	return f, nil
}

func (f *dataFolder) release() { _ = f.lock.Close() }

// findFolder refuses what is no data folder, for commands that have no use for a new one:
// they would fill whatever folder a wrong name leads to.
func findFolder(data string) error {
	refuse := func(format string) error {
		return &writ.Error{Kind: writ.NotFound, Op: "find data folder", Msg: fmt.Sprintf(format+": name another with --data (writ serve makes one)", data)}
	}
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return refuse("there is no data folder at %s")
	}
	if _, err := os.Stat(filepath.Join(data, config.FileName)); errors.Is(err, fs.ErrNotExist) {
		return refuse("%s is no data folder, as there is no " + config.FileName + " in it")
	}
	return nil // what else may be wrong with it is said by who opens it
}

// copiesEnd is how long a copy of a dead process is waited for.
const copiesEnd = 10 * time.Second

// lockFolder takes the lock of a data folder, or says who has it. A process that was killed
// while it started its runner leaves a copy of itself that holds the lock until it becomes
// the runner, or dies too: that is waited for. Else what stands in the file only serves the
// message.
func lockFolder(data string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(data, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	take := func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	err = take()
	for over := time.Now().Add(copiesEnd); errors.Is(err, syscall.EWOULDBLOCK) && holderDied(f) && time.Now().Before(over); err = take() {
		time.Sleep(10 * time.Millisecond)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &writ.Error{Kind: writ.Unavailable, Op: "lock data folder", Err: errFolderInUse,
			Msg: fmt.Sprintf("data folder %s is in use by %s: stop it, or use another folder", data, holder(f))}
	} else if err == nil {
		text := fmt.Sprintf("%d since %s\n", os.Getpid(), when(writ.Now()))
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt([]byte(text), 0)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// holderDied reports whether the process that the lock's file names is gone. One that has
// not written itself down yet is not.
func holderDied(lock io.ReaderAt) bool {
	b, err := io.ReadAll(io.NewSectionReader(lock, 0, 100))
	pid, _, _ := strings.Cut(string(b), " ")
	n, bad := strconv.Atoi(pid)
	return err == nil && bad == nil && n > 0 && errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
}

func holder(lock io.Reader) string {
	b, err := io.ReadAll(io.LimitReader(lock, 100))
	if err != nil || len(b) == 0 {
		return "another writ that has just started"
	}
	return "writ pid " + strings.TrimSpace(string(b))
}

// fill writes what a first start must find.
func (f *dataFolder) fill(w io.Writer) error {
	path := filepath.Join(f.path, config.FileName)
	if made, err := writeNew(path, config.Example()); err != nil {
		return err
	} else if made {
		fmt.Fprintln(w, "configuration:", path)
	}
	// Only beside a new folder: a file of ours that an operator removed stays removed.
	dir := filepath.Join(f.path, "policy")
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, file := range slices.Concat(policy.Default(), policy.DefaultExamples()) {
		if _, err := writeNew(filepath.Join(dir, file.Name), file.Content); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "policy:       ", dir)
	return nil
}

// gatewayIDName is the file with what names the gateway.
const gatewayIDName = "gateway.id"

// gatewayID names this data folder's gateway among all on one database. It is kept,
// so that a restarted gateway knows its own runs.
func (f *dataFolder) gatewayID() (string, error) {
	path := filepath.Join(f.path, gatewayIDName)
	b, err := os.ReadFile(path)
	if err == nil && len(b) > 0 {
		return string(b), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	id := "gw_" + rand.Text()
	return id, writeSecret(path, id)
}

func writeNew(path string, content []byte) (made bool, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.Write(content)
	return true, errors.Join(err, f.Close())
}

// writeSecret makes a file that only its owner reads, whole or not at all.
func writeSecret(path, value string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.WriteString(f, value)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkPrivate refuses a data folder that is not this user's alone: keys, code and
// the socket of who may do everything lie in it.
func checkPrivate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return &writ.Error{Kind: writ.Invalid, Op: "check data folder", Msg: fmt.Sprintf("data folder %s "+format, append([]any{dir}, args...)...)}
	}
	switch perm := info.Mode().Perm(); {
	case !info.IsDir():
		return refuse("is not a folder")
	case ownerOf(info) != os.Geteuid():
		return refuse("belongs to another user (uid %d): run writ as that one, or choose another folder with --data", ownerOf(info))
	case perm&0o077 != 0:
		return refuse("is open to others (mode %04o): chmod 700 %s", perm, dir)
	}
	return nil
}

// checkTrusted refuses a policy folder that others than this user and root may
// change, in whole or in one file: they could permit themselves anything. Files are
// those that count as policy, and a link counts as what it leads to.
func checkTrusted(dir string) error {
	paths := []string{dir}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if strings.EqualFold(filepath.Ext(e.Name()), ".cedar") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // whoever reads it says so
		}
		if err != nil {
			return err
		}
		refuse := func(format string, args ...any) error {
			return &writ.Error{Kind: writ.Invalid, Op: "load policy", Msg: fmt.Sprintf("%s "+format, append([]any{path}, args...)...)}
		}
		if uid := ownerOf(info); uid != os.Geteuid() && uid != 0 {
			return refuse("belongs to another user (uid %d), who could permit anything: chown it", uid)
		}
		if perm := info.Mode().Perm(); perm&0o022 != 0 {
			return refuse("can be written by others than its owner (mode %04o), who could permit anything: chmod go-w %s", perm, path)
		}
	}
	return nil
}

// ownerOf is the user id of a file's owner; -1, which is nobody's, when it is not known.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
