package patch

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// Source gives files as they are now. Apply asks for each path at most once.
type Source interface {
	// ReadFile gives the bytes and the permission bits of the regular file at a clean
	// relative path. An error that is fs.ErrNotExist says that nothing is there, also
	// no symlink. Any other error, as for a folder, a symlink, a special file or a path
	// through something that is no folder, ends Apply with it.
	//
	// The bytes must not change afterwards.
	ReadFile(name string) (content []byte, mode fs.FileMode, err error)
}

// Apply computes what the patch does to the files of src. It returns a change for
// each path whose net effect is not nothing, in the order in which the patch first
// names them, a move's source before its destination.
//
// An error comes without changes. It is an *Error, or wraps the error of src with the
// line of the section that needed the file. That a patch changes nothing is an *Error
// of code InvalidPatch.
func (p Patch) Apply(src Source) ([]Change, error) {
	if len(p.Sections) == 0 {
		return nil, invalid(0, "the patch has no sections, so it changes nothing: %s", validHeaders)
	}
	o := overlay{src: src, files: map[string]*entry{}, made: map[string]int{}, work: maxWork}
	for i := range p.Sections {
		if err := o.apply(&p.Sections[i]); err != nil {
			return nil, err
		}
	}
	changes := o.changes()
	if len(changes) == 0 {
		return nil, invalid(0, "no changes: every file would stay as it is")
	}
	return changes, nil
}

// overlay is the files of a source with what a patch has done to them so far.
type overlay struct {
	src   Source
	files map[string]*entry
	order []string       // paths as they were first named
	made  map[string]int // folders: how many files that the patch made are beneath them
	bytes int            // of contents read and made
	work  work
}

// entry is one path.
type entry struct {
	before, now *File
	origin      string // where the content of now was before the patch; empty when it is new
}

func (o *overlay) apply(s *Section) error {
	e, err := o.load(s, s.Line, s.Path)
	if err != nil {
		return err
	}
	refuse := func(code Code, format string, args ...any) error {
		return &Error{Code: code, Line: s.Line, Path: s.Path, Msg: fmt.Sprintf(format, args...)}
	}
	if s.Kind == Add {
		if e.now != nil || o.made[s.Path] > 0 {
			return refuse(AddFileExists, "cannot add it, there is one already: update it, or delete it first")
		}
		return o.set(s, s.Path, &File{Content: s.Content, Mode: newMode(e)}, "")
	}
	switch {
	case e.now == nil && e.before != nil:
		return refuse(FileNotFound, "cannot %s it, an earlier section took it away", s.Kind)
	case e.now == nil:
		return refuse(FileNotFound, "cannot %s it, there is no such file", s.Kind)
	case s.Kind == Delete:
		return o.set(s, s.Path, nil, "")
	}
	return o.update(s, e)
}

func (o *overlay) update(s *Section, e *entry) error {
	file := e.now
	if len(s.Chunks) > 0 {
		content, fault := s.edited(file.Content, &o.work)
		if fault != nil {
			return fault
		}
		file = &File{Content: content, Mode: file.Mode}
	}
	if s.MoveTo == "" || s.MoveTo == s.Path {
		return o.set(s, s.Path, file, e.origin)
	}
	to, err := o.load(s, s.Line+1, s.MoveTo)
	if err != nil {
		return err
	}
	if to.now != nil || o.made[s.MoveTo] > 0 {
		return &Error{Code: MoveDestinationExists, Line: s.Line + 1, Path: s.MoveTo, Msg: "cannot move a file here, there is one already: delete it first, or choose another path"}
	}
	origin := e.origin
	if err := o.set(s, s.Path, nil, ""); err != nil {
		return err
	}
	return o.set(s, s.MoveTo, file, origin)
}

// newMode is the mode of a file that is made at e: that of the file that was there.
func newMode(e *entry) fs.FileMode {
	if e.before != nil {
		return e.before.Mode
	}
	return NewFileMode
}

// load is the entry of a path, read from the source the first time.
func (o *overlay) load(s *Section, line int, name string) (*entry, error) {
	if e := o.files[name]; e != nil {
		return e, nil
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if e := o.files[dir]; e != nil && e.before == nil && e.now != nil {
			return nil, &Error{Code: PathNotDirectory, Line: line, Path: name, Msg: fmt.Sprintf("%s is a file that an earlier section makes, so nothing can be in it", shown(dir))}
		}
	}
	e := &entry{}
	content, mode, err := o.src.ReadFile(name)
	switch {
	case err == nil:
		e.before = &File{Content: content, Mode: mode}
		e.now, e.origin = e.before, name
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("patch line %d: %s %s: %w", line, s.Kind, shown(name), err)
	}
	o.files[name] = e
	o.order = append(o.order, name)
	return e, o.grow(s, len(content))
}

// set puts file at a path that was loaded.
func (o *overlay) set(s *Section, name string, file *File, origin string) error {
	e := o.files[name]
	if e.before == nil {
		o.count(name, e.now, -1)
		o.count(name, file, +1)
	}
	size := 0
	if file != nil && file != e.now {
		size = len(file.Content)
	}
	e.now, e.origin = file, origin
	return o.grow(s, size)
}

// count adds n to every folder over a file that the patch makes.
func (o *overlay) count(name string, file *File, n int) {
	if file == nil {
		return
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		o.made[dir] += n
	}
}

// grow counts contents that are kept.
func (o *overlay) grow(s *Section, n int) error {
	if o.bytes += n; o.bytes > MaxTotalBytes {
		return &Error{Code: InvalidPatch, Line: s.Line, Path: s.Path, Msg: fmt.Sprintf("the files of this patch have more than %d bytes together: send it in parts", MaxTotalBytes)}
	}
	return nil
}

// changes are the net effects.
func (o *overlay) changes() []Change {
	var out []Change
	for _, name := range o.order {
		e := o.files[name]
		if e.before.same(e.now) {
			continue
		}
		origin := e.origin
		if from := o.files[origin]; from != nil && from.before.same(from.now) {
			origin = "" // nothing is missing there: it is a copy
		}
		out = append(out, newChange(name, e.before, e.now, origin))
	}
	return out
}
