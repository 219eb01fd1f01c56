package patch

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"slices"
)

// Absent is the version of a path that has no file.
const Absent = "absent"

// NewFileMode is the mode of a file that a patch makes where there was none.
const NewFileMode fs.FileMode = 0o644

// Version is the version of a file's content: "sha256:" and 64 lower-case
// hexadecimal digits over all its bytes (spec/02 §1.1).
func Version(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// File is what is at a path: a regular file's bytes and permission bits. A nil *File
// is no file.
type File struct {
	Content []byte
	Mode    fs.FileMode
}

// Version is the version of the file, Absent for nil. It hashes each time.
func (f *File) Version() string {
	if f == nil {
		return Absent
	}
	return Version(f.Content)
}

// same reports whether two states of a path are equal, with their modes.
func (f *File) same(g *File) bool {
	if f == nil || g == nil {
		return f == g
	}
	return f == g || f.Mode == g.Mode && string(f.Content) == string(g.Content)
}

// Change is the net effect of a patch at one path. A file that moves makes two: a
// Delete at its old path and a Move at its new one (spec/02 §5.4).
//
// Changes of one patch may be carried out in any order once all of them are
// computed: After says all. No path among them is a folder over another.
type Change struct {
	Path string
	// Kind is Delete when After is nil; else Move when the file was at From before;
	// else Update when Before is not nil, and Add when it is.
	Kind Kind
	From string // of Move: the path where the file was; else empty
	// Before is what the source had, with the source's own bytes, After what is to be
	// there. Nil is no file. They differ. Neither may be written to.
	Before, After *File
}

// Reverse is what undoes changes: applied where their After stands, it restores every
// Before, contents and modes. Reverse of Reverse is what it started from. The files
// are shared with changes.
func Reverse(changes []Change) []Change {
	movedTo := map[string]string{}
	for _, c := range changes {
		if c.Kind == Move {
			movedTo[c.From] = c.Path
		}
	}
	out := make([]Change, 0, len(changes))
	for _, c := range slices.Backward(changes) {
		out = append(out, newChange(c.Path, c.After, c.Before, movedTo[c.Path]))
	}
	return out
}

// newChange makes a change of its states. origin is the path where the content came
// from; empty when it is new.
func newChange(name string, before, after *File, origin string) Change {
	c := Change{Path: name, Before: before, After: after}
	switch {
	case after == nil:
		c.Kind = Delete
	case origin != "" && origin != name:
		c.Kind, c.From = Move, origin
	case before != nil:
		c.Kind = Update
	default:
		c.Kind = Add
	}
	return c
}
