package gateway_test

import (
	"testing"

	"writ"
	"writ/internal/testkit"
)

// TestReadable: what is a workspace's and not beneath its root is for who may read
// there, as policy says now; who may not is recorded.
func TestReadable(t *testing.T) {
	s, ws := app(t, nil, nil)
	ctx := t.Context()
	for _, who := range []writ.Principal{s.Agent("coder"), s.Agent("reader"), testkit.Local()} {
		got, err := s.Tools.Readable(ctx, who, "app", "steer_status")
		if err != nil || got.Root != ws.Root {
			t.Errorf("%s: %+v, %v", who.ID, got, err)
		}
	}
	if n := len(s.Events("")); n != 0 {
		t.Errorf("%d events of what was allowed", n)
	}
	stranger := writ.Principal{Kind: writ.KindAgent, ID: "nobody", Tenant: ws.Tenant}
	_, err := s.Tools.Readable(ctx, stranger, "app", "steer_status")
	wantCode(t, "an identity that nobody registered", err, "UNAUTHORIZED")
	_, err = s.Tools.Readable(ctx, s.Agent("guest"), "app", "steer_status")
	wantCode(t, "an identity of another tenant", err, "WORKSPACE_NOT_FOUND")
	_, err = s.Tools.Readable(ctx, s.Agent("coder"), "none", "steer_status")
	wantCode(t, "a workspace that is not there", err, "WORKSPACE_NOT_FOUND")

	setPolicy(t, s.System, testkit.WorkspacePolicy+holdReads)
	_, err = s.Tools.Readable(ctx, s.Agent("coder"), "app", "work_open")
	wantCode(t, "a held read", err, "UNAUTHORIZED")
	var refused []string
	for _, e := range s.Events("") {
		if e.Type == writ.EventWorkspaceRefused {
			refused = append(refused, e.Actor.ID+" "+e.Data.Paths[0])
		}
	}
	if len(refused) != 2 || refused[0] != "nobody steer_status" || refused[1] != "coder work_open" {
		t.Errorf("recorded refusals: %v", refused)
	}
}
