package policy

import (
	"strings"
	"testing"

	cedar "github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"

	"writ"
)

// The request that Decide builds must be exactly what rules were checked against,
// or a condition could err on an attribute that is not there.
func TestRequestFitsTheSchema(t *testing.T) {
	c, err := newChecker()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []writ.PrincipalKind{writ.KindAgent, writ.KindAgentRun, writ.KindUser, writ.KindOperator, writ.KindLocal} {
		for _, r := range []Request{python(), {Action: writ.ActionRun}, patching("default", "acme"), {Action: writ.ActionRead}, {Action: writ.ActionExec}, {Action: writ.ActionInput}} {
			r.Principal.Kind = kind
			q, err := newQuestion(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.validator.Request(q.Request); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			for _, e := range []cedar.Entity{q.principal, q.resource} {
				if err := c.validator.Entity(e); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
		}
	}
}

// The checker takes it as given that no attribute is optional and that all
// principals have the same ones.
func TestSchemaKeepsItsRules(t *testing.T) {
	c, err := newChecker()
	if err != nil {
		t.Fatal(err)
	}
	var walk func(path string, rec resolved.RecordType)
	walk = func(path string, rec resolved.RecordType) {
		for name, a := range rec {
			if a.Optional {
				t.Errorf("%s.%s is optional", path, name)
			}
			if inner, ok := a.Type.(resolved.RecordType); ok {
				walk(path+"."+string(name), inner)
			}
		}
	}
	for uid, a := range c.schema.Actions {
		walk(uid.String(), a.AppliesTo.Context)
		for _, p := range a.AppliesTo.Principals {
			if got, want := names(c.schema.Entities[p].Shape), names(c.variables["principal"]); got != want {
				t.Errorf("%s has %s, want %s", p, got, want)
			}
		}
	}
	limits := c.variables["context"]["limits"].Type.(resolved.RecordType)
	var l writ.Limits
	for _, f := range l.Fields() {
		if _, ok := limits[cedar.String(f.Name)]; !ok {
			t.Errorf("the schema lacks limits.%s", f.Name)
		}
	}
	if len(limits) != len(l.Fields()) {
		t.Errorf("the schema has limits that no run has: %s", names(limits))
	}
	if !strings.Contains(Schema(), "entity Tenant") {
		t.Error("Schema is not the schema")
	}
}
