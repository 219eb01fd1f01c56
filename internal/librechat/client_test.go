package librechat

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ/internal/testkit"
)

// steps are what testdata/check.mjs has a client do.
var steps = []string{
	"upload-user-file", "upload-nested-name", "upload-batch-skill-readonly", "upload-batch-empty", "metadata-freshness",
	"exec-hello", "exec-files-in-out", "exec-nonzero", "exec-js-ts-bash", "bash-tool", "unsupported-language",
	"download-generated", "download-wrong-scope", "download-no-kind", "fetchSessionFiles",
	"ptc-python", "ptc-python-gather-files", "ptc-bash", "ptc-python-error", "ptc-abort-cancel",
	"toolnode-two-turns", "tool-search", "delete-file",
}

// without are the steps that need programmatic tool calling, which writ does not offer:
// POST /exec/programmatic is not found. Of the steps of that name one more passes, which
// asks for no more than an error.
var without = []string{"ptc-python", "ptc-python-gather-files", "ptc-bash", "ptc-abort-cancel"}

// TestClient has each client do its work, signed with LibreChat's tokens and without any.
// A step passes or does not as it is written above, and no other way.
func TestClient_3_9_2(t *testing.T)  { client(t, "3.9.2") }
func TestClient_3_6_15(t *testing.T) { client(t, "3.6.15") }
func TestClient_3_2_21(t *testing.T) { client(t, "3.2.21") }

func client(t *testing.T, version string) {
	node, folder := installed(t, version)
	for _, m := range []mode{signed, local} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			s := serve(t, setup{mode: m})
			out := t.TempDir()
			env := []string{"KEY=" + s.keyFile(), "KID=" + keyID}
			if m == local {
				env = append(env, "NOAUTH=1")
			}
			said := runNode(t, node, env, true, filepath.Join("testdata", "check.mjs"), folder, s.url, out)
			passed, all := results(t, out)
			if diff := cmp.Diff(steps, all); diff != "" {
				t.Errorf("the steps of the check:\n%s", diff)
			}
			want := slices.DeleteFunc(slices.Clone(steps), func(name string) bool { return slices.Contains(without, name) })
			if diff := cmp.Diff(want, passed); diff != "" {
				t.Errorf("the steps that pass (-want +got):\n%s\n%s", diff, said)
			}
		})
	}
}

// installed is the Node.js of the tests and the folder of a client.
func installed(t testing.TB, version string) (node, folder string) {
	t.Helper()
	node = testkit.MCPClient(t, "node")[0]
	folder = filepath.Join("testdata", "agents-"+version)
	// Read, not only looked for: go test's cache is then of what is installed.
	if _, err := os.ReadFile(filepath.Join(folder, "node_modules", ".installed")); err != nil {
		testkit.Missing(t, "librechat", "run scripts/librechat.sh: "+err.Error())
	}
	return node, folder
}

// runNode runs a script and answers what it says.
func runNode(t testing.TB, node string, env []string, mayFail bool, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Env = append(os.Environ(), env...)
	said, err := cmd.CombinedOutput()
	if exit := cmd.ProcessState; err != nil && !(mayFail && exit != nil && exit.ExitCode() == 1) {
		t.Fatalf("node %q: %v\n%s", args, err, said)
	}
	return string(said)
}

// results reads which steps passed, and which there were.
func results(t *testing.T, out string) (passed, all []string) {
	t.Helper()
	var r struct {
		Results []struct {
			Name string `json:"name"`
			Pass bool   `json:"pass"`
		} `json:"results"`
	}
	b, err := os.ReadFile(filepath.Join(out, "RESULTS.json"))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range r.Results {
		all = append(all, step.Name)
		if step.Pass {
			passed = append(passed, step.Name)
		}
	}
	return passed, all
}
