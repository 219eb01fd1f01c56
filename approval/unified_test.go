package approval_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"writ"
	"writ/approval"
	"writ/patch"
)

var (
	contentLine = regexp.MustCompile(`^ {0,5}(\d*) {1,7}(\d*) \| ([ +-])(.*)$`)
	aboutLine   = regexp.MustCompile(`^ {14}: (.*)$`)
)

// diffShown reads a text's diff back from its labels.
func diffShown(text string) (diff string, strange int) {
	_, body, _ := strings.Cut(unfolded(text), "\n--- diff: ")
	body, _, _ = strings.Cut(body, "\n--- the patch as it was sent: ")
	var b strings.Builder
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if m := contentLine.FindStringSubmatch(line); m != nil {
			b.WriteString(m[3] + m[4] + "\n")
		} else if m := aboutLine.FindStringSubmatch(line); m != nil {
			b.WriteString(m[1] + "\n")
		} else if strings.HasPrefix(line, strings.Repeat(" ", 14)+"? ") {
			strange++
		}
	}
	return b.String(), strange
}

// Whatever files hold, and whatever happens to them: the diff that package patch makes
// is understood to its last line, stands whole in the text, and every line of a file
// behind its number.
func TestPropertyTheDiffIsShownWhole(t *testing.T) {
	lines := strings.Split(forger, "\n")
	lines = append(lines, "", " ", "+", "-", "x", "y", "@@ -1 +1 @@", "@@ -0,0 +1,9 @@", "rename from a", "Binary files a and b differ", "     1      1 |  x")
	rapid.Check(t, func(rt *rapid.T) {
		file := func(label string) *patch.File {
			content := strings.Join(rapid.SliceOfN(rapid.SampledFrom(lines), 0, 12).Draw(rt, label), "\n")
			if rapid.Bool().Draw(rt, label+" ends") && content != "" {
				content += "\n"
			}
			return &patch.File{Content: []byte(content), Mode: rapid.SampledFrom([]fs.FileMode{0o644, 0o755}).Draw(rt, label+" mode")}
		}
		var made []patch.Change
		for i := range rapid.IntRange(1, 4).Draw(rt, "files") {
			name := fmt.Sprintf("f%d b/f%d", i, i)
			switch rapid.SampledFrom([]patch.Kind{patch.Add, patch.Update, patch.Delete, patch.Move}).Draw(rt, "kind") {
			case patch.Add:
				made = append(made, patch.Change{Path: name, Kind: patch.Add, After: file("after")})
			case patch.Update:
				made = append(made, patch.Change{Path: name, Kind: patch.Update, Before: file("before"), After: file("after")})
			case patch.Delete:
				made = append(made, patch.Change{Path: name, Kind: patch.Delete, Before: file("before")})
			case patch.Move:
				made = append(made, patch.Change{Path: "old " + name, Kind: patch.Delete, Before: file("before")},
					patch.Change{Path: name, Kind: patch.Move, From: "old " + name, After: file("after")})
			}
		}
		p := testOrder(writ.ApprovalsReview)
		p.Plan = planOf(made)
		text := asked(p)
		if got, strange := diffShown(text); got != p.Plan.Diff || strange > 0 {
			rt.Fatalf("%d lines are not understood, and the text shows\n%s\nof the diff\n%s", strange, got, p.Plan.Diff)
		}
		for _, not := range []string{"damaged", "not in the diff", "cut here"} {
			if strings.Contains(text, not) {
				rt.Fatalf("the text says %q:\n%s", not, text)
			}
		}
		checkNumbers(rt, made, text)
	})
}

// checkNumbers compares the line behind each number with the file that has it.
func checkNumbers(rt *rapid.T, made []patch.Change, text string) {
	lineOf := func(f *patch.File, n string) string {
		all := strings.Split(string(f.Content), "\n")
		var i int
		if _, err := fmt.Sscan(n, &i); err != nil || i < 1 || i > len(all) {
			rt.Fatalf("there is no line %q in %q", n, f.Content)
		}
		return all[i-1]
	}
	before, after := map[string]*patch.File{}, map[string]*patch.File{}
	for _, c := range made {
		before[c.Path], after[c.Path] = c.Before, c.After
	}
	var from, to string
	for line := range strings.Lines(unfolded(text)) {
		line = strings.TrimSuffix(line, "\n")
		if m := aboutLine.FindStringSubmatch(line); m != nil {
			if name, ok := strings.CutPrefix(m[1], "--- a/"); ok {
				from = name
			}
			if name, ok := strings.CutPrefix(m[1], "+++ b/"); ok {
				to = name
			}
		}
		m := contentLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if m[1] != "" && lineOf(before[from], m[1]) != m[4] || m[2] != "" && lineOf(after[to], m[2]) != m[4] {
			rt.Fatalf("line %q stands behind a wrong number", line)
		}
		if (m[1] == "") != (m[3] == "+") || (m[2] == "") != (m[3] == "-") {
			rt.Fatalf("line %q has the wrong numbers for its sign", line)
		}
	}
}

// Wherever a diff is cut, what is left of it is not called damaged, and a file of which
// only the name is left is not called shown.
func TestADiffThatIsCutAnywhere(t *testing.T) {
	p := planned(t, tree{"a": "1\n", "b": "1\n", "s*": "x\n"}, v4a("*** Update File: a", "@@", "-1", "+one", "*** Update File: b", "*** Move to: c", "@@", "-1", "+two", "*** Update File: s", "*** Move to: t"))
	whole := p.Plan.Diff
	p.Plan.Cut = true
	for n := range len(whole) {
		p.Plan.Diff = whole[:n]
		text := asked(p)
		got, strange := diffShown(text)
		if strings.TrimSuffix(got, "\n") != strings.TrimSuffix(whole[:n], "\n") || strange > 0 || strings.Contains(text, "damaged") {
			t.Fatalf("of the first %d bytes the text shows\n%s", n, text)
		}
		unseen := 0
		for _, first := range []string{"diff --git a/a b/a\n", "rename from b\n", "diff --git a/b b/c\n", "rename from s\n", "diff --git a/s b/t\n"} {
			if !strings.Contains(whole[:n], first) {
				unseen++
			}
		}
		if want := fmt.Sprintf("the diff is cut after %d bytes: %d of 5 path(s) are not in it", n, unseen); !strings.Contains(unfolded(text), want) {
			t.Fatalf("%q is not in the text:\n%s", want, text)
		}
	}
}

// Whatever a diff says, also one that no part of ours makes, nothing in it leaves its
// label, and a plan that names a file without showing it says so.
func FuzzRenderPatch(f *testing.F) {
	whole := patch.Unified([]patch.Change{{Path: "a", Kind: patch.Update, Before: &patch.File{Content: []byte(forger), Mode: 0o644}, After: &patch.File{Content: []byte("x"), Mode: 0o755}}})
	f.Add(whole, "a", false)
	f.Add(whole[:len(whole)/2], "a", true)
	f.Add(whole, "b", false)
	f.Add("@@ -1,99 +1,99 @@\n+x\n+y", "a\nb", false)
	f.Add("@@ -99999999999999999999 +1 @@\n", "", false)
	f.Add("diff --git a/a b/a\nold mode \nnew mode \u202e\n\n\\ No newline at end of file\n", "a", false)
	label := regexp.MustCompile(`^( {0,5}\d* {1,7}\d* \| [ +-]| {14}[:?] | {7}[>!] )`)
	f.Fuzz(func(t *testing.T, diff, path string, cut bool) {
		p := testOrder(writ.ApprovalsReview)
		p.Request.Patch = ""
		p.Plan = writ.PatchPlan{Changes: []writ.FileChange{{Path: path, Kind: "add", After: "sha256:1"}}, Diff: diff, Cut: cut}
		text := asked(p)
		noControls(t, text)
		head, body, _ := strings.Cut(text, "\n--- diff: ")
		_, body, _ = strings.Cut(body, "\n")
		for line := range strings.Lines(body) {
			if line != "\n" && !label.MatchString(line) {
				t.Errorf("a line without a label: %q", line)
			}
		}
		named := approval.Visible("diff --git a/" + path + " b/" + path)
		if !strings.Contains(unfolded(body), ": "+named+"\n") && !strings.Contains(unfolded(head), "not in the diff") && !cut {
			t.Errorf("nothing says that %q is not in the diff:\n%s", path, text)
		}
	})
}
