package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"writ"
)

// pageRecords is how many records are read at once, and so what bounds memory.
const pageRecords = 256

// Verify reads the whole log once and reports whether it is what was signed. Root
// hashes are computed from the records alone and compared with the signed head and
// with every anchor: signed notes that were kept outside the store, of this log, in
// any order. Stored hashes are trusted for nothing; they only help to say which
// event was changed.
//
// The report lists what is wrong with the log as a whole (Seq -1) and then the
// first event that is not as it was signed; what comes after that event is not
// judged. Events counts the records read. An empty log without anchors is good.
//
// The error is of kind Invalid for a malformed key or anchor, else what src
// returned. What is wrong with the log is never an error.
func Verify(ctx context.Context, src Source, verifier string, anchors ...string) (writ.AuditReport, error) {
	key, err := newVerifier(verifier)
	if err != nil {
		return writ.AuditReport{}, err
	}
	v := &verification{src: src, end: maxSize}
	for i, a := range anchors {
		name := fmt.Sprintf("anchor %d", i+1)
		c, err := openCheckpoint(a, key)
		switch {
		case errors.Is(err, errMalformed):
			return writ.AuditReport{}, &writ.Error{Kind: writ.Invalid, Op: "verify the audit log", Msg: fmt.Sprintf("%s: %v", name, err)}
		case err != nil:
			v.fault(-1, "%s: %v", name, err)
		default:
			v.marks = append(v.marks, mark{checkpoint: c, name: name})
		}
	}
	size, signed, err := src.LogHead(ctx)
	missing := writ.KindOf(err) == writ.NotFound
	if err != nil && !missing {
		return writ.AuditReport{}, fmt.Errorf("read the head of the audit log: %w", err)
	}
	if missing {
		v.fault(-1, "the signed head is missing")
	} else if signed == "" && size == 0 {
		v.end = 0
	} else if c, err := openCheckpoint(signed, key); err != nil {
		v.fault(-1, "the signed head: %v", err)
	} else {
		v.end = c.size
		v.marks = append(v.marks, mark{checkpoint: c, name: "the signed head"})
		if c.size != size {
			v.fault(-1, "the store says that the log has %d events, its signed head says %d", size, c.size)
		}
	}
	if c, err := unverified(signed); err == nil {
		v.head = c.public(signed)
	}
	slices.SortStableFunc(v.marks, func(a, b mark) int { return cmp.Compare(a.size, b.size) })

	if err := v.run(ctx); err != nil {
		return writ.AuditReport{}, err
	}
	return writ.AuditReport{OK: len(v.faults) == 0, Events: v.read, Head: v.head, Faults: v.faults}, nil
}

// mark is a signed checkpoint that the recomputed tree must meet at its size.
type mark struct {
	checkpoint
	name string
}

// suspicion is a first disagreement between records and stored hashes. Only the
// next mark tells which of the two is wrong.
type suspicion struct {
	seq     int64
	record  string // the fault, when the records are not what was signed
	storage string // the fault, when they are
}

// verification is one pass over the log.
type verification struct {
	src     Source
	head    writ.Checkpoint
	marks   []mark // not met yet, by size
	end     int64  // no record may have this Seq or a greater one
	edge    frontier
	good    int64 // events below are what a mark signs
	suspect *suspicion
	stored  *hashPage // read ahead
	lost    int64     // in search: the event that is not in its place
	search  bool      // the place of event lost is taken; its record may turn up later
	mislaid bool      // a fault of the store's columns was reported
	stopped bool      // a fault was found behind which nothing is judged
	read    int64
	faults  []writ.AuditFault
}

func (v *verification) fault(seq int64, format string, args ...any) {
	v.faults = append(v.faults, writ.AuditFault{Seq: seq, Fault: fmt.Sprintf(format, args...)})
}

func (v *verification) run(ctx context.Context) error {
	v.meet() // a checkpoint of an empty log
	for after := int64(-1); !v.stopped; {
		page, err := v.src.Records(ctx, after, pageRecords)
		if err != nil {
			return fmt.Errorf("read the audit log after event %d: %w", after, err)
		}
		for i, r := range page {
			if r.Seq <= after {
				return fmt.Errorf("read the audit log after event %d: got event %d", after, r.Seq)
			}
			after = r.Seq
			v.read++
			if err := v.record(ctx, r, page[i:]); err != nil {
				return err
			}
			if v.stopped {
				break
			}
		}
		if len(page) < pageRecords {
			break
		}
	}
	if v.stopped {
		return nil
	}
	return v.finish(ctx)
}

// record judges one record. rest is what is left of its page, from r on.
func (v *verification) record(ctx context.Context, r writ.Record, rest []writ.Record) error {
	e, bad := decode(r.Data)
	seq := v.edge.size
	if !v.search && seq < v.end && r.Seq != seq {
		v.search, v.lost = true, seq
	}
	if v.search {
		if bad == nil && e.Seq == v.lost {
			v.accuse()
			v.fault(v.lost, "event %d is not in its place: it stands as event %d (reordered)", v.lost, r.Seq)
			v.stopped = true
		}
		return nil
	}
	if seq >= v.end {
		v.accuse()
		v.fault(r.Seq, "event %d stands behind the signed head, which signs %d events: it was added, or an older head was put back", r.Seq, v.end)
		v.stopped = true
		return nil
	}
	leaf := tlog.RecordHash(r.Data)
	if bad == nil && e.Seq != seq {
		moved, err := v.moved(ctx, leaf, seq, e.Seq)
		if err != nil {
			return err
		}
		if moved {
			v.search, v.lost = true, seq
			return nil
		}
	}
	if bad != nil {
		v.suspectAt(seq, fmt.Sprintf("event %d was changed: %v", seq, bad), fmt.Sprintf("event %d is as it was signed, but cannot be read: %v", seq, bad))
	} else if !v.mislaid && (r.Type != e.Type || r.Tenant != e.Tenant || r.Task != e.Task) {
		v.mislaid = true
		v.fault(seq, "event %d is filed as %q of tenant %q, task %q, but its record says %q, %q, %q", seq, r.Type, r.Tenant, r.Task, e.Type, e.Tenant, e.Task)
	}
	if v.suspect == nil {
		if err := v.compare(ctx, leaf, rest); err != nil {
			return err
		}
	} else {
		v.edge.add(leaf)
	}
	v.meet()
	return nil
}

// suspectAt notes a suspicion unless there is an earlier one.
func (v *verification) suspectAt(seq int64, record, storage string) {
	if v.suspect == nil {
		v.suspect = &suspicion{seq: seq, record: record, storage: storage}
	}
}

// accuse reports the suspicion that no mark will clear any more.
func (v *verification) accuse() {
	if v.suspect != nil {
		v.fault(v.suspect.seq, "%s", v.suspect.record)
		v.suspect = nil
	}
}

// meet compares the tree as it stands with every mark of its size.
func (v *verification) meet() {
	for len(v.marks) > 0 && v.marks[0].size == v.edge.size {
		m := v.marks[0]
		v.marks = v.marks[1:]
		if v.edge.root() == m.root {
			if v.suspect != nil {
				v.fault(v.suspect.seq, "%s", v.suspect.storage)
				v.suspect = nil
			}
			v.good = m.size
			continue
		}
		v.stopped = true
		if v.suspect != nil {
			v.accuse()
		} else if v.good == m.size {
			v.fault(-1, "%s signs another log of %d events than the one that stands here", m.name, m.size)
		} else {
			v.fault(v.good, "an event from %d to %d was changed, dropped or reordered and all hashes over it recomputed: the root is not what %s signs", v.good, m.size-1, m.name)
		}
		return
	}
}

// finish judges the end of the log.
func (v *verification) finish(ctx context.Context) error {
	n := v.edge.size
	v.accuse()
	switch {
	case v.search:
		v.fault(v.lost, "event %d is missing (dropped)", v.lost)
	case len(v.marks) > 0:
		v.fault(n, "the log ends after %d events, but %s signs %d (truncated)", n, v.marks[0].name, v.marks[0].size)
	case len(v.faults) == 0:
		// Hashes of more events than there are: the tail was cut, and an older head
		// put back, by somebody who forgot them.
		_, err := v.src.LogHashes(ctx, []int64{tlog.StoredHashCount(n)})
		if err == nil {
			v.fault(n, "hashes are stored of more than the %d events in the log (truncated)", n)
		} else if writ.KindOf(err) != writ.NotFound {
			return fmt.Errorf("read the hash after the last: %w", err)
		}
	}
	return nil
}
