package files

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"writ/patch"
)

// Change is what a patch does at one path (spec/02 §5.4).
type Change struct {
	Path string     `json:"path"`
	Kind patch.Kind `json:"kind"`
	From string     `json:"from,omitempty"` // of a move: where the file was
	// Before and After are versions; patch.Absent is no file. They or the modes differ.
	Before string `json:"before_version"`
	After  string `json:"after_version"`
	// The permission bits; zero where there is no file.
	BeforeMode fs.FileMode `json:"before_mode,omitempty"`
	AfterMode  fs.FileMode `json:"after_mode,omitempty"`
}

// Plan is what a patch will do, computed from what was there. It holds the contents:
// it stays in this process.
type Plan struct {
	Changes []Change // in the order of package patch
	Diff    string   // unified, for people; hidden characters stand in it as they are

	root     string
	computed []patch.Change // as Changes
	emptied  []string       // folders that go with the files in them, if nothing else is there
}

// Paths lists the paths that change, as Changes has them.
func (p Plan) Paths() []string {
	paths := make([]string, len(p.Changes))
	for i, c := range p.Changes {
		paths[i] = c.Path
	}
	return paths
}

// Plan computes what a patch does, and changes nothing on disk (spec/02 §6, steps 5
// and 6). Expected maps paths, also ones that the patch does not name, to the versions
// that they must have.
//
// Errors are *writ.Error with the codes of spec/02 §5.4: VERSION_CONFLICT for an
// expectation that is not met, UNAUTHORIZED for a path that the rules deny, those of
// package patch, those of Read. Cancelling ctx ends it with the error of ctx.
func (t *Tree) Plan(ctx context.Context, p patch.Patch, expected map[string]string) (Plan, error) {
	root, done, err := t.use()
	if err != nil {
		return Plan{}, err
	}
	defer done()
	src := t.source(ctx, root)
	for _, name := range p.Paths() {
		if err := t.mayPatch(name); err != nil {
			return Plan{}, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		version, err := src.opener.version(name)
		if err != nil {
			return Plan{}, err
		}
		if want := expected[name]; version != want {
			return Plan{}, fault(CodeVersionConflict, "%s is %s, expected was %s: read it again and make the patch from what is there", quoted(name), version, quoted(want))
		}
	}
	changes, err := p.Apply(src)
	if err != nil {
		if ctx.Err() != nil {
			return Plan{}, ctx.Err()
		}
		return Plan{}, withLine(err)
	}
	return newPlan(t.root, changes), nil
}

func newPlan(root string, changes []patch.Change) Plan {
	p := Plan{root: root, computed: changes, Diff: patch.Unified(changes)}
	for _, c := range changes {
		out := Change{Path: c.Path, Kind: c.Kind, From: c.From, Before: c.Before.Version(), After: c.After.Version()}
		if c.Before != nil {
			out.BeforeMode = c.Before.Mode
		}
		if c.After != nil {
			out.AfterMode = c.After.Mode
		}
		p.Changes = append(p.Changes, out)
	}
	return p
}

// mayPatch refuses a clean path that a patch must not touch.
func (t *Tree) mayPatch(name string) error {
	if _, base := split(name); reserved(base) {
		return fault(CodeUnauthorized, "write %s: names of this form are the server's own", quoted(name))
	}
	if !t.rules.mayWrite(name) {
		return fault(CodeUnauthorized, "write %s: the rules of this workspace deny it", quoted(name))
	}
	return nil
}

// source gives package patch the files of a tree.
type source struct {
	opener *opener
	room   int64 // bytes that it may still read
}

func (t *Tree) source(ctx context.Context, root int) *source {
	return &source{opener: t.opener(ctx, root), room: patch.MaxTotalBytes}
}

func (s *source) ReadFile(name string) ([]byte, fs.FileMode, error) {
	f, err := s.opener.open(name)
	if err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil, 0, fs.ErrNotExist
		}
		return nil, 0, err
	}
	defer f.close()
	content, _, err := f.bytes(s.opener.ctx, s.room)
	if errors.Is(err, errTooLarge) {
		return nil, 0, fault(CodeInvalidPatch, "%s: the files of this patch have more than %d bytes together: send it in parts", quoted(name), patch.MaxTotalBytes)
	}
	if err != nil {
		return nil, 0, err
	}
	s.room -= int64(len(content))
	return content, permOf(&f.st), nil
}
