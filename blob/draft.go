package blob

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"writ"
)

// syncsAtOnce is how many drafts of one Publish are on their way to the disk at a time: a
// file system has those that wait together on the disk together.
const syncsAtOnce = 32

// Draft writes the bytes of r, at most limit of them, and gives them no name: that is for
// Publish, or Drop, one of which must follow. Nothing is on the disk before that. Errors,
// and ctx, are as with Put; after an error nothing is left.
func (f *Folder) Draft(ctx context.Context, r io.Reader, limit int64) (writ.Draft, error) {
	if limit < 0 {
		return writ.Draft{}, errors.New("the limit of a blob is below zero")
	}
	d := writ.Draft{Name: rand.Text()}
	file, err := f.root.OpenFile(at(d), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return writ.Draft{}, unkept(err)
	}
	f.step("draft")
	d.Digest, d.Size, err = fill(ctx, file, r, limit)
	if err = errors.Join(err, file.Close()); err != nil {
		return writ.Draft{}, unkept(errors.Join(err, f.Drop(d)))
	}
	f.step("written")
	return d, nil
}

// fill copies r into file.
func fill(ctx context.Context, file *os.File, r io.Reader, limit int64) (writ.Digest, int64, error) {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, sum), &untilDone{ctx, io.LimitReader(r, limit)})
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
	return writ.Digest(hex.EncodeToString(sum.Sum(nil))), n, nil
}

// Publish gives drafts their names, and answers once the bytes and the names of all are on
// the disk: as if each had been put, at the cost of a few. After an error none of the
// drafts is left, and of the blobs that they were to be any may be there, named by nobody.
func (f *Folder) Publish(ctx context.Context, drafts ...writ.Draft) error {
	if len(drafts) == 0 {
		return nil
	}
	err := f.sync(ctx, drafts)
	for _, d := range drafts {
		if err == nil {
			err = f.name(d)
		}
	}
	if err == nil {
		f.step("named")
		err = syncFolder(f.root, blobs) // not under the lock: others need not wait for the disk
	}
	if err != nil {
		return unkept(errors.Join(err, f.Drop(drafts...)))
	}
	f.step("done")
	return nil
}

// unkept is err, as Unavailable when the disk takes no bytes: it is full, or fails.
func unkept(err error) error {
	for _, no := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO} {
		if errors.Is(err, no) {
			return &writ.Error{Kind: writ.Unavailable, Op: "keep file",
				Msg: "the server cannot keep files now: try again later, and see the server's log", Err: err}
		}
	}
	return err
}

// sync has the bytes of drafts on the disk. Each is a file of its own, once.
func (f *Folder) sync(ctx context.Context, drafts []writ.Draft) error {
	var wg sync.WaitGroup
	var errs [syncsAtOnce]error
	for turn := range errs {
		wg.Go(func() {
			for i := turn; i < len(drafts) && errs[turn] == nil; i += syncsAtOnce {
				if errs[turn] = ctx.Err(); errs[turn] == nil {
					errs[turn] = f.syncDraft(drafts[i])
				}
			}
		})
	}
	wg.Wait()
	f.step("synced")
	return errors.Join(errs[:]...)
}

func (f *Folder) syncDraft(d writ.Draft) error {
	file, err := f.root.OpenFile(at(d), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

func (f *Folder) name(d writ.Draft) error {
	return f.alone(func() error {
		// The age that a sweep looks at begins here, however long the last byte took.
		now := time.Now()
		if err := f.root.Chtimes(at(d), now, now); err != nil {
			return err
		}
		// Over what is there: the same bytes, but perhaps old enough to be swept.
		return f.root.Rename(at(d), path.Join(blobs, string(d.Digest)))
	})
}

// Drop removes drafts. One that is gone is none to remove.
func (f *Folder) Drop(drafts ...writ.Draft) error {
	var errs []error
	for _, d := range drafts {
		if err := f.root.Remove(at(d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// at is where the bytes of d are.
func at(d writ.Draft) string { return path.Join(drafts, d.Name) }
