package files

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ/patch"
)

func TestScenario49And50And51_PathsThatLeaveAreRefused(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, layout{"target": "v1\n", "dir/in": "v1\n"})
	tree := newTree(t, layout{
		"a.txt": "v1\n", "link": "-> " + outside + "/target", "ld": "-> " + outside + "/dir", "chain": "-> link", "inner": "-> a.txt", "file": "x",
	})
	before, beforeOut := disk(t, tree.Root()), disk(t, outside)
	for _, c := range []struct {
		code  string
		lines []string
	}{
		{CodePathEscape, []string{"*** Add File: ../escape.txt", "+x"}},
		{CodePathEscape, []string{"*** Add File: /etc/cron.d/x", "+x"}},
		{CodePathEscape, []string{"*** Add File: sub/../../esc.txt", "+x"}},
		{CodePathEscape, []string{"*** Update File: a.txt", "*** Move to: ../b", "-v1", "+v2"}},
		{CodeSymlink, []string{"*** Update File: link", "-v1", "+v2"}}, // FS-09
		{CodeSymlink, []string{"*** Update File: chain", "-v1", "+v2"}},
		{CodeSymlink, []string{"*** Update File: inner", "-v1", "+v2"}},
		{CodeSymlink, []string{"*** Update File: ld/in", "-v1", "+v2"}},
		{CodeSymlink, []string{"*** Add File: ld/x.txt", "+1"}}, // AP-35
		{CodeSymlink, []string{"*** Add File: ld/deep/x.txt", "+1"}},
		{CodeSymlink, []string{"*** Add File: link", "+1"}},
		{CodeSymlink, []string{"*** Delete File: link"}},
		{CodeSymlink, []string{"*** Update File: a.txt", "*** Move to: ld/x", "-v1", "+v2"}},
		{CodeNotDirectory, []string{"*** Add File: file/x", "+1"}},
		{CodeFileNotFound, []string{"*** Delete File: missing"}},
		{CodeFileNotFound, []string{"*** Update File: missing", "-x", "+y"}},
		{CodeSpecialFile, []string{"*** Delete File: sub"}},
		{string(patch.AddFileExists), []string{"*** Add File: a.txt", "+x"}},
		{string(patch.MoveDestinationExists), []string{"*** Update File: a.txt", "*** Move to: file", "-v1", "+v2"}},
		{CodeInvalidPatch, []string{"*** Update File: a.txt", "-v9", "+v2"}},
	} {
		if c.code == CodeSpecialFile {
			must(t, os.Mkdir(filepath.Join(tree.Root(), "sub"), 0o755))
			before = disk(t, tree.Root())
		}
		_, err := tryPlan(tree, nil, c.lines...)
		wantCode(t, strings.Join(c.lines, " "), err, c.code)
	}
	wantDisk(t, "the workspace after refusals", tree.Root(), before)
	wantDisk(t, "outside after refusals", outside, beforeOut)
}

// Whoever parses a patch says which absolute paths are the root.
func TestAP37_AbsolutePathsBeneathTheRoot(t *testing.T) {
	tree := newTree(t, layout{"a.txt": "v1\n"})
	for _, root := range []string{tree.Root(), "/workspace"} {
		parsed, err := patch.Parse(patchText("*** Update File: "+root+"/a.txt", "-v1", "+v2"), tree.Root(), "/workspace")
		must(t, err)
		p, err := tree.Plan(t.Context(), parsed, nil)
		must(t, err)
		wantApplied(t, apply(t, tree, p))
		wantFile(t, tree, "a.txt", "v2\n", 0o644)
		wantApplied(t, apply(t, tree, reversed(p)))
	}
}

func TestScenario52_PlanChangesNothing(t *testing.T) {
	tree := newTree(t, layout{"a.txt": "v1\n", "b.txt": "v1\n"})
	times := func() map[string]time.Time {
		out := map[string]time.Time{}
		must(t, filepath.WalkDir(tree.Root(), func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil {
				out[name] = info.ModTime()
			}
			return err
		}))
		return out
	}
	beforeDisk, before := disk(t, tree.Root()), times()
	p := plan(t, tree, "*** Update File: a.txt", "-v1", "+v2", "*** Add File: new/x", "+x", "*** Delete File: b.txt")
	wantDisk(t, "after the plan", tree.Root(), beforeDisk)
	if diff := cmp.Diff(before, times()); diff != "" {
		t.Errorf("times of modification: %s", diff)
	}
	want := []Change{
		{Path: "a.txt", Kind: patch.Update, Before: patch.Version([]byte("v1\n")), After: patch.Version([]byte("v2\n")), BeforeMode: 0o644, AfterMode: 0o644},
		{Path: "new/x", Kind: patch.Add, Before: patch.Absent, After: patch.Version([]byte("x\n")), AfterMode: 0o644},
		{Path: "b.txt", Kind: patch.Delete, Before: patch.Version([]byte("v1\n")), After: patch.Absent, BeforeMode: 0o644},
	}
	if diff := cmp.Diff(want, p.Changes); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(p.Diff, "-v1\n+v2\n") || !slices.Equal(p.Paths(), []string{"a.txt", "new/x", "b.txt"}) {
		t.Errorf("paths %v, diff:\n%s", p.Paths(), p.Diff)
	}
}

func TestScenario53_OneBadFileLeavesAll(t *testing.T) {
	tree := newTree(t, layout{"a.txt": "v1\n", "b.txt": "v1\n"})
	before := disk(t, tree.Root())
	_, err := tryPlan(tree, nil, "*** Update File: a.txt", "-v1", "+v2", "*** Update File: b.txt", "-nothing", "+v2")
	wantCode(t, "second file does not match", err, CodeInvalidPatch)
	wantDisk(t, "after it", tree.Root(), before)
}

func TestScenario54And55_ExpectedVersions(t *testing.T) {
	tree := newTree(t, layout{"a.txt": "v1\n", "other": "o\n"})
	v1 := patch.Version([]byte("v1\n"))
	update := []string{"*** Update File: a.txt", "-v1", "+v2"}
	for _, c := range []struct {
		expected map[string]string
		code     string
	}{
		{map[string]string{"a.txt": v1}, ""},
		{map[string]string{"./x/../a.txt": v1, "new": patch.Absent, "no/such/folder": patch.Absent}, ""},
		{map[string]string{"a.txt": patch.Version([]byte("v0\n"))}, CodeVersionConflict},
		{map[string]string{"a.txt": patch.Absent}, CodeVersionConflict},
		{map[string]string{"a.txt": ""}, CodeVersionConflict},
		{map[string]string{"new": v1}, CodeVersionConflict},
		{map[string]string{"other": v1}, CodeVersionConflict}, // a file that the patch does not name
		{map[string]string{"../x": patch.Absent}, CodePathEscape},
		{map[string]string{"a.txt/x": patch.Absent}, CodeNotDirectory},
	} {
		_, err := tryPlan(tree, c.expected, update...)
		if c.code == "" {
			must(t, err)
		} else {
			wantCode(t, "expected "+strings.Join(slices.Sorted(maps.Keys(c.expected)), ","), err, c.code)
		}
	}
}
