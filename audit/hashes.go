package audit

import (
	"context"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"writ"
)

// hashPage is a run of stored hashes at consecutive indexes. What is missing is nil.
type hashPage struct {
	first  int64
	hashes []*tlog.Hash
}

func (p *hashPage) at(index int64) (h *tlog.Hash, read bool) {
	if p == nil || index < p.first || index >= p.first+int64(len(p.hashes)) {
		return nil, false
	}
	return p.hashes[index-p.first], true
}

// readHashes reads the stored hashes [first, end), some of which may be missing.
func readHashes(ctx context.Context, src Source, first, end int64) (*hashPage, error) {
	indexes := make([]int64, 0, end-first)
	for i := first; i < end; i++ {
		indexes = append(indexes, i)
	}
	p := &hashPage{first: first, hashes: make([]*tlog.Hash, len(indexes))}
	hashes, err := hashReader(ctx, src).ReadHashes(indexes)
	if err == nil {
		for i := range hashes {
			p.hashes[i] = &hashes[i]
		}
		return p, nil
	}
	if writ.KindOf(err) != writ.NotFound {
		return nil, err
	}
	for i, index := range indexes {
		h, err := storedHash(ctx, src, index)
		if err != nil {
			return nil, err
		}
		p.hashes[i] = h
	}
	return p, nil
}

// storedHash reads one stored hash; nil when it is missing.
func storedHash(ctx context.Context, src Source, index int64) (*tlog.Hash, error) {
	hashes, err := hashReader(ctx, src).ReadHashes([]int64{index})
	if writ.KindOf(err) == writ.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &hashes[0], nil
}

// compare adds the leaf of the next record to the tree and suspects the first
// stored hash that differs from what the records make. rest is the page of records
// from that one on, for which hashes are read ahead.
func (v *verification) compare(ctx context.Context, leaf tlog.Hash, rest []writ.Record) error {
	seq := v.edge.size
	index := tlog.StoredHashIndex(0, seq)
	made := v.edge.add(leaf)
	if _, ok := v.stored.at(index); !ok {
		p, err := readHashes(ctx, v.src, index, tlog.StoredHashCount(seq+int64(len(rest))))
		if err != nil {
			return err
		}
		v.stored = p
	}
	for level, h := range made {
		stored, _ := v.stored.at(index + int64(level))
		if stored != nil && *stored == h {
			continue
		}
		state := "was changed"
		if stored == nil {
			state = "is missing"
		}
		first := seq >> level << level
		if level == 0 {
			v.suspectAt(seq, fmt.Sprintf("event %d was changed: its record does not make its stored hash", seq),
				fmt.Sprintf("the stored hash of event %d %s; the event is as it was signed", seq, state))
		} else {
			v.suspectAt(first, fmt.Sprintf("one of the events %d to %d was changed, and its stored hash with it", first, seq),
				fmt.Sprintf("the stored hash over the events %d to %d %s; the events are as they were signed", first, seq, state))
		}
		return nil
	}
	return nil
}

// moved reports whether a record in the place of event seq that says it is event
// other is really that event, and not event seq with its number changed.
func (v *verification) moved(ctx context.Context, leaf tlog.Hash, seq, other int64) (bool, error) {
	for _, n := range []int64{seq, other} {
		if n < 0 || n >= maxSize {
			continue
		}
		h, err := storedHash(ctx, v.src, tlog.StoredHashIndex(0, n))
		if err != nil {
			return false, err
		}
		if h != nil && *h == leaf {
			return true, nil
		}
	}
	return false, nil
}
