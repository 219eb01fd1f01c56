package writ_test

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// modules are the ones that our code, tests and tools may use directly, each with
// a reason that a stranger would accept. A line whose module nothing uses fails.
var modules = map[string]string{
	"github.com/alecthomas/kong":                               "command line: struct tags and environment, no dependencies",
	"github.com/aymanbagabas/go-udiff":                         "unified diffs by line, bounded in time",
	"github.com/cedar-policy/cedar-go":                         "policy language with default deny, where forbid wins and annotations carry holds",
	"github.com/elastic/go-seccomp-bpf":                        "assembles the seccomp filter without cgo",
	"github.com/getkin/kin-openapi":                            "tests: the API document and real answers are checked against each other",
	"github.com/go-jose/go-jose/v4":                            "signed tokens and key sets: refuses unknown crit headers, needs the list of algorithms, no dependencies",
	"github.com/go-json-experiment/json":                       "request bodies: refuses doubled, unknown and case-variant names and bad UTF-8",
	"github.com/goccy/go-yaml":                                 "configuration: a parser that keeps line and column",
	"github.com/google/go-cmp":                                 "tests: differences that can be read",
	"github.com/google/jsonschema-go":                          "tests: results are checked against the schemas that tools declare",
	"github.com/jackc/pgx/v5":                                  "PostgreSQL",
	"github.com/lmittmann/tint":                                "log lines on a terminal",
	"github.com/mattn/go-isatty":                               "is the output a terminal",
	"github.com/modelcontextprotocol/go-sdk":                   "the Model Context Protocol in all its revisions, from those who define it",
	"github.com/moby/profiles/seccomp":                         "the system calls that containers get, as a list somebody maintains",
	"github.com/oklog/ulid/v2":                                 "ids that sort by time",
	"github.com/opencontainers/runtime-spec":                   "the type in which moby's profile takes its capabilities",
	"github.com/pressly/goose/v3":                              "database migrations",
	"github.com/riverqueue/river":                              "durable jobs in the transaction that needs them",
	"github.com/riverqueue/river/riverdriver":                  "what River's drivers have in common",
	"github.com/riverqueue/river/riverdriver/riverdatabasesql": "River on PostgreSQL, in our own transaction",
	"github.com/riverqueue/river/riverdriver/riversqlite":      "River on SQLite",
	"github.com/riverqueue/river/rivertype":                    "the types of River's jobs and hooks",
	"github.com/rogpeppe/go-internal":                          "tests: scenario files of what a user types",
	"github.com/prometheus/client_golang":                      "metrics in the form that monitoring reads, with histograms",
	"go.uber.org/goleak":                                       "tests: no goroutine outlives its owner",
	"golang.org/x/mod":                                         "Merkle log and signed notes, as Go's checksum database uses them",
	"golang.org/x/net":                                         "the raw form of BPF programs, and a machine to test them",
	"golang.org/x/sys":                                         "system calls of the sandbox",
	"golang.org/x/text":                                        "Unicode normal forms, so that a patch finds lines whose letters are composed otherwise",
	"google.golang.org/grpc":                                   "gateway to runner: streams with flow control",
	"honnef.co/go/tools":                                       "tool: staticcheck",
	"modernc.org/sqlite":                                       "SQLite without cgo",
	"mvdan.cc/sh/v3":                                           "parses shell text, so that policy sees every command in it",
	"pgregory.net/rapid":                                       "tests: properties",
}

func TestModules(t *testing.T) {
	data, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	// owner is the required module that an import path belongs to.
	owner := func(imp string) (name string) {
		for _, r := range mod.Require {
			if p := r.Mod.Path; (imp == p || strings.HasPrefix(imp, p+"/")) && len(p) > len(name) {
				name = p
			}
		}
		return name
	}
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			imp := importPath(spec)
			if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
				continue // ours, or the standard library's
			}
			name := owner(imp)
			used[name] = true
			if modules[name] == "" {
				t.Errorf("%s: module %s of %q is not in the modules table of house_test.go: do without it, or add its line with a reason", s.at(spec.Pos()), name, imp)
			}
		}
	}
	for _, tool := range mod.Tool {
		used[owner(tool.Path)] = true
	}
	for _, r := range mod.Require {
		if !r.Indirect && modules[r.Mod.Path] == "" {
			t.Errorf("go.mod requires %s, which is not in the modules table of house_test.go: drop it, or add its line with a reason", r.Mod.Path)
		}
	}
	for name := range modules {
		if !used[name] {
			t.Errorf("the modules table names %s, which nothing imports: remove the line, and run go mod tidy", name)
		}
	}
	if len(mod.Replace) > 0 {
		t.Errorf("go.mod replaces %s: go install of a released version would not see it", mod.Replace[0].Old.Path)
	}
}

const maxLines = 500

// long are the files that may have more than maxLines, each with its reason.
var long = map[string]string{}

// shapeless are package names that say nothing about what is in there.
const shapeless = "util utils common types manager managers service services helper helpers misc base shared model models core"

var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func TestHouse(t *testing.T) {
	comments := map[string][]string{} // files with a package comment, by package
	for _, s := range sources(t) {
		if !s.test {
			files := comments[s.pkg]
			if s.file.Doc != nil {
				files = append(files, s.name)
			}
			comments[s.pkg] = files // also when it has none
		}
		if n := bytes.Count(s.text, []byte("\n")); n > maxLines && long[s.name] == "" {
			t.Errorf("%s has %d lines, the most is %d: cut it where it has two subjects", s.name, n, maxLines)
		}
		if has(shapeless, path.Base(s.pkg)) || has(shapeless, strings.TrimSuffix(s.file.Name.Name, "_test")) {
			t.Errorf("%s: package %s says nothing: name it after the noun it holds", s.name, s.file.Name.Name)
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init: do it where main or the constructor can see it", s.at(f.Pos()))
			}
		}
		for _, spec := range s.file.Imports {
			if importPath(spec) == "unsafe" && !strings.HasSuffix(s.name, "_unsafe_linux.go") {
				t.Errorf("%s: unsafe outside a file named *_unsafe_linux.go: move it there", s.at(spec.Pos()))
			}
		}
		for _, g := range s.file.Comments {
			for _, c := range g.List {
				if word := unfinished.FindString(c.Text); word != "" {
					t.Errorf("%s: %s: finish it, or say in plain words what does not work", s.at(c.Pos()), word)
				}
			}
		}
	}
	for pkg, files := range comments {
		if len(files) != 1 {
			t.Errorf("package %s has %d package comments %v: it needs exactly one, in doc.go when it has more than two files", pkg, len(files), files)
		}
	}
	for name := range long {
		data, err := os.ReadFile(name)
		if err != nil || bytes.Count(data, []byte("\n")) <= maxLines {
			t.Errorf("the table of long files names %s, which is not one: remove the line", name)
		}
	}
}
