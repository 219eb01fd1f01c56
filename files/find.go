package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// MaxFindPaths is the most paths of one page, and what a caller gets that names no
// limit (spec/02 §3.3).
const MaxFindPaths = 10_000

// Query says which files to find.
type Query struct {
	// Glob selects paths (spec/02 §5.3). Empty, "*", "**" and "**/*" are every file;
	// "*.X" is every path that ends in .X; a pattern without * is the file of that
	// path, or every file whose path ends in "/" and it. Any other is a pattern: *, ?,
	// [a-z] and {a,b} within a name, ** over any number of names. One without a slash
	// is about names at any depth, one with a slash starts at the root; one that ends
	// in a slash is everything beneath.
	Glob string
	// Content, when set, selects files that have it in one line, byte for byte.
	Content string
	Offset  int // index of the first path of the page
	Limit   int // paths of the page, 1 to MaxFindPaths
}

// Listing is one page of what was found.
type Listing struct {
	Paths []string // relative, in byte order
	Next  int      // offset of the next page; zero when this is the last
	// Total counts all matches that this call saw, and Version is a hash over them:
	// the same on every page as long as it is the same list.
	Total   int
	Version string
	// Incomplete: a limit was hit, a folder could not be read, or files have names that
	// are not UTF-8, which nothing could ask for. There may be more matches than Total.
	Incomplete bool

	Matches []Match // with Query.Content: lines of the files of this page
	Skipped int     // with Query.Content: files not searched, since binary or too large
}

// Find lists regular files. It follows no symlink, and leaves out symlinks, special
// files, what the rules deny, and what a transaction has set aside. Hidden files and
// folders are like others.
//
// Errors are *writ.Error with the codes of spec/02 §5.3. OUTPUT_LIMIT: limit or offset
// are out of bounds, or the glob or the content is too long. PATH_ESCAPE: the glob is
// absolute or has a "..". FILE_OPERATION_FAILED: the root is gone. Cancelling ctx ends
// it with the error of ctx.
func (t *Tree) Find(ctx context.Context, q Query) (Listing, error) {
	if q.Limit < 1 || q.Limit > MaxFindPaths || q.Offset < 0 {
		return Listing{}, fault(CodeOutputLimit, "limit %d, offset %d: want a limit of 1 to %d paths and an offset from 0", q.Limit, q.Offset, MaxFindPaths)
	}
	if len(q.Content) > maxContentBytes || strings.ContainsAny(q.Content, "\n\x00") {
		return Listing{}, fault(CodeOutputLimit, "content: want text of one line, at most %d bytes, without NUL", maxContentBytes)
	}
	matches, err := selector(q.Glob)
	if err != nil {
		return Listing{}, err
	}
	root, done, err := t.use()
	if err != nil {
		return Listing{}, err
	}
	defer done()

	var l Listing
	var paths []string
	w := walker{ctx: ctx, enter: func(path string) bool { return len(t.rules.denyRead) == 0 || !covers(t.rules.denyRead, foldPath(path)) }}
	w.visit = func(_ int, e dirent) {
		if e.kind != unix.DT_REG || !matches(e.path) || !t.rules.mayRead(e.path) || reserved(e.path[strings.LastIndexByte(e.path, '/')+1:]) {
			return
		}
		if !utf8.ValidString(e.path) {
			w.incomplete = true
			return
		}
		paths = append(paths, e.path)
	}
	if err := w.walk(root); err != nil {
		if ctx.Err() != nil {
			return Listing{}, ctx.Err()
		}
		e := fault(CodeOperationFailed, "find: the workspace's root cannot be read: %s", systemText(err))
		e.Err = err
		return Listing{}, e
	}
	l.Incomplete = w.incomplete
	slices.Sort(paths)
	s := searcher{opener: t.opener(ctx, root), text: []byte(q.Content), lines: map[string][]Match{}}
	if q.Content != "" {
		if paths, err = s.search(ctx, paths); err != nil {
			return Listing{}, err
		}
		l.Skipped, l.Incomplete = s.skipped, l.Incomplete || s.incomplete
	}
	l.Total, l.Version = len(paths), listingVersion(paths)
	from := min(q.Offset, len(paths))
	to := min(from+q.Limit, len(paths))
	l.Paths = slices.Clone(paths[from:to])
	for _, p := range l.Paths {
		l.Matches = append(l.Matches, s.lines[p]...)
	}
	if to < len(paths) {
		l.Next = to
	}
	return l, nil
}

func listingVersion(paths []string) string {
	sum := sha256.New()
	buf := make([]byte, 0, 4096)
	for _, p := range paths {
		buf = append(append(buf[:0], p...), 0)
		sum.Write(buf)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// selector is the glob language of find.
func selector(text string) (func(path string) bool, error) {
	if strings.IndexByte(text, 0) >= 0 || strings.HasPrefix(text, "/") || slices.Contains(strings.Split(text, "/"), "..") {
		return nil, fault(CodePathEscape, "glob %s: want a pattern of paths beneath the workspace, without a leading / and without ..", quoted(text))
	}
	if len(text) > MaxGlobBytes {
		return nil, fault(CodeOutputLimit, "glob: it has %d bytes, the most is %d", len(text), MaxGlobBytes)
	}
	switch text {
	case "", "*", "**", "**/*":
		return func(string) bool { return true }, nil
	}
	if ext, ok := strings.CutPrefix(text, "*."); ok && !strings.ContainsAny(ext, `*?[{\/`) {
		return func(path string) bool { return strings.HasSuffix(path, text[1:]) }, nil
	}
	literal := func(path string) bool {
		return path == text || strings.HasSuffix(path, text) && path[len(path)-len(text)-1] == '/'
	}
	if !strings.ContainsAny(text, `*?[{\`) && !strings.HasSuffix(text, "/") {
		return literal, nil
	}
	pattern := text
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	globs, err := parseGlob(pattern)
	if err != nil {
		return nil, fault(CodeOutputLimit, "glob: %v", err)
	}
	anyDepth := !strings.Contains(text, "/")
	return func(path string) bool {
		name := path
		if anyDepth {
			name = path[strings.LastIndexByte(path, '/')+1:]
		}
		for i := range globs {
			if globs[i].matches(name) {
				return true
			}
		}
		return literal(path)
	}, nil
}
