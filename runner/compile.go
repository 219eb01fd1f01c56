package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"writ"
	"writ/lang"
	"writ/sandbox"
)

// compile runs the compile step in a box of its own, which stays open: made are the files
// that it left in lang.BinDir, read from there. When there are none, the step ended the
// run, and res is the run's result. On error nothing was executed.
func (t *turn) compile(ctx context.Context, argv []string) (made []sandbox.File, res *writ.Result, err error) {
	cmd := sandbox.Command{
		Argv:   argv,
		Env:    t.row.Env(t.spec.Env),
		Dir:    lang.Data,
		Files:  append(t.files(ctx), sandbox.File{Path: lang.BinDir, Folder: true}),
		Limits: t.spec.Limits,
	}
	if t.spec.Compile != nil {
		cmd.Limits = *t.spec.Compile
	}
	box, run, err := t.start(ctx, nil, t.template(cmd.Limits), cmd)
	if err != nil {
		return nil, nil, err
	}
	t.boxes = append(t.boxes, box)
	step := run.Wait()
	step.Compiled = true
	if step.Outcome == writ.Succeeded {
		if made, err = programs(ctx, box); err == nil && len(made) > 0 {
			return made, &step, nil
		}
		why := "the compiler made no program"
		if err != nil {
			why = "what the compiler made could not be read"
			t.opt.Log.Warn("reading from a compile step failed", "err", err)
		}
		none := t.unexecutable(ctx, step, why)
		return nil, &none, nil
	}
	t.uncompiled(ctx, &step)
	return nil, &step, nil
}

// uncompiled makes res, of a compile step that ended the run, the run's.
func (t *turn) uncompiled(ctx context.Context, res *writ.Result) {
	if res.Outcome == writ.Killed && errors.Is(context.Cause(ctx), errClosed) {
		res.Reason = errClosed.Error()
	}
	res.Stdout, res.Stderr = trimmed(res.Stdout, t.spec.Limits.OutputBytes), trimmed(res.Stderr, t.spec.Limits.OutputBytes)
	_, _ = t.out.stream(writ.Stdout).Write(res.Stdout.Data()) // never fails
	_, _ = t.out.stream(writ.Stderr).Write(res.Stderr.Data())
	if t.spec.Collect == nil {
		return
	}
	for _, f := range t.inputs() { // no program changed them
		res.Files = append(res.Files, f.as(writ.OutputSame))
	}
	sortFiles(res.Files)
}

// unexecutable is the result when the compiler is content and there is no program, for
// why. The exit code is that of shells.
func (t *turn) unexecutable(ctx context.Context, res writ.Result, why string) writ.Result {
	res.Outcome, res.ExitCode, res.Reason = writ.Failed, new(126), why
	said := append(slices.Clone(res.Stderr.Data()), res.Reason+"\n"...)
	res.Stderr = writ.NewOutput(said, max(res.Stderr.Bytes, int64(len(said))))
	t.uncompiled(ctx, &res)
	return res
}

// programs are the files in lang.BinDir of a box whose run is over. Each is opened when
// a body is asked for, as long as the box is there.
func programs(ctx context.Context, box sandbox.Box) (made []sandbox.File, err error) {
	err = box.Files(ctx, lang.CodeDir, func(e sandbox.Entry) error {
		name := path.Join(lang.CodeDir, e.Path)
		if e.Kind == sandbox.EntryFile && strings.HasPrefix(name, lang.BinDir+"/") {
			made = append(made, sandbox.File{Path: name, Mode: 0o755, Size: e.Size, Body: func() (io.ReadCloser, error) {
				return reopen(ctx, box, e.Path)
			}})
		}
		return nil
	})
	return made, err
}

// reopen opens the file with that path in lang.CodeDir of a box.
func reopen(ctx context.Context, box sandbox.Box, name string) (f io.ReadCloser, err error) {
	err = box.Files(ctx, lang.CodeDir, func(e sandbox.Entry) (err error) {
		if e.Path == name && f == nil {
			f, err = e.Open()
		}
		return err
	})
	if err == nil && f == nil {
		err = fmt.Errorf("%s/%s is gone", lang.CodeDir, name)
	}
	if err != nil && f != nil {
		_ = f.Close() // only read
		f = nil
	}
	return f, err
}
