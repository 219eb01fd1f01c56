package runner

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"writ"
	"writ/lang"
	"writ/sandbox"
)

// job is an admitted spec with all that decides what runs.
type job struct {
	spec writ.RunSpec
	row  lang.Language
	tool string // the interpreter, or the compiler
	x    *writ.Exchange
}

// job checks everything that can be known before there is a box.
func (r *Runner) job(id string, spec writ.RunSpec, digest writ.Digest, x *writ.Exchange) (job, error) {
	if err := check(id, spec, digest); err != nil {
		return job{}, &writ.Error{Kind: writ.Invalid, Op: "run", Msg: err.Error()}
	}
	table := r.opt.Languages
	if spec.Kind == writ.RunInterpreter {
		table = r.opt.Interpreters
	}
	row, err := table.Lookup(spec.Language)
	if err != nil {
		return job{}, err
	}
	if err := fits(spec); err != nil {
		return job{}, err
	}
	if err := apart(spec, row.File); err != nil {
		return job{}, &writ.Error{Kind: writ.Invalid, Op: "run", Msg: err.Error()}
	}
	tool, err := interpreterOf(row)
	if err != nil {
		return job{}, err
	}
	return job{spec: spec, row: row.Sized(spec.Limits.MemoryBytes), tool: tool, x: x}, nil
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
	missing := unset("limits.", spec.Limits)
	if spec.Compile != nil {
		missing = append(missing, unset("compile.", *spec.Compile)...)
	}
	if missing != nil {
		return fmt.Errorf("not set: %s: an admitted spec has every limit", strings.Join(missing, ", "))
	}
	return nil
}

// unset names the limits that are not set.
func unset(prefix string, l writ.Limits) (names []string) {
	for _, f := range l.Fields() {
		if *f.Value == 0 {
			names = append(names, prefix+f.Name)
		}
	}
	return names
}

// fits reports inputs that are more than a workspace holds.
func fits(spec writ.RunSpec) error {
	var total int64
	for _, in := range spec.Inputs {
		total += int64(len(in.Content))
	}
	for _, f := range spec.Files {
		total += min(f.Size, writ.MaxLimits.WorkspaceBytes+1) // as many cannot make it run over
	}
	if spec.Kind == writ.RunInterpreter {
		total += int64(len(spec.Code))
	}
	if total <= spec.Limits.WorkspaceBytes {
		return nil
	}
	return &writ.Error{
		Kind: writ.Invalid, Code: writ.CodeInputTooLarge, Op: "run",
		Msg: fmt.Sprintf("inputs have %d bytes together, limits.workspace_bytes is %d", total, spec.Limits.WorkspaceBytes),
	}
}

// apart reports an input that would lie where the code does, which has that name.
func apart(spec writ.RunSpec, code string) error {
	if spec.Kind != writ.RunInterpreter {
		return nil // its code lies elsewhere
	}
	var paths []string
	for _, in := range spec.Inputs {
		paths = append(paths, in.Path)
	}
	for _, f := range spec.Files {
		paths = append(paths, f.Path)
	}
	for _, p := range paths {
		if p == code || strings.HasPrefix(p, code+"/") {
			return fmt.Errorf("files: %q is where the code is", p)
		}
	}
	return nil
}

// dir is where the job works.
func (j job) dir() string { return dirOf(j.spec.Kind) }

func dirOf(k writ.RunKind) string {
	if k == writ.RunInterpreter {
		return lang.Data
	}
	return lang.Workspace
}

// template is that of a box for the job.
func (j job) template(l writ.Limits) sandbox.Template { return templateOf(j.spec.Kind, l) }

// templateOf is that of boxes for runs of a kind.
func templateOf(k writ.RunKind, l writ.Limits) sandbox.Template {
	t := sandbox.Template{Limits: l, Dir: dirOf(k)}
	for _, link := range lang.Links(k, isFolder) {
		t.Links = append(t.Links, sandbox.Link{Path: link.Path, To: link.To})
	}
	return t
}

// command is what runs, without its outputs. Its files are read while ctx lives.
func (j job) command(ctx context.Context) sandbox.Command {
	code := path.Join(lang.CodeDir, j.row.File)
	if j.spec.Kind == writ.RunInterpreter {
		code = j.row.File // as it lies in the current folder
	}
	return sandbox.Command{
		Argv:   j.row.Argv(j.tool, code, j.spec.Args),
		Env:    j.row.Env(j.spec.Env),
		Dir:    j.dir(),
		Files:  j.files(ctx),
		Stdin:  []byte(j.spec.Stdin),
		Limits: j.spec.Limits,
	}
}

// files are the code and the inputs of the job, and what lang brings.
func (j job) files(ctx context.Context) []sandbox.File {
	code := sandbox.File{Path: path.Join(lang.CodeDir, j.row.File), Mode: 0o444, Content: []byte(j.spec.Code)}
	plain, exec := fs.FileMode(0o644), fs.FileMode(0o755)
	if j.spec.Kind == writ.RunInterpreter {
		code = sandbox.File{Path: path.Join(lang.Data, j.row.File), Mode: 0o644, Content: []byte(j.spec.Code)}
		plain, exec = 0o600, 0o700 // spec/03 §7
	}
	files := []sandbox.File{code}
	for _, a := range lang.Aids(j.spec.Kind) {
		files = append(files, sandbox.File{Path: a.Path, Mode: 0o444, Content: a.Content})
	}
	if j.spec.Kind == writ.RunInterpreter {
		files = append(files, j.folders()...)
	}
	for _, in := range j.spec.Inputs {
		mode := plain
		if in.Exec {
			mode = exec
		}
		files = append(files, sandbox.File{Path: path.Join(j.dir(), in.Path), Mode: mode, Content: in.Content})
	}
	for _, f := range j.spec.Files {
		if _, ok := keptFolder(f.Path); ok {
			continue // it is one of the folders
		}
		file := sandbox.File{Path: path.Join(lang.Data, f.Path), Mode: plain, Size: f.Size, Body: j.input(ctx, f)}
		switch {
		case f.Link:
			file.Mode, file.Link = 0, true
		case f.ReadOnly && f.Exec:
			file.Mode = 0o555
		case f.ReadOnly:
			file.Mode = 0o444
		case f.Exec:
			file.Mode = exec
		}
		files = append(files, file)
	}
	return files
}

// folders are those of the inputs, each after the one that it is in: as folders of their
// own they are private (spec/03 §7), and so are empty ones there.
func (j job) folders() (list []sandbox.File) {
	made := map[string]bool{".": true}
	var add func(dir string)
	add = func(dir string) {
		if !made[dir] {
			made[dir] = true
			add(path.Dir(dir)) // not deeper than writ.MaxInputsDepth
			list = append(list, sandbox.File{Path: path.Join(lang.Data, dir), Folder: true})
		}
	}
	for _, in := range j.spec.Inputs {
		add(path.Dir(in.Path))
	}
	for _, f := range j.spec.Files {
		add(path.Dir(f.Path))
	}
	return list
}

// keptFolder is the empty folder for which a path stands.
func keptFolder(p string) (folder string, ok bool) { return strings.CutSuffix(p, "/"+writ.KeepName) }
