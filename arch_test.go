package writ_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "writ"

// layers is the whole architecture: the packages of this module that each package
// may import directly. A package that is missing here is an error, and so is a
// line that names a package which is gone. ARCHITECTURE.md quotes it.
//
// A package's tests may also import internal/testkit, the package itself, and
// whatever it reaches through this table, and what the table meets names.
var layers = map[string]string{
	".": "", // vocabulary: nouns, their Validate, the one error type

	// Each noun knows the vocabulary and not its siblings.
	"shell":        ".",
	"policy":       ". levenshtein shell", // shell: what a command line runs is what is decided about
	"approval":     ".",
	"audit":        ".",
	"auth":         ".",
	"blob":         ".",
	"lang":         ".",
	"levenshtein":  "",  // what somebody may have meant
	"origin":       "",  // what pages of others could send, for all that browsers reach
	"response":     ".", // what the adapters have in common of an answer on its way
	"room":         ".", // what large bodies take of memory together
	"patch":        ". levenshtein",
	"config":       ".",
	"store":        ".",
	"sandbox/jail": "", // runs as pid 1 of a box: what it links is what an escape could use
	"sandbox":      ". sandbox/jail",

	"files": ". patch", // what is beneath a workspace's root
	"watch": "",        // what changes there

	"runner": ". lang sandbox files patch watch",
	"remote": ". auth", // auth: peer credentials of the socket

	// The one path. It takes the store as it is: one Store with two engines behind
	// it is one implementation. workspace: which there are, and who changes one now;
	// patch: what a request names, before it is decided. The ledger and the holds of
	// patches are part of the path, since each step of them is recorded with it.
	"gateway": ". policy approval audit store lang workspace patch",
	"task":    ". audit gateway store",
	"admin":   ". audit auth gateway store",
	// files: the form of path rules. What is beneath a root it leaves to the runner.
	"workspace": ". files",
	// Storage sessions of the code interpreter. Their bytes are behind a port.
	"session": ". store",
	"limit":   ". store", // counted in the store, so that several gateways count together
	// What people want of an agent meanwhile. Who may see a workspace, and how processes
	// are ended, it is given as ports.
	"work":   ". audit store",
	"doctor": ". lang", // of the host; the sandbox it tries is passed in

	// What front ends run for their users: files of sessions in, a task, files out.
	"interpreter": ". lang session task",

	// Adapters: decode, call once, encode.
	"codeapi": ". interpreter limit origin response room session",
	"rest":    ". origin response room",
	"client":  ".",
	"mcp":     ". origin response",

	"cmd/writ":         "*", // wiring: anything but testkit
	"internal/testkit": "*", // imported by tests alone

	"bench": "*", // a program of its own: takes the parts one by one

	// Tests alone, on the program that they build: agents work through it, one kills it,
	// two have other people's clients talk to it.
	"internal/agents":     ".",
	"internal/crashtest":  ". client",
	"internal/librechat":  ".",
	"internal/mcpclients": ". client",
}

// meets are packages that a package's tests use beside those: the other end of
// what they test.
var meets = map[string]string{
	"approval":    "patch shell", // the diffs and the command lines that it shows
	"codeapi":     "auth blob",   // who asks, and the bytes behind the sessions
	"rest":        "client",
	"interpreter": "blob runner sandbox sandbox/jail", // the bytes of files, and real runs
	"remote":      "runner sandbox sandbox/jail",      // a real runner behind the wire
	"session":     "blob",                             // the bytes behind the rows
	"store":       "audit",                            // the log on a real store
	// What the program left in its folder, read with the packages that keep it.
	"internal/librechat": "blob session store",
}

// owners lists sharp imports and the only packages whose product files may hold
// them. Tests are free, but for what nobody owns.
var owners = map[string]string{
	"unsafe":                "sandbox sandbox/jail",
	"syscall":               "sandbox sandbox/jail remote auth blob doctor cmd/writ internal/testkit bench", // blob: the lock of a folder that several processes use; remote: the runner's death signal; auth: peer credentials; doctor: room on disk, clock; cmd: signals; testkit: pipes in workspaces; bench: the floor's terminal
	"golang.org/x/sys/unix": "sandbox sandbox/jail remote auth files watch interpreter bench",               // files: openat2 and renameat2, which os.Root does not offer; watch: inotify; interpreter: the names of signals; bench: the floor's terminal
	"os/exec":               "sandbox remote doctor bench internal/testkit",                                 // remote: starts the runner; doctor: asks bubblewrap for its version; bench: the floors
	"database/sql":          "store",
	"github.com/prometheus/client_golang/prometheus":            "cmd/writ", // packages tell what happens, and know no metrics
	"github.com/prometheus/client_golang/prometheus/collectors": "cmd/writ",
	"github.com/prometheus/client_golang/prometheus/promhttp":   "cmd/writ",
	"net/http":     "rest codeapi client mcp response cmd/writ internal/testkit bench", // bench: sends what users of the code interpreter send
	"testing":      "internal/testkit",
	"C":            "", // the product is built without cgo
	"encoding/gob": "", // a format with behaviour
	"log":          "", // log/slog, passed in
	"math/rand":    "", // crypto/rand
	"math/rand/v2": "",
}

func TestLayers(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		allowed, ok := layers[s.pkg]
		if !ok && !seen[s.pkg] {
			t.Errorf("package %s is not in the layers table of arch_test.go: decide where it belongs and add its line", s.pkg)
		}
		seen[s.pkg] = true
		if !ok {
			continue
		}
		for _, spec := range s.file.Imports {
			dep, ours := ourPackage(importPath(spec))
			switch {
			case !ours, s.test && (dep == "internal/testkit" || dep == s.pkg || reaches(s.pkg, dep) || has(meets[s.pkg], dep)):
			case dep == "internal/testkit":
				t.Errorf("%s: product code imports internal/testkit: move what it needs out of there", s.at(spec.Pos()))
			case allowed != "*" && !has(allowed, dep):
				t.Errorf("%s: %s imports %s, may import only [%s]: take it as a parameter or an interface, or change the table with the reason", s.at(spec.Pos()), s.pkg, dep, allowed)
			}
		}
	}
	for name := range layers {
		if !seen[name] {
			t.Errorf("the layers table names %s, which does not exist: remove the line", name)
		}
	}
}

func TestOwners(t *testing.T) {
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			imp := importPath(spec)
			who, sharp := owners[imp]
			if !sharp || s.test && who != "" || has(who, s.pkg) {
				continue
			}
			t.Errorf("%s: %s imports %q, which only [%s] may: give an owner a function with a name and a contract, and call that", s.at(spec.Pos()), s.pkg, imp, cmp.Or(who, "nobody"))
		}
	}
	for imp, who := range owners {
		for _, pkg := range strings.Fields(who) {
			if _, ok := layers[pkg]; !ok {
				t.Errorf("owners of %q names %s, which is not in the layers table: remove it", imp, pkg)
			}
		}
	}
}

// source is one Go file of the module.
type source struct {
	pkg  string // folder, "." for the root
	name string // path from the root
	test bool
	file *ast.File
	fset *token.FileSet
	text []byte
}

func (s source) at(p token.Pos) token.Position { return s.fset.Position(p) }

// sources parses every Go file of the module, whatever its build constraints. It
// reads them in this process: go test's cache sees only the files that the test
// itself opens, and would answer "cached" over a violation that a child found.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			if name != "." && (base == "testdata" || base == "build" || base == "node_modules" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		out = append(out, source{
			pkg: path.Dir(filepath.ToSlash(name)), name: name, test: strings.HasSuffix(name, "_test.go"),
			file: file, fset: fset, text: text,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

// ourPackage is the folder of an import path of this module.
func ourPackage(imp string) (string, bool) {
	if imp == module {
		return ".", true
	}
	return strings.CutPrefix(imp, module+"/")
}

// reaches reports whether the table leads from one package to another.
func reaches(from, to string) bool {
	allowed := layers[from]
	if allowed == "*" || has(allowed, to) {
		return true
	}
	return slices.ContainsFunc(strings.Fields(allowed), func(dep string) bool { return reaches(dep, to) })
}

func has(list, name string) bool { return slices.Contains(strings.Fields(list), name) }
