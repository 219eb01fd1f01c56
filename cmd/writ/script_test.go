package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"writ"
	"writ/internal/testkit"
	"writ/lang"
	"writ/sandbox"
	"writ/sandbox/jail"
)

// TestMain makes this binary the product: under the name writ it is the program,
// and as the first process of a box it is the jail, as a release is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == jail.Arg {
		jail.Main()
	}
	programs := maps.Clone(scriptPrograms)
	programs["writ"] = main
	testscript.Main(m, programs)
}

var update = flag.Bool("update", false, "rewrite what the scripts expect")

// TestScript runs every file of testdata/script: what a user types, and what they
// must then see. `go test -run TestScript/approve_deny` runs one.
//
// A script finds its files in the current folder, and data/ there is its data
// folder (WRIT_DATA). $MARK is a number that no other process of this machine has
// among its arguments. Conditions, each of which fails where WRIT_REQUIRE names
// what is missing:
//
//	[sandbox]  something can be run in a box on this host
//	[cgroup]   limits on a whole box can be set
//	[python] [node]
//
// and, which nothing requires, [root].
func TestScript(t *testing.T) { runScripts(t, "script", setup) }

// TestScriptPostgres runs every file of testdata/postgres in the same way: each has a
// PostgreSQL database of its own, at $PGURL.
func TestScriptPostgres(t *testing.T) {
	fresh := testkit.Postgres(t)
	runScripts(t, "postgres", func(e *testscript.Env) error {
		e.Setenv("PGURL", fresh(t))
		return setup(e)
	})
}

func runScripts(t *testing.T, folder string, setup func(*testscript.Env) error) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", folder),
		Setup:               setup,
		Condition:           condition,
		Cmds:                scriptCommands,
		UpdateScripts:       *update || os.Getenv("UPDATE") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

func setup(e *testscript.Env) error {
	data := filepath.Join(e.WorkDir, "data")
	if err := filepath.WalkDir(data, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o700) // whatever the umask made of it
	}); err != nil && !os.IsNotExist(err) {
		return err
	}
	var b [8]byte
	rand.Read(b[:])
	e.Setenv("GORACE", "atexit_sleep_ms=10") // the race detector's own default is a second, for each command
	e.Setenv("WRIT_DATA", data)
	setupAgents(e)
	e.Setenv("MARK", fmt.Sprint(1_000_000+binary.BigEndian.Uint64(b[:])%1_000_000_000))
	return nil
}

func condition(cond string) (bool, error) {
	sb, err := theSandbox()
	has := func(name writ.Language) bool {
		l, err := lang.Lookup(name)
		return err == nil && slices.ContainsFunc(l.Candidates, fileExists)
	}
	switch cond {
	case "sandbox":
		return orRequired(err == nil, fmt.Sprint(err), "bwrap", "userns")
	case "cgroup":
		ok := err == nil && slices.Contains(sb.Active, sandbox.LayerMemoryCgroup) && slices.Contains(sb.Active, sandbox.LayerPidsCgroup)
		return orRequired(ok, "no control group can be made", "cgroup")
	case "root":
		return os.Geteuid() == 0, nil
	case "python", "node":
		return orRequired(has(writ.Language(cond)), "it is not installed", cond)
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

// orRequired is ok, or an error when that is false and WRIT_REQUIRE names one of
// tools.
func orRequired(ok bool, why string, tools ...string) (bool, error) {
	for _, tool := range tools {
		if !ok && slices.Contains(strings.Split(os.Getenv("WRIT_REQUIRE"), ","), tool) {
			return false, fmt.Errorf("WRIT_REQUIRE names %s: %s", tool, why)
		}
	}
	return ok, nil
}

// theSandbox is what this host can enforce.
var theSandbox = sync.OnceValues(func() (writ.Enforcement, error) {
	p, err := sandbox.New(sandbox.Options{UIDBase: 861_000})
	if err != nil {
		return writ.Enforcement{}, err
	}
	defer p.Close()
	return p.Probe(context.Background())
})
