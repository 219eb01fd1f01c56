package work_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"writ"
	"writ/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	builder = writ.Principal{Kind: writ.KindAgent, ID: "builder", Tenant: "acme"}
	tester  = writ.Principal{Kind: writ.KindAgent, ID: "tester", Tenant: "acme"}
	spy     = writ.Principal{Kind: writ.KindAgent, ID: "spy", Tenant: "evil"}
	olga    = writ.Principal{Kind: writ.KindOperator, ID: "olga", Tenant: "acme"}
	otto    = writ.Principal{Kind: writ.KindOperator, ID: "otto", Tenant: "evil"}
	owner   = writ.Principal{Kind: writ.KindLocal, ID: "root", Tenant: writ.DefaultTenant}
)

func space(id writ.WorkspaceID, tenant writ.Tenant, root string) writ.Workspace {
	return writ.Workspace{
		ID: id, Tenant: tenant, Root: root, Profile: writ.ReadOnly, Environment: "local", EnvironmentKind: writ.EnvironmentHost,
		Network: writ.NetworkRestricted, Approvals: writ.ApprovalsOff,
	}
}

// desk is a service with three workspaces, and shorthands that must not fail.
type desk struct {
	*testkit.Steering
	t testing.TB
}

func newDesk(t testing.TB, url string) desk {
	return desk{testkit.NewSteering(t, url, space("site", "acme", "/srv/site"), space("docs", "acme", "/srv/docs"), space("lair", "evil", "/srv/lair")), t}
}

// engines runs a test on both engines.
func engines(t *testing.T, test func(*testing.T, desk)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newDesk(t, "sqlite:"+filepath.Join(t.TempDir(), "writ.db")))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newDesk(t, testkit.Postgres(t)(t)))
	})
}

func wantCode(t testing.TB, what string, err error, code string) {
	t.Helper()
	if writ.CodeOf(err) != code || code == "" {
		t.Errorf("%s: %v with code %q, want %q", what, err, writ.CodeOf(err), code)
	}
}

func (d desk) open() writ.Work {
	d.t.Helper()
	w, err := d.Open(d.t.Context(), builder, "site", "")
	if err != nil {
		d.t.Fatal(err)
	}
	return w
}

func (d desk) draft(w writ.Work, body string, delivery writ.Delivery) writ.Intent {
	d.t.Helper()
	i, err := d.AddIntent(d.t.Context(), olga, w.ID, writ.IntentRequest{Body: body, Delivery: delivery})
	if err != nil {
		d.t.Fatal(err)
	}
	return i
}

func (d desk) queued(w writ.Work, body string, delivery writ.Delivery) writ.Intent {
	d.t.Helper()
	i := d.draft(w, body, delivery)
	i, err := d.QueueIntent(d.t.Context(), olga, i.ID, i.Revision)
	if err != nil {
		d.t.Fatal(err)
	}
	return i
}

// claim is the body of what an agent gets next, empty for nothing.
func (d desk) claim(w writ.Work) (body string, id writ.IntentID) {
	d.t.Helper()
	i, err := d.ClaimNext(d.t.Context(), builder, w.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	if i == nil {
		return "", ""
	}
	return i.Body, i.ID
}

func (d desk) complete(w writ.Work, id writ.IntentID) {
	d.t.Helper()
	if _, err := d.Complete(d.t.Context(), builder, w.ID, id, writ.IntentDone); err != nil {
		d.t.Fatal(err)
	}
}

func (d desk) finish(w writ.Work) writ.Finish {
	d.t.Helper()
	f, err := d.Finish(d.t.Context(), builder, w.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	return f
}

// wantFinish finishes and checks the answer.
func (d desk) wantFinish(w writ.Work, closed bool, queued int, state writ.WorkState) {
	d.t.Helper()
	if f := d.finish(w); f.Closed != closed || f.Queued != queued || f.Work.State != state {
		d.t.Errorf("finish: closed %v, queued %d, %s; want %v, %d, %s", f.Closed, f.Queued, f.Work.State, closed, queued, state)
	}
}

func (d desk) work(w writ.Work) writ.Work {
	d.t.Helper()
	w, err := d.Work(d.t.Context(), olga, w.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	return w
}

func (d desk) intents(w writ.Work) []writ.Intent {
	d.t.Helper()
	all, err := d.Intents(d.t.Context(), olga, w.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// bodies are the intents of a work and those of none, as "state body".
func (d desk) bodies(w writ.Work) string {
	d.t.Helper()
	var out []string
	for _, i := range d.intents(w) {
		s := string(i.State) + " " + i.Body
		if i.Work == "" {
			s += " (loose)"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func ids(all []writ.Intent, states ...writ.IntentState) (out []writ.IntentID) {
	for _, i := range all {
		if slices.Contains(states, i.State) {
			out = append(out, i.ID)
		}
	}
	return out
}
