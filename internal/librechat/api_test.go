package librechat

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"
)

// user is one who sends requests with a token of his own, as LibreChat does for him.
type user struct {
	s      *server
	name   string
	tenant string
}

func (s *server) user(name string) user { return user{s: s, name: name, tenant: "legacy"} }

// token is one of u that is good for five minutes.
func (u user) token() string { return u.claiming(nil) }

// claiming is a token of u with other claims, or more.
func (u user) claiming(change map[string]any) string {
	now := time.Now().Unix()
	claims := map[string]any{
		"iss": issuer, "aud": audience, "sub": u.name, "iat": now, "nbf": now, "exp": now + 300, "jti": rand.Text(),
		"tenant_id": u.tenant, "role": "USER", "principal_source": "librechat_jwt", "auth_context_hash": "of " + u.name,
	}
	maps.Copy(claims, change)
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // a map of texts and numbers
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	said := part(map[string]string{"alg": "EdDSA", "typ": "JWT", "kid": keyID}) + "." + part(claims)
	return said + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(u.s.key, []byte(said)))
}

// answer is what came of a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %.600s", a.status, a.body) }

// send sends a request and reads its answer. An error means that there was none.
func (u user) send(ctx context.Context, method, path, contentType string, body io.Reader) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, u.s.url+path, body)
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+u.token())
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	resp, err := u.s.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, b}, err
}

// sendJSON sends v as LibreChat does.
func (u user) sendJSON(ctx context.Context, path string, v any) (answer, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return answer{}, err
	}
	return u.send(ctx, http.MethodPost, path, "application/json", bytes.NewReader(b))
}

// upload is a file to send.
type upload struct{ name, text string }

// form is the body of an upload for an entity, without a length, as LibreChat streams it.
func form(entity map[string]string, files ...upload) (contentType string, body io.Reader) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, name := range []string{"kind", "id", "version", "read_only"} {
		if v, ok := entity[name]; ok {
			_ = w.WriteField(name, v) // a buffer takes all
		}
	}
	for _, f := range files {
		p, err := w.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename="%s"`, strings.ReplaceAll(f.name, `"`, "%22"))},
			"Content-Type":        {"application/octet-stream"},
		})
		if err == nil {
			_, err = io.WriteString(p, f.text)
		}
		if err != nil {
			panic(err) // a buffer takes all
		}
	}
	_ = w.Close()
	return w.FormDataContentType(), struct{ io.Reader }{&b}
}

// ref is a file as requests and answers name it.
type ref struct {
	ID       string `json:"id"`
	Resource string `json:"resource_id,omitempty"`
	Session  string `json:"storage_session_id"`
	Name     string `json:"name"`
	Kind     string `json:"kind,omitempty"`
	Version  *int   `json:"version,omitempty"`
}

// at is a place of an object.
type at struct {
	ID      string `json:"id"`
	Session string `json:"storage_session_id"`
}

// made is a file of a run's answer.
type made struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Session      string `json:"storage_session_id"`
	Inherited    bool   `json:"inherited"`
	ModifiedFrom *at    `json:"modified_from"`
}

// ref names the file in a later run, as LibreChat's client does.
func (m made) ref() ref {
	return ref{ID: m.ID, Resource: m.ID, Session: m.Session, Name: m.Name, Kind: "user"}
}

// run is the answer of one.
type run struct {
	Session string  `json:"session_id"`
	Files   []made  `json:"files"`
	Stdout  string  `json:"stdout"`
	Stderr  string  `json:"stderr"`
	Code    *int    `json:"code"`
	Signal  *string `json:"signal"`
	Status  *string `json:"status"`
	Message *string `json:"message"`
}

// file is the one file of that name; the zero one when there is none, or more.
func (r run) file(name string) (found made) {
	n := 0
	for _, f := range r.Files {
		if f.Name == name {
			found, n = f, n+1
		}
	}
	if n != 1 {
		return made{}
	}
	return found
}

// names are those of all files.
func (r run) names() (names []string) {
	for _, f := range r.Files {
		names = append(names, f.Name)
	}
	return names
}

// refs names all files in a later run.
func (r run) refs() (refs []ref) {
	for _, f := range r.Files {
		refs = append(refs, f.ref())
	}
	return refs
}

// tester is a user whose requests must be answered as a test expects.
type tester struct {
	user
	t testing.TB
}

func (u user) in(t testing.TB) tester { return tester{u, t} }

// want sends a request that must be answered with a status, and decodes the answer into
// out, unless that is nil.
func (c tester) want(status int, method, path string, out any) answer {
	c.t.Helper()
	a, err := c.send(c.t.Context(), method, path, "", nil)
	return c.took(status, method+" "+path, a, err, out)
}

func (c tester) took(status int, what string, a answer, err error, out any) answer {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
	if a.status != status {
		c.t.Fatalf("%s: want %d, got %s", what, status, a)
	}
	if out != nil {
		if err := json.Unmarshal(a.body, out); err != nil {
			c.t.Fatalf("%s: %v: %s", what, err, a)
		}
	}
	return a
}

// exec runs code, which must come to an end of its own or of the sandbox's.
func (c tester) exec(lang, code string, files ...ref) run {
	c.t.Helper()
	var r run
	a, err := c.sendJSON(c.t.Context(), "/exec", map[string]any{"lang": lang, "code": code, "files": files})
	c.took(http.StatusOK, "exec", a, err, &r)
	return r
}

// ran runs code that must exit with 0 and say nothing on stderr.
func (c tester) ran(lang, code string, files ...ref) run {
	c.t.Helper()
	r := c.exec(lang, code, files...)
	if r.Code == nil || *r.Code != 0 || r.Stderr != "" {
		c.t.Fatalf("%s\n%s\n%+v", lang, code, r)
	}
	return r
}

// mine is the entity of a user's own files.
var mine = map[string]string{"kind": "user", "id": "me"}

// upload sends files for the user himself, and answers how runs name them.
func (c tester) upload(files ...upload) []ref {
	c.t.Helper()
	kind, body := form(mine, files...)
	a, err := c.send(c.t.Context(), http.MethodPost, "/upload", kind, body)
	refs, err2 := uploaded(a, err)
	if err2 != nil || len(refs) != len(files) {
		c.t.Fatalf("upload: %v: %s", err2, a)
	}
	return refs
}

// uploaded reads the answer of an upload of the user's own files.
func uploaded(a answer, err error) ([]ref, error) {
	var said struct {
		Session string `json:"storage_session_id"`
		Files   []struct {
			ID   string `json:"fileId"`
			Name string `json:"filename"`
		} `json:"files"`
	}
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("upload: %s", a)
	}
	if err == nil {
		err = json.Unmarshal(a.body, &said)
	}
	var refs []ref
	for _, f := range said.Files {
		refs = append(refs, ref{ID: f.ID, Resource: "me", Session: said.Session, Name: f.Name, Kind: "user"})
	}
	return refs, err
}

// of is the query of a user's own files.
const of = "?kind=user&id=me"

// downloadPath is where the bytes of an object of the user himself are.
func downloadPath(session, id string) string {
	return "/download/" + url.PathEscape(session) + "/" + url.PathEscape(id) + of
}

// text is what an object of the user's own has.
func (c tester) text(session, id string) string {
	c.t.Helper()
	return string(c.want(http.StatusOK, http.MethodGet, downloadPath(session, id), nil).body)
}

// listed is one object of a session.
type listed struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Session string `json:"storage_session_id"`
	Size    int64  `json:"size"`
}

// list are the objects of a session of the user's own.
func (c tester) list(session string) (objects []listed) {
	c.t.Helper()
	c.want(http.StatusOK, http.MethodGet, "/files/"+session+of+"&detail=normalized", &objects)
	return objects
}
