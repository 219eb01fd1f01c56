package testkit

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildProgram builds writ from the module at root into the file exe.
func BuildProgram(root, exe string) error {
	// go test's cache sees what this process looks at, not what the compiler does:
	// without this walk it would answer for a program that has changed.
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && (d.Name()[0] == '.' || d.Name() == "build" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", exe, "./cmd/writ")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}
