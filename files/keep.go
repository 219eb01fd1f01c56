package files

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"writ"
	"writ/patch"
)

// Keep bounds what is kept of applied transactions to undo them. The oldest go first.
type Keep struct {
	Operations int   // transactions; 0 keeps nothing
	Bytes      int64 // of what they replaced, together; one that replaced more is not kept
}

const (
	recordSuffix = ".undo"
	draftSuffix  = recordSuffix + ".part" // of a transaction that is not applied yet
)

// record is the first line of what is kept of one transaction. See the package comment.
type record struct {
	beginning
	// Sizes are the bytes of each change's former content; zero where there was no file.
	Sizes []int64 `json:"sizes"`
}

// keptRecord is a record on the disk.
type keptRecord struct {
	id   string
	size int64
	at   time.Time
}

// keep writes what the transaction is about to replace, as a draft that name makes the
// record. The caller flushes and closes it; -1 when it is not to be kept.
func (x *transaction) keep() (fd int, err error) {
	r := record{beginning: x.beginning(), Sizes: make([]int64, len(x.changes))}
	r.Folders = x.made()
	size := int64(0)
	for n, c := range x.changes {
		if c.content.Before != nil {
			r.Sizes[n] = int64(len(c.content.Before.Content))
			size += r.Sizes[n]
		}
	}
	head, err := json.Marshal(r)
	if err != nil {
		return -1, err
	}
	head = append(head, '\n')
	j := x.journals
	if j.max.Operations < 1 || size+int64(len(head)) > j.max.Bytes {
		return -1, nil
	}
	if fd, err = createFile(j.fd, x.id+draftSuffix); err != nil {
		return -1, err
	}
	err = writeAt(fd, head, 0)
	offset := int64(len(head))
	for n, c := range x.changes {
		if err == nil && r.Sizes[n] > 0 {
			err = writeAt(fd, c.content.Before.Content, offset)
			offset += r.Sizes[n]
		}
	}
	if err == nil {
		err = j.date(x.id + draftSuffix)
	}
	if err != nil {
		closeAll(fd)
		return -1, errors.Join(err, j.drop(x.id))
	}
	beginSync(fd)
	return fd, nil
}

// date gives a record a time after that of every other one, whatever the clock does.
func (j *Journals) date(name string) error {
	j.mu.Lock()
	j.last = later(time.Now(), j.last.Add(time.Nanosecond))
	ts := unix.NsecToTimespec(j.last.UnixNano())
	j.mu.Unlock()
	return retry(func() error {
		return unix.UtimesNanoAt(j.fd, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// name makes the draft of a transaction, if there is one, the record of what it
// replaced. It is not yet on the disk.
func (j *Journals) name(id string) error {
	if err := rename(j.fd, id+draftSuffix, id+recordSuffix); err != nil {
		if err == unix.ENOENT { // nothing is kept of it, or it has its name
			return nil
		}
		return err
	}
	st, err := statAt(j.fd, id+recordSuffix)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = append(j.records, keptOf(id, &st))
	return nil
}

func keptOf(id string, st *unix.Stat_t) keptRecord {
	return keptRecord{id: id, size: st.Size, at: time.Unix(st.Mtim.Sec, st.Mtim.Nsec)}
}

// drop removes draft and record of a transaction that is not applied, durably.
func (j *Journals) drop(id string) error {
	removed := false
	for _, suffix := range []string{draftSuffix, recordSuffix} {
		err := unlink(j.fd, id+suffix)
		if err != nil && err != unix.ENOENT {
			return fmt.Errorf("remove what was kept of %s: %w", id, err)
		}
		removed = removed || err == nil
	}
	j.mu.Lock()
	j.records = slices.DeleteFunc(j.records, func(r keptRecord) bool { return r.id == id })
	j.mu.Unlock()
	if !removed {
		return nil
	}
	if err := syncFile(j.fd); err != nil {
		return fmt.Errorf("remove what was kept of %s: %w", id, err)
	}
	return nil
}

// evict removes the oldest records beyond the bounds.
func (j *Journals) evict() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	size := int64(0)
	for _, r := range j.records {
		size += r.size
	}
	for len(j.records) > j.max.Operations || len(j.records) > 0 && size > j.max.Bytes {
		oldest := j.records[0]
		if err := unlink(j.fd, oldest.id+recordSuffix); err != nil && err != unix.ENOENT {
			return fmt.Errorf("remove what was kept of %s: %w", oldest.id, err)
		}
		size -= oldest.size
		j.records = j.records[1:]
		j.step(StepEvict)
	}
	return nil
}

// findRecords lists the records that are there, and removes drafts that nobody will
// finish.
func (j *Journals) findRecords() error {
	drafts, err := j.ids(draftSuffix)
	if err != nil {
		return err
	}
	for _, id := range drafts {
		// The journal is there before the draft is, and goes after it.
		if _, err := statAt(j.fd, id+journalSuffix); err != unix.ENOENT {
			continue
		}
		if err := unlink(j.fd, id+draftSuffix); err != nil && err != unix.ENOENT {
			return err
		}
	}
	ids, err := j.ids(recordSuffix)
	if err != nil {
		return err
	}
	for _, id := range ids {
		st, err := statAt(j.fd, id+recordSuffix)
		if err == unix.ENOENT {
			continue // gone since
		}
		if err != nil {
			return err
		}
		r := keptOf(id, &st)
		j.records, j.last = append(j.records, r), later(r.at, j.last)
	}
	slices.SortStableFunc(j.records, func(a, b keptRecord) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id))
	})
	return nil
}

// notKept is the error for a transaction that cannot be undone.
func (j *Journals) notKept(id string) error {
	return fault(CodeNoOperation, "operation %s cannot be undone: it changed nothing in this workspace, or what it replaced is not kept any more (the last %d patches are, up to %d bytes together): make a patch that takes its changes back", quoted(id), j.max.Operations, j.max.Bytes)
}

// kept gives what an applied transaction did, with what it replaced: each change without
// its After. Errors are those of Tree.PlanUndo.
func (j *Journals) kept(id string) (record, []patch.Change, error) {
	if !writ.ValidName(id) {
		return record{}, nil, j.notKept(id)
	}
	if err := j.ended(id); err != nil {
		return record{}, nil, err
	}
	fd, err := openAt(j.fd, id+recordSuffix, unix.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err == unix.ENOENT {
		return record{}, nil, j.notKept(id)
	}
	var text []byte
	if err == nil {
		text, err = readWhole(fd, j.max.Bytes)
		closeAll(fd)
	}
	var r record
	var changes []patch.Change
	if err == nil {
		r, changes, err = readRecord(id, text)
	}
	if err != nil {
		return record{}, nil, fmt.Errorf("read what operation %s replaced: %w", id, err)
	}
	return r, changes, nil
}

// ended refuses a transaction that has a journal and no outcome in it. One that is not
// applied has no record.
func (j *Journals) ended(id string) error {
	fd, err := openAt(j.fd, id+journalSuffix, unix.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open journal %s: %w", id, err)
	}
	defer closeAll(fd)
	text, err := readWhole(fd, maxJournalBytes)
	if err != nil {
		return fmt.Errorf("read journal %s: %w", id, err)
	}
	l, err := readLines(id, text)
	if err != nil {
		return err
	}
	if l.settled == nil {
		return &writ.Error{Kind: writ.Conflict, Op: "undo patch", Msg: fmt.Sprintf("operation %s has not ended yet: ask again when it has", id)}
	}
	return nil
}

// readWhole is the content of a file of the journals' folder.
func readWhole(fd int, max int64) ([]byte, error) {
	st, err := statOf(fd)
	if err != nil {
		return nil, err
	}
	if st.Size > max {
		return nil, fmt.Errorf("it has %d bytes, the most is %d", st.Size, max)
	}
	text := make([]byte, st.Size)
	n, err := readAt(fd, text, 0)
	return text[:n], err
}

// readRecord reads the text of a record, and holds it against the versions in it.
func readRecord(id string, text []byte) (r record, changes []patch.Change, err error) {
	head, rest, whole := bytes.Cut(text, []byte{'\n'})
	if !whole {
		return record{}, nil, errors.New("it is cut off")
	}
	if err := json.Unmarshal(head, &r); err != nil {
		return record{}, nil, err
	}
	if err := r.validate(id); err != nil {
		return record{}, nil, err
	}
	if len(r.Sizes) != len(r.Changes) {
		return record{}, nil, fmt.Errorf("it has %d sizes of %d files", len(r.Sizes), len(r.Changes))
	}
	for n, c := range r.Changes {
		size := r.Sizes[n]
		if size < 0 || size > int64(len(rest)) {
			return record{}, nil, fmt.Errorf("it lacks what was in %s", quoted(c.Path))
		}
		change := patch.Change{Path: c.Path, Kind: c.Kind, From: c.From}
		if c.Before != patch.Absent {
			change.Before = &patch.File{Content: rest[:size:size], Mode: c.BeforeMode}
		}
		if change.Before.Version() != c.Before {
			return record{}, nil, fmt.Errorf("what it has of %s is not what was there", quoted(c.Path))
		}
		changes, rest = append(changes, change), rest[size:]
	}
	return r, changes, nil
}
