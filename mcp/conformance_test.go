package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/mcp"
)

// notOffered are scenarios of an extension of the protocol, tasks, that is not offered.
// The suite runs them with a revision's requirements and scores none of them.
var notOffered = []string{
	"tasks-capability-negotiation", "tasks-dispatch-and-envelope", "tasks-lifecycle", "tasks-mrtr-composition",
	"tasks-mrtr-input", "tasks-request-headers", "tasks-request-state-removal", "tasks-required-task-error",
	"tasks-wire-fields",
}

// TestConformance runs the suite of the protocol's makers against the whole of the
// HTTP side: guard, eras, sessions and middleware, with the suite's fixtures beside the
// product's tools. What each scenario passes is recorded, so that a check which is no
// longer made is seen as one that fails.
func TestConformance(t *testing.T) {
	for _, set := range []struct {
		name    string
		args    []string
		failing []string
	}{
		{"default", nil, nil},
		{"2025-11-25", []string{"--requirements", "2025-11-25"}, nil},
		{"2026-07-28", []string{"--requirements", "2026-07-28"}, notOffered},
	} {
		t.Run(set.name, func(t *testing.T) {
			suite := testkit.MCPClient(t, "conformance")
			url := serveFixtures(t)
			out := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			args := slices.Concat(suite[1:], []string{"server", "--url", url + mcp.Path, "--output-dir", out}, set.args)
			said, err := exec.CommandContext(ctx, suite[0], args...).CombinedOutput()
			if err != nil {
				_, summary, ran := strings.Cut(string(said), "=== SUMMARY ===")
				if !ran {
					t.Fatalf("the suite does not run: %v\n%s", err, said)
				}
				t.Errorf("the suite fails: %v\n%s", err, summary)
			}

			got := scenarios(t, out)
			var failing []string
			for name, s := range got {
				if len(s.failed) > 0 {
					failing = append(failing, name)
				}
				if len(s.failed) > 0 && !slices.Contains(set.failing, name) {
					t.Errorf("%s: %s", name, strings.Join(s.failed, "\n"))
				}
			}
			slices.Sort(failing)
			if diff := cmp.Diff(set.failing, failing); diff != "" {
				t.Errorf("scenarios that fail (-known +got):\n%s", diff)
			}
			golden(t, "conformance-"+set.name+".golden", record(got))
		})
	}
}

// scenario is what the suite says of one.
type scenario struct {
	passed, skipped, warned int
	failed                  []string
}

// scenarios reads what the suite wrote beneath dir, a folder for each scenario.
func scenarios(t *testing.T, dir string) map[string]scenario {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the suite wrote no results: %v", err)
	}
	out := map[string]scenario{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct {
			ID           string `json:"id"`
			Status       string `json:"status"`
			ErrorMessage string `json:"errorMessage"`
		}
		if err := json.Unmarshal(data, &checks); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		// The folder is server-<scenario>-<time>, and the time has the form of stamp.
		const stamp = "-2006-01-02T15-04-05-000Z"
		folder := filepath.Base(filepath.Dir(file))
		if !strings.HasPrefix(folder, "server-") || len(folder) <= len("server-")+len(stamp) {
			t.Fatalf("the suite names a folder of results %s", folder)
		}
		name := folder[len("server-") : len(folder)-len(stamp)]
		if _, twice := out[name]; twice {
			t.Fatalf("two results of %s", name)
		}
		var s scenario
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				s.passed++
			case "SKIPPED":
				s.skipped++
			case "WARNING": // of what a server should do
				s.warned++
			case "INFO":
			case "FAILURE":
				s.failed = append(s.failed, c.ID+": "+c.ErrorMessage)
			default:
				t.Errorf("%s: %s has the status %q, which this test does not know", name, c.ID, c.Status)
			}
		}
		out[name] = s
	}
	return out
}

// record is what passes of each scenario in which nothing fails.
func record(got map[string]scenario) map[string]string {
	out := map[string]string{}
	for name, s := range got {
		if len(s.failed) > 0 {
			continue
		}
		out[name] = fmt.Sprintf("%d passed", s.passed)
		if s.skipped > 0 {
			out[name] += fmt.Sprintf(", %d skipped", s.skipped)
		}
		if s.warned > 0 {
			out[name] += fmt.Sprintf(", %d warned of", s.warned)
		}
	}
	return out
}

// serveFixtures serves a server with the fixtures. The suite has no key: each request
// is given one on the way.
func serveFixtures(t *testing.T) (url string) {
	t.Helper()
	s := newServer(t, newDesk(writ.ApprovalsOff))
	fixtures{s}.extend()
	h := s.HTTP(someKeys, mcp.HTTPOptions{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer alice-key")
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		h.Close(context.Background())
		srv.CloseClientConnections() // the suite leaves streams open
		srv.Close()
	})
	return srv.URL
}
