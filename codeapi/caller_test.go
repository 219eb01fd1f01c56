package codeapi

import (
	"testing"

	"writ"
)

// TestRoomIsOfOneUser: who has the same name in another tenant, or is of another kind,
// takes none of it.
func TestRoomIsOfOneUser(t *testing.T) {
	ada := writ.Principal{Kind: writ.KindUser, Tenant: "acme", ID: "ada"}
	elsewhere, agent := ada, ada
	elsewhere.Tenant, agent.Kind = "globex", writ.KindAgent
	seen := map[caller]bool{callerOf(ada): true}
	for name, who := range map[string]writ.Principal{"another tenant's": elsewhere, "an agent": agent} {
		if seen[callerOf(who)] {
			t.Errorf("%s is ada", name)
		}
		seen[callerOf(who)] = true
	}
	again := ada
	if !seen[callerOf(again)] {
		t.Error("ada is somebody else the next time")
	}
}
