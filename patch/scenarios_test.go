package patch_test

import (
	"errors"
	"strings"
	"testing"

	"writ/patch"
)

// The scenarios are those of spec/02 §18.1. What touches a disk is shown in the
// package that carries changes out.

func TestScenario01_AddInNewFolders(t *testing.T) {
	want(t, tree{}, body("*** Add File: a/b/new.txt", "+created"), files("a/b/new.txt", "created\n"))
}

func TestScenario02_AddWithoutLines(t *testing.T) {
	want(t, tree{}, body("*** Add File: empty"), files("empty", ""))
}

func TestScenario03_AddDeleteUpdate(t *testing.T) {
	changes := want(t, files("d", "x\n", "u", "1\n2\n"),
		body("*** Add File: n", "+new", "*** Delete File: d", "*** Update File: u", "@@", "-2", "+two"),
		files("n", "new\n", "u", "1\ntwo\n"))
	var got []string
	for _, c := range changes {
		got = append(got, string(c.Kind)+" "+c.Path+" "+c.Before.Version()[:6]+" "+c.After.Version()[:6])
	}
	if s := strings.Join(got, ", "); s != "add n absent sha256, delete d sha256 absent, update u sha256 sha256" {
		t.Errorf("changes are %s", s)
	}
}

func TestScenario04_TwoChunks(t *testing.T) {
	want(t, files("f", "line1\nline2\nline3\nline4\n"),
		update("f", "@@", "-line2", "+changed2", "@@", "-line4", "+changed4"),
		files("f", "line1\nchanged2\nline3\nchanged4\n"))
}

func TestScenario05_MoveWithAnEdit(t *testing.T) {
	changes := want(t, files("old/name.txt", "old\n", "old/other.txt", "o\n"),
		update("old/name.txt", "*** Move to: new/dir/name.txt", "@@", "-old", "+new"),
		files("new/dir/name.txt", "new\n", "old/other.txt", "o\n"))
	if len(changes) != 2 || changes[0].Kind != patch.Delete || changes[0].Path != "old/name.txt" ||
		changes[1].Kind != patch.Move || changes[1].From != "old/name.txt" {
		t.Errorf("a move made %v, want a delete of its source and a move", changes)
	}
}

func TestScenario06_EmptyPatch(t *testing.T) {
	refused(t, tree{}, "*** Begin Patch\n*** End Patch", patch.InvalidPatch, 0, "no sections")
	refused(t, tree{}, "*** Begin Patch\n\n\n*** End Patch", patch.InvalidPatch, 0, "no sections")
	refused(t, tree{}, " \n", patch.InvalidPatch, 0, "empty")
}

func TestScenario07_MissingContext(t *testing.T) {
	refused(t, files("f", "a\n"), update("f", "@@", "-missing", "+x"), patch.InvalidPatch, 3, "  missing")
}

func TestScenario08_DeleteOfMissingFile(t *testing.T) {
	refused(t, tree{}, body("*** Delete File: gone"), patch.FileNotFound, 2, "gone", "no such file")
}

func TestScenario09_DeleteOfFolder(t *testing.T) {
	if _, _, err := compute(files("dir/f", "1\n"), body("*** Delete File: dir")); !errors.Is(err, errFolder) {
		t.Errorf("got %v, want the source's error", err)
	}
}

func TestScenario10_UpdateWithoutChunks(t *testing.T) {
	refused(t, files("f", "1\n"), update("f"), patch.InvalidPatch, 2, "no chunk")
}

func TestScenario11_UpdateOfMissingFile(t *testing.T) {
	refused(t, tree{}, update("gone", "-1", "+2"), patch.FileNotFound, 2, "gone")
	refused(t, tree{}, update("gone", "+only adds"), patch.FileNotFound, 2, "gone")
	refused(t, tree{}, update("gone", "*** Move to: there"), patch.FileNotFound, 2, "gone")
}

func TestScenario12_MoveOntoAFile(t *testing.T) {
	refused(t, files("a", "1\n", "b", "2\n"), update("a", "*** Move to: b", " 1"), patch.MoveDestinationExists, 3, "b: ")
}

func TestScenario13_AddOverAFile(t *testing.T) {
	refused(t, files("a", "1\n"), body("*** Add File: a", "+2"), patch.AddFileExists, 2)
}

func TestScenario14_UnknownHeader(t *testing.T) {
	refused(t, tree{}, body("*** Frobnicate File: foo"), patch.InvalidPatch, 2,
		"*** Frobnicate File: foo", "*** Add File: PATH", "*** Update File: PATH", "*** Delete File: PATH")
}

func TestScenario15_FileGainsItsFinalNewline(t *testing.T) {
	want(t, files("f", "no newline"), update("f", "@@", "-no newline", "+first", "+second"), files("f", "first\nsecond\n"))
	want(t, files("f", "a\r\nb"), update("f", "@@", "-a", "+A"), files("f", "A\r\nb\r\n"))
}

func TestScenario16_FailureBehindASuccess(t *testing.T) {
	refused(t, tree{}, body("*** Add File: created.txt", "+1", "*** Update File: missing.txt", "@@", "-a", "+b"),
		patch.FileNotFound, 4, "missing.txt")
}

func TestScenario17_PureAdditionGoesToTheEnd(t *testing.T) {
	want(t, files("f", "1\n2\n"), update("f", "@@", "+3", "+4"), files("f", "1\n2\n3\n4\n"))
}

func TestScenario18_PaddedHeader(t *testing.T) {
	want(t, files("f", "1\n"), body("  *** Update File: f  ", "@@", "-1", "+2"), files("f", "2\n"))
	want(t, files("f", "1\n"), body("*** Update File: f", "\t*** Move to: g\t", "-1", "+2"), files("g", "2\n"))
}

func TestScenario19_PaddedBeginAndEnd(t *testing.T) {
	want(t, files("f", "1\n"), "\n  *** Begin Patch \n*** Update File: f\n-1\n+2\n  *** End Patch  \n\n", files("f", "2\n"))
}

func TestScenario20_Unicode(t *testing.T) {
	want(t, files("f", "naïve café\n日本\n"), update("f", "@@", " naïve café", "-日本", "+日本語 ✅"), files("f", "naïve café\n日本語 ✅\n"))
}

func TestScenario21_DeleteLeavesOthers(t *testing.T) {
	want(t, files("a", "1\n", "b", "2\n"), body("*** Delete File: a"), files("b", "2\n"))
}

func TestScenario22_ChunkThatOnlyDeletes(t *testing.T) {
	want(t, files("f", "1\n2\n3\n"), update("f", "@@", " 1", "-2", " 3"), files("f", "1\n3\n"))
	want(t, files("f", "1\n2"), update("f", "-1", "-2"), files("f", ""))
}

func TestScenario23_EndOfFileChunk(t *testing.T) {
	want(t, files("f", "x\ny\nx\ny\n"), update("f", "@@", " x", "-y", "+z", "*** End of File"), files("f", "x\ny\nx\nz\n"))
}

func TestScenario24_FirstChunkWithoutMarker(t *testing.T) {
	want(t, files("f", "import foo\n"), update("f", " import foo", "+bar"), files("f", "import foo\nbar\n"))
}

func TestScenario25_SecondChunkNeedsItsMarker(t *testing.T) {
	refused(t, files("f", "1\n2\n"), update("f", "-1", "+one", "*** End of File", "-2", "+two"), patch.InvalidPatch, 6, "expected @@")
	refused(t, files("f", "1\n2\n"), update("f", "-1", "+one", "2"), patch.InvalidPatch, 5, "expected @@")
}

func TestScenario26_MarkerAlone(t *testing.T) {
	refused(t, files("f", "1\n"), update("f", "@@"), patch.InvalidPatch, 4, "no lines")
	refused(t, files("f", "1\n"), update("f", "@@ 1"), patch.InvalidPatch, 4, "no lines")
	refused(t, files("f", "1\n"), body("*** Update File: f", "@@", "*** Delete File: f"), patch.InvalidPatch, 4, "no lines")
	refused(t, files("f", "1\n"), body("*** Update File: f", "@@", "", "*** Delete File: f"), patch.InvalidPatch, 5, "no lines")
}

func TestScenario27_MarkerThenEndOfFile(t *testing.T) {
	refused(t, files("f", "1\n"), update("f", "@@", "*** End of File"), patch.InvalidPatch, 4, "no lines")
}

func TestScenario28_MarkerThenBadLine(t *testing.T) {
	refused(t, files("f", "1\n"), update("f", "@@", "bad"), patch.InvalidPatch, 4, "space (context), + or -", "bad")
	refused(t, files("f", "1\n"), update("f", "@@class", "-1"), patch.InvalidPatch, 3, "a space")
}

func TestScenario29_AdditionAtTheEnd(t *testing.T) {
	want(t, files("f", "1\n2\n"), update("f", "@@", "+line", "*** End of File"), files("f", "1\n2\nline\n"))
	want(t, files("f", "1\n2\n"), update("f", "@@ 1", "+line", "*** End of File"), files("f", "1\n2\nline\n"))
}

func TestScenario30_BlankLineIsContext(t *testing.T) {
	want(t, files("f", "a\n\nb\n"), update("f", "@@", "-a", "+A", "", "-b", "+B"), files("f", "A\n\nB\n"))
	refused(t, files("f", "a\nb\n"), update("f", "@@", "-a", "", "-b"), patch.InvalidPatch, 3)
}

func TestScenario31_BlankLinesBetweenChunks(t *testing.T) {
	want(t, files("f", "a\nb\nc\n"), update("f", "@@", "-a", "+A", "", "", "@@", "-c", "+C", "*** End of File", "", ""), files("f", "A\nb\nC\n"))
}

func TestScenario32_Heredocs(t *testing.T) {
	add := body("*** Add File: f", "+1")
	want(t, tree{}, "<<'EOF'\n"+add+"\nEOF", files("f", "1\n"))
	refused(t, tree{}, "<<\"EOF'\n"+add+"\nEOF", patch.InvalidPatch, 1, "first line")
	refused(t, tree{}, "<<EOF\n*** Begin Patch\n*** Add File: f\nEOF", patch.InvalidPatch, 2, "last line")
}

func TestScenario33_NotAPatch(t *testing.T) {
	refused(t, tree{}, "bad", patch.InvalidPatch, 1, "first line", "bad")
	refused(t, tree{}, "*** Begin Patch\nbad", patch.InvalidPatch, 2, "last line", "bad")
	refused(t, tree{}, "*** Begin Patch", patch.InvalidPatch, 1, "last line")
	refused(t, tree{}, body("*** Add File: a", "+1")+"\n"+body("*** Add File: b", "+1"), patch.InvalidPatch, 4, "one patch")
}

func TestScenario34_AnchorThenEdit(t *testing.T) {
	want(t, files("f", "def g():\n  pass\ndef f():\n  pass\n"), update("f", "@@ def f():", "-  pass", "+  return 1"),
		files("f", "def g():\n  pass\ndef f():\n  return 1\n"))
	// The line of the anchor again, as the first of the chunk.
	want(t, files("f", "def g():\n  pass\ndef f():\n  pass\n"), update("f", "@@ def f():", " def f():", "-  pass", "+  return 1"),
		files("f", "def g():\n  pass\ndef f():\n  return 1\n"))
}

func TestScenario35_AnchorIsAbsent(t *testing.T) {
	refused(t, files("f", "1\n"), update("f", "@@ class Missing:", "-1", "+2"), patch.InvalidPatch, 3, "class Missing:")
}

func TestScenario36_TrailingSpaceIsTolerated(t *testing.T) {
	want(t, files("f", "a  \nb\t\n"), update("f", "@@", " a", "-b", "+B"), files("f", "a  \nB\n"))
}

// Context keeps the file's spelling, as case AP-10 wants, where §17.5 would rewrite it.
func TestScenario37_IndentationIsTolerated(t *testing.T) {
	want(t, files("f", "\tif x:\n\t\tpass\n"), update("f", "@@", " if x:", "-pass", "+\t\treturn"), files("f", "\tif x:\n\t\treturn\n"))
}

func TestScenario38_Dashes(t *testing.T) {
	want(t, files("f", "import asyncio  # local import \u2013 avoids top\u2011level dep\n"),
		update("f", "@@", "-import asyncio  # local import - avoids top-level dep", "+import asyncio"), files("f", "import asyncio\n"))
}

func TestScenario39_QuotesAndSpaces(t *testing.T) {
	want(t, files("f", "say \u201chi\u201d\u00a0it\u2019s\nx\n"), update("f", "@@", " say \"hi\" it's", "-x", "+y"), files("f", "say \u201chi\u201d\u00a0it\u2019s\ny\n"))
}

func TestScenario40_ExactBeatsFuzzy(t *testing.T) {
	want(t, files("f", "  a\nb\na\nb\n"), update("f", "@@", " a", "-b", "+B"), files("f", "  a\nb\na\nB\n"))
}

func TestScenario41_MoreLinesThanTheFileHas(t *testing.T) {
	for _, end := range []string{"", "\n*** End of File"} {
		refused(t, files("f", "a\n"), update("f", "@@", " a", " b", " c", "-d"+end), patch.InvalidPatch, 3)
		refused(t, files("f", ""), update("f", "@@", "-d"+end), patch.InvalidPatch, 3)
	}
}

func TestScenario42_Interleaved(t *testing.T) {
	want(t, files("f", "a\nb\nc\nd\ne\nf\n"),
		update("f", "@@", " a", "-b", "+B", "@@", " d", "-e", "+E", "@@", " f", "+g", "*** End of File"),
		files("f", "a\nB\nc\nd\nE\nf\ng\n"))
}

func TestScenario43_ChunksOutOfOrder(t *testing.T) {
	refused(t, files("f", "a\nb\nc\n"), update("f", "@@", "-c", "+C", "@@ a", "-b", "+B"), patch.InvalidPatch, 6, "order")
}

func TestScenario44_OldBlockEndsInAnEmptyLine(t *testing.T) {
	want(t, files("f", "a\nb\n"), update("f", "@@", " a", "-b", "-", "+c", "+"), files("f", "a\nc\n"))
	want(t, files("f", "a\nb\n"), update("f", "@@", " a", "-b", "+c", " "), files("f", "a\nc\n"))
	// In the middle of a file an empty line that is not there cannot go away.
	refused(t, files("f", "a\nb\nz\n"), update("f", "@@", " a", "-b", "-"), patch.InvalidPatch, 3)
}

func TestScenario45_AdditionThenRemoval(t *testing.T) {
	want(t, files("f", "1\n2\n3\n"), update("f", "@@", "+4", "@@", " 1", "-2", "-3"), files("f", "1\n4\n"))
	want(t, files("f", "1\n2\n3\n"), update("f", "@@", "+4", "@@", "-3", "+three"), files("f", "1\n2\nthree\n4\n"))
	want(t, files("f", "1\n2\n"), update("f", "@@", "+end", "@@", " 2", "+tail"), files("f", "1\n2\ntail\nend\n"))
	want(t, files("f", "1\n2\n\n"), update("f", "@@", "+end", "@@", "-2", "-"), files("f", "1\nend\n"))
}

func TestScenario46_MixedLineEndings(t *testing.T) {
	want(t, files("f", "a\r\nb\nc\r\nd\n"), update("f", "@@", " a", "-b", "+B", " c"), files("f", "a\r\nB\r\nc\r\nd\n"))
	want(t, files("f", "a\nb\r\nc\r\n"), update("f", "@@", " b", "+x", " c"), files("f", "a\nb\r\nx\nc\r\n"))
}

// Case AP-30 wants the file kept, where this scenario would have the move refused.
func TestScenario47_MoveToItself(t *testing.T) {
	want(t, files("diary.md", "1\n"), update("diary.md", "*** Move to: ./diary.md", "-1", "+2"), files("diary.md", "2\n"))
}

func TestScenario48_StackedAnchors(t *testing.T) {
	code := "class A:\n  def f():\n    x\n  def g():\n    x\nclass B:\n  def f():\n    x\n  def g():\n    x\n"
	want(t, files("f", code), update("f", "@@ class B:", "@@   def g():", "-    x", "+    y"),
		files("f", code[:len(code)-2]+"y\n"))
	refused(t, files("f", code), update("f", "@@ class B:", "@@ class A:", "-    x", "+    y"), patch.InvalidPatch, 4, "below line 6", "Line 1")
}

func TestScenario_PathWithSpaces(t *testing.T) {
	want(t, files("a b/c d.txt", "1\n"), update("a b/c d.txt", "-1", "+2"), files("a b/c d.txt", "2\n"))
	refused(t, tree{}, body("*** Add File: "), patch.InvalidPatch, 2, "no path")
	refused(t, tree{}, body("*** Add File: "+strings.Repeat("n", 256)), patch.InvalidPatch, 2, "255")
	refused(t, tree{}, body("*** Add File: "+strings.Repeat("n/", 64)+"n"), patch.InvalidPatch, 2, "65 names")
}

func TestScenario_DeleteThenAdd(t *testing.T) {
	changes := want(t, files("f", "1\n"), body("*** Delete File: f", "*** Add File: f", "+2"), files("f", "2\n"))
	if len(changes) != 1 || changes[0].Kind != patch.Update {
		t.Errorf("got %v, want one update", changes)
	}
	refused(t, files("f", "1\n"), body("*** Delete File: f", "*** Update File: f", "-1"), patch.FileNotFound, 3, "earlier section")
	refused(t, files("f", "1\n"), body("*** Delete File: f", "*** Delete File: f"), patch.FileNotFound, 3, "earlier section")
}

func TestScenario_AddThenUpdate(t *testing.T) {
	changes := want(t, tree{}, body("*** Add File: f", "+1", "*** Update File: f", "*** Move to: g", "-1", "+2"), files("g", "2\n"))
	if len(changes) != 1 || changes[0].Kind != patch.Add {
		t.Errorf("got %v, want one add", changes)
	}
}

func TestScenario_FileWhereAFolderIsNeeded(t *testing.T) {
	refused(t, tree{}, body("*** Add File: x", "+1", "*** Add File: x/y", "+2"), patch.PathNotDirectory, 4, "x/y", "earlier section")
	refused(t, tree{}, body("*** Add File: x/y", "+1", "*** Add File: x", "+2"), patch.AddFileExists, 4)
	refused(t, files("a", "1\n"), body("*** Add File: x/y", "+1", "*** Update File: a", "*** Move to: x"), patch.MoveDestinationExists, 5)
	want(t, tree{}, body("*** Add File: x/y", "+1", "*** Delete File: x/y", "*** Add File: x", "+2"), files("x", "2\n"))
	// Undoing this would have to take a folder away.
	if _, _, err := compute(files("x", "1\n"), body("*** Delete File: x", "*** Add File: x/y", "+2")); !errors.Is(err, errNotDir) {
		t.Errorf("a folder in place of a deleted file: got %v, want the source's error", err)
	}
}

func TestScenario_SwapOfTwoFiles(t *testing.T) {
	before := tree{"a": {Content: []byte("A\n"), Mode: 0o755}, "b": {Content: []byte("B\n"), Mode: 0o600}}
	want(t, before, body("*** Update File: a", "*** Move to: t", "*** Update File: b", "*** Move to: a", "*** Update File: t", "*** Move to: b"),
		tree{"a": before["b"], "b": before["a"]})
	// A name that is free again may be taken.
	want(t, files("a", "A\n"), body("*** Update File: a", "*** Move to: b", "*** Add File: a", "+new"), files("a", "new\n", "b", "A\n"))
	want(t, files("a", "A\n"), body("*** Update File: a", "*** Move to: b", "*** Add File: a", "+A"), files("a", "A\n", "b", "A\n"))
	want(t, files("a", "A\n", "b", "B\n"), body("*** Delete File: b", "*** Update File: a", "*** Move to: b"), files("b", "A\n"))
}

func TestScenario_OddFiles(t *testing.T) {
	want(t, files("f", ""), update("f", "+1", "+2"), files("f", "1\n2\n"))
	want(t, files("f", "\n\n\n"), update("f", "+x"), files("f", "\n\nx\n\n"))
	want(t, files("f", "a\n*** End Patch\nb\n"), update("f", " a", " *** End Patch", "-b", "+c"), files("f", "a\n*** End Patch\nc\n"))
	long := strings.Repeat("x", 1<<20)
	want(t, files("f", long+"\ny\n"), update("f", " "+long, "-y", "+z"), files("f", long+"\nz\n"))
	want(t, files("f", "a\x00b\n1\n"), update("f", "-1", "+2"), files("f", "a\x00b\n2\n"))
	want(t, files("f", "old mac\rlines\r"), update("f", "+x"), files("f", "old mac\rlines\r\nx\n"))
}
