package codeapi

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"writ"
	"writ/auth"
	"writ/blob"
	"writ/internal/testkit"
	"writ/limit"
	"writ/session"
)

// syntheticSecret is that of the desk's synthetic tests.
const syntheticSecret = "synthetic-token-0123456789-0123456789"

// desk is the API behind a real server, with real authentication, counts and sessions; what
// runs is scripted.
type desk struct {
	*API
	url  string // of the server, without /v1
	runs *scriptedRuns
	down atomic.Pointer[writ.Error] // why the server does not work
	key  ed25519.PrivateKey
	log  *logLines
}

type deskOptions struct {
	provider  auth.Provider // tokens when empty
	rules     *limit.Rules  // ample ones when nil
	jsonBytes int64         // 4 MiB when 0
	hosts     []string
	runs      *scriptedRuns
	observe   func(Observation)
}

func newDesk(t testing.TB, opt deskOptions) *desk {
	t.Helper()
	d := &desk{runs: opt.runs, log: &logLines{}}
	if d.runs == nil {
		d.runs = &scriptedRuns{}
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	d.key = key
	jwks := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","alg":"EdDSA","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	tokens, err := auth.NewTokens(auth.KeySources{JWKS: jwks}, auth.DefaultTokenOptions(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	synthetic := auth.DefaultSynthetic()
	synthetic.Secret = syntheticSecret
	front := auth.FrontOptions{Provider: auth.ProviderTokens, Tokens: tokens, Synthetic: synthetic}
	if opt.provider != "" {
		front.Provider = opt.provider
	}
	who, err := auth.NewFront(front)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := blob.OpenFolder(filepath.Join(t.TempDir(), "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	db := testkit.OpenStore(t, "sqlite:"+filepath.Join(t.TempDir(), "writ.db"))
	sessions, err := session.New(db, folder, session.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	rules := limit.Rule{Most: 1_000_000, Window: time.Hour}
	if opt.rules == nil {
		opt.rules = &limit.Rules{Exec: rules, Upload: rules, Download: rules, Fetch: rules}
	}
	if opt.jsonBytes == 0 {
		opt.jsonBytes = 4 << 20
	}
	d.API = New(slog.New(slog.NewJSONHandler(d.log, nil)), Services{
		Auth: who, Limits: limit.NewCounter(db, *opt.rules, nil), Sessions: sessions, Runs: d.runs,
		Live: func(context.Context) error {
			if e := d.down.Load(); e != nil {
				return e
			}
			return nil
		},
	}, Options{JSONBytes: opt.jsonBytes, FileBytes: func(writ.Principal) int64 { return 1 << 20 }, Hosts: opt.hosts, Observe: opt.observe})
	server := httptest.NewServer(d.API)
	t.Cleanup(server.Close)
	d.url = server.URL
	return d
}

// token is one of a front end's, with claims changed; nil leaves a claim out.
func (d *desk) token(change map[string]any) string {
	now := time.Now().Unix()
	m := map[string]any{
		"iss": "librechat", "aud": "codeapi", "sub": "ada", "iat": now, "nbf": now, "exp": now + 300,
		"jti": "67f65e43-3de6-421e-b014-f75e4951413d", "tenant_id": "acme", "role": "USER",
		"principal_source": "librechat_jwt", "auth_context_hash": "h1",
	}
	maps.Copy(m, change)
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
	payload, err := json.Marshal(m)
	if err != nil {
		panic(err) // of a test's own claims
	}
	enc := base64.RawURLEncoding
	in := enc.EncodeToString([]byte(`{"alg":"EdDSA","typ":"JWT","kid":"k1"}`)) + "." + enc.EncodeToString(payload)
	return in + "." + enc.EncodeToString(ed25519.Sign(d.key, []byte(in)))
}

// bearer is the header of a user's token.
func (d *desk) bearer(sub string) [2]string {
	return [2]string{"Authorization", "Bearer " + d.token(map[string]any{"sub": sub})}
}

var asJSON = [2]string{"Content-Type", "application/json"}

// send sends a request to a path of the server; a header whose value is empty is sent so.
func (d *desk) send(t testing.TB, method, path, body string, headers ...[2]string) answer {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = bytes.NewReader([]byte(body))
	}
	req, err := http.NewRequest(method, d.url+path, r)
	if err != nil {
		t.Fatal(err)
	}
	return d.do(t, req, headers...)
}

func (d *desk) do(t testing.TB, req *http.Request, headers ...[2]string) answer {
	t.Helper()
	for _, h := range headers {
		if h[0] == "Host" {
			req.Host = h[1]
			continue
		}
		req.Header.Add(h[0], h[1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL.Path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL.Path, err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// exec sends a body to /v1/exec as ada.
func (d *desk) exec(t testing.TB, body string, headers ...[2]string) answer {
	t.Helper()
	return d.send(t, "POST", "/v1/exec", body, append(headers, asJSON, d.bearer("ada"))...)
}

// want fails unless an answer has that status and exactly that body.
func want(t *testing.T, got answer, status int, body string) {
	t.Helper()
	if got.status != status || got.body != body {
		t.Errorf("%d %s\nwant %d %s", got.status, got.body, status, body)
	}
}

// logLines keeps log lines.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
