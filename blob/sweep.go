package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"writ"
)

// sweepPage is how many names a sweep holds at a time.
const sweepPage = 500

// Sweep removes the blobs that were put before a time and are not in use, and drafts to
// which nothing was written since then. It answers how many blobs it removed and their
// bytes; with dry it counts and removes nothing. inUse answers those of some digests that
// are recorded anywhere. Each blob is asked for after its age was looked at, and removed
// only if nobody put it again meanwhile. After an error the sweep may be called again from
// the start; an error of inUse removes nothing that it was asked about.
func (f *Folder) Sweep(ctx context.Context, before time.Time, inUse func(context.Context, []writ.Digest) ([]writ.Digest, error), dry bool) (n int, bytes int64, err error) {
	s := sweep{before: before, inUse: inUse, dry: dry}
	if !dry {
		err = f.each(ctx, drafts, before, func(old []fs.FileInfo) error {
			var errs []error
			for _, info := range old {
				if _, err := f.remove(path.Join(drafts, info.Name()), before); err != nil {
					errs = append(errs, err)
				}
			}
			return errors.Join(errs...)
		})
	}
	err = errors.Join(err, f.each(ctx, blobs, before, func(old []fs.FileInfo) error { return f.sweepBlobs(ctx, &s, old) }))
	if err != nil {
		err = fmt.Errorf("sweep blobs: %w", err)
	}
	return s.n, s.bytes, err
}

// SweepOf is Sweep for blobs of these digests alone, and for no drafts. It answers how many
// it removed; one that is not there, or is not that old, is not counted.
func (f *Folder) SweepOf(ctx context.Context, of []writ.Digest, before time.Time, inUse func(context.Context, []writ.Digest) ([]writ.Digest, error)) (n int, bytes int64, err error) {
	s := sweep{before: before, inUse: inUse}
	for page := range slices.Chunk(of, sweepPage) {
		var old []fs.FileInfo
		for _, d := range page {
			if !d.Valid() {
				continue
			}
			info, err := f.regular("sweep blob", path.Join(blobs, string(d)))
			if writ.KindOf(err) == writ.NotFound {
				continue
			}
			if err != nil {
				return s.n, s.bytes, err
			}
			if info.ModTime().Before(before) {
				old = append(old, info)
			}
		}
		if err := f.sweepBlobs(ctx, &s, old); err != nil {
			return s.n, s.bytes, fmt.Errorf("sweep blobs: %w", err)
		}
	}
	return s.n, s.bytes, nil
}

// sweep is one call of Sweep or SweepOf, as far as it has come.
type sweep struct {
	before time.Time
	inUse  func(context.Context, []writ.Digest) ([]writ.Digest, error)
	dry    bool

	n     int // removed, or to be
	bytes int64
}

// sweepBlobs removes those of the old blobs that nobody uses, or counts them.
func (f *Folder) sweepBlobs(ctx context.Context, s *sweep, old []fs.FileInfo) error {
	var digests []writ.Digest
	for _, info := range old {
		if d := writ.Digest(info.Name()); d.Valid() { // anything else is not ours to remove
			digests = append(digests, d)
		}
	}
	if len(digests) == 0 {
		return nil
	}
	used, err := s.inUse(ctx, digests)
	if err != nil {
		return err
	}
	keep := make(map[string]bool, len(used))
	for _, d := range used {
		keep[string(d)] = true
	}
	for _, info := range old {
		if !writ.Digest(info.Name()).Valid() || keep[info.Name()] {
			continue
		}
		removed := true
		if !s.dry {
			if removed, err = f.remove(path.Join(blobs, info.Name()), s.before); err != nil {
				return err
			}
		}
		if removed {
			s.n++
			s.bytes += info.Size()
		}
	}
	return nil
}

// remove removes the file at name if it is still older than before, and reports whether
// it did.
func (f *Folder) remove(name string, before time.Time) (removed bool, err error) {
	err = f.alone(func() error {
		info, err := f.root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !info.ModTime().Before(before):
			return nil
		}
		err = f.root.Remove(name)
		removed = err == nil
		return err
	})
	return removed, err
}

// each gives fn the regular files of a folder that are older than before, a page at a
// time.
func (f *Folder) each(ctx context.Context, folder string, before time.Time, fn func([]fs.FileInfo) error) error {
	dir, err := f.root.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := dir.ReadDir(sweepPage)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var old []fs.FileInfo
		for _, e := range entries {
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) { // removed since it was listed
				continue
			}
			if err != nil {
				return err
			}
			if info.Mode().IsRegular() && info.ModTime().Before(before) {
				old = append(old, info)
			}
		}
		if err := fn(old); err != nil {
			return err
		}
	}
}
