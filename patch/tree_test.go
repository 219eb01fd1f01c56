package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/patch"
)

// tree is a folder in memory: what is at each path, beneath it only what is named.
type tree map[string]patch.File

var (
	errFolder = errors.New("is a folder")
	errNotDir = errors.New("a name on the way is no folder")
)

func (t tree) ReadFile(name string) ([]byte, fs.FileMode, error) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := t[dir]; ok {
			return nil, 0, errNotDir
		}
	}
	if f, ok := t[name]; ok {
		return f.Content, f.Mode, nil
	}
	for p := range t {
		if strings.HasPrefix(p, name+"/") {
			return nil, 0, errFolder
		}
	}
	return nil, 0, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
}

// files makes a tree of paths and contents, one after the other, of mode 0644.
func files(pathContent ...string) tree {
	t := tree{}
	for i := 0; i < len(pathContent); i += 2 {
		t[pathContent[i]] = patch.File{Content: []byte(pathContent[i+1]), Mode: 0o644}
	}
	return t
}

func same(a, b patch.File) bool { return a.Mode == b.Mode && bytes.Equal(a.Content, b.Content) }

// clone is t with contents of its own.
func (t tree) clone() tree {
	out := tree{}
	for p, f := range t {
		out[p] = patch.File{Content: bytes.Clone(f.Content), Mode: f.Mode}
	}
	return out
}

// carryOut is t after changes, each of which must find what it was computed from.
func (t tree) carryOut(changes []patch.Change) (tree, error) {
	out := maps.Clone(t)
	for _, c := range changes {
		if f, ok := t[c.Path]; ok != (c.Before != nil) || ok && !same(f, *c.Before) {
			return nil, fmt.Errorf("%s: Before is not what is there", c.Path)
		}
		if c.After == nil {
			delete(out, c.Path)
		} else {
			out[c.Path] = *c.After
		}
	}
	return out, nil
}

// body is a patch of sections.
func body(lines ...string) string {
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch"
}

// update is a patch that updates one file with chunks.
func update(name string, lines ...string) string {
	return body("*** Update File: "+name, strings.Join(lines, "\n"))
}

// compute parses, applies, carries out in memory, and carries out the reverse, which
// must lead back.
func compute(before tree, text string) (tree, []patch.Change, error) {
	p, err := patch.Parse(text, "/srv/ws", "/workspace")
	if err != nil {
		return nil, nil, err
	}
	was := before.clone()
	changes, err := p.Apply(before)
	if !maps.EqualFunc(before, was, same) {
		return nil, nil, fmt.Errorf("applying wrote to the source:\n%s", cmp.Diff(was, before))
	}
	if err != nil {
		if changes != nil {
			return nil, nil, fmt.Errorf("changes came with the error %w", err)
		}
		return nil, nil, err
	}
	after, err := before.carryOut(changes)
	if err != nil {
		return nil, nil, err
	}
	back, err := after.carryOut(patch.Reverse(changes))
	if err != nil {
		return nil, nil, fmt.Errorf("reverse: %w", err)
	}
	if !maps.EqualFunc(before, back, same) {
		return nil, nil, fmt.Errorf("reverse does not lead back:\n%s", cmp.Diff(before, back))
	}
	if twice := patch.Reverse(patch.Reverse(changes)); !slices.Equal(changes, twice) {
		return nil, nil, fmt.Errorf("reverse twice is not the same:\n%s", cmp.Diff(changes, twice))
	}
	return after, changes, nil
}

// want applies text to before and compares what is there afterwards.
func want(t *testing.T, before tree, text string, after tree) []patch.Change {
	t.Helper()
	got, changes, err := compute(before, text)
	if err != nil {
		t.Fatalf("patch\n%s\nfailed: %v", text, err)
	}
	if !maps.EqualFunc(after, got, same) {
		t.Fatalf("patch\n%s\nmade (-want +got)\n%s", text, cmp.Diff(after, got))
	}
	return changes
}

// refused applies text and wants an error of a code at a line, with every one of the
// words in its message.
func refused(t *testing.T, before tree, text string, code patch.Code, line int, words ...string) *patch.Error {
	t.Helper()
	after, _, err := compute(before, text)
	e, ok := errors.AsType[*patch.Error](err)
	if !ok {
		t.Fatalf("patch\n%s\nmade %v, error %v; want an *Error of code %s", text, after, err, code)
	}
	if e.Code != code || e.Line != line {
		t.Fatalf("patch\n%s\nwas refused as %s at line %d (%v), want %s at line %d", text, e.Code, e.Line, e, code, line)
	}
	for _, w := range words {
		if !strings.Contains(e.Error(), w) {
			t.Errorf("the error does not say %q:\n%v", w, e)
		}
	}
	return e
}
