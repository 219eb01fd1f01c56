package rest_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"writ"
	"writ/rest"
)

// TestCP04_MetricsAreForThoseWhoAdminister: whoever else asks learns nothing.
func TestCP04_MetricsAreForThoseWhoAdminister(t *testing.T) {
	b := &backend{}
	s := rest.Services{Auth: b, Tasks: b, Approvals: b, Workspaces: b, Inbox: b, Files: b, Audit: b, Access: b, Policy: b}
	for name, tt := range map[string]struct {
		who    writ.Principal
		there  bool
		status int
	}{
		"the owner":            {owner(), true, http.StatusOK},
		"an operator":          {writ.Principal{Kind: writ.KindOperator, ID: "ann", Tenant: "acme"}, true, http.StatusOK},
		"an agent":             {agent(), true, http.StatusForbidden},
		"a user":               {writ.Principal{Kind: writ.KindUser, ID: "ada", Tenant: "acme"}, true, http.StatusForbidden},
		"where there are none": {owner(), false, http.StatusNotFound},
	} {
		s.Metrics = nil
		if tt.there {
			s.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain; version=0.0.4")
				_, _ = io.WriteString(w, "writ_numbers 7\n")
			})
		}
		api := rest.New(slog.New(slog.DiscardHandler), s, rest.Options{})
		socket := filepath.Join(t.TempDir(), "s")
		listen(t, api.Unix(func(net.Conn) (writ.Principal, error) { return tt.who, nil }), "unix", socket)
		c := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
		resp, err := c.Get("http://localhost/metrics")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // read to its end
		c.CloseIdleConnections()
		if resp.StatusCode != tt.status || strings.Contains(string(body), "writ_numbers") != (tt.status == http.StatusOK) {
			t.Errorf("%s: %d, %s", name, resp.StatusCode, body)
		}
	}
}
