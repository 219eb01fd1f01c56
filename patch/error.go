package patch

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"writ"
)

// Code is the error code of the workspace tools (spec/02 §5.14).
type Code string

const (
	InvalidPatch          Code = "INVALID_PATCH"
	AddFileExists         Code = "ADD_FILE_EXISTS"
	MoveDestinationExists Code = "MOVE_DESTINATION_EXISTS"
	FileNotFound          Code = "FILE_NOT_FOUND"
	PathEscape            Code = "PATH_ESCAPE"
	PathNotDirectory      Code = "PATH_NOT_DIRECTORY"
)

// Error says why a patch cannot be read or applied. All of it is for the caller.
type Error struct {
	Code Code
	// Line is the line of the patch, where *** Begin Patch is line 1. Zero when no
	// one line is at fault.
	Line int
	Path string // the file that it is about; empty when it is about the text
	Msg  string // what is wrong, and what is valid there
	// Near is what the file has instead: its lines that are most like the wanted
	// ones, with their numbers. Empty when nothing is like them. It shows content:
	// leave it out for a caller who may not read the file.
	Near string
}

// Error is the whole message, over several lines when it shows text.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "patch line %d: ", e.Line)
	}
	if e.Path != "" {
		fmt.Fprintf(&b, "%s: ", shown(e.Path))
	}
	b.WriteString(e.Msg)
	if e.Near != "" {
		b.WriteString("\nThe file has:\n")
		b.WriteString(e.Near)
	}
	return b.String()
}

// Unwrap gives the error as the vocabulary has it, with its kind and code.
func (e *Error) Unwrap() error {
	return &writ.Error{Kind: e.kind(), Code: string(e.Code), Op: "apply patch", Msg: e.Error()}
}

func (e *Error) kind() writ.Kind {
	switch e.Code {
	case FileNotFound:
		return writ.NotFound
	case AddFileExists, MoveDestinationExists, PathNotDirectory:
		return writ.Conflict
	case PathEscape:
		return writ.Denied
	}
	return writ.Invalid
}

const (
	maxShownBytes = 160 // of one line in a message
	maxShownLines = 8
)

// shown is a text as a message has it: cut, and quoted when it holds anything that
// does not show as what it is. A tab is plain.
func shown(s string) string {
	more := ""
	if len(s) > maxShownBytes {
		n := maxShownBytes
		for n > maxShownBytes-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n--
		}
		s, more = s[:n], fmt.Sprintf(" … (%d bytes)", len(s))
	}
	odd := func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }
	if !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
		s = strconv.Quote(s)
	}
	return s + more
}

// shownLines renders lines for a message, indented, the first maxShownLines of them.
func shownLines(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		if i == maxShownLines {
			fmt.Fprintf(&b, "\n  … and %d more", len(lines)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("  ")
		b.WriteString(shown(l))
	}
	return b.String()
}
