package runner

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"writ"
	"writ/lang"
	"writ/sandbox"
)

// Run runs spec once and blocks until that is over. digest is the one that was
// approved; id names the run and is good for one.
//
// emit gets the output as it comes, what is kept of it, in order and from one
// goroutine at a time, never after Run has returned; a slow emit delays the return
// of Run but not the program. It owns the chunks. It may be nil.
//
// Cancelling ctx ends the run as killed, also while it waits for its slot; then
// Started is false.
//
// An error means that it is certain that no code was executed and that id is still
// good:
//   - writ.Invalid: the spec is faulty, not of this digest, not normalised, or its
//     inputs do not fit in its workspace;
//   - writ.Conflict: id was run before, or is running;
//   - writ.Exhausted: the queue is full, or no slot became free in time;
//   - writ.Unavailable: no box can be made here, the interpreter is not installed,
//     or the runner is shutting down. The message says which and what mends it.
func (r *Runner) Run(ctx context.Context, id string, spec writ.RunSpec, digest writ.Digest, emit func(writ.Chunk)) (writ.Result, error) {
	if err := r.enter(); err != nil {
		return writ.Result{}, err
	}
	defer r.leave()
	cmd, err := r.command(id, spec, digest)
	if err != nil {
		return writ.Result{}, err
	}
	if err := r.ids.begin(id); err != nil {
		return writ.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.closing, func() { cancel(context.Cause(r.closing)) })()

	res, err := r.admit(ctx, cmd, emit)
	r.ids.end(id, err == nil && res.Started)
	if err != nil {
		return writ.Result{}, err
	}
	r.opt.Log.Info("run ended", "run", id, "language", spec.Language, "outcome", res.Outcome, "started", res.Started, "wall_ms", res.WallMS)
	return res, nil
}

// admit waits for a slot and carries cmd out in it.
func (r *Runner) admit(ctx context.Context, cmd sandbox.Command, emit func(writ.Chunk)) (writ.Result, error) {
	if err := r.slots.acquire(ctx); err != nil {
		return unstarted(ctx, err)
	}
	if r.closing.Err() != nil { // the slot of a run that Close ended
		r.slots.release()
		return unstarted(r.closing, nil)
	}
	var box sandbox.Box // that ran
	defer func() {      // after the feed is empty: feeds are as many as slots, at most
		if box == nil {
			r.slots.release()
			return
		}
		// The answer need not wait until the box's namespaces are taken apart. Its slot
		// does, and so does Close.
		r.runs.Go(func() {
			r.discard(box)
			r.slots.release()
		})
	}()
	out := newFeed(emit)
	defer out.close() // the last chunk is out before Run returns
	cmd.Stdout, cmd.Stderr = out.stream(writ.Stdout), out.stream(writ.Stderr)

	started, run, err := r.start(ctx, cmd)
	if err != nil {
		return unstarted(ctx, err)
	}
	box = started
	res := run.Wait()
	if res.Outcome == writ.Killed && errors.Is(context.Cause(ctx), errClosed) {
		res.Reason = errClosed.Error()
	}
	return res, nil
}

// start starts cmd in a warm box when one fits, else in a new one. The caller must
// close the box; on error there is none.
func (r *Runner) start(ctx context.Context, cmd sandbox.Command) (sandbox.Box, sandbox.Run, error) {
	if box := r.pool.take(cmd.Limits); box != nil {
		run, err := box.Start(ctx, cmd)
		if err == nil {
			return box, run, nil
		}
		r.discard(box)
		if ctx.Err() != nil || writ.KindOf(err) == writ.Invalid {
			return nil, nil, err
		}
		// Nothing was executed, so another box may try: this one may have died while
		// it waited.
	}
	box, err := r.provider.Prepare(ctx, sandbox.Template{Limits: cmd.Limits})
	if err != nil {
		return nil, nil, unavailable("prepare sandbox", err)
	}
	run, err := box.Start(ctx, cmd)
	if err != nil {
		r.discard(box)
		return nil, nil, unavailable("start in sandbox", err)
	}
	return box, run, nil
}

func (r *Runner) discard(box sandbox.Box) {
	if err := box.Close(); err != nil {
		r.opt.Log.Warn("box left something behind", "err", err)
	}
}

// command checks everything that can be known before there is a box, and puts
// together what will run.
func (r *Runner) command(id string, spec writ.RunSpec, digest writ.Digest) (sandbox.Command, error) {
	if err := check(id, spec, digest); err != nil {
		return sandbox.Command{}, &writ.Error{Kind: writ.Invalid, Op: "run", Msg: err.Error()}
	}
	l, err := r.opt.Languages.Lookup(spec.Language)
	if err != nil {
		return sandbox.Command{}, err
	}
	interpreter, err := interpreterOf(l)
	if err != nil {
		return sandbox.Command{}, err
	}
	code := path.Join(lang.CodeDir, l.File)
	files := []sandbox.File{{Path: code, Content: []byte(spec.Code), Mode: 0o444}}
	for _, in := range spec.Inputs {
		file := sandbox.File{Path: path.Join(lang.Workspace, in.Path), Content: in.Content, Mode: 0o644}
		if in.Exec {
			file.Mode = 0o755
		}
		files = append(files, file)
	}
	return sandbox.Command{
		Argv:   l.Argv(interpreter, code, spec.Args),
		Env:    l.Env(spec.Env),
		Dir:    lang.Workspace,
		Files:  files,
		Stdin:  []byte(spec.Stdin),
		Limits: spec.Limits,
	}, nil
}

// check reports what is wrong with a request to run. Normalising belongs to
// whoever admits: a spec that was changed here would not be the approved one.
func check(id string, spec writ.RunSpec, digest writ.Digest) error {
	if id == "" || len(id) > writ.MaxNameBytes {
		return fmt.Errorf("run id of %d bytes: want 1 to %d", len(id), writ.MaxNameBytes)
	}
	if err := spec.Validate(); err != nil {
		return err
	}
	if got := spec.Digest(); got != digest {
		return fmt.Errorf("the spec has digest %.12s, approved was %.12s: what runs must be what was approved", got, digest)
	}
	var unset []string
	for _, f := range spec.Limits.Fields() {
		if *f.Value == 0 {
			unset = append(unset, "limits."+f.Name)
		}
	}
	if unset != nil {
		return fmt.Errorf("not set: %s: an admitted spec has every limit", strings.Join(unset, ", "))
	}
	var total int64
	for _, in := range spec.Inputs {
		total += int64(len(in.Content))
	}
	if total > spec.Limits.WorkspaceBytes {
		return fmt.Errorf("inputs have %d bytes together, limits.workspace_bytes is %d", total, spec.Limits.WorkspaceBytes)
	}
	return nil
}

// unstarted is the answer when no code was executed: a result if that was asked
// for by cancelling, else err.
func unstarted(ctx context.Context, err error) (writ.Result, error) {
	cause := context.Cause(ctx)
	if cause == nil {
		return writ.Result{}, err
	}
	none := writ.NewOutput(nil, 0)
	res := writ.Result{Outcome: writ.Killed, Reason: "cancelled before it started", Stdout: none, Stderr: none}
	if errors.Is(cause, errClosed) {
		res.Reason = errClosed.Error() + " before it started"
	}
	return res, nil
}

// unavailable passes on an error that somebody can act on and wraps any other.
func unavailable(op string, err error) error {
	if _, ok := errors.AsType[*writ.Error](err); ok {
		return err
	}
	return &writ.Error{Kind: writ.Unavailable, Op: op, Msg: "the sandbox could not be set up, so nothing was executed; see writ doctor", Err: err}
}
