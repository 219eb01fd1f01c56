package writ_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
)

// TestListsHaveEveryConstant: what is built on a list of all values (filters, the
// API's document, tables of tests) covers every constant of the type.
func TestListsHaveEveryConstant(t *testing.T) {
	declared := constants(t)
	for name, list := range map[string][]string{
		"TaskState":     append(text(writ.TaskStates), string(writ.TaskReceived)), // the one that is never stored
		"ApprovalState": text(writ.ApprovalStates),
		"Outcome":       text(writ.Outcomes),
		"EventType":     text(writ.EventTypes),
	} {
		want := declared[name]
		slices.Sort(want)
		slices.Sort(list)
		if diff := cmp.Diff(want, list); diff != "" || len(want) == 0 {
			t.Errorf("%s: constants (-) and list (+) differ:\n%s", name, diff)
		}
	}
	for i, k := range writ.Kinds {
		if int(k) != i || i > 0 && k.String() == writ.Internal.String() {
			t.Errorf("kind %d of the list is %d, %s", i, k, k)
		}
	}
	if next := writ.Kind(len(writ.Kinds)); next.String() != writ.Internal.String() {
		t.Errorf("kind %s is not in the list", next)
	}
}

// constants are the string constants of the root package, by the type they name.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, s := range sources(t) {
		if s.pkg != "." || s.test {
			continue
		}
		for _, d := range s.file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			for _, sp := range decl.Specs {
				v := sp.(*ast.ValueSpec)
				typ, named := v.Type.(*ast.Ident)
				for _, value := range v.Values {
					if lit, ok := value.(*ast.BasicLit); ok && named && lit.Kind == token.STRING {
						word, err := strconv.Unquote(lit.Value)
						if err != nil {
							t.Fatal(err)
						}
						out[typ.Name] = append(out[typ.Name], word)
					}
				}
			}
		}
	}
	return out
}

func text[T ~string](list []T) (out []string) {
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

// TestNarrowIsSeesForLists: a narrowed list has exactly what was asked for and is
// seen; where an operator or an agent asks for what is not its own, it has its own.
func TestNarrowIsSeesForLists(t *testing.T) {
	tenants, ids := []writ.Tenant{"acme", "globex"}, []writ.IdentityID{"coder", "guest"}
	for _, p := range []writ.Principal{
		{Kind: writ.KindLocal, ID: "root", Tenant: "acme"},
		{Kind: writ.KindOperator, ID: "ann", Tenant: "acme"},
		{Kind: writ.KindOperator, ID: "coder", Tenant: "globex"},
		{Kind: writ.KindAgent, ID: "coder", Tenant: "acme"},
		{Kind: writ.KindAgentRun, ID: "guest", Tenant: "globex"},
		{Kind: writ.KindUser, ID: "coder", Tenant: "acme"},
		{Kind: "", ID: "coder", Tenant: "acme"},
	} {
		for _, t1 := range append(tenants, "") {
			for _, id1 := range append(ids, "") {
				inTenant, ofIdentity := p.Narrow(t1, id1)
				for _, tenant := range tenants {
					for _, id := range ids {
						listed := (inTenant == "" || inTenant == tenant) && (ofIdentity == "" || ofIdentity == id)
						asked := (t1 == "" || t1 == tenant) && (id1 == "" || id1 == id)
						sees := p.Sees(tenant, id)
						if listed && !sees || asked && sees && !listed {
							t.Errorf("%s of %s asks for %q %q: %s of %s is listed %v, seen %v", p.Ref(), p.Tenant, t1, id1, id, tenant, listed, sees)
						}
					}
				}
			}
		}
	}
}

// TestSecretDoesNotShow: in every verb, also inside exported fields and behind a
// pointer in an unexported one. In clear in an unexported field it would.
func TestSecretDoesNotShow(t *testing.T) {
	const value = "sesame"
	s := writ.Secret(value)
	type holder struct {
		Key    writ.Secret
		hidden *writ.Secret
	}
	h := holder{s, &s}
	if h.hidden.Reveal() != value {
		t.Errorf("revealed as %q", h.hidden.Reveal())
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s"} {
		for _, v := range []any{s, &s, h, &h, []writ.Secret{s}, map[string]writ.Secret{"k": s}} {
			got := fmt.Sprintf(verb, v)
			if strings.Contains(got, value) || strings.Contains(strings.ToLower(got), fmt.Sprintf("%x", value)) {
				t.Errorf("%s of %T shows %s", verb, v, got)
			}
		}
	}
}

func TestRuleNamesItsPlaceOnce(t *testing.T) {
	for _, c := range []struct {
		rule writ.Rule
		want string
	}{
		{writ.Rule{ID: "no-shell", File: "10-base.cedar", Line: 3}, "no-shell (10-base.cedar:3)"},
		{writ.Rule{ID: "10-base.cedar:3", File: "10-base.cedar", Line: 3}, "10-base.cedar:3"},
		{writ.Rule{ID: "10-base.cedar:4", File: "10-base.cedar", Line: 3}, "10-base.cedar:4 (10-base.cedar:3)"},
	} {
		if got := c.rule.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
