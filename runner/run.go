package runner

import (
	"context"
	"errors"
	"math"
	"unicode/utf8"

	"writ"
	"writ/sandbox"
)

// Run runs spec once and blocks until that is over. digest is the one that was
// approved; id names the run and is good for one. x may be nil.
//
// x.Emit is never called after Run has returned; a slow one delays the return of Run but
// not the program. It owns the chunks. Of a run of kind interpreter x.Open is called before
// anything is executed, twice for one file where there is a compile step; x.Keep after the
// program ended and the last chunk was emitted. What x.Open gives must end when its context
// does.
//
// Cancelling ctx ends the run as killed, also while it waits for its slot or its files are
// placed; then Started is false. While files are collected it ends that: the result has
// those that were kept by then.
//
// A run of kind interpreter ends, as writ.ReasonStdout says, when it writes more to stdout
// than writ.MaxUnitBytes tells. Of stderr what is beyond Limits.OutputBytes is cut, as of
// both outputs of a task.
//
// An error means that it is certain that no code was executed and that id is still
// good:
//   - writ.Invalid: the spec is faulty, not of this digest, not normalised, or, with code
//     writ.CodeInputTooLarge, its inputs do not fit in its workspace;
//   - writ.Conflict: id was run before, or is running;
//   - writ.Exhausted: the queue is full, or no slot became free in time;
//   - writ.Unavailable: no box can be made here, the interpreter is not installed,
//     or the runner is shutting down. The message says which and what mends it;
//   - writ.NotFound with code writ.CodeInputUnavailable: a file input is gone, or has other
//     bytes than its digest says;
//   - writ.Unavailable with code writ.CodeInputSource: x.Open, or reading, failed otherwise.
func (r *Runner) Run(ctx context.Context, id string, spec writ.RunSpec, digest writ.Digest, x *writ.Exchange) (writ.Result, error) {
	if x == nil {
		x = &writ.Exchange{}
	}
	if err := r.calls.enter("run"); err != nil {
		return writ.Result{}, err
	}
	defer r.calls.leave()
	j, err := r.job(id, spec, digest, x)
	if err != nil {
		return writ.Result{}, err
	}
	if err := r.ids.begin(id); err != nil {
		return writ.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.closing, func() { cancel(context.Cause(r.closing)) })()

	res, err := r.admit(ctx, j)
	r.ids.end(id, err == nil && res.Started)
	if err != nil {
		return writ.Result{}, err
	}
	r.opt.Log.Info("run ended", "run", id, "kind", spec.Kind, "language", spec.Language, "outcome", res.Outcome,
		"started", res.Started, "compiled", res.Compiled, "wall_ms", res.WallMS, "files", len(res.Files), "dropped", res.DroppedFiles)
	return res, nil
}

// admit waits for a slot and carries j out in it.
func (r *Runner) admit(ctx context.Context, j job) (writ.Result, error) {
	if err := r.slots.acquire(ctx); err != nil {
		return unstarted(ctx, err)
	}
	if r.closing.Err() != nil { // the slot of a run that Close ended
		r.slots.release()
		return unstarted(r.closing, nil)
	}
	t := &turn{Runner: r, job: j, out: newFeed(j.x.Emit)}
	defer t.giveUp()    // after the feed is empty: feeds are as many as slots, at most
	defer t.out.close() // the last chunk is out before Run returns
	return t.run(ctx)
}

// turn is a job in its slot.
type turn struct {
	*Runner
	job
	out   *feed
	boxes []sandbox.Box // in which something ran
}

// giveUp gives the slot back when the boxes are gone.
func (t *turn) giveUp() {
	if len(t.boxes) == 0 {
		t.slots.release()
		return
	}
	// The answer need not wait until the namespaces of boxes are taken apart. Their slot
	// does, and so does Close.
	t.calls.also(func() {
		for _, box := range t.boxes {
			t.discard(box)
		}
		t.slots.release()
	})
}

// run compiles the program where that is to be done, runs it, and collects what it left.
func (t *turn) run(ctx context.Context) (writ.Result, error) {
	cmd := t.command(ctx)
	var compiled *writ.Result
	if argv := t.row.CompileArgv(t.tool); argv != nil {
		made, step, err := t.compile(ctx, argv)
		if err != nil {
			return unstarted(ctx, err)
		}
		if made == nil {
			return *step, nil
		}
		cmd.Files, compiled = append(cmd.Files, made...), step
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stdout := t.measure(&cmd, stop)
	box, run, err := t.start(running, t.pools[t.spec.Kind], t.template(cmd.Limits), cmd)
	switch {
	case err == nil:
	case compiled != nil && ctx.Err() == nil && writ.KindOf(err) == writ.Invalid:
		return t.unexecutable(ctx, *compiled, "the compiler made nothing that can be executed: "+writ.Message(err)), nil
	default:
		return unstarted(ctx, err)
	}
	t.boxes = append(t.boxes, box)
	res := run.Wait()
	if res.Outcome == writ.Killed && errors.Is(context.Cause(ctx), errClosed) {
		res.Reason = errClosed.Error()
	}
	if t.spec.Kind != writ.RunInterpreter {
		return res, nil
	}
	stdout.judge(ctx, &res)
	if t.spec.Collect != nil && ctx.Err() == nil {
		t.out.close()
		t.collect(ctx, box, &res)
	}
	return res, nil
}

// measure gives cmd its outputs. Stdout of the code interpreter is measured: stop ends
// the run when there is too much of it.
func (t *turn) measure(cmd *sandbox.Command, stop context.CancelCauseFunc) *meter {
	cmd.Stdout, cmd.Stderr = t.out.stream(writ.Stdout), t.out.stream(writ.Stderr)
	if t.spec.Kind != writ.RunInterpreter {
		return nil
	}
	most := cmd.Limits.OutputBytes
	m := &meter{to: cmd.Stdout, most: most, bytes: most, units: most / writ.MaxUnitBytes, over: func() { stop(errStdout) }}
	cmd.Stdout, cmd.Stderr = m, &meter{to: cmd.Stderr, most: most, bytes: most, units: math.MaxInt64}
	cmd.Limits.OutputBytes += utf8.UTFMax // so that the character which is too many is seen
	return m
}

// start starts cmd in a box of warm when one fits, else in a new one. The caller must
// close the box; on error there is none.
func (r *Runner) start(ctx context.Context, warm *pool, t sandbox.Template, cmd sandbox.Command) (sandbox.Box, sandbox.Run, error) {
	if box := warm.take(cmd.Limits); box != nil {
		run, err := box.Start(ctx, cmd)
		if err == nil {
			return box, run, nil
		}
		r.discard(box)
		if ctx.Err() != nil || writ.KindOf(err) == writ.Invalid || writ.IsInputCode(writ.CodeOf(err)) {
			return nil, nil, err
		}
		// Nothing was executed, so another box may try: this one may have died while
		// it waited.
	}
	box, err := r.provider.Prepare(ctx, t)
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
