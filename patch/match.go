package patch

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// passes are the ways in which lines may be equal, strictest first (spec/02 §17.5).
// Each looks through the whole range before the next begins.
const (
	exact = iota
	trailing
	trimmed
	lookalike
	composed // ours: Unicode normal form C, and no byte order mark
	passes
)

// fold is what a pass compares of a line.
func fold(pass int, s string) string {
	switch pass {
	case exact:
		return s
	case trailing:
		return strings.TrimRightFunc(s, unicode.IsSpace)
	}
	s = strings.TrimSpace(s)
	if pass == trimmed || ascii(s) {
		return s
	}
	if pass == composed {
		s = norm.NFC.String(strings.TrimSpace(strings.TrimPrefix(s, bom)))
	}
	// A byte that is not UTF-8 becomes U+FFFD here, which is what read shows of it.
	return strings.Map(plain, s)
}

// plain maps the dashes, quotes and spaces of typography to those of a keyboard.
func plain(r rune) rune {
	switch {
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return '-'
	case r >= 0x2018 && r <= 0x201B:
		return '\''
	case r >= 0x201C && r <= 0x201F:
		return '"'
	case r == 0x00A0, r >= 0x2002 && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
		return ' '
	}
	return r
}

// work is what may still be spent. It keeps one patch from holding a processor.
type work int

// spend takes n and reports whether it was there.
func (w *work) spend(n int) bool {
	*w -= work(n)
	return *w >= 0
}

// matcher finds lines of a section in a file. A search costs the lines it passes,
// whatever repeats in them, and nothing when a line wanted does not occur there.
type matcher struct {
	file  *text
	want  []string // every line that the section looks for
	index [passes]*index
	work  *work
}

// index is the file as one pass sees it. Only lines that are wanted have an id.
type index struct {
	ids  map[string]int32 // from 1, of folded lines
	file []int32          // ids of the file's lines, 0 for those that nobody wants
	last []int            // by id: the last line of the file that has it, or -1
}

func newMatcher(file *text, chunks []Chunk, w *work) *matcher {
	m := &matcher{file: file, work: w}
	for _, c := range chunks {
		for _, a := range c.Anchors {
			m.want = append(m.want, a.Text)
		}
		m.want = append(m.want, oldLines(c.Lines)...)
	}
	return m
}

// as is the index of a pass, nil when there is no work left to make it.
func (m *matcher) as(pass int) *index {
	cost := len(m.file.src) + m.file.len() + len(m.want)
	if pass >= lookalike {
		cost *= 4 // what is not ASCII is rewritten
	}
	if m.index[pass] != nil || !m.work.spend(cost) {
		return m.index[pass]
	}
	ix := &index{ids: make(map[string]int32, len(m.want)), file: make([]int32, m.file.len()), last: []int{-1}}
	for _, l := range m.want {
		if key := fold(pass, l); ix.ids[key] == 0 {
			ix.ids[key] = int32(len(ix.last))
			ix.last = append(ix.last, -1)
		}
	}
	for i := range ix.file {
		id := ix.ids[fold(pass, m.file.line(i))]
		ix.file[i] = id
		ix.last[id] = i
	}
	m.index[pass] = ix
	return ix
}

// none is where nothing is; spent is where no work was left to look.
const (
	none  = -1
	spent = -2
)

// find is the first line in [from, to) of the file at which lines stand, wholly in
// that range, by the strictest pass that finds any; else none or spent. lines are
// among those wanted, at least one.
func (m *matcher) find(lines []string, from, to int) int {
	if from < 0 || to-from < len(lines) {
		return none
	}
	pattern := make([]int32, len(lines))
	for pass := range passes {
		ix := m.as(pass)
		if ix == nil || !m.work.spend(len(lines)) {
			return spent
		}
		there := true
		for i, l := range lines {
			pattern[i] = ix.ids[fold(pass, l)]
			there = there && ix.last[pattern[i]] >= from
		}
		if !there {
			continue
		}
		at := search(ix.file[from:to], pattern)
		if at >= 0 {
			m.work.spend(at)
			return from + at
		}
		if !m.work.spend(to - from) {
			return spent
		}
	}
	return none
}

// search is the first place of pattern in file, or none (Knuth, Morris, Pratt: no
// repetition makes it slower).
func search(file, pattern []int32) int {
	// border[i] is the length of the longest proper prefix of pattern[:i+1] that is
	// also its suffix.
	border := make([]int, len(pattern))
	k := 0
	for i := 1; i < len(pattern); i++ {
		for k > 0 && pattern[i] != pattern[k] {
			k = border[k-1]
		}
		if pattern[i] == pattern[k] {
			k++
		}
		border[i] = k
	}
	k = 0
	for i, id := range file {
		for k > 0 && id != pattern[k] {
			k = border[k-1]
		}
		if id == pattern[k] {
			k++
		}
		if k == len(pattern) {
			return i + 1 - k
		}
	}
	return none
}
