package interpreter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"writ"
	"writ/lang"
	"writ/session"
)

// Exec implements Runs.
func (s *Service) Exec(ctx context.Context, who writ.Principal, r Request) (Reply, error) {
	if err := s.Language(ctx, r.Language); err != nil {
		return Reply{}, err
	}
	if who.Synthetic {
		r.Hint = "" // spec/03 §3.2
	} else if err := s.Hint(r.Hint); err != nil {
		return Reply{}, err
	}
	l, err := lang.For(writ.RunInterpreter).Lookup(r.Language)
	if err != nil {
		return Reply{}, err
	}
	objects, err := s.resolve(ctx, who, r.Files)
	if err != nil {
		return Reply{}, err
	}
	files, err := place(r.Files, objects, l.File)
	if err != nil {
		return Reply{}, err
	}
	if err := s.addKeep(ctx, who, r.Files, files); err != nil {
		return Reply{}, err
	}
	deadline, stop := context.WithTimeout(ctx, s.opt.Deadline)
	defer stop()
	run, end := s.begin(deadline, who, r.ID)
	defer end()
	reply, err := s.exec(run, who, r, l, files)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(context.Cause(run), errCancelled):
		err = &writ.Error{Op: "run code", Kind: writ.Conflict, Code: "cancelled", Msg: "The run was cancelled", Err: err}
	case run.Err() != nil:
		err = errors.Join(context.DeadlineExceeded, err)
	}
	return reply, err
}

// exec runs r with files until ctx ends.
func (s *Service) exec(ctx context.Context, who writ.Principal, r Request, l lang.Language, files placed) (Reply, error) {
	if !s.keeps(r) {
		reply, _, err := s.run(ctx, who, r, l, files)
		return reply, err
	}
	rt, err := s.runtimes.Acquire(ctx, who, r.Hint, s.opt.LockWait)
	if err != nil {
		return Reply{}, err
	}
	defer func() {
		if err := rt.Release(ctx); err != nil {
			s.log.Warn("runtime session was not given back; it is free when its lease is over", "runtime", rt.ID, "err", err)
		}
	}()
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	go func() { // ends with ctx
		select {
		case <-rt.Lost():
			lose(errLost)
		case <-ctx.Done():
		}
	}()
	all := files.clone()
	for _, f := range rt.Files {
		if f.Path != l.File && !strings.HasPrefix(f.Path, l.File+"/") && all.free(f.Path) {
			all.add(f)
		}
	}
	reply, left, err := s.run(ctx, who, r, l, all)
	gone := writ.CodeOf(err) == writ.CodeInputUnavailable && len(all.files) > len(files.files)
	if gone { // else nobody with that hint could run anything until it expires
		s.log.Error("files of a runtime session are gone, it begins anew", "runtime", rt.ID, "err", err)
		reply, left, err = s.run(ctx, who, r, l, files)
	}
	if err != nil {
		if !errors.Is(err, errLost) && errors.Is(context.Cause(ctx), errLost) { // which cut off what was under way
			err = errors.Join(errLost, err)
		}
		return reply, err
	}
	reply.Runtime, reply.RuntimeStatus = rt.ID, "reused"
	if rt.New || gone {
		reply.RuntimeStatus = "new"
	}
	if gone {
		reply.drop("what the last run left cannot be read any more")
	}
	if err = s.crowded(left); err == nil {
		err = rt.Save(context.WithoutCancel(ctx), left)
	}
	if err != nil {
		s.log.Warn("runtime session was not saved", "runtime", rt.ID, "err", err)
		reply.drop("the folder is not kept for the next run: " + writ.Message(err))
	}
	return reply, nil
}

// drop tells that the whole folder is lost, now or for the next run.
func (r *Reply) drop(why string) {
	r.DroppedFiles++
	r.Dropped = append(r.Dropped, writ.DroppedFile{Path: ".", Class: writ.DropFiles, Why: why})
}

// errLost is why a run ends whose runtime session another run was given.
var errLost = &writ.Error{Op: "run code", Kind: writ.Conflict, Code: session.CodeRuntimeBusy, Msg: "Runtime session is busy"}

// run has r run, and makes objects of what is new. left is what the next run finds.
func (s *Service) run(ctx context.Context, who writ.Principal, r Request, l lang.Language, files placed) (reply Reply, left []writ.FileInput, err error) {
	if files.bytes()+int64(len(r.Code)) > s.opt.Limits.WorkspaceBytes {
		return Reply{}, nil, inputTooLarge(nil) // before somebody is asked
	}
	in, err := s.sessions.Create(ctx, who, own(who))
	if err != nil {
		return Reply{}, nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		if e := s.sessions.Discard(context.WithoutCancel(ctx), who, own(who), in.ID); e != nil {
			s.log.Warn("session of a run without an answer was not taken back", "session", in.ID, "err", e)
		}
	}()
	t, err := s.tasks.Interpret(ctx, who, s.spec(who, r, l, files))
	if writ.KindOf(err) == writ.Invalid && writ.CodeOf(err) == "" {
		err = badRequest("%s", writ.Message(err))
	}
	if err != nil {
		return Reply{}, nil, err
	}
	if t, err = s.wait(ctx, who, t); err != nil {
		return Reply{}, nil, err
	}
	if err := unanswerable(t); err != nil {
		return Reply{}, nil, err
	}
	reply = outcome(*t.Result, s.opt.OutputUnits)
	reply.Session = in.ID
	c := s.collect(*t.Result, files, s.keeps(r))
	objects, err := s.sessions.Adopt(ctx, who, own(who), in.ID, c.kept)
	if writ.KindOf(err) == writ.Exhausted {
		for _, k := range c.kept {
			c.drop(k.Name, writ.DropFiles, writ.Message(err))
		}
		err = nil
	}
	if err != nil {
		return Reply{}, nil, err
	}
	for i, o := range objects {
		reply.Files = append(reply.Files, File{Object: o.Ref(), Name: o.Name, ModifiedFrom: c.kept[i].ModifiedFrom})
	}
	reply.Files = append(reply.Files, c.inherited...)
	reply.Deleted, reply.Dropped, reply.DroppedFiles = c.deleted, c.dropped, c.droppedFiles
	return reply, c.left, nil
}

// wait answers t when it is over, with its output. When ctx ends first, t is cancelled.
func (s *Service) wait(ctx context.Context, who writ.Principal, t writ.Task) (writ.Task, error) {
	if t.State == writ.TaskDenied {
		return t, nil
	}
	for {
		next, err := s.tasks.Wait(ctx, who, t.ID, time.Minute)
		if ctx.Err() != nil {
			s.abandon(context.WithoutCancel(ctx), who, t.ID, context.Cause(ctx))
			return t, context.Cause(ctx)
		}
		if err != nil {
			s.abandon(context.WithoutCancel(ctx), who, t.ID, err) // nobody will hear of it
			return t, err
		}
		if next.State.Terminal() {
			return next, nil
		}
	}
}

// abandon ends a run for which nobody waits any more.
func (s *Service) abandon(ctx context.Context, who writ.Principal, id writ.TaskID, cause error) {
	reason := "whoever asked for it went away"
	switch {
	case errors.Is(cause, errCancelled):
		reason = errCancelled.Error()
	case errors.Is(cause, context.DeadlineExceeded):
		reason = "the deadline of its job passed"
	}
	_, err := s.tasks.Cancel(ctx, who, id, reason)
	if err != nil && writ.KindOf(err) != writ.Conflict { // over meanwhile
		s.log.Warn("run was not cancelled", "task", id, "err", err)
	}
}

// collected is what becomes of a run's files.
type collected struct {
	kept         []session.Kept     // to become objects
	inherited    []File             // inputs as they were
	left         []writ.FileInput   // for the next run
	deleted      []string           // of what was there before, when the next run would find it
	dropped      []writ.DroppedFile // the first of them
	droppedFiles int64
}

// collect sorts the files of a result. keeps tells that all of them were collected, for
// the next run: the answer then has those that Options.Collect would have kept. A symlink
// is for the next run alone, as an object has none.
func (s *Service) collect(r writ.Result, files placed, keeps bool) collected {
	c := collected{dropped: r.Dropped, droppedFiles: r.DroppedFiles}
	there := map[string]bool{}
	var total int64
	for _, f := range r.Files {
		there[f.Path] = true
		input, named := files.inputs[f.Path]
		if keeps && !(named && input.ReadOnly) {
			c.left = append(c.left, writ.FileInput{Path: f.Path, Digest: f.Digest, Size: f.Size, Exec: f.Exec, Link: f.Link})
		}
		if f.State == writ.OutputSame {
			if named {
				c.inherited = append(c.inherited, File{Object: input.Ref(), Name: f.Path, Inherited: true})
			}
			continue
		}
		if keeps && !s.opt.Collect.Hidden && files.forTools(f.Path) {
			continue
		}
		if f.Link {
			c.drop(f.Path, writ.DropKind, "it is a symlink")
			continue
		}
		if why := session.NameFault(f.Path); why != "" {
			c.drop(f.Path, writ.DropPath, "its name "+why)
			continue
		}
		if keeps {
			if class, why := s.hides(f, int64(len(c.kept)), total); class != "" {
				c.drop(f.Path, class, why)
				continue
			}
		}
		total += f.Size
		k := session.Kept{Name: f.Path, Type: session.TypeOf(f.Path), Digest: f.Digest, Size: f.Size}
		if named {
			from := input.Ref()
			k.ModifiedFrom = &from
		}
		c.kept = append(c.kept, k)
	}
	if keeps {
		c.gone(r, files, there)
	}
	return c
}

// drop tells that a file is not in the answer.
func (c *collected) drop(path string, class writ.DropClass, why string) {
	if c.droppedFiles++; len(c.dropped) < writ.MaxDropped {
		c.dropped = append(c.dropped, writ.DroppedFile{Path: path, Why: why, Class: class})
	}
}

// gone sorts the files that a run found and that are not there any more: those that it
// removed, and those that it changed and that could not be kept, which stay for the next
// run as they were. Where not all of them are named, none counts as removed.
func (c *collected) gone(r writ.Result, files placed, there map[string]bool) {
	lost := map[string]bool{}
	for _, d := range r.Dropped {
		lost[d.Path] = d.Class != writ.DropKind // what is no file took the place of one
	}
	stay := newPlaced()
	for _, f := range c.left {
		stay.add(f)
	}
	for _, name := range sortedKeys(files.files) {
		switch {
		case there[name]:
		case lost[name] || r.DroppedFiles > int64(len(r.Dropped)):
			if !files.inputs[name].ReadOnly && stay.free(name) {
				c.left = append(c.left, files.files[name])
			}
		case !files.forTools(name):
			c.deleted = append(c.deleted, name)
		}
	}
}

// hides is why an answer does not have a file that stays for the next run.
func (s *Service) hides(f writ.OutputFile, files, total int64) (writ.DropClass, string) {
	limit := s.opt.Collect
	class, why := limit.Drops(f.Path)
	switch {
	case class != "":
		return class, why
	case f.Size > limit.FileBytes:
		return writ.DropSize, fmt.Sprintf("it has more than %d bytes", limit.FileBytes)
	case files >= limit.Files || total+f.Size > limit.TotalBytes:
		return writ.DropFiles, fmt.Sprintf("there are more than %d files, or they have more than %d bytes together", limit.Files, limit.TotalBytes)
	}
	return "", ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
