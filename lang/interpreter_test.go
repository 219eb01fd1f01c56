package lang

import (
	"path"
	"slices"
	"strings"
	"testing"

	"writ"
)

func TestLC28_AliasesOfTheCodeInterpreter(t *testing.T) {
	for want, names := range map[writ.Language]string{
		"python":     "python py PY Python",
		"javascript": "javascript js bun-js bun JavaScript BUN",
		"node":       "node nodejs node-js node-javascript Node.js",
		"typescript": "typescript ts bun-ts bun-typescript TypeScript",
		"bash":       "bash sh BASH",
		"c":          "c C",
		"cpp":        "cpp c++ C++",
		"java":       "java", "php": "php PHP", "rust": "rust rs", "go": "go Go", "d": "d D", "fortran": "fortran f90 F90", "r": "r R",
	} {
		for name := range strings.FieldsSeq(names) {
			l, err := For(writ.RunInterpreter).Lookup(writ.Language(name))
			if name == "Node.js" {
				if err == nil {
					t.Errorf("%q is %s", name, l.Name)
				}
				continue
			}
			if err != nil || l.Name != want || l.Kind != writ.RunInterpreter {
				t.Errorf("Lookup(%q) = %q, %v; want %q", name, l.Name, err, want)
			}
		}
	}
	for _, name := range []writ.Language{"cobol", "", "py ", "\u212aava", "p\u0443", "python3", "main.py"} {
		if l, err := For(writ.RunInterpreter).Lookup(name); writ.KindOf(err) != writ.Invalid {
			t.Errorf("Lookup(%q) = %q, %v; want invalid", name, l.Name, err)
		}
	}
	if l, err := For("other").Lookup("python"); err == nil {
		t.Errorf("a kind of runs that there is not has %s", l.Name)
	}
}

// TestPackagesOfNodeAreWhereImportsLook: those of the first folders, in the order of
// NODE_PATH.
func TestPackagesOfNodeAreWhereImportsLook(t *testing.T) {
	for there, want := range map[string][]Link{
		"":                      nil,
		"/usr/lib/node_modules": {{"/mnt/node_modules", "/usr/lib/node_modules"}},
		"/usr/share/nodejs /usr/lib/node_modules": {{"/mnt/node_modules", "/usr/lib/node_modules"}, {"/node_modules", "/usr/share/nodejs"}},
		strings.Join(nodeModules[:], " "):         {{"/mnt/node_modules", "/usr/local/lib/node_modules"}, {"/node_modules", "/usr/lib/node_modules"}},
	} {
		if got := Links(writ.RunInterpreter, func(p string) bool { return slices.Contains(strings.Fields(there), p) }); !slices.Equal(got, want) {
			t.Errorf("with %s: %v, want %v", there, got, want)
		}
	}
	if got := Links(writ.RunTask, func(string) bool { return true }); got != nil {
		t.Errorf("tasks get %v", got)
	}
}

func TestEntryFilesOfTheContract(t *testing.T) {
	for name, file := range map[writ.Language]string{
		"python": "main.py", "javascript": "index.js", "node": "index.js", "typescript": "main.ts", "bash": "script.sh",
	} {
		if l, err := For(writ.RunInterpreter).Lookup(name); err != nil || l.File != file {
			t.Errorf("%s has entry file %q, %v; want %q", name, l.File, err, file)
		}
	}
}

func TestTableOfTheCodeInterpreterIsSound(t *testing.T) {
	seen := map[writ.Language]bool{}
	for _, l := range For(writ.RunInterpreter) {
		for _, n := range append([]writ.Language{l.Name}, l.Aliases...) {
			if seen[n] || n != lowerASCII(n) {
				t.Errorf("%q stands for two languages, or can never be found", n)
			}
			seen[n] = true
		}
		if l.Kind != writ.RunInterpreter || l.Scope == "" || l.Package == "" || l.File != path.Base(l.File) || len(l.Candidates) == 0 {
			t.Errorf("%s: incomplete row %+v", l.Name, l)
		}
		if !strings.HasSuffix(l.Install(), " install "+l.Package) && l.Install() != "npm install -g "+l.Package {
			t.Errorf("%s is installed by %q", l.Name, l.Install())
		}
		argv := l.Argv("/usr/bin/x", l.File, []string{"a"})
		if compiles := l.CompileArgv("/usr/bin/cc"); compiles == nil {
			if argv[0] != "/usr/bin/x" || argv[len(argv)-2] != l.File {
				t.Errorf("%s runs as %q", l.Name, argv)
			}
		} else if !slices.Equal(argv, []string{"main", "a"}) || !slices.Contains(compiles, "/usr/bin/cc") || !slices.Contains(compiles, BinDir+"/main") || !slices.Contains(compiles, l.File) {
			t.Errorf("%s compiles by %q and runs as %q", l.Name, compiles, argv)
		}
	}
}

// TestLC26_NothingIsKeptAmongTheFiles: the home of a run is where its files are looked
// for, so no tool may be told to keep anything there.
func TestLC26_NothingIsKeptAmongTheFiles(t *testing.T) {
	for _, l := range For(writ.RunInterpreter) {
		env := l.Env(nil)
		for _, kv := range env {
			if k, v, _ := strings.Cut(kv, "="); strings.HasPrefix(v, Data) && k != "HOME" {
				t.Errorf("%s: %s", l.Name, kv)
			}
		}
		for _, want := range []string{"HOME=/mnt/data", "MPLBACKEND=Agg", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "OMP_NUM_THREADS=1", "SANDBOX_LANGUAGE=" + string(l.Name)} {
			if !slices.Contains(env, want) {
				t.Errorf("%s: no %s", l.Name, want)
			}
		}
	}
}

func TestAidsAreWhereTheEnvironmentSays(t *testing.T) {
	l, err := For(writ.RunInterpreter).Lookup("py")
	if err != nil {
		t.Fatal(err)
	}
	aids := Aids(writ.RunInterpreter)
	if len(aids) == 0 || !slices.Contains(l.Env(nil), "PYTHONPATH="+path.Dir(aids[0].Path)) {
		t.Errorf("aids %d, environment %q", len(aids), l.Env(nil))
	}
	if !strings.Contains(string(aids[0].Content), `data = "`+Data+`"`) {
		t.Error("figures are not saved where files of a run are looked for")
	}
	if aids := Aids(writ.RunTask); aids != nil {
		t.Errorf("a task gets %d files", len(aids))
	}
}

func TestSizedTellsTheMemory(t *testing.T) {
	table := For(writ.RunInterpreter)
	java, err := table.Lookup("java")
	if err != nil {
		t.Fatal(err)
	}
	sized := java.Sized(1 << 30)
	if argv := sized.Argv("/usr/bin/java", "Main.java", nil); !slices.Contains(argv, "-XX:MaxRAM=1073741824") || argv[len(argv)-1] != "Main.java" {
		t.Errorf("it runs as %q", argv)
	}
	if len(java.Flags) != len(sized.Flags)-1 {
		t.Error("Sized changed the row")
	}
	bash, _ := table.Lookup("bash")
	if argv := bash.Sized(1<<30).Argv("/usr/bin/bash", "script.sh", nil); len(argv) != 2 {
		t.Errorf("bash runs as %q", argv)
	}
}
