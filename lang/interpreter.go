package lang

import (
	_ "embed"
	"path"
	"strings"

	"writ"
)

// Where a run of kind writ.RunInterpreter finds its things, beside CodeDir.
const (
	Data   = "/mnt/data"       // current folder, home, the code and the files of the run
	BinDir = CodeDir + "/bin"  // what a compile step leaves there is there in the run
	aidDir = CodeDir + "/aids" // of the aids for Python
)

// File is a file that lang brings to a run.
type File struct {
	Path    string // in the box
	Content []byte
}

//go:embed python/sitecustomize.py
var sitecustomize []byte

// goCache is where an operator may keep the compiled library of Go.
const goCache = "/usr/local/share/writ/go-build"

// nodeModules are folders of the host with packages of Node.js: npm's, and Debian's.
var nodeModules = [...]string{"/usr/local/lib/node_modules", "/usr/lib/node_modules", "/usr/share/nodejs"}

// Link is a symlink that a box must have, to a folder of the host which it shows.
type Link struct{ Path, To string }

// Links are what boxes of the kind must have, of folders that there are. What a program
// imports Node.js looks for in the folders above the program alone, whatever NODE_PATH says:
// so the first two of nodeModules have a name there.
func Links(k writ.RunKind, isFolder func(path string) bool) (links []Link) {
	if k != writ.RunInterpreter {
		return nil
	}
	places := []string{path.Dir(Data) + "/node_modules", "/node_modules"}
	for _, dir := range nodeModules {
		if len(links) < len(places) && isFolder(dir) {
			links = append(links, Link{places[len(links)], dir})
		}
	}
	return links
}

// Aids are files that every run of the kind finds, beside those of its own. They are what
// its environment refers to. The caller does not change them.
func Aids(k writ.RunKind) []File {
	if k != writ.RunInterpreter {
		return nil
	}
	return []File{{Path: aidDir + "/sitecustomize.py", Content: sitecustomize}}
}

// interpreters is the table of the code interpreter (spec/03 §6.1), and the languages
// that front ends offer beside those.
func interpreters() Table {
	bun := []string{"/usr/local/bin/bun", "/usr/bin/bun"}
	t := Table{
		{
			Name: "python", Aliases: []writ.Language{"py"}, Scope: "python", File: "main.py",
			Candidates: []string{"/usr/bin/python3", "/usr/local/bin/python3"}, Package: "python3",
		},
		{
			Name: "javascript", Aliases: []writ.Language{"js", "bun-js", "bun"}, Scope: "node", File: "index.js",
			Candidates: bun, Package: "bun", NPM: true,
			Flags: []string{"--no-install"}, // there is no network to install from
		},
		{
			Name: "node", Aliases: []writ.Language{"nodejs", "node-js", "node-javascript"}, Scope: "node", File: "index.js",
			Candidates: []string{"/usr/bin/node", "/usr/local/bin/node", "/usr/bin/nodejs"}, Package: "nodejs",
		},
		{
			Name: "typescript", Aliases: []writ.Language{"ts", "bun-ts", "bun-typescript"}, Scope: "node", File: "main.ts",
			Candidates: bun, Package: "bun", NPM: true,
			Flags: []string{"--no-install"},
		},
		{
			Name: "bash", Aliases: []writ.Language{"sh"}, Scope: "shell", File: "script.sh",
			Candidates: []string{"/usr/bin/bash", "/bin/bash", "/usr/local/bin/bash"}, Package: "bash",
		},
		{
			Name: "c", Scope: "c", File: "main.c",
			Candidates: []string{"/usr/bin/gcc"}, Package: "gcc libc6-dev",
			Compile: []string{"-O2", "-pthread", "-o", BinDir + "/main", "main.c", "-lm"},
		},
		{
			Name: "cpp", Aliases: []writ.Language{"c++"}, Scope: "cpp", File: "main.cpp",
			Candidates: []string{"/usr/bin/g++"}, Package: "g++",
			Compile: []string{"-O2", "-std=gnu++20", "-pthread", "-o", BinDir + "/main", "main.cpp"},
		},
		{
			// The launcher compiles the file in memory, whatever its classes are called, and
			// runs the first of them.
			Name: "java", Scope: "java", File: "Main.java",
			Candidates: []string{"/usr/bin/java", "/usr/local/bin/java"}, Package: "default-jdk-headless",
			// Each for a short life: one collector thread, one compiler, no file in /tmp.
			Flags:      []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:MaxRAMPercentage=60"},
			MemoryFlag: "-XX:MaxRAM=",
		},
		{
			Name: "php", Scope: "php", File: "main.php",
			Candidates: []string{"/usr/bin/php", "/usr/local/bin/php"}, Package: "php-cli",
			// Errors once, and not in the output; the box bounds the memory.
			Flags: []string{"-d", "display_errors=stderr", "-d", "log_errors=0", "-d", "memory_limit=-1"},
		},
		{
			Name: "rust", Aliases: []writ.Language{"rs"}, Scope: "rust", File: "main.rs",
			Candidates: []string{"/usr/bin/rustc", "/usr/local/bin/rustc"}, Package: "rustc",
			Compile: []string{"--edition=2021", "-Copt-level=1", "-o", BinDir + "/main", "main.rs"},
		},
		{
			Name: "go", Scope: "go", File: "main.go",
			Candidates: []string{"/usr/local/go/bin/go", "/usr/bin/go", "/usr/local/bin/go"}, Package: "golang-go",
			Compile: []string{"build", "-ldflags=-s -w", "-o", BinDir + "/main", "main.go"},
			// Else it compiles its library in each run.
			Prebuilt: goCache, CacheVar: "GOCACHE",
			Prebuild: "CGO_ENABLED=0 GOENV=off GOFLAGS=-buildvcs=false GOTOOLCHAIN=local GOCACHE=" + goCache + " go build std",
			Vars: map[string]string{
				"CGO_ENABLED": "0", "GOENV": "off", "GOFLAGS": "-buildvcs=false", "GOPROXY": "off",
				"GOTELEMETRY": "off", "GOTMPDIR": tmp, "GOTOOLCHAIN": "local",
			},
		},
		{
			Name: "d", Scope: "d", File: "main.d",
			Candidates: []string{"/usr/bin/gdc"}, Package: "gdc",
			Compile: []string{"-O1", "-o", BinDir + "/main", "main.d"},
		},
		{
			Name: "fortran", Aliases: []writ.Language{"f90"}, Scope: "fortran", File: "main.f90",
			Candidates: []string{"/usr/bin/gfortran"}, Package: "gfortran",
			Compile: []string{"-O2", "-J", tmp, "-o", BinDir + "/main", "main.f90"},
		},
		{
			Name: "r", Scope: "r", File: "main.R",
			Candidates: []string{"/usr/bin/Rscript", "/usr/local/bin/Rscript"}, Package: "r-base-core",
		},
	}
	for i := range t {
		t[i].Kind = writ.RunInterpreter
	}
	return t
}

// interpreterEnv is what every run of the code interpreter gets (spec/03 §14.8). Its home
// is where its files are looked for, so whatever a tool likes to keep goes to /tmp.
func interpreterEnv() map[string]string {
	cache := tmp + "/.cache"
	return map[string]string{
		"PATH":    basePath,
		"HOME":    Data,
		"USER":    User,
		"LOGNAME": User,
		"SHELL":   "/bin/bash",
		"TMPDIR":  tmp,
		"TERM":    "dumb",
		"LANG":    "C.UTF-8",
		"LC_ALL":  "C.UTF-8",

		"PYTHONPATH":              aidDir, // takes itself off the path of modules
		"PYTHONUNBUFFERED":        "1",
		"PYTHONUTF8":              "1",
		"PYTHONDONTWRITEBYTECODE": "1",
		"PYTHON_HISTORY":          tmp + "/.python_history",
		"IPYTHONDIR":              tmp + "/.ipython",
		"MPLBACKEND":              "Agg",
		"MPLCONFIGDIR":            tmp + "/matplotlib",
		"NUMBA_CACHE_DIR":         cache + "/numba",
		"OPENBLAS_NUM_THREADS":    "1",
		"MKL_NUM_THREADS":         "1",
		"OMP_NUM_THREADS":         "1",
		"NUMEXPR_NUM_THREADS":     "1",

		"NODE_PATH":                         strings.Join(nodeModules[:], ":"),
		"NODE_REPL_HISTORY":                 "",
		"npm_config_cache":                  tmp + "/.npm",
		"npm_config_update_notifier":        "false",
		"BUN_INSTALL":                       tmp + "/.bun",
		"BUN_INSTALL_CACHE_DIR":             tmp + "/.bun/cache",
		"BUN_RUNTIME_TRANSPILER_CACHE_PATH": "0", // kept nowhere
		"DO_NOT_TRACK":                      "1",

		"GOCACHE":    cache + "/go-build",
		"GOPATH":     tmp + "/go",
		"CARGO_HOME": tmp + "/.cargo",

		"R_LIBS_USER":      tmp + "/R",
		"R_HISTFILE":       tmp + "/.Rhistory",
		"R_USER_CACHE_DIR": cache + "/R",

		"XDG_CACHE_HOME":  cache,
		"XDG_CONFIG_HOME": tmp + "/.config",
		"XDG_DATA_HOME":   tmp + "/.local/share",
		"XDG_STATE_HOME":  tmp + "/.local/state",
	}
}
