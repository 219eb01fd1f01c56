package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"writ"
)

// Depot has the files that runs take and keeps what they give, in memory.
type Depot struct {
	Emit func(writ.Chunk)

	mu     sync.Mutex
	blobs  map[writ.Digest][]byte // guarded by mu
	opened map[writ.Digest]int    // guarded by mu
	kept   []string               // guarded by mu; paths, in the order in which they came
}

// Put has content ready, as an input at path.
func (d *Depot) Put(path string, content []byte) writ.FileInput {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blobs == nil {
		d.blobs, d.opened = map[writ.Digest][]byte{}, map[writ.Digest]int{}
	}
	digest := writ.DigestOf(content)
	d.blobs[digest] = content
	return writ.FileInput{Path: path, Digest: digest, Size: int64(len(content))}
}

// Content is that of f, which was put or kept.
func (d *Depot) Content(f writ.OutputFile) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.blobs[f.Digest])
}

// Kept are the paths of what was kept, in the order in which it came.
func (d *Depot) Kept() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.kept...)
}

// Inputs are the files of r as the next run finds them.
func (d *Depot) Inputs(r writ.Result) (next []writ.FileInput) {
	for _, f := range r.Files {
		next = append(next, writ.FileInput{Path: f.Path, Digest: f.Digest, Size: f.Size, Exec: f.Exec, Link: f.Link})
	}
	return next
}

// Exchange is d's side of a run.
func (d *Depot) Exchange() *writ.Exchange {
	return &writ.Exchange{Emit: d.Emit, Open: d.open, Keep: d.keep}
}

func (d *Depot) open(_ context.Context, digest writ.Digest) (io.ReadCloser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.blobs[digest]
	if !ok {
		return nil, &writ.Error{Kind: writ.NotFound, Op: "open file", Msg: "there is no such file"}
	}
	d.opened[digest]++
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (d *Depot) keep(_ context.Context, f writ.OutputFile, r io.Reader) error {
	b, err := io.ReadAll(r)
	switch {
	case err != nil:
		return err
	case f.Digest != "":
		return errors.New("it has a digest before it was read")
	case int64(len(b)) != f.Size:
		return fmt.Errorf("%s has %d bytes and is said to have %d", f.Path, len(b), f.Size)
	case strings.HasPrefix(f.Path, "refused"):
		return &writ.Error{Kind: writ.Exhausted, Op: "keep file", Msg: "the depot is full"}
	}
	in := d.Put(f.Path, b)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = append(d.kept, f.Path+" "+string(in.Digest[:4]))
	return nil
}

// InterpreterLimits are those of runs of the code interpreter in tests: the memory is the
// contract's 256 MiB, and that of the files.
var InterpreterLimits = writ.Limits{
	WallMS: 600_000, CPUMS: 600_000, MemoryBytes: 256<<20 + 64<<20, Processes: 256, // a machine may be busy
	FileBytes: 64 << 20, OpenFiles: 2048, OutputBytes: 64 << 10,
	WorkspaceBytes: 64 << 20, TmpBytes: 256 << 20, Files: 20_000,
}

// Interpret is a normalised spec of the code interpreter that runs code and keeps
// whatever it leaves that has one of the usual names.
func Interpret(l writ.Language, code string, files ...writ.FileInput) writ.RunSpec {
	compile := InterpreterLimits
	compile.MemoryBytes = 1 << 30
	return writ.RunSpec{
		Kind: writ.RunInterpreter, Language: l, Code: code, Stdin: "\n", Files: files,
		Limits: InterpreterLimits, Compile: &compile,
		Collect: &writ.Collect{
			Files: 50, FileBytes: 1 << 20, TotalBytes: 4 << 20, Depth: 10, PathLength: 256,
			Names: []string{"txt", "csv", "png", "toml", "py", "sh", "dockerfile", "env", "d", "c", "json", "pdf"},
		},
	}
}

// MustInterpret runs spec under a new id with the files of d, and fails t when that is
// refused.
func MustInterpret(t testing.TB, r AnyRunner, spec writ.RunSpec, d *Depot) writ.Result {
	t.Helper()
	res, err := r.Run(t.Context(), writ.NewID("run"), spec, spec.Digest(), d.Exchange())
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return res
}

// FilesOf tells the files of r in one text: "new a.txt, same b/.dirkeep".
func FilesOf(r writ.Result) string {
	var all []string
	for _, f := range r.Files {
		all = append(all, string(f.State)+" "+f.Path)
	}
	return strings.Join(all, ", ")
}
