package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"writ"
)

const (
	journalSuffix   = ".journal"
	maxJournalBytes = 64 << 20 // far above what the most sections of a patch need
)

// Journals is the folder in which transactions are written down until they are
// settled and the caller knows it, and in which what the last ones replaced is kept, to
// undo them. It may be used from several goroutines.
type Journals struct {
	dir string // canonical
	fd  int
	max Keep

	mu      sync.Mutex
	records []keptRecord // guarded by mu; the oldest first
	last    time.Time    // guarded by mu; of the newest record

	at func(Step) // of tests: called at each step of a recovery and of Forget
}

// OpenJournals opens the folder dir, which it makes with mode 0700 when it is missing.
// It must be absolute, this process's own and closed to others, and not beneath the
// root of any workspace. The caller must Close it.
//
// Keep bounds what is kept for undoing, over all workspaces. It holds after each Recover
// and each Forget.
func OpenJournals(dir string, keep Keep) (*Journals, error) {
	if !filepath.IsAbs(dir) {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "open journals", Msg: fmt.Sprintf("folder %s is not absolute", quoted(dir))}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journals: %w", err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("open journals: %w", err)
	}
	fd, err := unix.Open(real, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open journals %s: %w", quoted(real), err)
	}
	st, err := statOf(fd)
	if err != nil {
		closeAll(fd)
		return nil, fmt.Errorf("open journals %s: %w", quoted(real), err)
	}
	if permOf(&st)&0o077 != 0 || int(st.Uid) != os.Geteuid() {
		closeAll(fd)
		return nil, &writ.Error{Kind: writ.Denied, Op: "open journals", Msg: fmt.Sprintf("folder %s is open to others: chown it to the server's user and chmod 700 it", quoted(real))}
	}
	j := &Journals{dir: real, fd: fd, max: keep}
	if err := j.findRecords(); err != nil {
		closeAll(fd)
		return nil, fmt.Errorf("open journals %s: %w", quoted(real), err)
	}
	return j, nil
}

// Close ends the use of the folder. No transaction may be under way.
func (j *Journals) Close() error {
	closeAll(j.fd)
	return nil
}

// Forget removes the journal of a settled transaction, once its outcome is kept
// elsewhere, and the oldest of what is kept for undoing beyond the bounds. Of what this
// transaction replaced it removes nothing else: from Apply on that is on the disk. One
// that has no journal is no error.
func (j *Journals) Forget(id string) error {
	if !writ.ValidName(id) {
		return &writ.Error{Kind: writ.Invalid, Op: "forget journal", Msg: fmt.Sprintf("%s is not the id of an operation", quoted(id))}
	}
	return errors.Join(j.evict(), j.remove(id))
}

// remove removes a journal, and what was to be kept of a transaction that was never
// applied.
func (j *Journals) remove(id string) error {
	for _, name := range []string{id + draftSuffix, id + journalSuffix} {
		if err := unlink(j.fd, name); err != nil && err != unix.ENOENT {
			return fmt.Errorf("forget journal %s: %w", id, err)
		}
	}
	j.step(StepForget)
	return nil
}

func (j *Journals) step(s Step) {
	if j.at != nil {
		j.at(s)
	}
}

// ids lists the transactions that have a file of this suffix, in the order of their ids.
func (j *Journals) ids(suffix string) ([]string, error) {
	fd, err := openFolder(j.fd, ".") // a descriptor lists its folder once
	if err != nil {
		return nil, err
	}
	defer closeAll(fd)
	list, _, err := readFolder(fd, "", 1<<20, make([]byte, 64<<10))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range list {
		if id, ok := strings.CutSuffix(e.path, suffix); ok && writ.ValidName(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// beginning is the first line of a journal. See the package comment.
type beginning struct {
	V       int      `json:"v"`
	ID      string   `json:"id"`
	Root    string   `json:"root"`
	TX      string   `json:"tx"`
	Folders []string `json:"folders"`
	Emptied []string `json:"emptied,omitempty"`
	Changes []Change `json:"changes"`
}

const journalVersion = 1

// journal is the open journal of one transaction. It is locked as long as it is open.
type journal struct {
	fd   int
	id   string
	head int64 // bytes of the first line
}

// begin makes the journal of a transaction. It is not yet on the disk.
func (j *Journals) begin(b beginning) (*journal, error) {
	fd, err := createFile(j.fd, b.ID+journalSuffix)
	if err == unix.EEXIST {
		return nil, &writ.Error{Kind: writ.Conflict, Op: "apply patch", Msg: fmt.Sprintf("operation %s was applied before and its outcome is not recorded yet", b.ID)}
	}
	if err != nil {
		return nil, fmt.Errorf("begin journal %s: %w", b.ID, err)
	}
	journal := &journal{fd: fd, id: b.ID}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		journal.head, err = journal.write(b, 0)
	}
	if err != nil {
		journal.close()
		return nil, errors.Join(fmt.Errorf("begin journal %s: %w", b.ID, err), j.remove(b.ID))
	}
	return journal, nil
}

// write puts a line at an offset, where the journal then ends, and says how long it is.
func (j *journal) write(line any, offset int64) (size int64, err error) {
	b, err := json.Marshal(line)
	if err != nil {
		return 0, err
	}
	b = append(b, '\n')
	if err := retry(func() error { return unix.Ftruncate(j.fd, offset) }); err != nil {
		return 0, err
	}
	return int64(len(b)), writeAt(j.fd, b, offset)
}

// settle writes the outcome down, durably, in the place of one that could not be.
func (j *journal) settle(o Outcome) error {
	_, err := j.write(o, j.head)
	if err == nil {
		err = syncFile(j.fd)
	}
	if err != nil {
		return fmt.Errorf("settle journal %s: %w", j.id, err)
	}
	return nil
}

func (j *journal) close() { closeAll(j.fd) }

// errUnderWay is a journal whose transaction somebody is carrying out.
var errUnderWay = errors.New("the transaction is under way")

// lines is what a journal says.
type lines struct {
	begun   bool // the first line is whole; else the rest is empty
	first   beginning
	head    int64    // bytes of the first line
	settled *Outcome // nil when the second line is not whole
}

// readLines reads the text of the journal of a transaction.
func readLines(id string, text []byte) (l lines, err error) {
	first, rest, whole := bytes.Cut(text, []byte{'\n'})
	if !whole {
		return lines{}, nil
	}
	if err := json.Unmarshal(first, &l.first); err != nil {
		return lines{}, fmt.Errorf("read journal %s: %w", id, err)
	}
	if err := l.first.validate(id); err != nil {
		return lines{}, fmt.Errorf("read journal %s: %w", id, err)
	}
	l.begun, l.head = true, int64(len(first))+1
	if second, _, whole := bytes.Cut(rest, []byte{'\n'}); whole {
		l.settled = &Outcome{}
		if err := json.Unmarshal(second, l.settled); err != nil {
			return lines{}, fmt.Errorf("read journal %s: %w", id, err)
		}
	}
	return l, nil
}

// lock opens and locks a journal, and gives its text.
func (j *Journals) lock(id string) (*journal, []byte, error) {
	fd, err := openAt(j.fd, id+journalSuffix, unix.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open journal %s: %w", id, err)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		closeAll(fd)
		if err == unix.EWOULDBLOCK {
			return nil, nil, errUnderWay
		}
		return nil, nil, fmt.Errorf("lock journal %s: %w", id, err)
	}
	text, err := readWhole(fd, maxJournalBytes)
	if err != nil {
		closeAll(fd)
		return nil, nil, fmt.Errorf("read journal %s: %w", id, err)
	}
	return &journal{fd: fd, id: id}, text, nil
}

// validate keeps a journal that is not one of ours from leading anywhere.
func (b *beginning) validate(id string) error {
	if b.V != journalVersion || b.ID != id || !filepath.IsAbs(b.Root) || !reserved(asideName(b.TX, 0, "new")) {
		return fmt.Errorf("it is not a journal of version %d of operation %s", journalVersion, id)
	}
	for _, name := range slices.Concat(b.Folders, b.Emptied) {
		if clean, err := resolve(name); err != nil || clean != name {
			return fmt.Errorf("folder %s is no clean path", quoted(name))
		}
	}
	for _, c := range b.Changes {
		if clean, err := resolve(c.Path); err != nil || clean != c.Path || clean == "." {
			return fmt.Errorf("file %s is no clean path", quoted(c.Path))
		}
	}
	return nil
}
