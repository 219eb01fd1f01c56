package workspace

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestParseFile(t *testing.T) {
	got, err := ParseFile("registry.json", []byte(`{
		"environments": {"ci": {"kind": "linux-container"}, "here": {"kind": "host"}},
		"workspaces": {
			"plain": {"root": "/srv/plain"},
			"full": {
				"root": "/srv/full", "profile": "workspace-write", "environment": "ci", "network": "enabled", "approvals": "confirm",
				"resources": {"participation": "required", "request": {"cpu_milli": 500, "memory_bytes": 1024, "tasks": 3,
					"minimum": {"cpu": "accounted", "memory": "kernel", "pids": "kernel"}}}
			},
			"reviewed": {"root": "/srv/reviewed", "environment": "here", "approvals": "review", "resources": {"participation": "off"}}
		}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	plain := valid("plain", writ.DefaultTenant, "/srv/plain")
	plain.Profile, plain.Participation = writ.ReadOnly, writ.ParticipationOff
	full := valid("full", writ.DefaultTenant, "/srv/full")
	full.Environment, full.EnvironmentKind, full.Network = "ci", writ.EnvironmentContainer, writ.NetworkEnabled
	full.Approvals, full.Participation = writ.ApprovalsConfirm, writ.ParticipationRequired
	reviewed := valid("reviewed", writ.DefaultTenant, "/srv/reviewed")
	reviewed.Profile, reviewed.Environment, reviewed.Approvals, reviewed.Participation = writ.ReadOnly, "here", writ.ApprovalsReview, writ.ParticipationOff
	if d := cmp.Diff([]writ.Workspace{full, plain, reviewed}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := NewRegistry(got); err != nil {
		t.Error(err)
	}
	for _, empty := range []string{`{}`, `{"workspaces": {}}`} {
		if got, err := ParseFile("registry.json", []byte(empty)); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", empty, got, err)
		}
	}
	// The implicit environment may be said to be another.
	got, err = ParseFile("r.json", []byte(`{"environments":{"local":{"kind":"linux-container"}},"workspaces":{"w":{"root":"/w"}}}`))
	if err != nil || got[0].EnvironmentKind != writ.EnvironmentContainer {
		t.Errorf("%+v, %v", got, err)
	}
}

// Each broken file has its golden message beside it: what an operator sees.
func TestBrokenFiles(t *testing.T) {
	names, err := filepath.Glob("testdata/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no broken files: %v", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all, err := ParseFile(filepath.Base(name), data)
			if writ.KindOf(err) != writ.Invalid || all != nil {
				t.Fatalf("%d workspaces, error %v", len(all), err)
			}
			golden := strings.TrimSuffix(name, ".json") + ".golden"
			text := writ.Message(err) + "\n"
			if *update {
				if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), text); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "registry.json")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := LoadFile(path); writ.KindOf(err) != writ.NotFound {
		t.Errorf("no file: %v", err)
	}
	if _, err := LoadFile(dir); writ.KindOf(err) != writ.Invalid {
		t.Errorf("a folder: %v", err)
	}
	write(`{"workspaces": {"w": {"root": "/w"}}}`, 0o644)
	if all, err := LoadFile(path); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	write(`{}`, 0o664)
	if _, err := LoadFile(path); writ.KindOf(err) != writ.Invalid || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("others may write it: %v", err)
	}
	write(strings.Repeat(" ", maxFileBytes)+"{}", 0o600)
	if _, err := LoadFile(path); writ.KindOf(err) != writ.Invalid || !strings.Contains(err.Error(), "larger") {
		t.Errorf("too large: %v", err)
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add(`{"environments":{"e":{"kind":"host"}},"workspaces":{"w":{"root":"/w","environment":"e","resources":{"participation":"off"}}}}`)
	f.Add("{\n\"workspaces\":\n{\"a/b~\":{\"root\":\"x\"}}}")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseFile("r.json", []byte(text))
		if err != nil {
			if writ.KindOf(err) != writ.Invalid || !strings.HasPrefix(writ.Message(err), "r.json:") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		for _, w := range all {
			if err := w.Validate(); err != nil {
				t.Errorf("%q gives a workspace that is not valid: %v", text, err)
			}
		}
	})
}
