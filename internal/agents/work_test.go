package agents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ/internal/testkit"
)

// TestAgentMendsARepository is a whole piece of work, in which every change and every
// command is held until the agent's user agrees: by the forms and the results of both eras,
// and with tools where its client cannot ask.
func TestAgentMendsARepository(t *testing.T) {
	tool := goInBoxes(t)
	compiled := filepath.Join(t.TempDir(), "compiled") // of Go's own packages, by the session before
	for _, way := range []struct {
		name, revision string
		http, asks     bool
	}{
		{"stdio_2025", older, false, true},
		{"stdio_2026_without_forms", newer, false, false},
		{"http_2025", older, true, true},
		{"http_2026", newer, true, true},
	} {
		t.Run(way.name, func(t *testing.T) {
			h := newHost(t, `identities:
  - {id: coder, scopes: [read, patch, exec]}
workspaces:
  - {id: site, root: ROOT/site, profile: workspace-write, approvals: confirm}
processes: {limits: {wall_ms: 10m}}
`)
			upstream(t, h.root("site/upstream"))
			if err := os.Rename(compiled, h.root("site/.cache")); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			var transport sdk.Transport
			if way.http {
				h.serve()
				transport = over(h.url, h.writ("keys", "create", "--identity", "coder"))
			} else {
				transport = &sdk.CommandTransport{Command: h.command("mcp", h.root("site")), TerminateDuration: patience}
			}
			a := connect(t, transport, way.revision, way.asks)
			a.mend(h.root("site"), tool)
			if err := a.session.Close(); err != nil {
				t.Errorf("end of the session: %v", err)
			}
			mended(t, h)
			if err := os.Rename(h.root("site/.cache"), compiled); err != nil {
				t.Error(err)
			}
		})
	}
}

// failure is how Go's tests tell of one.
var failure = regexp.MustCompile(`(?m)^ +(\w+)_test\.go:\d+: Sum\(1, 2, 3\) = (\d+), want (\d+)$`)

// mend clones what is upstream in the workspace at root, finds what is wrong with it and
// puts it right.
func (a *agent) mend(root, tool string) {
	t := a.t
	t.Helper()
	test := []string{"env", "-C", "work", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod", "GOPROXY=off", tool, "test", "-vet=off", "./..."}
	if out, code := a.run("site", "git", "clone", "file://"+root+"/upstream", "work"); code != 0 {
		t.Fatalf("clone: exit %d: %s", code, out)
	}
	out, code := a.run("site", test...)
	m := failure.FindStringSubmatch(out)
	if code == 0 || m == nil {
		t.Fatalf("tests of the clone: exit %d, want a failure: %s", code, out)
	}
	found := a.must("find", map[string]any{"workspace_id": "site", "glob": "work/*.go"})
	file := "work/" + m[1] + ".go"
	if !strings.Contains(strings.Join(found.Paths, " "), file) {
		t.Fatalf("files %q, want %s", found.Paths, file)
	}
	read := a.must("read", map[string]any{"workspace_id": "site", "path": file})
	if !strings.Contains(read.Content, "total := 1") {
		t.Fatalf("%s has %q", file, read.Content)
	}
	done := a.must("apply_patch", map[string]any{
		"workspace_id": "site", "operation_key": "mend-the-sum", "expected_versions": map[string]string{file: read.Version},
		"patch": fmt.Sprintf("*** Begin Patch\n*** Update File: %s\n@@ func Sum(numbers ...int) int {\n-\ttotal := 1\n+\ttotal := 0\n*** End Patch\n", file),
	})
	if done.Status != "applied" {
		t.Fatalf("patch: %+v", done)
	}
	if out, code := a.run("site", test...); code != 0 || !strings.Contains(out, "ok") {
		t.Fatalf("tests after the patch: exit %d: %s", code, out)
	}
	commit := []string{"git", "-C", "work", "-c", "user.name=agent", "-c", "user.email=agent@example.com", "commit", "-qam", "A sum began at one"}
	if out, code := a.run("site", commit...); code != 0 {
		t.Fatalf("commit: exit %d: %s", code, out)
	}
	// The clone, the tests twice, the patch and the commit: its user was asked for each.
	if len(a.asked) != 5 {
		t.Errorf("its user agreed to %d things, want 5: %q", len(a.asked), a.asked)
	}
	if a.asks && !strings.Contains(a.asked[0], `"clone"`) {
		t.Errorf("the first question does not show what it is about: %q", a.asked[0])
	}
}

// mended looks at the work from the host.
func mended(t *testing.T, h *host) {
	t.Helper()
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", h.root("site/work")}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("git %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	if got := git("log", "--format=%s"); got != "A sum began at one\nAdd sums\n" {
		t.Errorf("the clone has %q", got)
	}
	if got := git("show", "HEAD", "--format=", "-U0"); !strings.Contains(got, "-\ttotal := 1\n+\ttotal := 0\n") {
		t.Errorf("the commit has %q", got)
	}
	log := h.writ("audit", "list", "--limit", "200")
	for what, want := range map[string]int{"process.started": 4, "process.finished": 4, "patch.started": 1, "patch.finished": 1} {
		if got := strings.Count(log, what); got != want {
			t.Errorf("the log has %s %d times, want %d:\n%s", what, got, want, log)
		}
	}
	if strings.Contains(log, "total :=") || strings.Contains(log, "agent@example.com") {
		t.Errorf("the log has what was written:\n%s", log)
	}
	h.writ("audit", "verify")
}

// upstream makes a repository with a test that fails.
func upstream(t *testing.T, dir string) {
	t.Helper()
	testkit.PutFiles(t, dir, map[string]string{
		"go.mod": "module example.com/sums\n\ngo 1.21\n",
		"sums.go": "// Package sums adds up.\npackage sums\n\n// Sum is the sum of numbers.\nfunc Sum(numbers ...int) int {\n" +
			"\ttotal := 1\n\tfor _, n := range numbers {\n\t\ttotal += n\n\t}\n\treturn total\n}\n",
		"sums_test.go": "package sums\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n" +
			"\tif got := Sum(1, 2, 3); got != 6 {\n\t\tt.Errorf(\"Sum(1, 2, 3) = %d, want 6\", got)\n\t}\n}\n",
	})
	if _, err := exec.LookPath("git"); err != nil {
		testkit.Missing(t, "git", err.Error())
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "Add sums"}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
}

// goInBoxes is a Go that boxes have, too: they see nothing of the host but /usr.
func goInBoxes(t *testing.T) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/go/bin") {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, "go"))
		if err == nil && strings.HasPrefix(path, "/usr/") {
			return path
		}
	}
	testkit.Missing(t, "go", "no Go is installed beneath /usr, which is all that boxes see")
	return ""
}
