package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
)

func TestWorkspaces(t *testing.T) {
	got, err := Parse("c.yaml", []byte(`
environments:
  - {id: ci, kind: linux-container}
workspaces:
  - id: least
    root: /srv/least
  - id: most
    tenant: acme
    root: /srv/most
    profile: workspace-write
    environment: ci
    network: enabled
    approvals: review
    rules: {read: [src], write: ["src/*"], deny_read: [.env], deny_write: [.git/hooks]}
  - {id: local, root: /srv/l, environment: local, approvals: off}
  - {id: asked, root: /srv/l, approvals: confirm}
`))
	if err != nil {
		t.Fatal(err)
	}
	least := writ.Workspace{
		ID: "least", Tenant: "default", Root: "/srv/least", Profile: writ.ReadOnly,
		Environment: "local", EnvironmentKind: writ.EnvironmentHost,
		Network: writ.NetworkRestricted, Approvals: writ.ApprovalsOff, Participation: writ.ParticipationOff,
	}
	local, asked := least, least
	local.ID, local.Root = "local", "/srv/l"
	asked.ID, asked.Root, asked.Approvals = "asked", "/srv/l", writ.ApprovalsConfirm
	most := writ.Workspace{
		ID: "most", Tenant: "acme", Root: "/srv/most", Profile: writ.WorkspaceWrite,
		Environment: "ci", EnvironmentKind: writ.EnvironmentContainer,
		Network: writ.NetworkEnabled, Approvals: writ.ApprovalsReview, Participation: writ.ParticipationOff,
		Rules: writ.PathRules{Read: []string{"src"}, Write: []string{"src/*"}, DenyRead: []string{".env"}, DenyWrite: []string{".git/hooks"}},
	}
	if d := cmp.Diff([]writ.Workspace{least, most, local, asked}, got.Registered()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, w := range got.Registered() {
		if err := w.Validate(); err != nil {
			t.Errorf("%s: %v", w.ID, err)
		}
	}
}

// The words of the example that are commented out must be true as well.
func TestExampleWorkspaceIsValid(t *testing.T) {
	text := string(Example())
	from := strings.Index(text, "workspaces: []")
	to := strings.Index(text, "approvals:\n")
	if from < 0 || to < from {
		t.Fatal("the example has no section of workspaces before approvals")
	}
	section := strings.NewReplacer(": []\n#  ", ":\n  ", "\n#  ", "\n  ").Replace(text[from:to])
	got, err := Parse("example.yaml", []byte(section))
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, section)
	}
	if len(got.Workspaces) != 1 || len(got.Environments) != 1 || len(got.Workspaces[0].Rules.DenyRead) != 2 {
		t.Errorf("read %+v, %+v", got.Workspaces, got.Environments)
	}
}
