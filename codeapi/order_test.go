package codeapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"writ"
	"writ/auth"
)

const (
	hiReply    = `{"session_id":"aaaaaaaaaaaaaaaaaaaaa","files":[],"stdout":"hi\n","stderr":"","code":0,"signal":null,"message":null,"status":null,"wall_time":12}`
	hiBody     = `{"lang":"bash","code":"echo hi"}`
	noBearer   = `{"error":"Bearer token is required"}`
	badBearer  = `{"error":"Invalid bearer token"}`
	notFoundIs = `{"error":"Not found"}`
)

// TestReferenceAuthAndOrder: what the contract's reference answered to the same requests,
// and where it never answered (an array, another type), 400.
func TestReferenceAuthAndOrder(t *testing.T) {
	d := newDesk(t, deskOptions{jsonBytes: 2 << 20})
	good := d.bearer("ada")
	lower := [2]string{"Authorization", strings.Replace(good[1], "Bearer", "bearer", 1)}
	with := func(claim string, v any) [2]string {
		return [2]string{"Authorization", "Bearer " + d.token(map[string]any{claim: v})}
	}
	synthetic := [2]string{"X-CodeAPI-Synthetic-Token", syntheticSecret}
	key := [2]string{"X-API-Key", "k"}
	large := `{"lang":"bash","code":"` + strings.Repeat("x", 3<<20) + `"}`
	for name, tt := range map[string]struct {
		method, path, body string
		headers            [][2]string
		status             int
		want               string
	}{
		"health":                {"GET", "/v1/health", "", nil, 200, "OK"},
		"health HEAD":           {"HEAD", "/v1/health", "", nil, 200, ""},
		"health, slash, case":   {"GET", "/V1/Health/", "", nil, 200, "OK"},
		"health POST":           {"POST", "/v1/health", "", [][2]string{good}, 404, notFoundIs},
		"no auth":               {"POST", "/v1/exec", hiBody, [][2]string{asJSON}, 401, noBearer},
		"x-api-key":             {"POST", "/v1/exec", hiBody, [][2]string{asJSON, key}, 401, noBearer},
		"x-api-key + bearer":    {"POST", "/v1/exec", hiBody, [][2]string{asJSON, key, good}, 400, `{"error":"Ambiguous authentication headers"}`},
		"basic":                 {"POST", "/v1/exec", hiBody, [][2]string{asJSON, {"Authorization", "Basic abc"}}, 401, noBearer},
		"garbage bearer":        {"POST", "/v1/exec", hiBody, [][2]string{asJSON, {"Authorization", "Bearer abc"}}, 401, badBearer},
		"ok":                    {"POST", "/v1/exec", hiBody, [][2]string{asJSON, good}, 200, hiReply},
		"ok lower-case bearer":  {"POST", "/v1/exec", hiBody, [][2]string{asJSON, lower}, 200, hiReply},
		"aud wrong":             {"POST", "/v1/exec", hiBody, [][2]string{asJSON, with("aud", "x")}, 401, badBearer},
		"no sub":                {"POST", "/v1/exec", hiBody, [][2]string{asJSON, with("sub", nil)}, 401, badBearer},
		"an Agent's run":        {"POST", "/v1/exec", hiBody, [][2]string{asJSON, with("principal_source", "agent_run")}, 401, badBearer},
		"synthetic exec":        {"POST", "/v1/exec", hiBody, [][2]string{asJSON, synthetic}, 200, hiReply},
		"synthetic bad":         {"POST", "/v1/exec", hiBody, [][2]string{asJSON, {synthetic[0], "nope"}}, 401, `{"error":"Invalid synthetic token"}`},
		"synthetic other route": {"GET", "/v1/files/aaaaaaaaaaaaaaaaaaaaa", "", [][2]string{synthetic}, 403, `{"error":"Synthetic auth is only allowed for CodeAPI exec"}`},
		"synthetic cancel":      {"POST", "/v1/exec/programmatic/cancel", "{}", [][2]string{asJSON, synthetic}, 403, `{"error":"Synthetic auth is only allowed for CodeAPI exec"}`},
		"unknown route authed":  {"GET", "/v1/nope", "", [][2]string{good}, 404, notFoundIs},
		"unknown route unauth":  {"GET", "/v1/nope", "", nil, 401, noBearer},
		"v1 alone":              {"GET", "/v1", "", nil, 401, noBearer},
		"no /v1 prefix":         {"POST", "/exec", hiBody, [][2]string{asJSON, good}, 404, notFoundIs},
		"root":                  {"GET", "/", "", nil, 404, notFoundIs},
		"CP-04 /metrics":        {"GET", "/metrics", "", nil, 404, notFoundIs},
		"CP-04 pprof":           {"GET", "/debug/pprof/", "", nil, 404, notFoundIs},
		"CP-04 internal files":  {"PUT", "/sessions/aaaaaaaaaaaaaaaaaaaaa/objects/bbbbbbbbbbbbbbbbbbbbb", "x", nil, 404, notFoundIs},
		"CP-04 internal, v1":    {"PUT", "/v1/sessions/aaaaaaaaaaaaaaaaaaaaa/objects/bbbbbbbbbbbbbbbbbbbbb", "x", nil, 401, noBearer},
		"GET /v1/exec":          {"GET", "/v1/exec", "", [][2]string{good}, 404, notFoundIs},
		"OPTIONS":               {"OPTIONS", "/v1/exec", "", nil, 401, noBearer},
		"programmatic":          {"POST", "/v1/exec/programmatic", "{}", [][2]string{asJSON, good}, 404, notFoundIs},
		"malformed unauth":      {"POST", "/v1/exec", `{"lang":`, [][2]string{asJSON}, 400, `{"error":"JSON Parse error: Unexpected EOF"}`},
		"malformed authed":      {"POST", "/v1/exec", `{"lang":`, [][2]string{asJSON, good}, 400, `{"error":"JSON Parse error: Unexpected EOF"}`},
		"malformed, no route":   {"POST", "/v1/nope", `{"lang":`, [][2]string{asJSON}, 400, `{"error":"JSON Parse error: Unexpected EOF"}`},
		"array":                 {"POST", "/v1/exec", `[1]`, [][2]string{asJSON, good}, 400, `{"error":"the body must be a JSON object"}`},
		"array after space":     {"POST", "/v1/exec", " \n[{}]", [][2]string{asJSON, good}, 400, `{"error":"the body must be a JSON object"}`},
		"text/plain":            {"POST", "/v1/exec", hiBody, [][2]string{{"Content-Type", "text/plain"}, good}, 400, `{"error":"lang is required: name the language of the code in a JSON body, such as \"python\""}`},
		"no type":               {"POST", "/v1/exec", hiBody, [][2]string{good}, 400, `{"error":"lang is required: name the language of the code in a JSON body, such as \"python\""}`},
		"no body":               {"POST", "/v1/exec", "", [][2]string{asJSON, good}, 400, `{"error":"lang is required: name the language of the code in a JSON body, such as \"python\""}`},
		"with charset":          {"POST", "/v1/exec", hiBody, [][2]string{{"Content-Type", "Application/JSON; charset=UTF-8"}, good}, 200, hiReply},
		"another charset":       {"POST", "/v1/exec", hiBody, [][2]string{{"Content-Type", "application/json; charset=utf-16"}, good}, 415, `{"error":"unsupported charset \"UTF-16\""}`},
		"trailing slash":        {"POST", "/v1/exec/", hiBody, [][2]string{asJSON, good}, 200, hiReply},
		"two slashes":           {"POST", "/v1/exec//", hiBody, [][2]string{asJSON, good}, 404, notFoundIs},
		"slashes inside":        {"POST", "/v1//exec", hiBody, [][2]string{asJSON, good}, 404, notFoundIs},
		"case":                  {"POST", "/v1/EXEC", hiBody, [][2]string{asJSON, good}, 200, hiReply},
		"large authed":          {"POST", "/v1/exec", large, [][2]string{asJSON, good}, 413, `{"error":"request entity too large"}`},
		"large unauth":          {"POST", "/v1/exec", large, [][2]string{asJSON}, 413, `{"error":"request entity too large"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := d.send(t, tt.method, tt.path, tt.body, tt.headers...)
			want(t, got, tt.status, tt.want)
			if got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("the answer has no nosniff")
			}
			if strings.HasPrefix(tt.want, "{") && got.header.Get("Content-Type") != "application/json; charset=utf-8" {
				t.Errorf("Content-Type is %q", got.header.Get("Content-Type"))
			}
			for _, name := range []string{"Access-Control-Allow-Origin", "X-Powered-By", "WWW-Authenticate"} {
				if v := got.header.Get(name); v != "" {
					t.Errorf("the answer has %s: %s", name, v)
				}
			}
		})
	}
}

// TestReferenceTags: the weak tags of the contract's reference, byte for byte.
func TestReferenceTags(t *testing.T) {
	for body, tag := range map[string]string{
		"OK":     `W/"2-nOO9QiTIwXgNtWtBJezz8kv3SLc"`,
		noBearer: `W/"24-HET1mVYy4fGpYI3jnYRfTv7KKJM"`,
		`{"error":"Ambiguous authentication headers"}`: `W/"2c-0mskY9Y6cs8dAEBPgYYDFzwoq7I"`,
		badBearer: `W/"20-UIuM3vidUIiqA5pzEX4VZfS7ML0"`,
	} {
		if got := weakTag([]byte(body)); got != tag {
			t.Errorf("the tag of %s is %s, want %s", body, got, tag)
		}
	}
}

// TestTagsAreAnswered: who has an answer already is told so, as the contract's reference
// does; an answer that is an error is given again.
func TestTagsAreAnswered(t *testing.T) {
	d := newDepot(t, depotOptions{})
	up := d.mustUpload(t, ada, "/upload", field("kind", "user"), file("a.txt", "a"))
	list, object := "/files/"+string(up.Session)+"?kind=user", fmt.Sprintf("/sessions/%s/objects/%s?kind=user", up.Session, up.Files[0].ID)
	for _, path := range []string{"/health", list, object} {
		tag := d.ask(t, ada, "GET", path, nil).header.Get("ETag")
		for known, status := range map[string]int{
			tag: 304, strings.TrimPrefix(tag, "W/"): 304, `"a", ` + tag + `, "b"`: 304, "*": 304, `"a"`: 200, "": 200,
		} {
			for _, method := range []string{"GET", "HEAD"} {
				got := d.ask(t, ada, method, path, nil, "If-None-Match", known)
				if got.status != status || got.header.Get("ETag") != tag || status == 304 && (got.body != "" || got.header.Get("Content-Type") != "") {
					t.Errorf("%s %s by who has %q: %+v, want %d", method, path, known, got, status)
				}
				if limited := got.header.Get("RateLimit-Limit") != ""; limited != (path != "/health") {
					t.Errorf("%s %s by who has %q: headers %v", method, path, known, got.header)
				}
			}
		}
	}
	if got := d.ask(t, bob, "GET", list, nil, "If-None-Match", "*"); !got.is(403, unauthorized) {
		t.Errorf("what is another's: %+v", got)
	}
	if got := d.upload(t, ada, "/upload", field("kind", "user")); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	form := formOf(field("kind", "user"), file("b.txt", "b"))
	if got := d.ask(t, ada, "POST", "/upload", strings.NewReader(form), "Content-Type", formType, "If-None-Match", "*"); got.status != 200 {
		t.Errorf("an upload by who has all: %+v", got)
	}
}

// TestReferenceRoutes: each route under each spelling and each method: letters of either
// case and one slash at the end are the same, all else is not found, and who has no
// credential learns none of that.
func TestReferenceRoutes(t *testing.T) {
	d := newDesk(t, deskOptions{})
	const id = "aaaaaaaaaaaaaaaaaaaaA"
	reached := map[string]string{ // what each answers to a request that says nothing
		"GET /health": "200 OK", "HEAD /health": "200 ",
		"POST /exec":                     `400 {"error":"lang is required: name the language of the code in a JSON body, such as \"python\""}`,
		"POST /exec/programmatic/cancel": `400 {"error":"Invalid or missing request_id"}`,
		"POST /upload":                   `400 {"error":"Invalid content type. Must be multipart/form-data."}`,
		"POST /upload/batch":             `400 {"error":"Invalid content type. Must be multipart/form-data."}`,
	}
	for _, rt := range []string{"GET /files/" + id, "DELETE /files/" + id + "/" + id, "GET /sessions/" + id + "/objects/" + id, "GET /download/" + id + "/" + id} {
		reached[rt] = `400 {"error":"kind must be one of: skill, agent, user"}`
		if path, ok := strings.CutPrefix(rt, "GET "); ok {
			reached["HEAD "+path] = "400 "
		}
	}
	upper := func(path string) string { // but for ids
		parts := strings.Split(path, "/")
		for i, part := range parts {
			if part != id {
				parts[i] = strings.ToUpper(part)
			}
		}
		return strings.Join(parts, "/")
	}
	for _, path := range []string{
		"/health", "/exec", "/exec/programmatic", "/exec/programmatic/cancel", "/upload", "/upload/batch", "/files/" + id, "/files/" + id + "/" + id,
		"/sessions/" + id + "/objects/" + id, "/sessions/" + id + "/objects", "/download/" + id + "/" + id, "/download/" + id, "/files", "/languages",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
			there, ok := reached[method+" "+path]
			if !ok {
				there = "404 " + notFoundIs
				if method == "HEAD" {
					there = "404 "
				}
			}
			for spelled, want := range map[string]string{
				"/v1" + path: there, "/v1" + path + "/": there, "/V1" + upper(path): there, "/V1" + upper(path) + "/": there, "/%56%31" + path: there,
				"/v1" + path + "//": "404 " + notFoundIs, "/v1/" + path: "404 " + notFoundIs, path: "404 " + notFoundIs, "/v1" + path + "/x/y/z": "404 " + notFoundIs,
			} {
				if method == "HEAD" {
					want, _, _ = strings.Cut(want, "{")
				}
				got := d.send(t, method, spelled, "", d.bearer("ada"))
				if said := fmt.Sprintf("%d %s", got.status, got.body); said != want {
					t.Errorf("%s %s: %s, want %s", method, spelled, said, want)
				}
				if got.header.Get("Allow") != "" {
					t.Errorf("%s %s: Allow: %s", method, spelled, got.header.Get("Allow"))
				}
				stranger := 401
				if strings.HasPrefix(want, "200") {
					stranger = 200
				} else if !strings.HasPrefix(strings.ToLower(spelled), "/v1") && !strings.HasPrefix(spelled, "/%") {
					stranger = 404
				}
				if got := d.send(t, method, spelled, ""); got.status != stranger {
					t.Errorf("%s %s of a stranger: %d %s, want %d", method, spelled, got.status, got.body, stranger)
				}
			}
		}
	}
}

// TestReferenceProviders: deployments that ask for no token, as the contract's reference
// answered, and who their runs are of.
func TestReferenceProviders(t *testing.T) {
	key, junk := [2]string{"X-API-Key", "k"}, [2]string{"Authorization", "Bearer junk"}
	for name, tt := range map[string]struct {
		provider auth.Provider
		body     string
		headers  [][2]string
		status   int
		want     string
		who      string
	}{
		"none":                  {auth.ProviderNone, hiBody, nil, 200, hiReply, "anonymous"},
		"none: User-Id":         {auth.ProviderNone, `{"lang":"bash","code":"","user_id":"bob"}`, [][2]string{{"User-Id", "ada"}}, 200, hiReply, "ada"},
		"none: user_id":         {auth.ProviderNone, `{"lang":"bash","code":"","user_id":"bob"}`, nil, 200, hiReply, "bob"},
		"none: user_id, number": {auth.ProviderNone, `{"lang":"bash","code":"","user_id":7}`, nil, 200, hiReply, "anonymous"},
		"none: junk":            {auth.ProviderNone, hiBody, [][2]string{junk}, 200, hiReply, "anonymous"},
		"none: X-API-Key":       {auth.ProviderNone, hiBody, [][2]string{key}, 401, noBearer, ""},
		"local":                 {auth.ProviderLocal, `{"lang":"bash","code":"","user_id":"bob"}`, [][2]string{{"User-Id", "ada"}}, 200, hiReply, "local-test-user"},
		"local: X-API-Key":      {auth.ProviderLocal, hiBody, [][2]string{key, junk}, 200, hiReply, "local-test-user"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, deskOptions{provider: tt.provider})
			want(t, d.send(t, "POST", "/v1/exec", tt.body, append(tt.headers, asJSON)...), tt.status, tt.want)
			_, by := d.runs.all()
			if tt.who == "" && len(by) == 0 {
				return
			}
			if len(by) != 1 || by[0].ID != tt.who || by[0].Kind != writ.KindUser || by[0].Tenant != "local" || by[0].Administers() {
				t.Errorf("runs are of %+v, want one of %s", by, tt.who)
			}
		})
	}
}

// TestJW14_CP02_IdentityIsTheTokens: whatever else a request says of who sends it.
func TestJW14_CP02_IdentityIsTheTokens(t *testing.T) {
	d := newDesk(t, deskOptions{})
	got := d.send(t, "POST", "/v1/exec", `{"lang":"bash","code":"","user_id":"alice","entity_id":"alice","session_id":"aaaaaaaaaaaaaaaaaaaaa","tenant_id":"globex"}`,
		asJSON, d.bearer("bob"), [2]string{"User-Id", "alice"}, [2]string{"X-User-Id", "alice"}, [2]string{"X-Account-Id", "alice"}, [2]string{"X-Tenant-Id", "globex"})
	want(t, got, 200, hiReply)
	if _, by := d.runs.all(); len(by) != 1 || by[0].ID != "bob" || by[0].Tenant != "acme" {
		t.Errorf("the run is of %+v, want bob of acme", by)
	}
}

// TestNotLive: what would begin something answers 503 while the server starts or stops,
// and costs nothing of a limit; the rest answers.
func TestNotLive(t *testing.T) {
	d := newDesk(t, deskOptions{})
	d.down.Store(&writ.Error{Kind: writ.Unavailable, Msg: "Service is starting up", Err: errors.New("the runner is not there yet")})
	const starting = `{"error":"Service is starting up"}`
	for _, path := range []string{"/v1/exec", "/v1/upload", "/v1/upload/batch"} {
		got := d.send(t, "POST", path, hiBody, asJSON, d.bearer("ada"))
		want(t, got, 503, starting)
		if got.header.Get("RateLimit-Limit") != "" {
			t.Errorf("%s was counted", path)
		}
		want(t, d.send(t, "POST", path, hiBody, asJSON), 401, noBearer)
	}
	health := d.send(t, "GET", "/v1/health", "")
	want(t, health, 503, "Service Unavailable")
	if health.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("health is %s", health.header.Get("Content-Type"))
	}
	want(t, d.send(t, "GET", "/v1/files/aaaaaaaaaaaaaaaaaaaaa?kind=user", "", d.bearer("ada")), 403, `{"error":"Unauthorized"}`)
	told := 0
	for _, line := range d.lines(t) {
		if line["error"] == "Service is starting up: the runner is not there yet" {
			told++
		}
	}
	if told != 4 {
		t.Errorf("the log tells %d times why, want 4", told)
	}
	d.down.Store(nil)
	want(t, d.exec(t, hiBody), 200, hiReply)
}

// TestCP10_BrowserPages: where no credential is asked for, a page of another site, or of a
// name that was made to lead here, gets nothing; with tokens, names are the proxy's matter.
func TestCP10_BrowserPages(t *testing.T) {
	d := newDesk(t, deskOptions{provider: auth.ProviderLocal, hosts: []string{"host.docker.internal"}})
	port := d.url[strings.LastIndex(d.url, ":"):]
	for name, tt := range map[string]struct {
		headers [][2]string
		status  int
	}{
		"loopback":                {nil, 200},
		"its own page":            {[][2]string{{"Origin", d.url}}, 200},
		"localhost":               {[][2]string{{"Host", "localhost" + port}}, 200},
		"IPv6":                    {[][2]string{{"Host", "[::1]" + port}}, 200},
		"configured":              {[][2]string{{"Host", "Host.Docker.Internal" + port}}, 200},
		"rebound name":            {[][2]string{{"Host", "evil.test" + port}}, 403},
		"rebound, no port":        {[][2]string{{"Host", "evil.test"}}, 403},
		"like loopback":           {[][2]string{{"Host", "127.0.0.1.evil.test"}}, 403},
		"page of another site":    {[][2]string{{"Origin", "https://evil.test"}}, 403},
		"page of another port":    {[][2]string{{"Origin", "http://127.0.0.1:1"}}, 403},
		"page without a name":     {[][2]string{{"Origin", "null"}}, 403},
		"link of another site":    {[][2]string{{"Sec-Fetch-Site", "cross-site"}}, 403},
		"two origins, ours last":  {[][2]string{{"Origin", "https://evil.test"}, {"Origin", d.url}}, 403},
		"two origins, ours first": {[][2]string{{"Origin", d.url}, {"Origin", "https://evil.test"}}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/v1/exec", "/v1/health"} {
				method, body := "POST", hiBody
				if path == "/v1/health" {
					method, body = "GET", ""
				}
				if got := d.send(t, method, path, body, append(tt.headers, asJSON)...); got.status != tt.status {
					t.Errorf("%s: %d %s, want %d", path, got.status, got.body, tt.status)
				}
			}
		})
	}
	tokens := newDesk(t, deskOptions{})
	if got := tokens.exec(t, hiBody, [2]string{"Host", "code.example.com"}, [2]string{"Origin", "https://chat.example.com"}); got.status != http.StatusOK {
		t.Errorf("with a token: %d %s", got.status, got.body)
	}
}

// TestCP13_PathsAreIds: what is no id reaches nothing.
func TestCP13_PathsAreIds(t *testing.T) {
	d := newDesk(t, deskOptions{})
	const ok = "aaaaaaaaaaaaaaaaaaaaa"
	for _, id := range []string{
		"..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "aaaaaaaaaaaaaaaaaaaa%2f", "a%00aaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaa", ok + "a",
		"aaaaaaaaaaaaaaaaaaaa.", "aaaaaaaaaaaaaaaaaaaa%C3%A9", "*", "%20", "tenant:user:ada",
	} {
		for _, p := range []struct{ method, path string }{
			{"GET", "/v1/files/" + id}, {"GET", "/v1/download/" + ok + "/" + id}, {"GET", "/v1/download/" + id + "/" + ok},
			{"GET", "/v1/sessions/" + id + "/objects/" + ok}, {"DELETE", "/v1/files/" + ok + "/" + id},
		} {
			req, err := http.NewRequest(p.method, d.url+p.path+"?kind=user", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.URL.Opaque = "//" + req.URL.Host + p.path // as it is, dots and all
			want(t, d.do(t, req, d.bearer("ada")), 400, `{"error":"Bad request"}`)
		}
	}
}
