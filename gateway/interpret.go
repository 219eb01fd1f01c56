package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"writ"
	"writ/lang"
	"writ/store"
)

// Blobs is where the bytes of files are that runs take and give. Its contract is that of
// package blob.
type Blobs interface {
	Open(ctx context.Context, digest writ.Digest, from, n int64) (io.ReadCloser, error)
	Draft(ctx context.Context, r io.Reader, limit int64) (writ.Draft, error)
	Publish(ctx context.Context, drafts ...writ.Draft) error
	Drop(drafts ...writ.Draft) error
}

// Interpret takes a run of the code interpreter for who, a user of a front end: it is
// decided, recorded, held and run as a task of its own, as Submit does it. Whoever calls
// has checked that who may read the files of spec.
//
// Errors are those of Submit.
func (g *Gateway) Interpret(ctx context.Context, who writ.Principal, spec writ.RunSpec) (writ.Task, error) {
	o, err := g.interpretOrder(who, spec)
	if err != nil {
		return writ.Task{}, g.refuse(ctx, who, err)
	}
	t, _, err := g.submit(ctx, o)
	return t, err
}

func (g *Gateway) interpretOrder(who writ.Principal, spec writ.RunSpec) (order, error) {
	e := &writ.Error{Op: "interpret", Kind: writ.Invalid}
	switch err := spec.Validate(); {
	case err != nil:
		e.Msg = err.Error()
		return order{}, e
	case spec.Kind != writ.RunInterpreter:
		e.Msg = fmt.Sprintf("a run of kind %q is not one of the code interpreter", spec.Kind)
		return order{}, e
	case who.Kind != writ.KindUser:
		e.Kind, e.Msg = writ.Denied, fmt.Sprintf("%s may not use the code interpreter: it is for the users of a front end", who.Ref())
		return order{}, e
	case g.opt.Blobs == nil:
		e.Kind, e.Msg = writ.Unavailable, "this server does not serve the code interpreter"
		return order{}, e
	}
	l, err := lang.For(spec.Kind).Lookup(spec.Language)
	if err != nil {
		return order{}, err
	}
	spec.Language = l.Name
	now := writ.Now()
	o := order{who: who, as: who, known: true, now: now}
	o.task = writ.Task{
		ID: writ.TaskID(writ.NewID("task")), Tenant: who.Tenant, Identity: who.Owner(), Requester: who.Ref(),
		Created: now, Updated: now,
	}
	if len(who.Roles) > 0 {
		o.task.Role = who.Roles[0]
		o.as.Roles = who.Roles[:1]
	}
	g.bind(&o, spec)
	o.task.RequestDigest = o.task.Digest
	return o, nil
}

// keeper holds a run to the files that its spec gives it and lets it give. What a runner
// says is believed of names and outcomes, within those bounds, and of bytes nothing: they
// are hashed here.
type keeper struct {
	blobs Blobs
	spec  writ.RunSpec
	given map[string]writ.FileInput // by path
	named map[writ.Digest]bool      // those of given
	kept  map[string]keptFile       // by path
	left  int64                     // bytes that Keep may still take
	lost  int                       // files that could not be kept although they may be
	fault error                     // why the first of them could not

	unread error // why the first input could not be read that could not
}

// keptFile is a file of which Keep took the bytes. They are published when the run is over.
type keptFile struct {
	file  writ.OutputFile
	draft writ.Draft
}

func (g *Gateway) keeper(spec writ.RunSpec) *keeper {
	k := &keeper{blobs: g.opt.Blobs, spec: spec, given: map[string]writ.FileInput{}, named: map[writ.Digest]bool{}, kept: map[string]keptFile{}}
	for _, f := range spec.Files {
		k.given[f.Path], k.named[f.Digest] = f, true
	}
	if spec.Collect != nil {
		k.left = spec.Collect.TotalBytes
	}
	return k
}

// exchange is what the runner gets of k.
func (k *keeper) exchange() *writ.Exchange {
	if k.blobs == nil || k.spec.Kind != writ.RunInterpreter {
		return &writ.Exchange{}
	}
	x := &writ.Exchange{Open: k.open}
	if k.spec.Collect != nil {
		x.Keep = k.keep
	}
	return x
}

func (k *keeper) open(ctx context.Context, digest writ.Digest) (io.ReadCloser, error) {
	if !k.named[digest] {
		return nil, &writ.Error{Op: "open input", Kind: writ.Denied, Msg: fmt.Sprintf("no input of the run has digest %.12s", digest)}
	}
	body, err := k.blobs.Open(ctx, digest, 0, -1)
	if err != nil {
		k.unread = cmp.Or(k.unread, err)
		return nil, err
	}
	return &inputBody{body, k}, nil
}

// inputBody is an input on its way to the runner. That its bytes cannot be read, or are
// others than those that were put, is as if they were gone: trying again does not help.
type inputBody struct {
	io.ReadCloser
	of *keeper
}

func (b *inputBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.of.unread = cmp.Or(b.of.unread, err)
		err = &writ.Error{Kind: writ.NotFound, Op: "read input", Msg: "the bytes of the file are gone", Err: err}
	}
	return n, err
}

func (k *keeper) keep(ctx context.Context, f writ.OutputFile, r io.Reader) error {
	e := &writ.Error{Op: "keep output", Kind: writ.Exhausted}
	switch {
	case writ.ValidPath(f.Path) != nil:
		e.Kind, e.Msg = writ.Invalid, writ.ValidPath(f.Path).Error()
		return e
	case int64(len(k.kept)) >= k.spec.Collect.Files:
		e.Msg = fmt.Sprintf("more than %d files", k.spec.Collect.Files)
		return e
	}
	d, err := k.blobs.Draft(ctx, r, min(k.spec.Collect.FileBytes, k.left))
	if err != nil {
		if ctx.Err() == nil && writ.KindOf(err) == writ.Internal {
			k.lost, k.fault = k.lost+1, cmp.Or(k.fault, err)
		}
		return err
	}
	k.left -= d.Size
	old, again := k.kept[f.Path]
	k.kept[f.Path] = keptFile{writ.OutputFile{Path: f.Path, Digest: d.Digest, Size: d.Size, Exec: f.Exec, Link: f.Link}, d}
	if again {
		return k.blobs.Drop(old.draft)
	}
	return nil
}

// settle holds the files of a result to what was given and kept, and has the bytes of those
// that stay on the disk, all together.
func (k *keeper) settle(ctx context.Context, r *writ.Result) {
	k.check(r)
	var publish []writ.Draft
	for _, f := range r.Files {
		if f.State != writ.OutputSame {
			publish = append(publish, k.kept[f.Path].draft)
			delete(k.kept, f.Path)
		}
	}
	for _, f := range k.kept {
		_ = k.blobs.Drop(f.draft) // what stays, a sweep of the blobs finds
	}
	if len(publish) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), publishTime)
	defer stop()
	if err := k.blobs.Publish(ctx, publish...); err != nil {
		k.lost, k.fault = k.lost+len(publish), cmp.Or(k.fault, err)
		r.Files = slices.DeleteFunc(r.Files, func(f writ.OutputFile) bool {
			if f.State == writ.OutputSame {
				return false
			}
			if r.DroppedFiles++; len(r.Dropped) < writ.MaxDropped {
				r.Dropped = append(r.Dropped, writ.DroppedFile{Path: f.Path, Why: "it could not be kept", Class: writ.DropUnreadable})
			}
			return true
		})
	}
}

// check holds the files of a result to what was given and kept.
func (k *keeper) check(r *writ.Result) {
	var files []writ.OutputFile
	seen := map[string]bool{}
	for _, f := range r.Files {
		in, given := k.given[f.Path]
		kept, isKept := k.kept[f.Path]
		switch {
		case seen[f.Path]:
			continue
		case f.State == writ.OutputSame && given:
			f.Digest, f.Size, f.Link = in.Digest, in.Size, in.Link
		case f.State != writ.OutputSame && isKept:
			f = kept.file
			f.State = writ.OutputNew
			if given {
				f.State = writ.OutputChanged
			}
		default:
			continue // neither given nor kept: there are no bytes of it
		}
		seen[f.Path] = true
		files = append(files, f)
	}
	r.Files = files
	r.Dropped = slices.Clone(r.Dropped[:min(len(r.Dropped), writ.MaxDropped)])
	for i, d := range r.Dropped {
		r.Dropped[i] = writ.DroppedFile{Path: cut(d.Path, maxDroppedPath), Why: cut(d.Why, maxReason), Class: writ.DropClass(cut(string(d.Class), maxWord))}
	}
	r.DroppedFiles = max(r.DroppedFiles, int64(len(r.Dropped)))
}

const (
	maxDroppedPath = 4096
	// publishTime is how long the files of one run may take to the disk.
	publishTime = time.Minute
)

// runFiles is the body of a run's files.
type runFiles struct {
	Files   []writ.OutputFile  `json:"files,omitempty"`
	Dropped []writ.DroppedFile `json:"dropped,omitempty"`
}

// putFiles stores what is known of the files of a run.
func putFiles(ctx context.Context, tx *store.Tx, id writ.TaskID, r writ.Result) error {
	if len(r.Files)+len(r.Dropped) == 0 {
		return nil
	}
	b, err := json.Marshal(runFiles{r.Files, r.Dropped})
	if err != nil {
		return fmt.Errorf("encode files of %s: %w", id, err)
	}
	return tx.PutBody(ctx, id, store.BodyFiles, b)
}

// GetFiles puts what is stored of a run's files into r.
func GetFiles(ctx context.Context, tx *store.Tx, id writ.TaskID, r *writ.Result) error {
	b, err := tx.Body(ctx, id, store.BodyFiles)
	if writ.KindOf(err) == writ.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	var f runFiles
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("decode files of %s: %w", id, err)
	}
	r.Files, r.Dropped = f.Files, f.Dropped
	return nil
}
