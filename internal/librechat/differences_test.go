package librechat

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// difference is one value that two servers answer otherwise.
type difference struct {
	probe, where, reference, writ string
}

// reason is what a difference is listed with.
type reason = string

const (
	differencesFile = "DIFFERENCES.md"
	columns         = "| probe | where | the reference | writ | why |\n|---|---|---|---|---|\n"
)

// checkDifferences fails t over differences that are not in the file, and over those of
// the file that are gone, have other values or no reason. It passes over the probes of
// which this host says nothing.
func checkDifferences(t *testing.T, got []difference, without map[string]bool) {
	t.Helper()
	head, listed := readDifferences(t)
	if *update {
		writeDifferences(t, head, got, listed)
		return
	}
	seen := map[difference]bool{}
	for _, d := range got {
		d = d.hidden()
		seen[d] = true
		if without[d.probe] {
			continue
		}
		if why, ok := listed[d]; !ok {
			t.Errorf("not in %s:\n%s", differencesFile, d.row(""))
		} else if why == "" {
			t.Errorf("%s gives no reason for:\n%s", differencesFile, d.row(""))
		}
	}
	for d, why := range listed {
		if !seen[d] && !without[d.probe] {
			t.Errorf("%s names what is not so any more:\n%s", differencesFile, d.row(why))
		}
	}
}

// cells are written as code, in which a bar and a line's end must be hidden.
var hide = strings.NewReplacer("|", "¦", "\n", "⏎", "`", "´")

func cell(text string) string { return "`" + hide.Replace(text) + "`" }

func (d difference) row(why reason) string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", cell(d.probe), cell(d.where), cell(d.reference), cell(d.writ), why)
}

// hidden is d as it is read back.
func (d difference) hidden() difference {
	return difference{hide.Replace(d.probe), hide.Replace(d.where), hide.Replace(d.reference), hide.Replace(d.writ)}
}

// readDifferences reads the text before the table and the table.
func readDifferences(t *testing.T) (head string, listed map[difference]reason) {
	t.Helper()
	b, err := os.ReadFile(differencesFile)
	if err != nil {
		t.Fatal(err)
	}
	head, rows, ok := strings.Cut(string(b), columns)
	if !ok {
		t.Fatalf("%s has no table that begins with\n%s", differencesFile, columns)
	}
	listed = map[difference]reason{}
	for row := range strings.Lines(rows) {
		f := strings.Split(strings.Trim(row, "\n"), " | ")
		if len(f) != 5 {
			t.Fatalf("%s: no row: %s", differencesFile, row)
		}
		uncell := func(i int) string { return strings.Trim(strings.TrimPrefix(f[i], "| "), "`") }
		d := difference{uncell(0), uncell(1), uncell(2), uncell(3)}
		if _, twice := listed[d]; twice {
			t.Errorf("%s has twice: %s", differencesFile, row)
		}
		listed[d] = strings.TrimSpace(strings.TrimSuffix(f[4], "|"))
	}
	return head, listed
}

// writeDifferences writes the file anew. A reason stays with its probe and place.
func writeDifferences(t *testing.T, head string, got []difference, listed map[difference]reason) {
	t.Helper()
	reasons := map[[2]string]reason{}
	for d, why := range listed {
		reasons[[2]string{d.probe, d.where}] = why
	}
	var b strings.Builder
	b.WriteString(head + columns)
	for _, d := range got {
		d = d.hidden()
		b.WriteString(d.row(reasons[[2]string{d.probe, d.where}]))
	}
	if err := os.WriteFile(differencesFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
