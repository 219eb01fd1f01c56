package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"writ/patch"
)

func benchmark(b *testing.B, before tree, text string, works bool) {
	b.Helper()
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		p, err := patch.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		if _, err = p.Apply(before); (err == nil) != works {
			b.Fatal(err)
		}
	}
}

func source(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "\tvalue[%d] = compute(%d, \"some text\")\n", i, i*7)
	}
	return b.String()
}

// Five files of 200 lines, two chunks each.
func BenchmarkFiveFiles(b *testing.B) {
	before := tree{}
	var sections []string
	for i := range 5 {
		name := fmt.Sprintf("pkg/file%d.go", i)
		before[name] = patch.File{Content: []byte(source(200)), Mode: 0o644}
		sections = append(sections, "*** Update File: "+name)
		for _, at := range []int{20, 150} {
			lines := strings.Split(source(at+3), "\n")
			sections = append(sections, "@@", " "+lines[at], "-"+lines[at+1], "+changed", " "+lines[at+2])
		}
	}
	benchmark(b, before, body(sections...), true)
}

// One line near the end of a file of 1 MiB.
func BenchmarkMegabyte(b *testing.B) {
	text := source(26_000)
	lines := strings.Split(text, "\n")
	benchmark(b, files("f", text), update("f", "@@", " "+lines[25_000], "-"+lines[25_001], "+changed"), true)
}

// The same where only the last pass finds it.
func BenchmarkMegabyteFuzzy(b *testing.B) {
	text := strings.ReplaceAll(source(26_000), "some text", "na\u0069\u0308ve \u2013 text")
	lines := strings.Split(strings.ReplaceAll(source(26_000), "some text", "na\u00efve - text"), "\n")
	benchmark(b, files("f", text), update("f", "@@", " "+lines[25_000], "-"+lines[25_001], "+changed"), true)
}

// The repetition of case AP-54, which must be refused.
func BenchmarkRepetition(b *testing.B) {
	before := files("f", strings.Repeat("a\n", 200_000)+"b\n"+strings.Repeat("a\n", 100)+"b\n")
	benchmark(b, before, update("f", "@@", strings.Repeat(" a\n", 199)+" b", strings.Repeat(" a\n", 200)+"-b\n+c"), false)
}

// As many chunks as fit, each found by the last pass, in a file of a megabyte.
func BenchmarkManyChunks(b *testing.B) {
	var chunks []string
	var text strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&text, "line \u2013 %d\n", i)
		chunks = append(chunks, "@@", fmt.Sprintf("-line - %d", i), "+x")
	}
	benchmark(b, files("f", text.String()), update("f", chunks...), true)
}
