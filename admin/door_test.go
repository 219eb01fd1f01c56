package admin_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/admin"
	"writ/auth"
	"writ/internal/testkit"
)

// unknown is the token of a key that was never stored.
func unknown(t *testing.T) string {
	t.Helper()
	key, err := auth.NewKey(writ.KindAgent, "coder", "acme", nil, writ.Now())
	if err != nil {
		t.Fatal(err)
	}
	return key.Token
}

func TestAUD06_RefusedKeysAreRecords(t *testing.T) {
	s := house(t)
	ctx, now := t.Context(), time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	door := admin.NewDoor(s.Admin, slog.New(slog.NewJSONHandler(s.Slog, nil)))
	key, err := s.Admin.CreateKey(ctx, testkit.Local(), writ.KeyRequest{Kind: writ.KindAgent, Subject: "coder"})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := door.Bearer(ctx, key.Token, now); err != nil || p.ID != "coder" {
		t.Fatalf("%+v, %v", p, err)
	}
	before := len(s.Events(""))
	if before != 1 {
		t.Errorf("%d events: one that is let in is no event", before)
	}
	if err := s.Admin.RevokeKey(ctx, testkit.Local(), key.ID); err != nil {
		t.Fatal(err)
	}
	token := unknown(t)
	for _, tok := range []string{key.Token, token} {
		if _, err := door.Bearer(ctx, tok, now); writ.KindOf(err) != writ.Unauthenticated {
			t.Errorf("%v", err)
		}
	}
	es := s.Events("")[2:]
	if len(es) != 2 || !strings.Contains(es[0].Data.Reason, "revoked") || !strings.Contains(es[1].Data.Reason, "no key has this id") {
		t.Fatalf("%+v", es)
	}
	for _, e := range es {
		if e.Type != writ.EventAuthRefused || strings.Contains(e.Data.Reason, token[len(token)-20:]) || strings.Contains(e.Data.Reason, key.Token[len(key.Token)-20:]) {
			t.Errorf("%+v", e)
		}
	}
	if strings.Contains(s.Slog.String(), token) {
		t.Error("the token was logged")
	}
}

// Guessing does not fill the log: what is beyond a number in one minute is counted.
func TestRefusedKeysAreBoundedAMinute(t *testing.T) {
	s := house(t)
	ctx, now := t.Context(), time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	door := admin.NewDoor(s.Admin, slog.New(slog.DiscardHandler))
	for range 75 {
		if _, err := door.Bearer(ctx, unknown(t), now); writ.KindOf(err) != writ.Unauthenticated {
			t.Fatal(err)
		}
	}
	if n := len(s.Events("")); n != 60 {
		t.Errorf("%d events", n)
	}
	for i, want := range []int64{15, 0} {
		if _, err := door.Bearer(ctx, unknown(t), now.Add(time.Minute)); writ.KindOf(err) != writ.Unauthenticated {
			t.Fatal(err)
		}
		if es := s.Events(""); len(es) != 61+i || es[60+i].Data.Count != want {
			t.Errorf("%d events, last %+v", len(es), es[len(es)-1])
		}
	}
}
