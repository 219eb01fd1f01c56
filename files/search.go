package files

import (
	"bytes"
	"context"
	"strings"

	"writ"
)

// Limits of a search for content.
const (
	maxContentBytes  = 256       // of the text to look for
	maxSearchedFile  = 4 << 20   // of one file
	maxSearchedBytes = 256 << 20 // of all files together
	maxMatches       = 2000      // lines kept of all files together
	maxFileMatches   = 50        // lines kept of one file
	maxLineBytes     = 300       // kept of a line
	binaryProbe      = 8 << 10   // a NUL byte in so many first bytes makes a file binary
)

// Match is a line that has the content that was looked for.
type Match struct {
	Path string
	Line int    // from 1
	Text string // UTF-8, without its ending; bad bytes are U+FFFD; cut when long
}

// searcher looks for text in files.
type searcher struct {
	opener     *opener
	text       []byte
	lines      map[string][]Match
	total      int // of lines
	read       int64
	skipped    int
	incomplete bool
}

// search is those of paths whose files have the text, in their order. Binary and large
// files are counted as skipped. The error is of ctx.
func (s *searcher) search(ctx context.Context, paths []string) (found []string, err error) {
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		content, ok, err := s.content(ctx, p)
		if err != nil {
			return nil, err
		}
		if ok && s.look(p, content) {
			found = append(found, p)
		}
	}
	return found, nil
}

// content is what of a file is to be searched. A file that is gone is nothing.
func (s *searcher) content(ctx context.Context, path string) (content []byte, ok bool, err error) {
	f, err := s.opener.open(path)
	if err != nil {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		s.incomplete = s.incomplete || writ.CodeOf(err) == CodeOperationFailed
		return nil, false, nil
	}
	defer f.close()
	if f.st.Size > maxSearchedFile {
		s.skipped++
		return nil, false, nil
	}
	if s.read += f.st.Size; s.read > maxSearchedBytes {
		s.incomplete = true
		return nil, false, nil
	}
	content = make([]byte, f.st.Size)
	n, err := readAt(f.fd, content, 0)
	if err != nil {
		s.incomplete = true
		return nil, false, nil
	}
	content = content[:n]
	if bytes.IndexByte(content[:min(n, binaryProbe)], 0) >= 0 {
		s.skipped++
		return nil, false, nil
	}
	return content, true, nil
}

// look keeps the lines of content that have the text.
func (s *searcher) look(path string, content []byte) bool {
	line, from, kept := 1, 0, 0
	for {
		at := bytes.Index(content[from:], s.text)
		if at < 0 {
			return len(s.lines[path]) > 0 || kept > 0
		}
		at += from
		line += bytes.Count(content[from:at], []byte{'\n'})
		start := bytes.LastIndexByte(content[:at], '\n') + 1
		end := len(content)
		if n := bytes.IndexByte(content[at:], '\n'); n >= 0 {
			end = at + n
		}
		if kept++; kept > maxFileMatches || s.total >= maxMatches {
			s.incomplete = true
			return true
		}
		s.total++
		s.lines[path] = append(s.lines[path], Match{Path: path, Line: line, Text: lineText(content[start:end])})
		if end == len(content) {
			return true
		}
		line, from = line+1, end+1
	}
}

func lineText(b []byte) string {
	b = bytes.TrimSuffix(b, []byte{'\r'})
	more := ""
	if len(b) > maxLineBytes {
		b, more = writ.CutRune(b[:maxLineBytes]), "…"
	}
	return strings.ToValidUTF8(string(b), "\uFFFD") + more
}
