package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"writ/doctor"
)

// Without bubblewrap nothing can run, and doctor says so and exits non-zero.
func TestScenario15_DoctorWithoutProvider(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	data := filepath.Join(t.TempDir(), "data")
	var out, errs strings.Builder
	code := run(t.Context(), []string{"--data", data, "doctor", "--json"}, env{strings.NewReader(""), &out, &errs, ""})
	if code != exitFailed {
		t.Errorf("exit code %d, want %d; stderr: %s", code, exitFailed, errs.String())
	}
	var report doctor.Report
	if err := json.Unmarshal([]byte(out.String()), &report); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if report.OK || report.Sandbox != nil {
		t.Errorf("report says OK=%v, sandbox %v", report.OK, report.Sandbox)
	}
	for _, c := range report.Checks {
		if c.Name == "bubblewrap" && (c.Status != doctor.Fail || !strings.Contains(c.Mend, "apt-get install bubblewrap")) {
			t.Errorf("got %+v, want a failure with the command that mends it", c)
		}
	}
}
