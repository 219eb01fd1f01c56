package interpreter

import (
	"context"
	"fmt"
	"maps"
	"path"

	"writ"
	"writ/lang"
	"writ/session"
)

// placed are the files that a run finds, by path.
type placed struct {
	files  map[string]writ.FileInput
	inputs map[string]writ.Object // those of them that a front end named, or its sessions keep

	folders map[string]bool // above files
	named   map[string]bool // above inputs
}

func newPlaced() placed {
	return placed{files: map[string]writ.FileInput{}, inputs: map[string]writ.Object{}, folders: map[string]bool{}, named: map[string]bool{}}
}

// clone is p, to which more can be added without adding it to p.
func (p placed) clone() placed {
	return placed{maps.Clone(p.files), maps.Clone(p.inputs), maps.Clone(p.folders), maps.Clone(p.named)}
}

// bytes are those of all files.
func (p placed) bytes() (total int64) {
	for _, f := range p.files {
		total += f.Size
	}
	return total
}

// resolve finds the objects that refs name, all of them or none.
func (s *Service) resolve(ctx context.Context, who writ.Principal, refs []Ref) ([]writ.Object, error) {
	if len(refs) > s.opt.Inputs {
		return nil, badRequest("files has %d entries, the most is %d", len(refs), s.opt.Inputs)
	}
	objects := make([]writ.Object, len(refs))
	for i, r := range refs {
		o, err := s.sessions.Get(ctx, who, r.Entity, r.Object.Session, r.Object.ID)
		switch writ.KindOf(err) {
		case writ.NotFound, writ.Denied:
			return nil, &writ.Error{Op: "resolve files", Kind: writ.Denied, Msg: "Unauthorized file reference", Err: err}
		}
		if err != nil {
			return nil, err
		}
		objects[i] = o
	}
	return objects, nil
}

// place says where the objects of refs lie: under the name that they are stored with. Where
// two are stored with one name (case LC-05), they lie under the names that the front end
// calls them, and of those that it calls the same the last one counts.
func place(refs []Ref, objects []writ.Object, entry string) (placed, error) {
	stored := map[string]map[writ.ObjectRef]bool{}
	for _, o := range objects {
		if stored[o.Name] == nil {
			stored[o.Name] = map[writ.ObjectRef]bool{}
		}
		stored[o.Name][o.Ref()] = true
	}
	p := newPlaced()
	called := map[string]bool{}
	for i, o := range objects {
		name := o.Name
		if len(stored[name]) > 1 {
			name = refs[i].Name
		}
		p.put(name, o)
		called[refs[i].Name] = true
	}
	// The contract looks at the names that the front end uses, too.
	err := conflict(p.files, entry)
	if err == nil {
		err = conflict(called, entry)
	}
	return p, err
}

// conflict reports names that cannot all be files beside entry.
func conflict[V any](names map[string]V, entry string) error {
	for _, name := range sortedKeys(names) {
		if name == entry {
			return badRequest("files contains duplicate destination %q", name)
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := names[dir]; ok || dir == entry {
				return badRequest("files contains conflicting destinations %q and %q", dir, name)
			}
		}
	}
	return nil
}

// put places an object.
func (p placed) put(name string, o writ.Object) {
	p.add(writ.FileInput{Path: name, Digest: o.SHA256, Size: o.Size, ReadOnly: o.ReadOnly})
	p.inputs[name] = o
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		p.named[dir] = true
	}
}

// add places a file.
func (p placed) add(f writ.FileInput) {
	p.files[f.Path] = f
	for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
		p.folders[dir] = true
	}
}

// forTools reports whether name lies in a folder of tools in which no input is.
func (p placed) forTools(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if writ.ForTools(path.Base(dir)) && !p.named[dir] {
			return true
		}
	}
	return false
}

// addKeep adds the empty folders of the sessions that refs name, where nothing else lies
// (spec/03 §7).
func (s *Service) addKeep(ctx context.Context, who writ.Principal, refs []Ref, p placed) error {
	seen := map[writ.SessionID]bool{}
	for _, r := range refs {
		if seen[r.Object.Session] {
			continue
		}
		seen[r.Object.Session] = true
		keep, err := s.sessions.ListKeep(ctx, who, r.Entity, r.Object.Session)
		if err != nil {
			return err
		}
		for _, o := range keep {
			if p.free(o.Name) {
				p.put(o.Name, o)
			}
		}
	}
	return nil
}

// free reports whether name may be placed beside what is: nothing has it, nor is a file
// where it needs a folder, nor a folder where it is to be.
func (p placed) free(name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		if _, ok := p.files[at]; ok {
			return false
		}
	}
	return !p.folders[name]
}

// crowded is the error for files with which the next run would have no room to work: not
// even to remove them. A box takes memory by the page, and counts folders.
func (s *Service) crowded(left []writ.FileInput) error {
	const page = 4096
	p := newPlaced()
	var bytes int64
	for _, f := range left {
		p.add(f)
		bytes += (f.Size + page - 1) / page * page
	}
	files := int64(len(p.files) + len(p.folders))
	mostBytes, mostFiles := s.opt.Limits.WorkspaceBytes/8*7, s.opt.Limits.Files/8*7
	if bytes <= mostBytes && files <= mostFiles {
		return nil
	}
	return &writ.Error{
		Op: "save runtime session", Kind: writ.Exhausted,
		Msg: fmt.Sprintf("it holds %d files and folders of %d bytes, the most that is kept is %d of %d", files, bytes, mostFiles, mostBytes),
	}
}

// spec is the run of r with the files of p.
func (s *Service) spec(who writ.Principal, r Request, l lang.Language, p placed) writ.RunSpec {
	limits := s.opt.Limits
	limits.MemoryBytes = s.PlanOf(who).MemoryBytes + limits.WorkspaceBytes
	limits.OutputBytes = writ.MaxUnitBytes * s.opt.OutputUnits
	if r.WallMS > 0 { // case LC-29
		limits.WallMS = min(limits.WallMS, max(r.WallMS, minWallMS))
	}
	collect := s.opt.Collect
	if s.keeps(r) {
		collect = writ.Collect{
			Files: min(limits.Files, writ.MaxFiles), FileBytes: limits.WorkspaceBytes, TotalBytes: limits.WorkspaceBytes,
			Depth: writ.MaxInputsDepth, PathLength: maxKeptPath, Hidden: true, Links: true,
		}
	}
	spec := writ.RunSpec{
		Kind: writ.RunInterpreter, Language: l.Name, Code: r.Code, Args: r.Args, Stdin: "\n", // spec/03 §6.1
		Limits: limits, Collect: &collect,
	}
	if l.Compile != nil {
		compile := s.opt.Compile
		spec.Compile = &compile
	}
	for _, name := range sortedKeys(p.files) {
		spec.Files = append(spec.Files, p.files[name])
	}
	return spec
}

// minWallMS is the least time that a run gets: an interpreter needs some to begin on a busy host.
const minWallMS = 1000

// maxKeptPath bounds the paths of files that stay for the next run.
const maxKeptPath = 1024

// keeps reports whether what r leaves is there for the next run.
func (s *Service) keeps(r Request) bool { return s.opt.Mode != Stateless && r.Hint != "" }

// badRequest is an error with the contract's word for what the runner finds wrong.
func badRequest(format string, args ...any) error {
	return &writ.Error{Op: "run code", Kind: writ.Invalid, Code: "bad_request", Msg: fmt.Sprintf(format, args...)}
}

// own is the entity that what a run makes is for (spec/03 §4).
func own(who writ.Principal) session.Entity {
	return session.Entity{Kind: writ.EntityUser, ID: who.ID}
}
