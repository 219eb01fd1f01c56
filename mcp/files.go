package mcp

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ"
)

func readTool() tool {
	return tool{
		name: "read", title: "Read file",
		description: "Read a window of one file, as text. Bytes that are not UTF-8 come as U+FFFD and content_lossy says so. version is a hash of the whole file, for expected_versions of apply_patch.",
		hints:       hints{readOnly: true, idempotent: true},
		in: object{
			workspaceID(),
			must("path", text("Relative to the workspace's root.")),
			may("offset", count(0, 0, "First byte; default 0.")),
			may("limit", count(1, readMaxBytes, "Most bytes; default and cap 1048576.")),
			workID(),
		},
		out: object{
			must("path", text("")),
			must("content", text("")),
			must("version", text("sha256 of the whole file.")),
			must("truncated", flag("True when bytes remain after this window.")),
			may("offset", count(0, 0, "Absent when 0.")),
			must("byte_count", count(0, 0, "Bytes of the file in this window.")),
			must("content_lossy", flag("True when bytes were replaced by U+FFFD.")),
			may("next_offset", count(0, 0, "Where more is; absent at the end.")),
			coordination(),
		},
		run: read,
	}
}

type readResult struct {
	Path      string `json:"path"`
	Content   string `json:"content"` // empty: text comes in its place
	Version   string `json:"version"`
	Truncated bool   `json:"truncated"`
	Offset    int64  `json:"offset,omitzero"`
	Bytes     int    `json:"byte_count"`
	Lossy     bool   `json:"content_lossy"`
	Next      int64  `json:"next_offset,omitzero"`

	Coordination *writ.WorkHint `json:"coordination,omitempty"`

	text []byte // not a string: it can be long, and would be copied for that
}

// noText is where content stands in a result of read that has none. Within a string of
// JSON its quotes would be escaped.
const noText = `"content":""`

// encode is r as JSON. Each byte of its text that is not UTF-8 becomes U+FFFD.
func (r readResult) encode() (jsontext.Value, error) {
	frame, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	before, after, _ := bytes.Cut(frame, []byte(noText))
	out := make([]byte, 0, len(frame)+len(r.text)+len(r.text)/8) // most escapes are of line ends
	out = append(out, before...)
	out = append(out, noText[:len(noText)-len(`""`)]...)
	out, _ = jsontext.AppendQuote(out, r.text) // its error says that bytes were replaced
	return append(out, after...), nil
}

func read(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Workspace writ.WorkspaceID `json:"workspace_id"`
		Path      string           `json:"path"`
		Offset    uint64           `json:"offset"`
		Limit     *uint32          `json:"limit"`
		Work      writ.WorkID      `json:"work_id"`
	}](c)
	if err != nil {
		return nil, err
	}
	limit := int64(readMaxBytes)
	if in.Limit != nil {
		limit = int64(*in.Limit)
	}
	hint := c.hintMeanwhile(ctx, in.Workspace, in.Work)
	w, err := c.ws.Read(ctx, c.who, in.Workspace, in.Path, int64(min(in.Offset, math.MaxInt64)), limit)
	waiting := hint(err == nil)
	if err != nil {
		return nil, err
	}
	window := func(content []byte, next int64) (jsontext.Value, error) {
		return readResult{
			Path: strings.ReplaceAll(w.Path, `\`, "/"), text: content, Version: w.Version,
			Truncated: next > 0, Offset: w.Offset, Bytes: len(content), Lossy: !utf8.Valid(content), Next: next,
			Coordination: waiting,
		}.encode()
	}
	body, err := window(w.Content, w.Next)
	if err != nil || resultBytes(body) <= MaxResultBytes-frameBytes {
		return body, err
	}
	n := fitting(w.Content, MaxResultBytes-envelopeBytes-4*textCost(w.Path))
	return window(w.Content[:n], w.Offset+int64(n))
}

// valid is b as text: each byte that is not UTF-8 becomes U+FFFD.
func valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}

func findTool() tool {
	return tool{
		name: "find", title: "Find files",
		description: "List files of a workspace, sorted, by pages. Symbolic links are left out; hidden and ignored files are not. If listing_version changes between pages, start again at offset 0.",
		hints:       hints{readOnly: true, idempotent: true},
		in: object{
			workspaceID(),
			may("glob", text("Absent, * or **: every file. *.go: every path with that ending. A name without *: that path, or every path that ends in / and it. Any other: a pattern with *, ?, [], {} and **.")),
			may("content", text("Only files that have this text in one line; matches says where.")),
			may("offset", count(0, 0, "Index of the first path; default 0.")),
			may("limit", count(1, findMaxPaths, "Most paths; default and cap 10000.")),
			workID(),
		},
		out: object{
			must("paths", listOf(text(""), "Relative, with /, in byte order.")),
			must("truncated", flag("True when there are more matches after this page.")),
			may("offset", count(0, 0, "Absent when 0.")),
			may("next_offset", count(0, 0, "Where the next page begins; absent on the last.")),
			must("incomplete", flag("True when the search was cut short: there may be more matches than any page shows.")),
			must("listing_version", text("Identifies the whole list that this page is of.")),
			may("matches", listOf(object{
				must("path", text("")),
				must("line", count(1, 0, "")),
				must("text", text("")),
			}.schema(), "Only with content: lines that have it, of the files of this page.")),
			coordination(),
		},
		run: find,
	}
}

type findResult struct {
	Paths      []string         `json:"paths"`
	Truncated  bool             `json:"truncated"`
	Offset     int              `json:"offset,omitzero"`
	Next       int              `json:"next_offset,omitzero"`
	Incomplete bool             `json:"incomplete"`
	Version    string           `json:"listing_version"`
	Matches    []writ.FileMatch `json:"matches,omitempty"`

	Coordination *writ.WorkHint `json:"coordination,omitempty"`
}

func find(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Workspace writ.WorkspaceID `json:"workspace_id"`
		Glob      string           `json:"glob"`
		Content   string           `json:"content"`
		Offset    uint64           `json:"offset"`
		Limit     *uint32          `json:"limit"`
		Work      writ.WorkID      `json:"work_id"`
	}](c)
	if err != nil {
		return nil, err
	}
	q := writ.FileQuery{Glob: in.Glob, Content: in.Content, Offset: int(min(in.Offset, math.MaxInt)), Limit: findMaxPaths}
	if in.Limit != nil {
		q.Limit = int(*in.Limit)
	}
	l, err := c.ws.Find(ctx, c.who, in.Workspace, q)
	if err != nil {
		return nil, err
	}
	out := findResult{
		Paths: []string{}, Offset: q.Offset, Next: l.Next,
		Incomplete: l.Incomplete, Version: l.Version,
		Coordination: c.hint(ctx, in.Workspace, in.Work),
	}
	// Paths come first: the page is what next_offset counts. Matches get what is left.
	room := MaxResultBytes - envelopeBytes
	for _, p := range l.Paths {
		if room -= textCost(p) + elementBytes; room < 0 {
			out.Next = q.Offset + len(out.Paths)
			break
		}
		out.Paths = append(out.Paths, p)
	}
	out.Truncated = out.Next > 0
	for _, m := range l.Matches {
		m.Text = valid([]byte(m.Text))
		if room -= textCost(m.Path) + textCost(m.Text) + elementBytes; room < 0 {
			out.Incomplete = true
			break
		}
		out.Matches = append(out.Matches, m)
	}
	return out, nil
}

const (
	envelopeBytes = 16 << 10 // what a result has beside the texts that are counted
	elementBytes  = 128      // what an element of a list has beside its texts, in both forms
)

// textCost is how many bytes the text s takes in a result at most: as a string of the
// structured form, and again within the text that has the same.
func textCost(s string) int {
	n := 0
	for _, r := range s {
		n += runeCost(r, utf8.RuneLen(r))
	}
	return n
}

func runeCost(r rune, size int) int {
	switch {
	case r == '"', r == '\\':
		return 2 + 4
	case r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2 + 3
	case r < ' ':
		return 6 + 7
	case r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029':
		return 6 + 6
	}
	return 2 * cmp.Or(max(size, 0), 3)
}

// fitting is how many bytes of content a result of room bytes has place for, ending
// between two letters.
func fitting(content []byte, room int) int {
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		cost := runeCost(r, size)
		if r == utf8.RuneError {
			cost = 2 * 3
		}
		if room -= cost; room < 0 {
			return i
		}
		i += size
	}
	return len(content)
}
