package config

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestExampleIsTheDefault(t *testing.T) {
	got, err := Parse("example.yaml", Example())
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Identities, want.Hosts = []writ.Identity{}, []string{}
	want.MCP.Origins = []string{}
	want.Workspaces, want.Environments = []Workspace{}, []Environment{}
	want.Interpreter.Plans = []Plan{}
	if d := cmp.Diff(want, got, cmp.Comparer(sameSecret)); d != "" {
		t.Errorf("the example says another thing than Default (-default +example):\n%s", d)
	}
}

// A key that the example leaves out is one that nobody finds.
func TestExampleShowsEveryKey(t *testing.T) {
	src := source{at: map[string]position{}}
	cfg := Config{}
	if faults := src.decode(Example(), &cfg); len(faults) > 0 {
		t.Fatal(faults)
	}
	var want []string
	for _, f := range cfg.Limits.Default.Fields() {
		want = append(want, "limits.default."+f.Name, "limits.max."+f.Name)
	}
	want = append(want, "listen", "hosts", "mcp.issuer", "mcp.resource", "mcp.origins", "database", "policy", "identities", "workspaces", "environments", "approvals.ttl", "approvals.pending",
		"runner.slots", "runner.queue", "runner.queue_wait", "runner.warm", "runner.strict", "runner.bwrap", "runner.uid_base",
		"log.level", "log.format")
	for _, key := range append(want, leaves("interpreter", reflect.TypeFor[Interpreter]())...) {
		if _, ok := src.at[key]; !ok {
			t.Errorf("example.yaml lacks %s", key)
		}
	}
	if d := Default(); d.Validate() != nil {
		t.Errorf("Default is not valid: %v", d.Validate())
	}
}

// leaves are the keys beneath path that are no sections.
func leaves(path string, t reflect.Type) (out []string) {
	if t.Kind() != reflect.Struct {
		return []string{path}
	}
	for i, name := range keys(t) {
		out = append(out, leaves(path+"."+name, t.Field(i).Type)...)
	}
	return out
}

func TestEmptyFilesAreTheDefault(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "listen:\nlimits:\n  max:\n", "{}"} {
		got, err := Parse("c.yaml", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if d := cmp.Diff(Default(), got, cmp.Comparer(sameSecret)); d != "" {
			t.Errorf("%q (-default +got):\n%s", text, d)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := Parse("c.yaml", []byte(`
listen: "0.0.0.0:80"
database: postgres://writ:hunter2@db/writ
identities:
  - {id: coder, roles: [dev, "007"], scopes: [python]}
  - id: shell-agent
    tenant: acme
    scopes:
      - shell
hosts: [writ.example.com, 192.0.2.7, "2001:db8::7"]
approvals: {ttl: 90m, pending: 3}
limits:
  max:
    memory_bytes: 256MiB
    wall_ms: 2_000
runner: {slots: 3, strict: true, queue_wait: 1.5s}
mcp:
  issuer: http://127.0.0.1:9000
  resource: https://writ.example.com/mcp
  origins: ["https://app.example.com:8443"]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Listen = "0.0.0.0:80"
	want.Database = "postgres://writ:hunter2@db/writ"
	want.Identities = []writ.Identity{
		{ID: "coder", Tenant: "default", Roles: []string{"dev", "007"}, Scopes: []writ.Scope{"python"}},
		{ID: "shell-agent", Tenant: "acme", Scopes: []writ.Scope{"shell"}},
	}
	want.Hosts = []string{"writ.example.com", "192.0.2.7", "2001:db8::7"}
	want.Approvals = Approvals{TTL: 90 * time.Minute, Pending: 3}
	want.Limits.Max.MemoryBytes = 256 << 20
	want.Limits.Max.WallMS = 2000
	want.Limits.Default.MemoryBytes = 256 << 20 // not set in the file: follows the maximum down
	want.Limits.Default.WallMS = 2000
	want.Runner.Slots, want.Runner.Strict, want.Runner.QueueWait = 3, true, 1500*time.Millisecond
	want.MCP = MCP{"http://127.0.0.1:9000", "https://writ.example.com/mcp", []string{"https://app.example.com:8443"}}
	if d := cmp.Diff(want, got, cmp.Comparer(sameSecret)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "hunter2") {
		t.Errorf("a printed Config shows the password: %s", text)
	}
}

// Each broken file has its golden message beside it: what an operator sees.
func TestFaults(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no broken files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse(filepath.Base(file), data)
			if writ.KindOf(err) != writ.Invalid {
				t.Fatalf("got %v (kind %v), want Invalid", err, writ.KindOf(err))
			}
			got := writ.Message(err) + "\n"
			if strings.Contains(got, "hunter2") {
				t.Errorf("the message shows a password:\n%s", got)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const pg = "database: postgres://u:hunter2@h/d\n"
	for _, c := range []struct {
		name, path string
		kind       writ.Kind // Internal: no error
		says       string
	}{
		{"good", write("good", "listen: 127.0.0.1:1", 0o644), writ.Internal, ""},
		{"private with a password", write("private", pg, 0o600), writ.Internal, ""},
		{"public without a password", write("public", "database: postgres://h/d", 0o644), writ.Internal, ""},
		{"missing", filepath.Join(dir, "none"), writ.NotFound, "there is no file"},
		{"folder", dir, writ.Invalid, "not a regular file"},
		{"group may write", write("group", "", 0o660), writ.Invalid, "chmod go-w"},
		{"all may write", write("all", "", 0o602), writ.Invalid, "chmod go-w"},
		{"public with a password", write("leak", pg, 0o640), writ.Invalid, "chmod 600"},
		{"public with a signing secret", write("sign", "interpreter: {jwt: {algs: [HS256], keys: {secret: hunter2-hunter2-hunter2-hunter2-}}}", 0o644), writ.Invalid, "chmod 600"},
		{"public with a synthetic token", write("synthetic", "interpreter: {synthetic: {token: hunter2-hunter2-hunter2-hunter2-}}", 0o644), writ.Invalid, "chmod 600"},
		{"too large", write("large", strings.Repeat("#\n", maxBytes), 0o600), writ.Invalid, "larger than"},
		{"fault", write("fault", "polcy: x", 0o600), writ.Invalid, `fault:1:1: unknown key "polcy"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(c.path, NewOverlay(nil))
			if (err == nil) != (c.says == "") || err != nil && (writ.KindOf(err) != c.kind || !strings.Contains(writ.Message(err), c.says)) {
				t.Errorf("got %v (kind %v), want kind %v saying %q", err, writ.KindOf(err), c.kind, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

func TestValidateAfterFlags(t *testing.T) {
	c := Default()
	c.Listen, c.Log.Level = "8740", "loud"
	err := c.Validate()
	for _, want := range []string{"listen: ", "log.level: "} {
		if writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), want) {
			t.Errorf("got %v, want Invalid with %q", err, want)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ database, policy, wantDatabase, wantPolicy string }{
		{"", "policy", "sqlite:/data/writ.db", "/data/policy"},
		{"sqlite:x/y.db", "/etc/writ", "sqlite:/data/x/y.db", "/etc/writ"},
		{"sqlite:/v/y.db", "../p", "sqlite:/v/y.db", "/p"},
		{"postgres://h/d", "p", "postgres://h/d", "/data/p"},
	} {
		cfg := Config{Database: writ.Secret(c.database), Policy: c.policy}
		if got := cfg.DatabaseURL("/data").Reveal(); got != c.wantDatabase {
			t.Errorf("DatabaseURL(%q) = %q, want %q", c.database, got, c.wantDatabase)
		}
		if got := cfg.PolicyDir("/data"); got != c.wantPolicy {
			t.Errorf("PolicyDir(%q) = %q, want %q", c.policy, got, c.wantPolicy)
		}
	}
}

// Whatever the bytes, Parse answers with a valid configuration or with Invalid.
func FuzzParse(f *testing.F) {
	f.Add(Example())
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.ToValidUTF8(data, nil)
		cfg, err := Parse("f", data)
		if err != nil {
			if writ.KindOf(err) != writ.Invalid || writ.Message(err) == "" {
				t.Fatalf("got %v of kind %v", err, writ.KindOf(err))
			}
			return
		}
		if err := cfg.Validate(); err != nil {
			t.Fatalf("Parse let through what Validate refuses: %v", err)
		}
	})
}

func sameSecret(a, b writ.Secret) bool { return a.Reveal() == b.Reveal() }
