package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"writ/internal/testkit"
	"writ/shell"
)

// Whatever a real shell runs, the reading names it or says that it does not know.
func TestPOL02_WhatARealShellRunsIsNamedOrUnknown(t *testing.T) {
	for name, texts := range map[string][]string{"bash": slices.Concat(shell.Ways, shell.BashWays), "dash": shell.Ways} {
		path, err := exec.LookPath(name)
		if err != nil {
			testkit.Missing(t, name, name+" is not installed")
		}
		ran := 0
		for _, text := range texts {
			if runsMarker(t, path, text) {
				ran++
			} else {
				t.Logf("%s does not run it here: %q", name, text)
			}
			r := shell.Read([]string{name, "-c", text})
			if !slices.Contains(r.Programs(), "marker") && len(r.Whys()) == 0 {
				t.Errorf("%s runs marker in %q, which is read as %+v", name, text, r)
			}
		}
		// Tools may be missing and versions differ; were it many, the test would say little.
		if ran < len(texts)*3/4 {
			t.Errorf("%s ran marker in %d of %d texts only", name, ran, len(texts))
		}
	}
}

// runsMarker reports whether the shell at path runs marker in text.
func runsMarker(t *testing.T, path, text string) bool {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(dir, "ran")
	script := "#!/bin/sh\necho > " + trace + "\nexit 0\n"
	if err := os.WriteFile(filepath.Join(bin, "marker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "s"), []byte("marker\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "timeout", "-k", "1", "5", path, "-c", text)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + dir, "BIN=" + bin}
	_ = cmd.Run() // many of the texts fail behind the marker
	_, err := os.Stat(trace)
	return err == nil
}
