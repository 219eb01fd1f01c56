package session

import (
	"context"
	"strings"
	"testing"

	"writ"
)

// TestIO11_ForeignIsReported: whoever asks for what is another's is told what is told of
// nothing, and the operator learns of it, by ids alone. What is one's own and over, or
// nowhere, is nobody's business.
func TestIO11_ForeignIsReported(t *testing.T) {
	opt := Defaults()
	var reported []string
	opt.Foreign = func(_ context.Context, p writ.Principal, what string) { reported = append(reported, p.ID+": "+what) }
	d, ctx, ada, bob := newDesk(t, opt), context.Background(), user("ada"), user("bob")
	team := Entity{Kind: writ.EntityAgent, ID: "team"}
	mine, hers, shared := d.create(t, bob, own), d.create(t, ada, own), d.create(t, ada, team)
	secret := d.put(t, ada, own, hers, text("secret.txt", "s"))
	common := d.put(t, ada, team, shared, text("common.txt", "c"))
	twin := d.put(t, bob, own, d.create(t, bob, own), text("twin.txt", "t"))
	if len(reported) != 0 {
		t.Errorf("reported %q", reported)
	}
	nowhere, none := writ.NewSessionID(), writ.NewObjectID()
	for _, c := range []struct {
		name    string
		p       writ.Principal
		e       Entity
		session writ.SessionID
		object  writ.ObjectID
		want    string // of a call on the session, where there is none on an object
	}{
		{"another user's session", bob, own, hers, "", "bob: session " + string(hers) + ""},
		{"another tenant's session", writ.Principal{Kind: writ.KindUser, ID: "ada", Tenant: "evil"}, own, hers, "", "ada: session " + string(hers) + ""},
		{"the session of another entity", ada, own, shared, "", "ada: session " + string(shared) + ""},
		{"another user's object in one's own session", bob, own, mine, secret.ID, "bob: object " + string(secret.ID) + " of session " + string(hers) + ""},
		{"an object of another entity", bob, own, mine, common.ID, "bob: object " + string(common.ID) + " of session " + string(shared) + ""},
		{"a session that is nowhere", bob, own, nowhere, "", ""},
		{"an object that is nowhere", bob, own, mine, none, ""},
		{"one's own object in another of one's sessions", bob, own, mine, twin.ID, ""},
		{"what no session is called", bob, own, "../x", "", ""},
	} {
		calls := map[string]func() error{
			"get":    func() error { _, err := d.Get(ctx, c.p, c.e, c.session, c.object); return err },
			"delete": func() error { return d.Delete(ctx, c.p, c.e, c.session, c.object) },
		}
		if c.object == "" {
			calls["find"] = func() error { _, err := d.Find(ctx, c.p, c.e, c.session); return err }
			calls["list"] = func() error { _, err := d.List(ctx, c.p, c.e, c.session); return err }
			calls["list keep"] = func() error { _, err := d.ListKeep(ctx, c.p, c.e, c.session); return err }
			calls["put"] = func() error { _, err := d.Put(ctx, c.p, c.e, c.session, text("x", "x")); return err }
			calls["adopt"] = func() error { _, err := d.Adopt(ctx, c.p, c.e, c.session, nil); return err }
		}
		for name, call := range calls {
			reported = nil
			err := call()
			if writ.KindOf(err) != writ.NotFound || writ.Message(err) != missingMsg || strings.Contains(err.Error(), "is not the caller's") {
				t.Errorf("%s, %s: %v", c.name, name, err)
			}
			got := strings.Join(reported, "; ")
			if got != c.want {
				t.Errorf("%s, %s: reported %q, want %q", c.name, name, got, c.want)
			}
		}
	}
	reported = nil
	d.pass(d.opt.TTL)
	if _, err := d.Get(ctx, ada, own, hers, secret.ID); writ.KindOf(err) != writ.NotFound || len(reported) != 0 {
		t.Errorf("one's own that is over: %v, reported %q", err, reported)
	}
	if _, err := d.Get(ctx, bob, own, hers, secret.ID); writ.KindOf(err) != writ.NotFound || len(reported) != 1 {
		t.Errorf("another's that is over: %v, reported %q", err, reported)
	}
}
