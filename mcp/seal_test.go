package mcp

import (
	"crypto/rand"
	"testing"
	"time"

	"writ"
)

// TestSealer_Expires: a state counts until its time, and is remembered as used no
// longer than that.
func TestSealer_Expires(t *testing.T) {
	key := make([]byte, 32)
	rand.Read(key)
	who := writ.Principal{Kind: writ.KindAgent, ID: "a", Tenant: "t"}
	now := time.Now()
	one, two := newSealer(key), newSealer(key)
	sealed := one.close("appr-1", who, "digest", now.Add(time.Minute))
	if _, err := one.open(sealed, who, "digest", now.Add(time.Minute)); err == nil {
		t.Error("a state is open after its time")
	}
	st, err := two.open(sealed, who, "digest", now)
	if err != nil || st.Approval != "appr-1" {
		t.Fatalf("another server with the key: %+v, %v", st, err)
	}
	if err := two.use(st, now); err != nil {
		t.Fatal(err)
	}
	if two.use(st, now) == nil {
		t.Error("used twice")
	}
	other := who
	other.Tenant = "u"
	if _, err := one.open(sealed, other, "digest", now); err == nil {
		t.Error("open for another tenant's agent of the same name")
	}
}
