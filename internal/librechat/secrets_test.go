package librechat

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// hush is in all that is sent and is none of the log's business: code and output, names
// and bytes of files, headers, queries, and what of a token is not who it speaks for. It is
// so long that no id has it by chance.
const hush = "hushaby-hushaby"

// whisper sends a request with hush in each of its headers, and answers its status.
func (c tester) whisper(method, path, contentType, body, token string, more map[string]string) int {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, strings.TrimSuffix(c.s.url, "/v1")+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	header := map[string]string{
		"Content-Type": contentType, "Authorization": token, "User-Agent": hush, "Cookie": "a=" + hush, "Referer": "http://x/" + hush,
		"User-Id": hush, "X-Forwarded-For": hush, "X-Request-Id": hush, "X-" + hush: hush, "If-None-Match": `"` + hush + `"`,
		"X-LibreChat-Code-Workspace-ID": hush, "X-LibreChat-Code-Worker-ID": hush,
	}
	maps.Copy(header, more)
	for name, value := range header {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := c.s.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestCP03_SEC06_NothingThatWasSentIsTold puts a word into each place of requests that fare
// well and ill: neither the server's log, in which everything is, nor the audit log has it.
func TestCP03_SEC06_NothingThatWasSentIsTold(t *testing.T) {
	s := serve(t, setup{mode: signed, env: []string{"LOG_LEVEL=debug"}})
	c, other := s.user("one").in(t), s.user("other").in(t)
	quiet := map[string]any{"jti": hush, "auth_context_hash": hush, "org_id": hush, "service_id": hush, "external_user_id": hush, "role": hush + " ", hush: hush}
	mine, theirs := "Bearer "+c.claiming(quiet), "Bearer "+other.claiming(quiet)
	const asJSON = "application/json"
	want := func(what string, want, got int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}

	in := c.upload(upload{"dir/" + hush + ".txt", hush})[0]
	file := `{"id":"` + in.ID + `","storage_session_id":"` + in.Session + `","resource_id":"` + hush + `","name":"` + hush + `.txt","kind":"user"}`
	body := func(code, files, more string) string {
		return `{"lang":"bash","code":"` + code + ` # ` + hush + `","args":["` + hush + `"],"files":[` + files + `],"user_id":"hushaby-hushaby","apiKey":"hushaby-hushaby","entity_id":"hushaby-hushaby",` +
			`"session_id":"hushaby-hushaby","runtime_session_hint":"hushaby-hushaby","intent":"hushaby-hushaby","hushaby-hushaby":{"hushaby-hushaby":["hushaby-hushaby"]}` + more + `}`
	}
	id := map[string]string{"X-LibreChat-Code-Request-ID": "hushaby-hushaby-0123456789abcdef"}
	for what, req := range map[string]struct {
		status                    int
		method, path, media, body string
		token                     string
		more                      map[string]string
	}{
		"a run":               {200, "POST", "/v1/exec?hushaby-hushaby=hushaby-hushaby", asJSON, body("cat dir/*; echo hushaby-hushaby; echo hushaby-hushaby >&2; echo hushaby-hushaby > hushaby-hushaby.csv; echo > hushaby-hushaby.weird; exit 3", file, ""), mine, id},
		"one out of time":     {200, "POST", "/v1/exec", asJSON, body("sleep 60", "", `,"timeout":1000`), mine, nil},
		"one that is killed":  {200, "POST", "/v1/exec", asJSON, body("kill -9 $$", "", ""), mine, nil},
		"too much output":     {200, "POST", "/v1/exec", asJSON, body("yes hushaby-hushaby", "", ""), mine, nil},
		"a foreign file":      {403, "POST", "/v1/exec", asJSON, body("true", file, ""), theirs, nil},
		"a language":          {400, "POST", "/v1/exec", asJSON, `{"lang":"hushaby-hushaby","code":"hushaby-hushaby"}`, mine, nil},
		"arguments":           {400, "POST", "/v1/exec", asJSON, `{"lang":"bash","code":"hushaby-hushaby","args":"hushaby-hushaby"}`, mine, nil},
		"a reference":         {400, "POST", "/v1/exec", asJSON, `{"lang":"bash","code":"hushaby-hushaby","files":[{"id":"hushaby-hushaby","name":"hushaby-hushaby"}]}`, mine, nil},
		"a request id":        {400, "POST", "/v1/exec", asJSON, body("true", "", ""), mine, map[string]string{"X-LibreChat-Code-Request-ID": hush}},
		"not JSON":            {400, "POST", "/v1/exec", asJSON, `{"hushaby-hushaby":hushaby-hushaby`, mine, nil},
		"twice":               {400, "POST", "/v1/exec", asJSON, `{"hushaby-hushaby":1,"hushaby-hushaby":2}`, mine, nil},
		"an encoding":         {415, "POST", "/v1/exec", asJSON, "hushaby-hushaby", mine, map[string]string{"Content-Encoding": hush}},
		"a profile":           {400, "POST", "/v1/exec", asJSON, body("true", "", ""), mine, map[string]string{"X-CodeAPI-Expected-Profile": hush}},
		"a cancel":            {200, "POST", "/v1/exec/programmatic/cancel", asJSON, `{"request_id":"hushaby-hushaby-0123456789abcdef"}`, theirs, nil},
		"no form":             {400, "POST", "/v1/upload", "text/hushaby-hushaby", hush, mine, nil},
		"no end":              {400, "POST", "/v1/upload", "multipart/form-data; boundary=hushaby-hushaby", "--hushaby-hushaby\r\nContent-Disposition: form-data; name=hushaby-hushaby; filename=hushaby-hushaby\r\n\r\nhushaby-hushaby", mine, nil},
		"a bad name":          {400, "POST", "/v1/upload", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=kind\r\n\r\nuser\r\n--b\r\nContent-Disposition: form-data; name=hushaby-hushaby; filename=\"../hushaby-hushaby\"\r\n\r\nhushaby-hushaby\r\n--b--\r\n", mine, nil},
		"a bad kind":          {400, "POST", "/v1/upload/batch", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=kind\r\n\r\nhushaby-hushaby\r\n--b\r\nContent-Disposition: form-data; name=hushaby-hushaby; filename=hushaby-hushaby\r\n\r\nhushaby-hushaby\r\n--b--\r\n", mine, nil},
		"a list":              {200, "GET", "/v1/files/" + in.Session + "?kind=user&id=hushaby-hushaby&detail=hushaby-hushaby&hushaby-hushaby=hushaby-hushaby", "", "", mine, nil},
		"a foreign list":      {403, "GET", "/v1/files/" + in.Session + "?kind=user&id=hushaby-hushaby", "", "", theirs, nil},
		"a kind":              {400, "GET", "/v1/files/" + in.Session + "?kind=hushaby-hushaby", "", "", mine, nil},
		"a download":          {200, "GET", "/v1/download/" + in.Session + "/" + in.ID + "?kind=user&id=hushaby-hushaby", "", "", mine, nil},
		"a range":             {416, "GET", "/v1/download/" + in.Session + "/" + in.ID + "?kind=user&id=hushaby-hushaby", "", "", mine, map[string]string{"Range": "bytes=99-"}},
		"what is no id":       {400, "GET", "/v1/download/hushaby-hushaby/hushaby-hushaby?kind=user", "", "", mine, nil},
		"nowhere":             {404, "HUSHABY-HUSHABY", "/v1/hushaby-hushaby", "", "", mine, nil},
		"nowhere at all":      {404, "GET", "/hushaby-hushaby", "", "", mine, nil},
		"junk":                {401, "POST", "/v1/exec", asJSON, body("true", "", ""), "Bearer hushaby-hushaby", nil},
		"another's signature": {401, "GET", "/v1/files/" + in.Session, "", "", mine[:len(mine)-20] + "AAAAAAAAAAAAAAAAAAAA", nil},
		"another audience":    {401, "GET", "/v1/files/" + in.Session, "", "", "Bearer " + c.claiming(map[string]any{"aud": hush, "jti": hush}), nil},
		"another source":      {401, "GET", "/v1/files/" + in.Session, "", "", "Bearer " + c.claiming(map[string]any{"principal_source": hush, "sub": hush}), nil},
		"a key":               {401, "GET", "/v1/files/" + in.Session, "", "", "", map[string]string{"X-API-Key": hush}},
		"two credentials":     {400, "GET", "/v1/files/" + in.Session, "", "", mine, map[string]string{"X-API-Key": hush}},
		"a monitor":           {401, "POST", "/v1/exec", asJSON, body("true", "", ""), "", map[string]string{"X-CodeAPI-Synthetic-Token": hush}},
	} {
		if req.media == "" {
			req.media = hush
		}
		want(what, req.status, c.whisper(req.method, req.path, req.media, req.body, req.token, req.more))
	}

	records, err := exec.Command(s.exe, "--data", s.data(), "audit", "export").CombinedOutput()
	if err != nil || bytes.Count(records, []byte("\n")) < 10 {
		t.Fatalf("the audit log: %v\n%s", err, records)
	}
	logged, err := os.ReadFile(s.log())
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(logged, []byte("/v1/exec")); n < 10 {
		t.Errorf("the log has %d lines of runs:\n%s", n, logged)
	}
	for where, text := range map[string][]byte{"the audit log": records, "the server's log": logged} {
		for line := range bytes.Lines(text) {
			for _, secret := range []string{hush, mine[len("Bearer ") : len("Bearer ")+40], mine[len(mine)-40:], synthetic} {
				if bytes.Contains(bytes.ToLower(line), []byte(strings.ToLower(secret))) {
					t.Errorf("%s has %q: %s", where, secret, line)
				}
			}
		}
	}
}
