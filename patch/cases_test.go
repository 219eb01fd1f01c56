package patch_test

import (
	"errors"
	"strings"
	"testing"

	"writ/patch"
)

func TestAP01_CRLFFileStaysCRLF(t *testing.T) {
	want(t, files("conf.ini", "alpha=1\r\nbeta=2\r\ngamma=3\r\n"),
		update("conf.ini", "@@", " alpha=1", "-beta=2", "+beta=20", " gamma=3"),
		files("conf.ini", "alpha=1\r\nbeta=20\r\ngamma=3\r\n"))
}

func TestAP03_PatchTextInCRLF(t *testing.T) {
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	want(t, files("conf.ini", "alpha=1\nbeta=2\ngamma=3\n"),
		crlf(update("conf.ini", "@@", " alpha=1", "-beta=2", "+beta=20", " gamma=3")),
		files("conf.ini", "alpha=1\nbeta=20\ngamma=3\n"))
	want(t, tree{}, crlf(body("*** Add File: new.txt", "+one", "+two")), files("new.txt", "one\ntwo\n"))
}

func TestAP04_ByteOrderMarkKeptOnce(t *testing.T) {
	before := files("s.js", "\ufefflet port = 80;\nrun();\n")
	after := files("s.js", "\ufefflet port = 8080;\nrun();\n")
	want(t, before, update("s.js", "@@", "-let port = 80;", "+let port = 8080;"), after)
	// A client that read the mark may write it, too.
	want(t, before, update("s.js", "@@", "-\ufefflet port = 80;", "+\ufefflet port = 8080;"), after)
	want(t, before, update("s.js", "@@", " let port = 80;", "-run();", "+stop();"),
		files("s.js", "\ufefflet port = 80;\nstop();\n"))
}

func TestAP07_LookalikesMatchAndSurvive(t *testing.T) {
	want(t, files("d", "Re\u2011entry \u2013 step\u00a0one\nold\n"),
		update("d", "@@", " Re-entry - step one", "-old", "+new"),
		files("d", "Re\u2011entry \u2013 step\u00a0one\nnew\n"))
}

func TestAP09_ComposedAndDecomposedLettersMatch(t *testing.T) {
	want(t, files("f", "u\u0308 = 0\nna\u0069\u0308ve = 1\n"),
		update("f", "@@", " \u00fc = 0", "-na\u00efve = 1", "+na\u00efve = 2"),
		files("f", "u\u0308 = 0\nna\u00efve = 2\n"))
}

func TestAP10_ContextKeepsItsIndentation(t *testing.T) {
	want(t, files("t.py", "if ok:\n    a()\n    b()\n    c()\n"),
		update("t.py", "@@", "   a()", "-    b()", "+    b(1)", "   c()"),
		files("t.py", "if ok:\n    a()\n    b(1)\n    c()\n"))
}

func TestAP12_AddedLineKeepsItsIndentation(t *testing.T) {
	want(t, files("d.md", "list:\n  item\n"),
		update("d.md", "@@", " list:", "-  item", "+   item"),
		files("d.md", "list:\n   item\n"))
}

// The format's own value: an edited file ends in a newline, and the diff says so.
func TestAP13_FinalNewlineIsAddedAndShown(t *testing.T) {
	changes := want(t, files("n.txt", "a\nb\nc"), update("n.txt", "@@", "-a", "+A"), files("n.txt", "A\nb\nc\n"))
	diff := patch.Unified(changes)
	for _, l := range []string{"-a\n", "+A\n", "-c\n\\ No newline at end of file\n+c\n"} {
		if !strings.Contains(diff, l) {
			t.Errorf("the diff does not have %q:\n%s", l, diff)
		}
	}
}

func TestAP14_EndOfFileTakesTheLastOccurrence(t *testing.T) {
	want(t, files("e.txt", "h\nend\nm\nend\n"), update("e.txt", "@@", " end", "+tail", "*** End of File"),
		files("e.txt", "h\nend\nm\nend\ntail\n"))
}

func TestAP16_EndOfFileWithoutBeingThere(t *testing.T) {
	refused(t, files("e3.txt", "x\ny\nz\n"), update("e3.txt", "@@", " x", "+x2", "*** End of File"),
		patch.InvalidPatch, 3, "e3.txt", "at the end of the file", "\n  x", "at line 1")
}

func TestAP17_InsertionGoesBelowItsAnchor(t *testing.T) {
	before := files("i.py", "import os\nimport re\n\nrun()\n")
	after := files("i.py", "import os\nimport sys\nimport re\n\nrun()\n")
	want(t, before, update("i.py", "@@ import os", "+import sys"), after)
	// The empty line that separates it from what follows is not the file's.
	want(t, before, update("i.py", "@@ import os", "+import sys", ""), after)
}

func TestAP19_StackedAnchorsNarrow(t *testing.T) {
	cat := "class Cat:\n    def name(self):\n        return 0\n"
	dog := "class Dog:\n    def name(self):\n        return %\n"
	before := files("p.py", cat+strings.ReplaceAll(dog, "%", "0"))
	after := files("p.py", cat+strings.ReplaceAll(dog, "%", "1"))
	edit := []string{"-        return 0", "+        return 1"}
	want(t, before, update("p.py", append([]string{"@@ class Dog:", "@@     def name(self):"}, edit...)...), after)
	want(t, before, update("p.py", append([]string{"@@ class Dog:", "", "@@ def name(self):"}, edit...)...), after)
}

func TestAP21_AnchorPicksOneOfTwoBodies(t *testing.T) {
	before := files("b.py", "def p():\n    pass\ndef q():\n    pass\n")
	want(t, before, update("b.py", "@@ def q():", "-    pass", "+    return 7"),
		files("b.py", "def p():\n    pass\ndef q():\n    return 7\n"))
	// An anchor is a whole line.
	refused(t, before, update("b.py", "@@ def q", "-    pass", "+    return 7"),
		patch.InvalidPatch, 3, "whole line", "3: def q():")
}

func TestAP22_FirstMatchWins(t *testing.T) {
	before := files("r.txt", "k\nv\nk\nv\n")
	want(t, before, update("r.txt", "@@", " k", "-v", "+w"), files("r.txt", "k\nw\nk\nv\n"))
	want(t, before, update("r.txt", "@@", " k", "-v", "+w", "@@", " k", "-v", "+x"), files("r.txt", "k\nw\nk\nx\n"))
}

func TestAP23_UnifiedHeaderIsNoPosition(t *testing.T) {
	refused(t, files("u.txt", "u\nv\nw\n"), update("u.txt", "@@ -1,3 +1,3 @@", " u", "-v", "+V", " w"),
		patch.InvalidPatch, 3, "-1,3 +1,3 @@", "line numbers")
}

func TestAP24_NoMatchAnywhere(t *testing.T) {
	refused(t, files("f.txt", "one\ntwo\n"), update("f.txt", "@@", " zero", "-minus", "+plus"),
		patch.InvalidPatch, 3, "f.txt", "chunk 1", "  zero\n  minus")
}

func TestAP25_LastSectionFailsAndNothingChanges(t *testing.T) {
	refused(t, files("gone.txt", "keep\n", "b.txt", "q\n"),
		body("*** Add File: fresh.txt", "+1", "*** Delete File: gone.txt", "*** Update File: b.txt", "@@", "-not there", "+x"),
		patch.InvalidPatch, 6, "b.txt")
}

func TestAP27_TwoSectionsForOneFile(t *testing.T) {
	changes := want(t, files("d.txt", "l1\nl2\n"),
		body("*** Update File: d.txt", "@@", "-l1", "+L1", "*** Update File: d.txt", "@@", "-l2", "+L2"),
		files("d.txt", "L1\nL2\n"))
	if len(changes) != 1 {
		t.Errorf("got %d changes, want one of the file: %v", len(changes), changes)
	}
	wantDiff := "diff --git a/d.txt b/d.txt\n--- a/d.txt\n+++ b/d.txt\n@@ -1,2 +1,2 @@\n-l1\n-l2\n+L1\n+L2\n"
	if got := patch.Unified(changes); got != wantDiff {
		t.Errorf("diff is\n%s\nwant\n%s", got, wantDiff)
	}
}

func TestAP29_AddOnAnExistingPath(t *testing.T) {
	refused(t, files("p.txt", "precious\n"), body("*** Add File: p.txt", "+short"), patch.AddFileExists, 2, "p.txt", "delete it first")
}

func TestAP30_MoveToItselfKeepsTheFile(t *testing.T) {
	for _, to := range []string{"s.txt", "./s.txt", "x/../s.txt"} {
		changes := want(t, files("s.txt", "v1\n"), update("s.txt", "*** Move to: "+to, "@@", "-v1", "+v2"), files("s.txt", "v2\n"))
		if len(changes) != 1 || changes[0].Kind != patch.Update {
			t.Errorf("move to %s made %v, want one update", to, changes)
		}
	}
}

func TestAP32_MoveWithoutChunkKeepsTheBytes(t *testing.T) {
	want(t, files("logo.bin", "\x89PNG\r\n\xff"), update("logo.bin", "*** Move to: img/logo.bin"),
		files("img/logo.bin", "\x89PNG\r\n\xff"))
}

func TestAP33_ModeIsKept(t *testing.T) {
	script := func(name, text string) tree {
		return tree{name: {Content: []byte("#!/bin/sh\necho " + text + "\n"), Mode: 0o755}}
	}
	want(t, script("r.sh", "1"), update("r.sh", "@@", "-echo 1", "+echo 2"), script("r.sh", "2"))
	want(t, script("r.sh", "1"), update("r.sh", "*** Move to: bin/r.sh", "@@", "-echo 1", "+echo 2"), script("bin/r.sh", "2"))
	want(t, script("r.sh", "1"), body("*** Delete File: r.sh", "*** Add File: r.sh", "+#!/bin/sh", "+echo 2"), script("r.sh", "2"))
}

// What may not be opened is the source's to refuse; its error comes through with the
// line of the section.
func TestAP35_ErrorOfTheSourceComesThrough(t *testing.T) {
	for _, text := range []string{
		body("*** Add File: fresh", "+1", "*** Add File: ld/x.txt", "+1"),
		body("*** Add File: fresh", "+1", "*** Delete File: ld/x.txt"),
		body("*** Add File: fresh", "*** Update File: a", "*** Move to: ld/x.txt"),
	} {
		_, changes, err := compute(files("a", "1\n", "ld", "not a folder\n"), text)
		if !errors.Is(err, errNotDir) || changes != nil || !strings.Contains(err.Error(), "patch line 4: ") {
			t.Errorf("patch\n%s\ngave %v, %v; want the source's error with line 4", text, changes, err)
		}
	}
}

func TestAP37_PathsThatLeaveTheWorkspace(t *testing.T) {
	for _, name := range []string{"../esc.txt", "/etc/cron.d/x", "sub/../../esc.txt", "/srv/ws/../x", "/srv/wsx", "/srv/ws", "a\\..\\b", "a\x00b", ".", "a/..", "/"} {
		refused(t, tree{}, body("*** Add File: "+name, "+1"), pathCode(name), 2)
		refused(t, files("a", "1\n"), update("a", "*** Move to: "+name, " 1"), pathCode(name), 3)
	}
	for _, name := range []string{"/srv/ws/a.txt", "/workspace/a.txt", "./a.txt", "b/../a.txt", "/workspace/b//../a.txt"} {
		want(t, files("a.txt", "1\n"), update(name, "-1", "+2"), files("a.txt", "2\n"))
	}
}

func pathCode(name string) patch.Code {
	if strings.HasSuffix(name, "/") {
		return patch.InvalidPatch // it names a folder
	}
	return patch.PathEscape
}

func TestAP39_CutOff(t *testing.T) {
	refused(t, files("a.txt", "1\n"), "*** Begin Patch\n*** Update File: a.txt\n@@\n-1\n+2", patch.InvalidPatch, 5, "*** End Patch", "cut off")
}

func TestAP40_EndMarkerBeforeThePatch(t *testing.T) {
	refused(t, tree{}, "finish with\n*** End Patch\n"+body("*** Add File: z.txt", "+z"), patch.InvalidPatch, 1, "*** Begin Patch")
}

func TestAP42_HeredocAsText(t *testing.T) {
	for _, open := range []string{"<<EOF", "<<'EOF'", `<<"EOF"`} {
		want(t, files("a", "1\n"), open+"\n"+update("a", "-1", "+2")+"\nEOF\n", files("a", "2\n"))
	}
}

func TestAP43_AddedFileAboutTheFormat(t *testing.T) {
	want(t, tree{}, body("*** Add File: HOWTO.md", "+Example:", "+*** Begin Patch", "+*** End Patch", "+bye"),
		files("HOWTO.md", "Example:\n*** Begin Patch\n*** End Patch\nbye\n"))
}

func TestAP45_BlankLineInAnAddedFile(t *testing.T) {
	refused(t, tree{}, body("*** Add File: two.py", "+def a():", "+    pass", "", "+def b():", "+    pass"),
		patch.InvalidPatch, 5, "must start with +")
}

func TestAP46_LineWithoutPlusInAnAddedFile(t *testing.T) {
	refused(t, tree{}, body("*** Add File: run.sh", "+case x in", "+x) : ;;", "esac"),
		patch.InvalidPatch, 5, "must start with +", "esac")
}

func TestAP48_BlankContextWithoutItsSpace(t *testing.T) {
	want(t, files("bl.txt", "1\n\n2\n"), update("bl.txt", "@@", " 1", "", "-2", "+two"), files("bl.txt", "1\n\ntwo\n"))
}

func TestAP49_ChunksThatChangeNothing(t *testing.T) {
	before := files("a", "1\n2\n3\n")
	want(t, before, update("a", "@@", " 1", "@@", "-3", "+three"), files("a", "1\n2\nthree\n"))
	for _, text := range []string{
		update("a", "@@", " 1", " 2"),
		update("a", "@@", "-1", "+1"),
		update("a", "*** Move to: a"),
		body("*** Add File: b", "+x", "*** Delete File: b"),
		body("*** Update File: a", "-1", "+x", "*** Update File: a", "-x", "+1"),
	} {
		refused(t, before, text, patch.InvalidPatch, 0, "no changes")
	}
	refused(t, files("a", "no newline"), update("a", "@@", " no newline"), patch.InvalidPatch, 0, "no changes")
	// A file without effect is not among the changes of others.
	changes := want(t, files("a", "1\n", "b", "2\n"), body("*** Update File: a", " 1", "*** Update File: b", "-2", "+3"), files("a", "1\n", "b", "3\n"))
	if len(changes) != 1 || changes[0].Path != "b" {
		t.Errorf("got changes %v, want b alone", changes)
	}
}

func TestAP51_ChunksOutOfOrder(t *testing.T) {
	refused(t, files("oo.txt", "1\n2\n3\n"), update("oo.txt", "@@", "-3", "+three", "@@", "-1", "+one"),
		patch.InvalidPatch, 6, "chunk 2", "order", "at line 1")
}

func TestAP52_FileInAnOlderEncoding(t *testing.T) {
	before := files("l1.c", "caf\xe9\nx = 1\n")
	want(t, before, update("l1.c", "@@", "-x = 1", "+x = 2"), files("l1.c", "caf\xe9\nx = 2\n"))
	refused(t, before, update("l1.c", "@@", "-x = 1", "+x = \u00e9"), patch.InvalidPatch, 2, "not UTF-8")
	// As read shows it.
	want(t, before, update("l1.c", "@@", " caf\ufffd", "-x = 1", "+x = 2"), files("l1.c", "caf\xe9\nx = 2\n"))
	refused(t, before, update("l1.c", "@@", "-caf\ufffd", "+caf\ufffds"), patch.InvalidPatch, 2, "not UTF-8")
	refused(t, files("w.txt", "\xff\xfea\x00\n\x00"), update("w.txt", "+x"), patch.InvalidPatch, 2, "UTF-16")
	refused(t, files("b", "\xffa\x00\n\x00"), update("b", "+x"), patch.InvalidPatch, 2, "binary")
}

// The bound is on work, not on time: whatever repeats, each pass looks at each line
// once. See BenchmarkRepetition for the time.
func TestAP54_RepetitionAndLargeFiles(t *testing.T) {
	big := files("big.txt", strings.Repeat("a\n", 200_000))
	hunk := strings.Repeat(" a\n", 200) + "-b\n+c"
	refused(t, big, update("big.txt", "@@", hunk), patch.InvalidPatch, 3, "more")
	// The same, with every line of the hunk in the file.
	big = files("big.txt", strings.Repeat("a\n", 200_000)+"b\nb\n"+strings.Repeat("a\n", 100)+"b\n")
	refused(t, big, update("big.txt", "@@", " a", " b", strings.Repeat(" a\n", 200)+"-b\n+c"), patch.InvalidPatch, 3)

	unique := strings.Repeat("some line of a long file\n", 400_000)
	want(t, files("f", unique+"needle\nend\n"), update("f", "@@", "-needle", "+pin", " end"), files("f", unique+"pin\nend\n"))
}

func TestAP55_LinesThatLookLikeSigns(t *testing.T) {
	want(t, files("q.sql", "SELECT 1;\n-- note\n"), update("q.sql", "@@", " SELECT 1;", "--- note", "+-- changed"),
		files("q.sql", "SELECT 1;\n-- changed\n"))
	want(t, files("d", "+a\n-b\n@@ c\n*** d\n"), update("d", "@@", " +a", "--b", "++b", " @@ c", "-*** d", "+*** e"),
		files("d", "+a\n+b\n@@ c\n*** e\n"))
}

func TestAP56_WholePatchIndented(t *testing.T) {
	refused(t, tree{}, "    *** Begin Patch\n    *** Add File: s.txt\n    +hello\n    *** End Patch\n",
		patch.InvalidPatch, 3, "must start with +", "+hello")
}

func TestAP58_EmptyLineBehindAChunk(t *testing.T) {
	want(t, files("f.txt", "a\nb\nc\n", "g.txt", "foo\nbar\n\nbaz\n"),
		body("*** Update File: f.txt", "@@", " a", "-b", "+B", "", "*** Update File: g.txt", "@@", " foo", "-bar", "+qux", ""),
		files("f.txt", "a\nB\nc\n", "g.txt", "foo\nqux\n\nbaz\n"))
	want(t, files("f", "a\n"), body("*** Add File: n", "+1", "", "*** Delete File: f", ""), files("n", "1\n"))
}
