package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/audit"
	"writ/internal/testkit"
)

func TestLogOfTwoTenants(t *testing.T) {
	s := house(t)
	ctx := t.Context()
	mine := s.MustSubmit(testkit.Run("bash", "1"))
	foreign, _, err := s.Submit(ctx, s.Agent("guest"), testkit.Run("bash", "1"))
	if err != nil {
		t.Fatal(err)
	}
	all := s.Events("")

	// An agent: the events of its own tasks.
	for _, tenant := range []writ.Tenant{"", "acme"} {
		list, more, err := s.Admin.Events(ctx, s.Agent("coder"), writ.EventFilter{Task: mine.ID, Tenant: tenant, After: -1})
		if err != nil || len(list) != 3 || more {
			t.Errorf("of tenant %q: %d events, more %v, %v", tenant, len(list), more, err)
		}
	}
	for _, f := range []writ.EventFilter{{After: -1}, {Task: foreign.ID, After: -1}, {Task: "task_none", After: -1},
		{Task: mine.ID, Tenant: "globex", After: -1}, {Task: foreign.ID, Tenant: "globex", After: -1}} {
		if _, _, err := s.Admin.Events(ctx, s.Agent("coder"), f); writ.KindOf(err) != writ.Denied {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for name, want := range map[string]int{"operator": 3, "foreign operator": 3, "local": 6} {
		who := principal(s, name)
		f := writ.EventFilter{After: -1}
		for _, tenant := range []writ.Tenant{"acme", "globex", "initech"} {
			sees := map[writ.Tenant]int{"acme": 3, "globex": 3}[tenant]
			if who.Kind == writ.KindOperator && who.Tenant != tenant {
				sees = -1
			}
			of := writ.EventFilter{After: -1, Tenant: tenant}
			list, _, err := s.Admin.Events(ctx, who, of)
			var b bytes.Buffer
			xerr := s.Admin.Export(ctx, who, &b, audit.JSONLines, of)
			switch {
			case sees >= 0 && (err != nil || xerr != nil || len(list) != sees || bytes.Count(b.Bytes(), []byte("\n")) != sees):
				t.Errorf("%s, tenant %s: %d events, %v, %v, exported %s", name, tenant, len(list), err, xerr, b.String())
			case sees < 0 && (writ.KindOf(err) != writ.Denied || writ.KindOf(xerr) != writ.Denied || len(list) != 0 || b.Len() != 0):
				t.Errorf("%s, tenant %s: %d events, %v, %v, exported %s", name, tenant, len(list), err, xerr, b.String())
			}
		}
		list, more, err := s.Admin.Events(ctx, who, f)
		if err != nil || more || len(list) != want {
			t.Errorf("%s: %d events, %v", name, len(list), err)
		}
		for _, format := range []string{audit.JSONLines, audit.CloudEvents} {
			var b bytes.Buffer
			if err := s.Admin.Export(ctx, who, &b, format, f); err != nil {
				t.Fatal(err)
			}
			n := 0
			for line := range strings.Lines(b.String()) {
				var e struct{ Tenant writ.Tenant }
				if err := json.Unmarshal([]byte(line), &e); err != nil || who.Kind == writ.KindOperator && e.Tenant != who.Tenant {
					t.Errorf("%s: %v in %s", name, err, line)
				}
				n++
			}
			if n != want {
				t.Errorf("%s: %d lines of %s", name, n, format)
			}
		}
		for _, e := range all {
			p, err := s.Admin.Prove(ctx, who, e.Seq)
			switch {
			case who.Kind == writ.KindOperator && e.Tenant != who.Tenant:
				if writ.KindOf(err) != writ.NotFound || p.Record != "" {
					t.Errorf("%s: proof of %d: %v", name, e.Seq, err)
				}
			case err != nil:
				t.Errorf("%s: proof of %d: %v", name, e.Seq, err)
			default:
				if err := audit.CheckProof(p, s.Admin.Verifier()); err != nil {
					t.Error(err)
				}
			}
		}
	}
	for _, seq := range []int64{-1, int64(len(all)), 1 << 62, -1 << 63} {
		if _, err := s.Admin.Prove(ctx, testkit.Local(), seq); writ.KindOf(err) != writ.NotFound {
			t.Errorf("proof of %d: %v", seq, err)
		}
	}
	var b bytes.Buffer
	if err := s.Admin.Export(ctx, testkit.Local(), &b, "xml", writ.EventFilter{}); writ.KindOf(err) != writ.Invalid || b.Len() != 0 {
		t.Errorf("%v, %d bytes", err, b.Len())
	}

	// A checkpoint that was kept is an anchor later on.
	c, err := s.Admin.Checkpoint(ctx, s.Operator("ann"))
	if err != nil || c.Size != int64(len(all)) {
		t.Fatalf("%+v, %v", c, err)
	}
	s.MustSubmit(testkit.Run("node", "1"))
	if r, err := s.Admin.Verify(ctx, s.Operator("eve"), []string{c.Note}); err != nil || !r.OK || r.Head.Size != c.Size+2 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.Admin.Verify(ctx, s.Operator("eve"), []string{"x"}); writ.KindOf(err) != writ.Invalid {
		t.Errorf("a malformed anchor: %v", err)
	}
	if e, err := s.Admin.Status(ctx); err != nil || e.Provider != "scripted" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestExplainOfAnotherTenantsIdentity(t *testing.T) {
	s := house(t)
	req := writ.TaskRequest{Identity: "coder", Spec: testkit.Run("python", "1").Spec}
	for name, want := range map[string]string{"agent": "allow", "operator": "allow", "local": "allow", "foreign admin": "not registered"} {
		x, err := s.Admin.Explain(t.Context(), principal(s, name), req)
		b, jerr := json.Marshal(x)
		if err != nil || jerr != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %s, %v %v", name, b, err, jerr)
		}
	}
}

// A page says whether the log has more of what was asked for.
func TestEventsSayThatThereAreMore(t *testing.T) {
	s := house(t)
	ctx, ann := t.Context(), s.Operator("ann")
	mine := s.MustSubmit(testkit.Run("bash", "1"))
	if _, _, err := s.Submit(ctx, s.Agent("guest"), testkit.Run("bash", "1")); err != nil { // of another tenant: not more of hers
		t.Fatal(err)
	}
	var got []writ.EventType
	pages := 0
	for f := (writ.EventFilter{After: -1, Limit: 2, Task: mine.ID}); ; pages++ {
		list, more, err := s.Admin.Events(ctx, ann, f)
		if err != nil || len(list) == 0 {
			t.Fatalf("%d events, %v", len(list), err)
		}
		for _, e := range list {
			got = append(got, e.Type)
			f.After = e.Seq
		}
		if !more {
			break
		}
	}
	want := []writ.EventType{writ.EventTaskReceived, writ.EventTaskDecided, writ.EventApprovalRequested}
	if d := cmp.Diff(want, got); d != "" || pages != 1 {
		t.Errorf("%d pages before the last, events (-want +got):\n%s", pages, d)
	}
	for _, limit := range []int{0, 3, writ.MaxPage + 1} {
		list, more, err := s.Admin.Events(ctx, ann, writ.EventFilter{After: -1, Limit: limit})
		if err != nil || len(list) != 3 || more {
			t.Errorf("limit %d: %d events, more %v, %v", limit, len(list), more, err)
		}
	}
}

// What an agent may ask about its own request is the answer that the request would
// get. How to get past the policy is for those who write it.
func TestExplainTellsAnAgentTheDecisionAlone(t *testing.T) {
	s := house(t)
	for _, language := range []writ.Language{"python", "bash", "node"} {
		req := writ.TaskRequest{Identity: "coder", Spec: testkit.Run(language, "1").Spec}
		var answers []map[string]any
		for _, who := range []writ.Principal{s.Agent("coder"), s.Operator("ann")} {
			x, err := s.Admin.Explain(t.Context(), who, req)
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			var a map[string]any
			if err := json.Unmarshal(b, &a); err != nil {
				t.Fatal(err)
			}
			answers = append(answers, a)
		}
		agent, operator := answers[0], answers[1]
		if len(agent) != 1 || len(operator) < 2 {
			t.Errorf("%s: the agent is told %v, the operator %v", language, agent, operator)
		}
		if d := cmp.Diff(operator["decision"], agent["decision"]); d != "" {
			t.Errorf("%s: other decisions (-operator +agent):\n%s", language, d)
		}
	}
}

// slow is a client that takes nothing until it is let.
type slow struct {
	asked chan struct{}
	open  <-chan struct{}
}

func (w slow) Write(p []byte) (int, error) {
	w.asked <- struct{}{}
	<-w.open
	return len(p), nil
}

// Clients that take their time over an export keep nobody else from the store.
func TestSlowExportsHoldNothing(t *testing.T) {
	s := house(t)
	open := make(chan struct{})
	s.MustSubmit(testkit.Run("bash", "1"))
	const clients = 20 // more than a store has connections
	asked, done := make(chan struct{}, clients), make(chan error, clients)
	for range clients {
		go func() {
			done <- s.Admin.Export(context.Background(), testkit.Local(), slow{asked, open}, audit.JSONLines, writ.EventFilter{After: -1})
		}()
	}
	for range clients {
		testkit.Receive(t, "a client is sent something", asked)
	}
	if _, _, err := s.Admin.Events(t.Context(), testkit.Local(), writ.EventFilter{After: -1}); err != nil {
		t.Error(err)
	}
	close(open)
	for range clients {
		if err := testkit.Receive(t, "an export ends", done); err != nil {
			t.Error(err)
		}
	}
}
