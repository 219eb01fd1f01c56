package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// frontier is the right edge of a Merkle tree: the roots of the complete subtrees
// that size records fall into, largest first. It is all that is needed to add a
// record and to know the root.
type frontier struct {
	size  int64
	roots []tlog.Hash // one for each bit that is set in size
}

// add appends a leaf and returns the hashes that it completes, in the order of
// their stored indexes, which start at tlog.StoredHashIndex(0, size before).
func (f *frontier) add(leaf tlog.Hash) []tlog.Hash {
	done := []tlog.Hash{leaf}
	h := leaf
	for range bits.TrailingZeros64(uint64(f.size + 1)) {
		last := len(f.roots) - 1
		h = tlog.NodeHash(f.roots[last], h)
		f.roots = f.roots[:last]
		done = append(done, h)
	}
	f.roots = append(f.roots, h)
	f.size++
	return done
}

// root is the hash of the whole tree.
func (f *frontier) root() tlog.Hash {
	if f.size == 0 {
		return sha256.Sum256(nil) // RFC 6962 §2.1: the empty tree
	}
	h := f.roots[len(f.roots)-1]
	for i := len(f.roots) - 2; i >= 0; i-- {
		h = tlog.NodeHash(f.roots[i], h)
	}
	return h
}

// frontierIndexes are the stored indexes of the frontier of a tree of size records.
func frontierIndexes(size int64) []int64 {
	var at []int64
	done := int64(0)
	for level := bits.Len64(uint64(size)) - 1; level >= 0; level-- {
		if size&(1<<level) != 0 {
			at = append(at, tlog.StoredHashIndex(level, done>>level))
			done += 1 << level
		}
	}
	return at
}

// loadFrontier reads the right edge of a tree of size records.
func loadFrontier(ctx context.Context, src Source, size int64) (*frontier, error) {
	roots, err := hashReader(ctx, src).ReadHashes(frontierIndexes(size))
	if err != nil {
		return nil, err
	}
	return &frontier{size: size, roots: roots}, nil
}

// hashReader reads stored hashes as tlog wants them.
func hashReader(ctx context.Context, src Source) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		if len(indexes) == 0 {
			return nil, nil
		}
		raw, err := src.LogHashes(ctx, indexes)
		if err != nil {
			return nil, fmt.Errorf("read %d hashes of the log: %w", len(indexes), err)
		}
		if len(raw) != len(indexes) {
			return nil, fmt.Errorf("read %d hashes of the log: got %d", len(indexes), len(raw))
		}
		hashes := make([]tlog.Hash, len(raw))
		for i, h := range raw {
			hashes[i] = h
		}
		return hashes, nil
	})
}
