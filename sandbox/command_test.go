package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"writ"
)

// body is the content of a file that tells how it was used.
type body struct {
	io.Reader
	opened, closed int
	openErr        error
	closeErr       error
}

func (b *body) open() (io.ReadCloser, error) {
	b.opened++
	if b.openErr != nil {
		return nil, b.openErr
	}
	return b, nil
}

func (b *body) Close() error {
	b.closed++
	return b.closeErr
}

func text(s string) *body { return &body{Reader: strings.NewReader(s)} }

// zeros reads as so many zero bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestFilesAndFoldersArePlacedFromBodies(t *testing.T) {
	b := newProvider(t, Options{})
	x, empty, code := text("streamed"), text(""), text("#!/bin/sh\necho ran\n")
	cmd := shell("stat -c '%A %n' d d/e d/e/x none given read code kept kept/f; cat d/e/x given read kept/f; ./code; echo more 2>/dev/null >> read || echo refused")
	cmd.Files = []File{
		{Path: workDir + "/d/e/x", Body: x.open, Size: 8, Mode: 0o644},
		{Path: workDir + "/none", Body: empty.open, Mode: 0o600},
		{Path: workDir + "/given", Content: []byte(" given"), Mode: 0o600},
		{Path: workDir + "/read", Content: []byte(" read\n"), Mode: 0o444},
		{Path: workDir + "/code", Body: code.open, Size: 19, Mode: 0o755},
		{Path: workDir + "/kept", Folder: true},
		{Path: workDir + "/kept/f", Content: []byte("f\n"), Mode: 0o600},
		{Path: workDir + "/d", Folder: true}, // is there
		{Path: workDir + "/new/er", Folder: true, Mode: 0o777},
	}
	box, r := leave(t, b, cmd)
	wantExit(t, r, 0)
	want := "drwx------ d\ndrwxr-xr-x d/e\n-rw-r--r-- d/e/x\n-rw------- none\n-rw------- given\n-r--r--r-- read\n-rwxr-xr-x code\ndrwx------ kept\n-rw------- kept/f\n" +
		"streamed given read\nf\nran\nrefused\n"
	if r.Stdout.Text != want {
		t.Errorf("got\n%swant\n%s", r.Stdout.Text, want)
	}
	if got := lines(t, box, workDir); !strings.Contains(got, "\"new/er\" folder\n") {
		t.Errorf("the folder is not there: %s", got)
	}
	for _, b := range []*body{x, empty, code} {
		if b.opened != 1 || b.closed != 1 {
			t.Errorf("a body was opened %d times and closed %d times", b.opened, b.closed)
		}
	}
}

func TestBodyIsNeverWholeInMemory(t *testing.T) {
	b := newProvider(t, Options{})
	const size = 96 << 20
	cmd := shell("sha256sum < f")
	cmd.Files = []File{{Path: workDir + "/f", Body: (&body{Reader: zeros(size)}).open, Size: size, Mode: 0o600}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, r := leave(t, b, cmd)
	runtime.ReadMemStats(&after)
	wantExit(t, r, 0)
	if want := "425382d5857f04fc49585cabbdef6fc647472ee26f52c54caaaeaad17320b3f8  -\n"; r.Stdout.Text != want {
		t.Errorf("result: %s", show(r))
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > size/8 {
		t.Errorf("%d bytes were allocated for a body of %d", got, size)
	}
}

// Nothing is executed with a file that is not as it was said to be, and every body that
// was opened is closed.
func TestBodiesThatAreNotWhatTheySay(t *testing.T) {
	b := newProvider(t, Options{})
	broken, ours := errors.New("the disk"), &writ.Error{Kind: writ.NotFound, Msg: "no such object"}
	for name, c := range map[string]struct {
		body *body
		kind writ.Kind
		msg  string
	}{
		"short":          {text("1234"), writ.Invalid, `cannot place "/mnt/data/f" (5 bytes): its content ends after 4; nothing was executed`},
		"empty":          {text(""), writ.Invalid, "its content ends after 0"},
		"long":           {text("123456"), writ.Invalid, "its content is longer"},
		"no end":         {&body{Reader: zeros(1 << 62)}, writ.Invalid, "its content is longer"},
		"not opened":     {&body{openErr: broken}, writ.Unavailable, "its content cannot be opened"},
		"not read":       {&body{Reader: io.MultiReader(strings.NewReader("12"), errReader{broken})}, writ.Unavailable, "its content cannot be read"},
		"bad at its end": {&body{Reader: io.MultiReader(strings.NewReader("12345"), errReader{broken})}, writ.Unavailable, "its content cannot be read"},
		"bad when closed": {&body{Reader: strings.NewReader("12345"), closeErr: broken}, writ.Unavailable,
			"its content cannot be read"},
		"an error of its own": {&body{openErr: fmt.Errorf("opening: %w", ours)}, writ.NotFound, "no such object"},
		"no progress":         {&body{Reader: io.MultiReader(strings.NewReader("12345"), stuckReader{})}, writ.Unavailable, "its content cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			box := prepareAt(t, b, writ.DefaultLimits)
			first, last := text("a"), text("b")
			cmd := shell("echo executed > /mnt/data/x")
			cmd.Files = []File{
				{Path: workDir + "/first", Body: first.open, Size: 1},
				{Path: workDir + "/f", Body: c.body.open, Size: 5},
				{Path: workDir + "/last", Body: last.open, Size: 1},
			}
			run, err := box.Start(t.Context(), cmd)
			if run != nil || writ.KindOf(err) != c.kind || !strings.Contains(writ.Message(err), c.msg) {
				t.Errorf("got %v, %v (%v)", run, err, writ.Message(err))
			}
			if first.closed != 1 || last.opened != last.closed || c.body.openErr == nil && c.body.closed != 1 {
				t.Errorf("closed: %d %d %d", first.closed, c.body.closed, last.closed)
			}
			if err := box.Files(t.Context(), workDir, func(Entry) error { return nil }); writ.KindOf(err) != writ.Conflict {
				t.Errorf("files of what never ran: %v", err)
			}
		})
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

type stuckReader struct{}

func (stuckReader) Read([]byte) (int, error) { return 0, nil }

// What no box has room for is refused before a byte of it is read.
func TestFilesThatDoNotFit(t *testing.T) {
	b := newProvider(t, Options{})
	l := writ.DefaultLimits
	l.WorkspaceBytes = 1 << 20
	start := func(files ...File) error {
		t.Helper()
		cmd := shell("true")
		cmd.Dir, cmd.Limits, cmd.Files = workDir, l, files
		run, err := prepareAt(t, b, l).Start(t.Context(), cmd)
		if run != nil {
			t.Errorf("it was executed")
		}
		return err
	}
	never := &body{Reader: zeros(1 << 62)}
	err := start(File{Path: workDir + "/huge", Body: never.open, Size: 1 << 61})
	if want := `cannot place "/mnt/data/huge" (2305843009213693952 bytes): no space left; the workspace limit is 1048576 bytes; nothing was executed`; writ.KindOf(err) != writ.Invalid || writ.Message(err) != want {
		t.Errorf("huge: %v", err)
	}
	if never.opened != 0 {
		t.Error("its body was opened")
	}
	err = start(File{Path: workDir + "/half", Body: (&body{Reader: zeros(700 << 10)}).open, Size: 700 << 10},
		File{Path: workDir + "/more", Body: (&body{Reader: zeros(700 << 10)}).open, Size: 700 << 10})
	if writ.KindOf(err) != writ.Invalid || !strings.HasPrefix(writ.Message(err), `cannot place "/mnt/data/more" (716800 bytes): no space left; the workspace limit is 1048576 bytes`) {
		t.Errorf("more: %v", err)
	}
	x := text("x")
	for name, f := range map[string]File{
		"twice":              {Path: workDir + "/f", Content: []byte("x"), Body: x.open, Size: 1},
		"size alone":         {Path: workDir + "/f", Size: 1},
		"negative":           {Path: workDir + "/f", Body: x.open, Size: -1},
		"folder and content": {Path: workDir + "/f", Folder: true, Content: []byte("x")},
		"folder and body":    {Path: workDir + "/f", Folder: true, Body: x.open},
		"outside":            {Path: "/mnt/f", Content: []byte("x")},
		"in the system":      {Path: "/usr/f", Content: []byte("x")},
		"over a folder":      {Path: workDir, Content: []byte("x")},
	} {
		if err := start(f); writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), "cannot place") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if x.opened != 0 {
		t.Error("a body of a refused file was opened")
	}
	file := File{Path: workDir + "/f", Content: []byte("x"), Mode: 0o700}
	for name, err := range map[string]error{
		"two of one name":      start(file, file),
		"a folder over a file": start(file, File{Path: file.Path, Folder: true}),
		"a file as a folder":   start(file, File{Path: file.Path + "/g", Content: []byte("x")}),
	} {
		if writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), "cannot place") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whoever waits for a body no more need not wait for the box.
func TestStartEndsWhenNobodyWantsItAnyMore(t *testing.T) {
	b := newProvider(t, Options{})
	cmd := shell("true")
	cmd.Dir = workDir
	for name, end := range map[string]func(box Box, cancel func()){
		"cancelled": func(_ Box, cancel func()) { cancel() },
		"closed":    func(box Box, _ func()) { go box.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			box := prepareAt(t, b, writ.DefaultLimits)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			endless := &body{Reader: zeros(1 << 62)}
			wait := &body{Reader: readerFunc(func(p []byte) (int, error) {
				end(box, cancel)
				eventually(t, "the box is closed or the start cancelled", func() bool { return ctx.Err() != nil || box.(*bubblewrapBox).closed.Load() })
				return copy(p, "x"), nil
			})}
			cmd.Files = []File{{Path: workDir + "/f", Body: wait.open, Size: 2}, {Path: workDir + "/g", Body: endless.open, Size: 60 << 20}}
			if _, err := box.Start(ctx, cmd); writ.KindOf(err) != writ.Unavailable {
				t.Errorf("got %v", err)
			}
			if wait.closed != 1 || endless.opened != 0 {
				t.Errorf("closed %d times, and the next opened %d times", wait.closed, endless.opened)
			}
		})
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestManyFilesArePlaced(t *testing.T) {
	b := newProvider(t, Options{})
	cmd := shell("ls d | wc -l")
	for i := range 5000 {
		cmd.Files = append(cmd.Files, File{Path: fmt.Sprintf("%s/d/%d", workDir, i), Content: []byte("x"), Mode: 0o600})
	}
	_, r := leave(t, b, cmd)
	wantExit(t, r, 0)
	if r.Stdout.Text != "5000\n" {
		t.Errorf("result: %s", show(r))
	}
}
