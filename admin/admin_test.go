package admin_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"writ"
	"writ/admin"
	"writ/audit"
	"writ/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a system with operators of two tenants, of which chief (acme) and boss
// (globex) may change who has access.
func house(t *testing.T) *testkit.System {
	return testkit.Gateway(t, func(g *testkit.GatewaySetup) {
		g.Operators = append(g.Operators,
			writ.Operator{ID: "chief", Tenant: "acme", Roles: []string{admin.RoleAdmin, "lead"}},
			writ.Operator{ID: "boss", Tenant: "globex", Roles: []string{admin.RoleAdmin}})
	})
}

// Callers by the names under which the matrix has them.
var callers = []string{"agent", "operator", "admin", "foreign operator", "foreign admin", "local"}

func principal(s *testkit.System, name string) writ.Principal {
	switch name {
	case "agent":
		return s.Agent("coder")
	case "operator":
		return s.Operator("ann")
	case "admin":
		return s.Operator("chief")
	case "foreign operator":
		return s.Operator("eve")
	case "foreign admin":
		return s.Operator("boss")
	}
	return testkit.Local()
}

// Who may what, to things of tenant acme.
func TestWhoMayWhat(t *testing.T) {
	const ok = "ok"
	denied, missing := writ.Denied.String(), writ.NotFound.String()
	type call func(ctx context.Context, s *testkit.System, who writ.Principal) error
	tests := []struct {
		name string
		call call
		want [6]string // in the order of callers
	}{
		{"create a key of an agent", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			_, err := s.Admin.CreateKey(ctx, who, writ.KeyRequest{Kind: writ.KindAgent, Subject: "coder"})
			return err
		}, [6]string{denied, denied, ok, denied, missing, ok}},
		{"create a key of an operator", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			_, err := s.Admin.CreateKey(ctx, who, writ.KeyRequest{Kind: writ.KindOperator, Subject: "bob"})
			return err
		}, [6]string{denied, denied, ok, denied, missing, ok}},
		{"create a key of nobody", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			_, err := s.Admin.CreateKey(ctx, who, writ.KeyRequest{Kind: writ.KindAgent, Subject: "nobody"})
			return err
		}, [6]string{denied, denied, missing, denied, missing, missing}},
		{"revoke a key", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			key, err := s.Admin.CreateKey(ctx, testkit.Local(), writ.KeyRequest{Kind: writ.KindAgent, Subject: "coder"})
			if err != nil {
				return err
			}
			return s.Admin.RevokeKey(ctx, who, key.ID)
		}, [6]string{denied, denied, ok, missing, missing, ok}},
		{"list keys", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			_, err := s.Admin.Keys(ctx, who)
			return err
		}, [6]string{denied, ok, ok, ok, ok, ok}},
		{"add an operator", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			_, err := s.Admin.AddOperator(ctx, who, writ.Operator{ID: "new", Tenant: "acme"})
			return err
		}, [6]string{denied, denied, ok, denied, denied, ok}},
		{"list operators", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			_, err := s.Admin.Operators(ctx, who)
			return err
		}, [6]string{denied, ok, ok, ok, ok, ok}},
		{"disable an operator", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			return s.Admin.DisableOperator(ctx, who, "bob")
		}, [6]string{denied, denied, ok, missing, missing, ok}},
		{"list all events", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			_, _, err := s.Admin.Events(ctx, who, writ.EventFilter{After: -1})
			return err
		}, [6]string{denied, ok, ok, ok, ok, ok}},
		{"export", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			return s.Admin.Export(ctx, who, &bytes.Buffer{}, audit.JSONLines, writ.EventFilter{After: -1})
		}, [6]string{denied, ok, ok, ok, ok, ok}},
		{"verify", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			_, err := s.Admin.Verify(ctx, who, nil)
			return err
		}, [6]string{denied, ok, ok, ok, ok, ok}},
		{"checkpoint", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			_, err := s.Admin.Checkpoint(ctx, who)
			return err
		}, [6]string{denied, ok, ok, ok, ok, ok}},
		{"prove the first event", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			_, err := s.Admin.Prove(ctx, who, 0)
			return err
		}, [6]string{denied, ok, ok, missing, missing, ok}},
		{"explain", func(ctx context.Context, s *testkit.System, who writ.Principal) error {
			_, err := s.Admin.Explain(ctx, who, writ.TaskRequest{Identity: "coder", Spec: testkit.Run("python", "1").Spec})
			return err
		}, [6]string{ok, ok, ok, ok, ok, ok}}, // foreign ones are told that there is no such identity
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, name := range callers {
				s := house(t)
				s.MustSubmit(writ.TaskRequest{Step: "of acme"})
				before := len(s.Events(""))
				err := tt.call(t.Context(), s, principal(s, name))
				got := ok
				if err != nil {
					got = writ.KindOf(err).String()
				}
				if got != tt.want[i] {
					t.Errorf("%s: %s (%v), want %s", name, got, err, tt.want[i])
				}
				if err != nil && tt.want[i] == missing && strings.Contains(err.Error(), "acme") {
					t.Errorf("%s is told of another tenant: %v", name, err)
				}
				if n := len(s.Events("")) - before; got != ok && n > 1 { // one: the key that the call made to revoke it
					t.Errorf("%s: refused, and %d events", name, n)
				}
				s.End()
			}
		})
	}
}

func TestKeys(t *testing.T) {
	s := house(t)
	ctx, chief := t.Context(), s.Operator("chief")
	soon := writ.Now().Add(time.Hour)
	key, err := s.Admin.CreateKey(ctx, chief, writ.KeyRequest{Kind: writ.KindAgent, Subject: "coder", Expires: &soon})
	if err != nil {
		t.Fatal(err)
	}
	if key.Tenant != "acme" || !strings.HasPrefix(key.Token, "writ_"+string(key.ID)+"_") || !key.Expires.Equal(soon) {
		t.Errorf("%+v", key)
	}
	stored, err := s.Admin.Key(ctx, key.ID)
	if err != nil || stored.Hash == "" || strings.Contains(fmt.Sprintf("%+v", stored), key.Token[len(key.Token)-10:]) {
		t.Errorf("%+v, %v", stored, err)
	}
	p, err := s.Admin.Subject(ctx, stored)
	if d := cmp.Diff(s.Agent("coder"), p); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	for range 2 {
		if err := s.Admin.RevokeKey(ctx, chief, key.ID); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err = s.Admin.Key(ctx, key.ID); err != nil || stored.Revoked == nil {
		t.Errorf("%+v, %v", stored, err)
	}
	past := writ.Now().Add(-time.Hour)
	for name, r := range map[string]writ.KeyRequest{
		"kind": {Kind: writ.KindLocal, Subject: "coder"}, "subject": {Kind: writ.KindAgent, Subject: "a b"}, "expiry": {Kind: writ.KindAgent, Subject: "coder", Expires: &past},
	} {
		if _, err := s.Admin.CreateKey(ctx, chief, r); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = s.Admin.Key(ctx, "none")
	if writ.KindOf(err) != writ.NotFound {
		t.Error(err)
	}
	if err := s.Admin.RevokeKey(ctx, chief, "none"); writ.KindOf(err) != writ.NotFound {
		t.Error(err)
	}

	var got []string
	for _, e := range s.Events("") {
		if e.Tenant != "acme" || e.Actor != chief.Ref() || strings.Contains(e.Data.Subject, key.Token) {
			t.Errorf("%+v", e)
		}
		got = append(got, string(e.Type)+" "+e.Data.Subject)
	}
	want := []string{"key.created " + string(key.ID) + " agent coder", "key.revoked " + string(key.ID)} // once
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if strings.Contains(s.Slog.String(), key.Token) {
		t.Error("the token is in the log")
	}
}

func TestListsAreOfOneTenant(t *testing.T) {
	s := house(t)
	ctx := t.Context()
	for _, r := range []writ.KeyRequest{{Kind: writ.KindAgent, Subject: "coder"}, {Kind: writ.KindAgent, Subject: "guest"}, {Kind: writ.KindOperator, Subject: "eve"}} {
		if _, err := s.Admin.CreateKey(ctx, testkit.Local(), r); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][2]string{
		"operator": {"coder", "ann bob chief"}, "foreign operator": {"guest eve", "boss eve"}, "local": {"coder guest eve", "ann bob boss chief eve"},
	} {
		who := principal(s, name)
		keys, err := s.Admin.Keys(ctx, who)
		if err != nil {
			t.Fatal(err)
		}
		ops, err := s.Admin.Operators(ctx, who)
		if err != nil {
			t.Fatal(err)
		}
		var subjects, ids []string
		for _, k := range keys {
			subjects = append(subjects, k.Subject)
		}
		for _, o := range ops {
			ids = append(ids, o.ID)
		}
		slices.Sort(ids)
		slices.Sort(subjects)
		wantKeys := strings.Fields(want[0])
		slices.Sort(wantKeys)
		if !slices.Equal(subjects, wantKeys) || strings.Join(ids, " ") != want[1] {
			t.Errorf("%s sees keys of %v and operators %v", name, subjects, ids)
		}
	}
}

func TestOperators(t *testing.T) {
	s := house(t)
	ctx, chief := t.Context(), s.Operator("chief")
	key, err := s.Admin.AddOperator(ctx, chief, writ.Operator{ID: "carl", Roles: []string{"lead"}, Disabled: new(time.Now())})
	if err != nil || key.Kind != writ.KindOperator || key.Subject != "carl" || key.Tenant != "acme" {
		t.Fatalf("%+v, %v", key, err)
	}
	carl, err := s.Admin.Subject(ctx, key.Key)
	if err != nil || carl.Tenant != "acme" || !slices.Equal(carl.Roles, []string{"lead"}) {
		t.Errorf("%+v, %v", carl, err)
	}
	before := len(s.Events(""))
	for name, o := range map[string]writ.Operator{"again": {ID: "carl"}, "another tenant's name": {ID: "eve"}} {
		if _, err := s.Admin.AddOperator(ctx, chief, o); writ.KindOf(err) != writ.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]writ.Operator{"no name": {}, "a space": {ID: "a b"}, "role": {ID: "x", Roles: []string{""}}} {
		if _, err := s.Admin.AddOperator(ctx, chief, o); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(s.Events("")); n != before {
		t.Errorf("%d events of what was refused", n-before)
	}

	// Disabled, he is nobody at once: his key has no subject, his vote does not count,
	// and he is no approver for what comes.
	held := s.MustSubmit(testkit.Run("bash", "1"))
	for range 2 {
		if err := s.Admin.DisableOperator(ctx, chief, "carl"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Admin.Subject(ctx, key.Key); writ.KindOf(err) != writ.NotFound {
		t.Errorf("subject of a disabled operator's key: %v", err)
	}
	if _, err := s.Admin.CreateKey(ctx, chief, writ.KeyRequest{Kind: writ.KindOperator, Subject: "carl"}); writ.KindOf(err) != writ.NotFound {
		t.Errorf("key of a disabled operator: %v", err)
	}
	if err := s.Admin.DisableOperator(ctx, chief, "none"); writ.KindOf(err) != writ.NotFound {
		t.Error(err)
	}
	var got []string
	for _, e := range s.Events("") {
		if e.Task == "" {
			got = append(got, string(e.Type)+" "+e.Data.Subject)
		}
	}
	want := []string{"operator.added carl", "key.created " + string(key.ID) + " operator carl", "operator.disabled carl"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if held.State != writ.TaskHeld {
		t.Errorf("task is %s", held.State)
	}
}

// A key lives no longer than what it speaks for.
func TestSubjectOfAKeyThatMoved(t *testing.T) {
	s := house(t)
	for name, k := range map[string]writ.Key{
		"identity that is gone":         {Kind: writ.KindAgent, Subject: "gone", Tenant: "acme"},
		"identity of another tenant":    {Kind: writ.KindAgent, Subject: "guest", Tenant: "acme"},
		"operator that is gone":         {Kind: writ.KindOperator, Subject: "gone", Tenant: "acme"},
		"operator of another tenant":    {Kind: writ.KindOperator, Subject: "eve", Tenant: "acme"},
		"operator with an agent's name": {Kind: writ.KindOperator, Subject: "coder", Tenant: "acme"},
	} {
		if p, err := s.Admin.Subject(t.Context(), k); writ.KindOf(err) != writ.NotFound || p.ID != "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}
