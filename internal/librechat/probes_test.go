package librechat

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"writ/internal/testkit"
)

var update = flag.Bool("update", false, "write DIFFERENCES.md anew, with the reasons that it has")

// groups are the probes, by the file of their requests and the file of their answers.
var groups = []struct{ name, script, answers string }{
	{"A", "a_auth.mjs", "A-auth.json"},
	{"B", "b_exec.mjs", "B-exec.json"},
	{"C", "c_files.mjs", "C-files.json"},
	{"D", "d_execfiles.mjs", "D-exec-files.json"},
}

// TestProbes lays writ's answers beside those of the reference server to the same
// requests. What differs must be in DIFFERENCES.md as it is, with a reason.
func TestProbes(t *testing.T) {
	node, _ := installed(t, "3.9.2")
	// The reference ran with limits of 15 seconds; nothing but waiting hangs on that.
	s := serve(t, setup{mode: signed, env: []string{"SANDBOX_RUN_TIMEOUT=8000"}})
	// Where a language has no tools, writ refuses it as the reference does.
	without := map[string]bool{}
	for l, tool := range tools {
		if why := s.lacks(l); why != "" {
			without["B: lang unsupported "+l] = true
			t.Run("without_"+tool, func(t *testing.T) { testkit.Missing(t, tool, why) })
		}
	}
	var got []difference
	for _, g := range groups {
		out := t.TempDir()
		runNode(t, node, []string{"OUT=" + out, "BASE=" + s.url, "KEY=" + s.keyFile()}, false, filepath.Join("testdata", "probes", g.script))
		want, have := answers(t, filepath.Join("testdata", "reference", g.answers)), answers(t, filepath.Join(out, g.answers))
		got = append(got, compare(g.name, want, have)...)
	}
	checkDifferences(t, got, without)
}

// probed is an answer as the probes record it.
type probed struct {
	Name    string            `json:"name"`
	Status  json.RawMessage   `json:"status"` // a number, or a word that tells that there was none
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

func answers(t *testing.T, file string) (all []probed) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// compare tells where answers differ. Probes whose number hangs on an earlier answer may
// be missing on one side.
func compare(group string, want, have []probed) (all []difference) {
	byName := func(rows []probed) map[string][]line {
		m := map[string][]line{}
		for _, r := range rows {
			m[strings.TrimSpace(r.Name)] = r.lines()
		}
		return m
	}
	w, h := byName(want), byName(have)
	for _, r := range append(slices.Clone(want), have...) {
		name := strings.TrimSpace(r.Name)
		left, right := w[name], h[name]
		delete(w, name) // once
		delete(h, name)
		if left == nil && right == nil {
			continue
		}
		for _, d := range diffLines(left, right) {
			d.probe = group + ": " + name
			all = append(all, d)
		}
	}
	return all
}

// line is one value of an answer.
type line struct{ path, value string }

// headers are those that clients read. Of some only the presence counts: their values
// count down, or are over a text in which ids are.
var headers = map[string]bool{ // whether the value counts
	"content-type": true, "content-disposition": true, "x-read-only": true, "ratelimit-policy": true, "ratelimit-limit": true,
	"etag": false, "retry-after": false, "ratelimit-remaining": false, "ratelimit-reset": false,
}

// lines are the values of an answer, without what is another one each time.
func (p probed) lines() []line {
	out := []line{{"status", string(p.Status)}}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		if counts, ok := headers[name]; ok {
			value := "present"
			if counts {
				value = plain(p.Headers[name])
			}
			out = append(out, line{"header " + name, value})
		}
	}
	if len(p.Body) > 0 {
		out = append(out, flatten("body", p.Body)...)
	}
	return out
}

// flatten is a JSON value as lines, in its own order; elements of arrays of objects are
// sorted, since the reference does not.
func flatten(path string, raw json.RawMessage) []line {
	dec := json.NewDecoder(bytes.NewReader(raw))
	tok, err := dec.Token()
	if err != nil {
		return []line{{path, err.Error()}}
	}
	switch tok {
	case json.Delim('{'):
		out := []line{}
		for dec.More() {
			name, _ := dec.Token()
			var v json.RawMessage
			if dec.Decode(&v) != nil {
				break
			}
			out = append(out, flatten(fmt.Sprintf("%s.%v", path, name), v)...)
		}
		return out
	case json.Delim('['):
		var elements []string
		for dec.More() {
			var v json.RawMessage
			if dec.Decode(&v) != nil {
				break
			}
			var text strings.Builder
			for _, l := range flatten("", v) {
				text.WriteString(named(l.path, l.value) + " ")
			}
			elements = append(elements, strings.TrimSpace(text.String()))
		}
		slices.Sort(elements)
		out := []line{{path, fmt.Sprintf("an array of %d", len(elements))}}
		for _, e := range elements {
			out = append(out, line{path + "[]", e})
		}
		return out
	}
	if strings.HasSuffix(path, "wall_time") {
		return []line{{path, "<ms>"}}
	}
	return []line{{path, plain(string(raw))}}
}

// named is a value with its path, if it has one.
func named(path, value string) string {
	if path = strings.TrimPrefix(path, "."); path == "" {
		return value
	}
	return path + "=" + value
}

// volatile is what no two answers have in common, and what stands for it.
var volatile = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[\d:.]+Z`), "<time>"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b`), "<hash>"},
	{regexp.MustCompile(`(^|[^A-Za-z0-9_-])[A-Za-z0-9_-]{21}($|[^A-Za-z0-9_-])`), "$1<id>$2"},
	{regexp.MustCompile(`\b[A-Z][a-z][a-z] [ \d]\d \d\d:\d\d\b`), "<date>"},
	{regexp.MustCompile(`: +\d+ (Killed|Segmentation fault)`), ": <pid> $1"},
	{regexp.MustCompile(`(d[rwx-]{9} \d+ \S+ +\S+) +\d+`), "$1 <size>"}, // of a folder: how many entries it has
}

func plain(text string) string {
	for _, v := range volatile {
		text = v.what.ReplaceAllString(text, v.as)
		if v.as[0] == '$' { // neighbours share what is between them
			text = v.what.ReplaceAllString(text, v.as)
		}
	}
	return text
}

// absent stands for a value that only the other side has.
const absent = "nothing"

// diffLines are the differences of two answers: one when their statuses differ, else those
// of their values, of which those of one path are taken together, and those of a field that
// only one has.
func diffLines(want, have []line) (all []difference) {
	values := func(lines []line) (paths []string, m map[string][]string) {
		m = map[string][]string{}
		for _, l := range lines {
			if m[l.path] == nil {
				paths = append(paths, l.path)
			}
			m[l.path] = append(m[l.path], l.value)
		}
		return paths, m
	}
	status := func(lines []line) string { // the first; none when there was no such probe
		return append(lines, line{})[0].value
	}
	if status(want) != status(have) {
		return []difference{{where: "answer", reference: whole(want), writ: whole(have)}}
	}
	want, have = folded(want, have), folded(have, want)
	wantPaths, w := values(want)
	havePaths, h := values(have)
	for _, path := range append(slices.Clone(wantPaths), havePaths...) {
		left, right := only(w[path], h[path]), only(h[path], w[path])
		if len(left)+len(right) > 0 {
			all = append(all, difference{where: path, reference: short(left), writ: short(right)})
		}
		delete(w, path) // once
		delete(h, path)
	}
	inBoth := func(paths, other []string) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !slices.Contains(other, p) })
	}
	if a, b := inBoth(wantPaths, havePaths), inBoth(havePaths, wantPaths); !slices.Equal(a, b) {
		all = append(all, difference{where: "order", reference: short(a), writ: short(b)})
	}
	return all
}

// folded is an answer in which each field of the body that other does not have is one line.
func folded(lines, other []line) (out []line) {
	field := func(l line) string { // body.a of body.a.b and of body.a[]
		name, ok := strings.CutPrefix(l.path, "body.")
		if i := strings.IndexAny(name, ".["); ok && i >= 0 {
			return "body." + name[:i]
		}
		return l.path
	}
	for _, l := range lines {
		f := field(l)
		switch last := len(out) - 1; {
		case f == l.path && !strings.Contains(l.value, "an array of"), slices.ContainsFunc(other, func(o line) bool { return field(o) == f }):
			out = append(out, l)
		case last >= 0 && out[last].path == f:
			out[last].value += "; " + named(l.path[len(f):], l.value)
		default:
			out = append(out, line{f, named(l.path[len(f):], l.value)})
		}
	}
	return out
}

// whole is an answer as one value: its status and body. What a run said that the other
// server refused is nothing that two hosts have in common.
func whole(lines []line) string {
	var parts []string
	for _, l := range lines {
		name, inBody := strings.CutPrefix(l.path, "body")
		switch {
		case l.path == "status":
			parts = append(parts, l.value)
		case name == ".wall_time":
			return parts[0] + " and a run's outcome"
		case inBody:
			parts = append(parts, named(name, l.value))
		}
	}
	return short(parts)
}

// only are the values of one list that another does not have, each as often as it has
// more of it.
func only(list, other []string) []string {
	other = slices.Clone(other)
	return slices.DeleteFunc(slices.Clone(list), func(v string) bool {
		i := slices.Index(other, v)
		if i >= 0 {
			other = slices.Delete(other, i, i+1)
		}
		return i >= 0
	})
}

// short is values as one cell of a table.
func short(values []string) string {
	if len(values) == 0 {
		return absent
	}
	text := strings.Join(values, "; ")
	const most = 1000
	if r := []rune(text); len(r) > most {
		text = fmt.Sprintf("%s… (%d letters)", string(r[:most]), len(r))
	}
	return text
}
