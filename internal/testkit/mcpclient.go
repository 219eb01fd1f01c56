package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// MCPClient is the command that starts the program name of internal/mcpclients, to
// which its arguments are appended: the Node.js that is installed there, and the
// program. Where they are not installed t is skipped, or fails if WRIT_REQUIRE names
// "mcpclients".
func MCPClient(t testing.TB, name string) []string {
	t.Helper()
	dir := filepath.Join(moduleRoot(t), "internal", "mcpclients", "node_modules")
	// Read, not only looked for: go test's cache is then of what is installed.
	if _, err := os.ReadFile(filepath.Join(dir, ".installed")); err != nil {
		Missing(t, "mcpclients", "run scripts/mcpclients.sh: "+err.Error())
	}
	command := []string{filepath.Join(dir, ".bin", "node"), filepath.Join(dir, ".bin", name)}
	for _, path := range command {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	return command
}

// moduleRoot is the folder of go.mod, at or above the one that the test runs in.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("there is no go.mod above the folder of the test")
		}
		dir = up
	}
}
