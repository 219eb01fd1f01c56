package patch_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/patch"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update accepts):\n%s", name, diff)
	}
}

// What a client is told, word for word.
func TestErrorTexts(t *testing.T) {
	code := "package main\n\nfunc main() {\n\tfmt.Println(\"hello\")\n\tos.Exit(0)\n}\n"
	before := files("main.go", code, "b.txt", "1\n2\n3\n", "latin", "\xe9\n", "odd", "a\u200bb\n")
	var out strings.Builder
	for _, c := range []struct{ name, text string }{
		{"not a patch", "diff --git a/x b/x"},
		{"cut off", "*** Begin Patch\n*** Update File: b.txt\n-1\n+one"},
		{"no sections", "*** Begin Patch\n*** End Patch"},
		{"unknown header", body("*** Rename File: b.txt")},
		{"move without update", body("*** Delete File: b.txt", "*** Move to: c.txt")},
		{"two patches", body("*** Delete File: b.txt") + "\n" + body("*** Delete File: main.go")},
		{"add without plus", body("*** Add File: n", "+1", "2")},
		{"chunk without lines", update("b.txt", "@@ 1")},
		{"line without sign", update("b.txt", "@@", "1")},
		{"chunk without marker", update("b.txt", "-1", "*** End of File", "-2")},
		{"anchor without space", update("b.txt", "@@1", "-2")},
		{"escape", body("*** Add File: ../../etc/passwd", "+x")},
		{"absolute", body("*** Add File: /etc/passwd", "+x")},
		{"folder", body("*** Add File: dir/", "+x")},
		{"exists", body("*** Add File: b.txt", "+x")},
		{"missing", update("gone.txt", "-1")},
		{"deleted", body("*** Delete File: b.txt", "*** Update File: b.txt", "-1")},
		{"destination", update("b.txt", "*** Move to: main.go")},
		{"file as folder", body("*** Add File: n", "*** Add File: n/m")},
		{"block misquoted", update("main.go", "@@ func main() {", " \tfmt.Println(\"hello\")", "-\tos.Exit(1)", "+\treturn", " }")},
		{"line misquoted", update("main.go", "@@", "-\tfmt.Printn(\"hallo\")", "+\tx()")},
		{"anchor misquoted", update("main.go", "@@ func main", "-\tos.Exit(0)")},
		{"unified header", update("main.go", "@@ -3,2 +3,2 @@ func main() {", "-\tos.Exit(0)")},
		{"nothing like it", update("b.txt", "@@", "-entirely different text", "+x")},
		{"out of order", update("b.txt", "@@", "-3", "@@", "-1", "+x")},
		{"not at the end", update("b.txt", "@@", "-1", "*** End of File")},
		{"header as context", update("b.txt", "@@", "-1", "+x", " *** Delete File: latin")},
		{"encoding", update("latin", "+\u00e9")},
		{"hidden characters", update("odd", "-ab\u202e", "+x")},
		{"long", update("b.txt", "@@", strings.Repeat("-"+strings.Repeat("long ", 80)+"\n", 20)+"+x")},
		{"no changes", update("b.txt", "@@", " 1")},
	} {
		_, _, err := compute(before, c.text)
		e, ok := errors.AsType[*patch.Error](err)
		if !ok {
			t.Fatalf("%s: got %v, want an *Error", c.name, err)
		}
		fmt.Fprintf(&out, "== %s: %s (%s)\n%s\n\n", c.name, e.Code, writ.KindOf(err), writ.Message(err))
	}
	golden(t, "errors.golden", out.String())
}

func TestBounds(t *testing.T) {
	big := strings.Repeat("x", patch.MaxFileBytes-1)
	many := tree{}
	var reads []string
	for i := range patch.MaxTotalBytes/patch.MaxFileBytes + 1 {
		name := fmt.Sprint("f", i)
		many[name] = patch.File{Content: []byte(big), Mode: 0o644}
		reads = append(reads, "*** Delete File: "+name)
	}
	for _, c := range []struct {
		name, text string
		line       int
	}{
		{"bytes of the text", body("*** Add File: f", "+"+strings.Repeat("x", patch.MaxPatchBytes)), 0},
		{"lines of the text", body("*** Add File: f" + strings.Repeat("\n+", patch.MaxPatchLines)), 0},
		{"sections", body(strings.Repeat("*** Add File: f\n*** Delete File: f\n", patch.MaxSections/2) + "*** Add File: f"), patch.MaxSections + 2},
		{"bytes of an edited file", update("f0", "+"+strings.Repeat("y", 20)), 2},
		{"bytes of all files", body(reads...), len(reads) + 1},
		{"text that is not UTF-8", body("*** Add File: f", "+\xff"), 3},
	} {
		p, err := patch.Parse(c.text)
		if err == nil {
			_, err = p.Apply(many)
		}
		if e, ok := errors.AsType[*patch.Error](err); !ok || e.Code != patch.InvalidPatch || e.Line != c.line {
			t.Errorf("%s: got %v, want INVALID_PATCH at line %d", c.name, err, c.line)
		}
	}
}

// Work is bounded also where every size is within its own bound: here each section
// looks through the whole file in each way.
func TestWorkIsBounded(t *testing.T) {
	var sections []string
	for range 250 {
		sections = append(sections, "*** Update File: f", " last - line", "+x")
	}
	before := files("f", strings.Repeat("one \u2013 line\n", patch.MaxTotalBytes/256/14)+"last \u2013 line\n")
	p, err := patch.Parse(body(sections...))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Apply(before)
	if e, ok := errors.AsType[*patch.Error](err); !ok || e.Code != patch.InvalidPatch || !strings.Contains(e.Msg, "too much work") {
		t.Errorf("got %v, want a refusal for the work", err)
	}
}
