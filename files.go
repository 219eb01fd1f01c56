package writ

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf16"
)

// RunKind says what a run finds itself in.
type RunKind string

const (
	// RunTask is a run whose code lies apart from its workspace, /workspace. Its wire form
	// is the empty one.
	RunTask RunKind = ""
	// RunInterpreter is a run of the code interpreter (spec/03 §6 to §8): it works in
	// /mnt/data, where its entry file and its files are.
	RunInterpreter RunKind = "interpreter"
)

// Bounds of the files of a run, beside those of its inputs.
const (
	MaxFiles      = 100_000 // also of those that are kept of one run
	MaxFilePaths  = 8 << 20 // bytes of the paths of all of them together
	MaxCollectExt = 1_000
	MaxDropped    = 100 // that a result names
)

// FileInput is a file that the run finds in its workspace, whose bytes are kept elsewhere
// and come by their digest (Exchange.Open).
type FileInput struct {
	// Path is as that of an Input. A path that ends in "/" + KeepName is an empty folder:
	// no file is made.
	Path     string `json:"path"`
	Digest   Digest `json:"digest"`
	Size     int64  `json:"size"`
	ReadOnly bool   `json:"read_only,omitempty"` // it stands as it was given, whatever the run makes of it
	Exec     bool   `json:"exec,omitempty"`
	// Link is a symlink, whose bytes are where it leads: nothing but the run follows it.
	Link bool `json:"link,omitempty"`
}

// Draft is bytes on their way to where bytes are kept: they have no name there yet.
type Draft struct {
	Name   string // of the draft; whoever keeps it gave it
	Digest Digest
	Size   int64
}

// MaxLinkBytes is the most that a symlink says, as Linux has it.
const MaxLinkBytes = 4095

// KeepName is the name of the file that stands for an empty folder, as it has none in a
// list of files.
const KeepName = ".dirkeep"

// Collect says which files of the workspace are kept when the run is over, also one that
// failed. What is beyond a bound is not kept, and named in the result.
type Collect struct {
	Files      int64 `json:"files"`       // that are new or changed, and folders that are empty
	FileBytes  int64 `json:"file_bytes"`  // of one
	TotalBytes int64 `json:"total_bytes"` // of all that are new or changed
	Depth      int64 `json:"depth"`       // names in a path
	PathLength int64 `json:"path_length"` // UTF-16 code units
	// Names are extensions, and whole names, in lower case, of which a file must have one
	// (spec/03 §8). None means all.
	Names []string `json:"names,omitempty"`
	// Hidden keeps what is in the folders of ForTools, too. Without it only what lies where
	// an input does.
	Hidden bool `json:"hidden,omitempty"`
	// Links keeps symlinks, as files whose bytes are where they lead.
	Links bool `json:"links,omitempty"`
}

// ForTools reports whether a folder of that name holds what tools keep for themselves, and
// no file that somebody made (spec/03 §8).
func ForTools(name string) bool {
	return strings.HasPrefix(name, ".") || name == "__pycache__" || name == "node_modules"
}

// Validate reports every fault at once.
func (c Collect) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		v    int64
		most int64
	}{
		{"files", c.Files, MaxFiles}, {"file_bytes", c.FileBytes, MaxLimits.WorkspaceBytes}, {"total_bytes", c.TotalBytes, MaxLimits.WorkspaceBytes},
		{"depth", c.Depth, MaxInputsDepth}, {"path_length", c.PathLength, 4096},
	} {
		if f.v < 1 || f.v > f.most {
			errs = append(errs, fmt.Errorf("collect.%s is %d: want 1 to %d", f.name, f.v, f.most))
		}
	}
	if len(c.Names) > MaxCollectExt || slices.ContainsFunc(c.Names, func(n string) bool { return n == "" || n != strings.ToLower(n) || strings.Contains(n, "/") }) {
		errs = append(errs, fmt.Errorf("collect.names: want at most %d, in lower case", MaxCollectExt))
	}
	return errors.Join(errs...)
}

// Refuses is why c does not keep a file of that path, empty when it does. It does not
// know folders in which inputs lie, sizes and numbers.
func (c Collect) Refuses(p string) string {
	_, why := c.Drops(p)
	return why
}

// Drops is Refuses with the sort of the reason.
func (c Collect) Drops(p string) (DropClass, string) {
	name := path.Base(p)
	switch {
	case int64(strings.Count(p, "/")+1) > c.Depth:
		return DropDepth, fmt.Sprintf("it lies deeper than %d", c.Depth)
	case int64(len(utf16.Encode([]rune(p)))) > c.PathLength:
		return DropPath, fmt.Sprintf("its path is longer than %d characters", c.PathLength)
	case len(c.Names) == 0 || name == KeepName:
		return "", ""
	}
	lower := strings.ToLower(name)
	ext := strings.TrimPrefix(path.Ext(lower), ".")
	if slices.Contains(c.Names, lower) || ext != "" && slices.Contains(c.Names, ext) {
		return "", ""
	}
	return DropKind, "files of its kind are not kept"
}

// OutputState says what a run did to a file of its workspace.
type OutputState string

const (
	OutputNew     OutputState = "new"
	OutputChanged OutputState = "changed" // an input with other bytes
	OutputSame    OutputState = "same"    // an input with the same bytes, or that is read-only
)

// OutputFile is a file of the workspace when the run was over. An input that the run
// removed is not among them. A path that ends in "/" + KeepName is an empty folder.
type OutputFile struct {
	Path   string      `json:"path"` // as that of an Input
	Digest Digest      `json:"digest"`
	Size   int64       `json:"size"`
	State  OutputState `json:"state"`
	Exec   bool        `json:"exec,omitempty"` // as the run left it, also of the same
	Link   bool        `json:"link,omitempty"` // as that of a FileInput
}

// DropClass is the sort of reason why a file of the workspace is not kept: all but
// DropKind are what whoever wrote it did not expect.
type DropClass string

const (
	DropKind       DropClass = "kind"       // nobody asked for files of its kind
	DropFiles      DropClass = "max_files"  // there are too many, or too large ones together
	DropSize       DropClass = "size"       // it is too large
	DropDepth      DropClass = "depth"      // it lies too deep
	DropPath       DropClass = "path"       // its path is too long, or none that can be kept
	DropUnreadable DropClass = "unreadable" // it could not be read, or not be kept
)

// DroppedFile is a file of the workspace that is not kept.
type DroppedFile struct {
	Path  string    `json:"path"` // with what is no text replaced
	Why   string    `json:"why"`
	Class DropClass `json:"class,omitempty"`
}

// Exchange is what a run gives and takes while it is under way. Nil funcs, and a nil
// Exchange, take nothing and have nothing.
type Exchange struct {
	// Emit gets the output as it comes, what is kept of it, in order and from one goroutine
	// at a time.
	Emit func(Chunk)
	// Open answers the bytes of a file input, before what they are for is executed; whoever
	// calls closes it before the next is opened. Other bytes than those of the digest end
	// the run unstarted.
	Open func(ctx context.Context, digest Digest) (io.ReadCloser, error)
	// Keep gets each file that is new or changed, after the program ended, one at a time
	// and in the order of Result.Files. It reads to the end, and an error of the reader means that
	// the file is not to be kept. f has no digest yet, and its size is exact. With an error
	// the file is dropped. Like Open it returns when ctx ends.
	Keep func(ctx context.Context, f OutputFile, r io.Reader) error
}

// validateFiles reports what is wrong with s.Files and s.Collect.
func (s RunSpec) validateFiles() (errs []error) {
	seen := map[string]bool{}
	for _, in := range s.Inputs {
		seen[in.Path] = true
	}
	for i, f := range s.Files {
		switch err := ValidPath(f.Path); {
		case err != nil:
			errs = append(errs, fmt.Errorf("files[%d]: %w", i, err))
		case seen[f.Path]:
			errs = append(errs, fmt.Errorf("files[%d]: path %q is given twice", i, f.Path))
		case !f.Digest.Valid() || f.Size < 0:
			errs = append(errs, fmt.Errorf("files[%d]: digest %q with %d bytes is not that of a file", i, f.Digest, f.Size))
		case f.Link && (f.Size < 1 || f.Size > MaxLinkBytes || f.ReadOnly || f.Exec || strings.HasSuffix(f.Path, "/"+KeepName)):
			errs = append(errs, fmt.Errorf("files[%d]: a symlink has 1 to %d bytes and no permissions, and is no empty folder", i, MaxLinkBytes))
		}
		seen[f.Path] = true
	}
	for p := range seen {
		for d := path.Dir(p); d != "." && d != "/"; d = path.Dir(d) {
			if seen[d] {
				errs = append(errs, fmt.Errorf("files: %q is a file and a folder", d))
			}
		}
	}
	paths := 0
	for _, f := range s.Files {
		paths += len(f.Path)
	}
	if len(s.Files) > MaxFiles || paths > MaxFilePaths {
		errs = append(errs, fmt.Errorf("files: %d are given with paths of %d bytes together, the most is %d with %d", len(s.Files), paths, MaxFiles, MaxFilePaths))
	}
	if s.Kind != RunTask && s.Kind != RunInterpreter {
		errs = append(errs, fmt.Errorf("kind %q: want %q or none", s.Kind, RunInterpreter))
	}
	if s.Kind == RunTask && (len(s.Files) > 0 || s.Collect != nil || s.Compile != nil) {
		errs = append(errs, fmt.Errorf("files, collect and compile are for runs of kind %q", RunInterpreter))
	}
	if s.Collect != nil {
		if err := s.Collect.Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	if s.Compile != nil {
		if err := s.Compile.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("compile: %w", err))
		}
	}
	return errs
}
