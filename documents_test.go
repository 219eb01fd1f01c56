package writ_test

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are the pages that name tests and files.
var documents = []string{"README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md", "internal/librechat/DIFFERENCES.md"}

// cases are the tests whose cases are files, and where those are.
var cases = map[string]string{
	"TestScript":              "cmd/writ/testdata/script",
	"TestScriptPostgres":      "cmd/writ/testdata/postgres",
	"TestEscape":              "sandbox/testdata/escape",
	"TestEscapeFromWorkspace": "sandbox/testdata/workspace",
}

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)\\w+)(?:/([\\w.-]+))?`")
	namedFile = regexp.MustCompile("`([\\w./-]+\\.(?:go|md|sh|yaml))`(?: `(?:\\w+\\.)?(\\w+)`)?")
	promise   = regexp.MustCompile(`(?m)^\| (.+?) \| (.*) \|$`)
)

// A page that says which test holds a promise, or where something is done, and no longer
// tells the truth, is worse than none.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	tests, texts := map[string]bool{}, map[string]bool{}
	files := map[string]string{} // text by path
	for _, s := range sources(t) {
		files[s.name] = string(s.text)
		if !s.test && s.pkg != "internal/testkit" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					tests[n.Name.Name] = true
				}
			case *ast.BasicLit:
				texts[strings.Trim(n.Value, "\"`")] = true
			}
			return true
		})
	}
	for _, page := range documents {
		text := read(t, page)
		for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
			name, sub := m[1], m[2]
			is := tests[name]
			if dir := cases[name]; is && sub != "" && dir != "" {
				_, err := os.Stat(filepath.Join(dir, sub+".txtar"))
				is = err == nil
			} else if is && sub != "" {
				is = texts[sub]
			}
			if !is && sub != "x" { // that stands for any
				t.Errorf("%s names %s, which is no test: name the one that holds it now", page, m[0])
			}
		}
		for _, m := range namedFile.FindAllStringSubmatch(text, -1) {
			if found, err := inFiles(files, m[1], m[2]); err != nil {
				t.Fatal(err)
			} else if !found {
				t.Errorf("%s names %s, which is not there: say where it is now", page, m[0])
			}
		}
	}
}

// inFiles reports whether there is a file whose path ends so, with that word in it. A page
// of the API's own, which begins with a slash, is none of ours.
func inFiles(files map[string]string, name, word string) (bool, error) {
	if path.IsAbs(name) {
		return true, nil
	}
	if path.Ext(name) != ".go" {
		all, err := filepath.Glob(name)
		if len(all) == 0 && err == nil {
			all, err = filepath.Glob("*/" + name)
		}
		return len(all) > 0, err
	}
	whole := regexp.MustCompile(`\b` + word + `\b`)
	for at, text := range files {
		if (at == name || strings.HasSuffix(at, "/"+name)) && (word == "" || whole.MatchString(text)) {
			return true, nil
		}
	}
	return false, nil
}

// Every promise has a test (SECURITY.md says so).
func TestPromisesHaveTests(t *testing.T) {
	text := read(t, "SECURITY.md")
	_, text, _ = strings.Cut(text, "\n## What is promised\n")
	text, _, ok := strings.Cut(text, "\n## What is not promised\n")
	rows := promise.FindAllStringSubmatch(text, -1)
	rows = slices.DeleteFunc(rows, func(m []string) bool { return m[1] == "promise" })
	if !ok || len(rows) < 50 {
		t.Fatalf("SECURITY.md has %d promises where they are looked for: follow it", len(rows))
	}
	for _, m := range rows {
		if !namedTest.MatchString(m[2]) {
			t.Errorf("SECURITY.md promises %q, held by %q, which names no test", m[1], m[2])
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(fmt.Errorf("read page: %w", err))
	}
	return string(b)
}
