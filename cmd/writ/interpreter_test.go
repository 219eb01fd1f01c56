package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/auth"
	"writ/config"
	"writ/lang"
	"writ/limit"
	"writ/session"
)

// The configuration knows no package whose settings it has: what it has as defaults is held
// against theirs here.
func TestInterpreterDefaultsAreThoseOfTheParts(t *testing.T) {
	in := config.Default().Interpreter
	same := func(what string, want, got any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-part +configuration):\n%s", what, d)
		}
	}
	same("rates", limit.DefaultRules(), rulesOf(in.Rates))
	same("tokens", auth.DefaultTokenOptions(), auth.TokenOptions{
		Issuer: in.JWT.Issuer, Audience: in.JWT.Audience, Algs: in.JWT.Algs, Skew: in.JWT.Skew, MaxTTL: in.JWT.MaxTTL,
		Refresh: in.JWT.Refresh, Strict: in.StrictTenants, SingleTenant: in.JWT.SingleTenant,
	})
	same("synthetic tests", auth.DefaultSynthetic(), auth.Synthetic{Secret: in.Synthetic.Token.Reveal(), User: in.Synthetic.User, Tenant: in.Synthetic.Tenant})
	same("sessions", session.Defaults(), sessionOptions(in))
	scopes := map[writ.Scope]bool{}
	for _, l := range lang.For(writ.RunInterpreter) {
		scopes[l.Scope] = true
	}
	for _, s := range in.Scopes {
		if !scopes[s] {
			t.Errorf("scope %q is of no language", s)
		}
		delete(scopes, s)
	}
	if len(scopes) > 0 {
		t.Errorf("users may not ask for %v", scopes)
	}
}

// A box counts its files in memory: a run that may use all of its memory and all of its
// folder must not be ended for either.
func TestBoxesKeptReadyHaveRoomForFiles(t *testing.T) {
	in := config.Default().Interpreter
	if got := boxLimits(in); got.MemoryBytes != in.Limits.MemoryBytes+in.Limits.WorkspaceBytes || got.WorkspaceBytes != in.Limits.WorkspaceBytes {
		t.Errorf("got %+v of %+v", got, in.Limits)
	}
}

func TestFetchKeys(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "other's") }))
	defer other.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "keys") })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/created", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for path, want := range map[string]string{"/keys": "keys", "/moved": "keys", "/away": "", "/round": "", "/created": "", "/none": ""} {
		got, err := fetchKeys(t.Context(), srv.URL+path)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", path, got, err, want)
		}
	}
	if got, err := fetchKeys(t.Context(), srv.URL+"/endless"); err != nil || len(got) != auth.MaxKeySet+1 {
		t.Errorf("of an endless answer %d bytes were read (%v), want %d", len(got), err, auth.MaxKeySet+1)
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := fetchKeys(ctx, srv.URL+"/hangs"); err == nil {
		t.Error("an address that hangs answered")
	}
}
