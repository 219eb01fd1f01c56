package remote

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"writ"
)

// rules are what a runner may ask for and give for a run, and what it gave. It is trusted
// to run things, not with the bytes of others.
type rules struct {
	spec  writ.RunSpec
	sizes map[writ.Digest]int64 // of the inputs

	offered int64                      // outputs that the runner gave
	files   map[string]writ.OutputFile // those that were kept, by path
	bytes   int64                      // of those
}

func newRules(spec writ.RunSpec) rules {
	return rules{spec: spec, sizes: sizesOf(spec), files: map[string]writ.OutputFile{}}
}

// sizesOf is how many bytes those of each digest are.
func sizesOf(spec writ.RunSpec) map[writ.Digest]int64 {
	sizes := make(map[writ.Digest]int64, len(spec.Files))
	for _, f := range spec.Files {
		sizes[f.Digest] = max(sizes[f.Digest], f.Size)
	}
	return sizes
}

// offer reports why f is not taken. One that is then not kept counts only toward
// Limits.Files: a workspace has no more.
func (r *rules) offer(f writ.OutputFile) error {
	r.offered++
	_, again := r.files[f.Path]
	switch c := r.spec.Collect; {
	case c == nil:
		return errors.New("it gave a file that nobody asked for")
	case writ.ValidPath(f.Path) != nil, f.State != writ.OutputNew && f.State != writ.OutputChanged, f.Digest != "", f.Size < 0, again:
		return fmt.Errorf("it gave a file that is none: %.300q", f.Path)
	case f.Link && (!c.Links || f.Exec || f.Size < 1 || f.Size > writ.MaxLinkBytes || strings.HasSuffix(f.Path, "/"+writ.KeepName)):
		return fmt.Errorf("it gave a symlink that is none: %.300q", f.Path)
	case int64(len(r.files)) >= c.Files, r.offered > max(c.Files, r.spec.Limits.Files):
		return errors.New("it gave more files than it may")
	case f.Size > c.FileBytes, f.Size > c.TotalBytes-r.bytes:
		return errors.New("it gave more bytes than it may")
	}
	return nil
}

// kept counts o, which may be nil, if it was kept.
func (r *rules) kept(o *output) {
	if o != nil && o.kept {
		r.files[o.file.Path] = o.file
		r.bytes += o.file.Size
	}
}

// result reports what is wrong with the answer.
func (r *rules) result(res *writ.Result) error {
	if !slices.Contains(writ.Outcomes, res.Outcome) {
		return errors.New("it sent a message that is none of the protocol")
	}
	if len(res.Dropped) > writ.MaxDropped || res.DroppedFiles < int64(len(res.Dropped)) {
		return errors.New("it named more dropped files than it may")
	}
	if len(res.Files) == 0 {
		return nil
	}
	given := map[string]writ.OutputFile{} // the inputs, as they are named when they did not change
	if r.spec.Collect != nil {
		for _, f := range r.spec.Files {
			given[f.Path] = writ.OutputFile{Path: f.Path, Digest: f.Digest, Size: f.Size, Link: f.Link}
		}
		for _, f := range r.spec.Inputs {
			given[f.Path] = writ.OutputFile{Path: f.Path, Digest: writ.DigestOf(f.Content), Size: int64(len(f.Content))}
		}
	}
	for _, f := range res.Files {
		want, ok := r.files[f.Path]
		want.Digest = f.Digest // who keeps the bytes knows theirs, and need not be told
		if f.State == writ.OutputSame {
			want, ok = given[f.Path]
			want.State, want.Exec = f.State, f.Exec
			delete(given, f.Path)
		}
		delete(r.files, f.Path) // a path is named once
		if !ok || f != want || !f.Digest.Valid() {
			return fmt.Errorf("its result has a file that it did not give: %.300q", f.Path)
		}
	}
	return nil
}
