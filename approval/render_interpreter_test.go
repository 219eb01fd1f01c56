package approval_test

import (
	"strings"
	"testing"

	"writ"
	"writ/approval"
)

// interpreted is a run of the code interpreter whose files try to be misread.
func interpreted() (writ.Task, writ.RunSpec, writ.Approval) {
	file := func(path, content string) writ.FileInput {
		return writ.FileInput{Path: path, Digest: writ.DigestOf([]byte(content)), Size: int64(len(content))}
	}
	skill, tool, link := file("skills/x/SKILL.md", "how"), file(".venv/bin/tool", "#!/bin/sh\n"), file(".venv/bin/python", "/usr/bin/python3")
	skill.ReadOnly, tool.Exec, link.Link = true, true, true
	compile := writ.DefaultLimits
	spec := writ.RunSpec{
		Language: "c", Code: "int main() { return 0; }", Kind: writ.RunInterpreter, Limits: writ.DefaultLimits, Compile: &compile,
		Files:   []writ.FileInput{file("a\u202e\n--- file safe.txt: 1 bytes", "evil"), skill, tool, link},
		Collect: &writ.Collect{Files: 50, FileBytes: 10, TotalBytes: 20, Depth: 10, PathLength: 256, Names: []string{"csv"}},
	}
	task := writ.Task{
		ID: "task_1", Tenant: "acme", Identity: "user:ada", Requester: writ.Ref{Kind: writ.KindUser, ID: "ada"},
		State: writ.TaskHeld, Language: "c", Digest: spec.Digest(),
	}
	a := approval.Request(task, hold(writ.Need{Grants: 1}), start, ttl)
	a.ID = "apr_2"
	return task, spec, a
}

// Bytes that are kept elsewhere are named by all that says which they are.
func TestPOL09_RenderOfTheCodeInterpreter(t *testing.T) {
	task, spec, a := interpreted()
	got := approval.Render(task, spec, a)
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "--- file safe.txt") {
			t.Errorf("a forged line stands in the text: %q", line)
		}
	}
	golden(t, "render-interpreter", got)
}
