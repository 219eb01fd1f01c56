package patch

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	bom = "\ufeff"
	// maxFileLines bounds what the index of one file takes.
	maxFileLines = 4_000_000
)

// text is the content of a file cut into lines. It keeps every byte.
type text struct {
	mark  bool     // starts with a byte order mark, which is in no line
	src   string   // without the mark
	start []uint32 // of each line, and the length of src at the end
	eol   string   // the ending of new lines: that of the file's first line
}

// newText cuts content. It says why content is no text that can be edited, or "".
func newText(content []byte) (*text, string) {
	if len(content) > MaxFileBytes {
		return nil, fmt.Sprintf("the file has %d bytes, the most that can be edited is %d", len(content), MaxFileBytes)
	}
	for _, utf16 := range []string{"\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(content, []byte(utf16)) {
			return nil, "the file is UTF-16: only files in which ASCII is one byte can be edited"
		}
	}
	src, mark := strings.CutPrefix(string(content), bom)
	t := &text{mark: mark, src: src, eol: "\n"}
	n := strings.Count(src, "\n") + 2
	if n > maxFileLines {
		return nil, fmt.Sprintf("the file has more than %d lines, the most that can be edited", maxFileLines)
	}
	if i := strings.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		t.eol = "\r\n"
	}
	t.start = make([]uint32, 0, n)
	for at := 0; at < len(src); {
		t.start = append(t.start, uint32(at))
		i := strings.IndexByte(src[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	t.start = append(t.start, uint32(len(src)))
	return t, ""
}

func (t *text) len() int { return len(t.start) - 1 }

// raw is line i with its ending; the last line may have none.
func (t *text) raw(i int) string { return t.src[t.start[i]:t.start[i+1]] }

// line is line i without its ending.
func (t *text) line(i int) string {
	l, ended := strings.CutSuffix(t.raw(i), "\n")
	if ended {
		l = strings.TrimSuffix(l, "\r")
	}
	return l
}

// encoding says why lines of UTF-8 may not be added to the file, or "".
func (t *text) encoding(chunks []Chunk) string {
	if utf8.ValidString(t.src) {
		return ""
	}
	if strings.IndexByte(t.src, 0) >= 0 {
		return "the file is binary: delete and add it, or move it without a chunk"
	}
	for _, c := range chunks {
		for _, l := range c.Lines {
			if l.Op == Plus && !ascii(l.Text) {
				return "the file is not UTF-8 but in an older encoding, so only lines in ASCII can be added to it"
			}
		}
	}
	return ""
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// edit takes del lines away at line at and puts add there.
type edit struct {
	at, del int
	add     []string // without endings
	last    bool     // goes behind what else is put at the same line
}

// join is the content of t after edits, which are sorted by place. Lines that are
// taken away do not overlap; an edit that only adds may stand among them. New lines
// get t's ending, and so does the last line if it has none.
func (t *text) join(edits []edit) []byte {
	size := len(t.src) + len(bom) + len(t.eol)
	for _, e := range edits {
		for _, l := range e.add {
			size += len(l) + len(t.eol)
		}
	}
	b := make([]byte, 0, size)
	if t.mark {
		b = append(b, bom...)
	}
	top := len(b)
	at := 0
	keep := func(to int) {
		if to <= at {
			return
		}
		b = append(b, t.src[t.start[at]:t.start[to]]...)
		at = to
		if b[len(b)-1] != '\n' {
			b = append(b, t.eol...)
		}
	}
	for _, e := range edits {
		keep(e.at)
		for _, l := range e.add {
			if t.mark && len(b) == top {
				l = strings.TrimPrefix(l, bom) // the file has its mark already
			}
			b = append(b, l...)
			b = append(b, t.eol...)
		}
		at = max(at, e.at+e.del)
	}
	keep(t.len())
	return b
}
