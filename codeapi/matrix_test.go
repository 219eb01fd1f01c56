package codeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/session"
	"writ/store"
)

// attempt is one cell of the matrix: a caller asks for something of a session of ada's.
type attempt struct {
	route   string // list, metadata, download, head, range, delete, exec
	detail  string // of a list
	of      string // kind of the session
	caller  string // a badge, or empty
	claim   claim
	session string // live, expired, absent, malformed
	object  string // there, absent, malformed, elsewhere (in another session of the same entity)
}

// claim is for whom a caller says that a session is.
type claim struct{ kind, id, version string }

// rightClaim is that of who made a session of a kind.
func rightClaim(kind string) claim {
	switch kind {
	case "skill":
		return claim{"skill", "s1", "3"}
	case "agent":
		return claim{"agent", "a1", ""}
	}
	return claim{"user", "ada", ""}
}

// refusals that the contract has.
const (
	unauthorized = `{"error":"Unauthorized"}`
	noCredential = `{"error":"Bearer token is required"}`
)

func inWords(text string) string { return `{"error":"` + text + `"}` }

// oracle is what spec/03 §2, §4, §7 and §11 answer to an attempt: a status, and the body
// of a refusal. It knows nothing of the code.
func oracle(a attempt) (status int, body string) {
	if a.caller == "" {
		return 401, noCredential
	}
	exec := a.route == "exec"
	if exec {
		if a.object == "malformed" {
			return 400, inWords("files[0].id is invalid")
		} else if a.claim.id == "" {
			return 400, inWords("files[0].resource_id is invalid")
		} else if a.session == "malformed" {
			return 400, inWords("files[0].storage_session_id is invalid")
		}
	} else if a.session == "malformed" || a.object == "malformed" && a.route != "list" {
		return 400, inWords("Bad request")
	}
	place := map[bool]string{true: "files[0]."}[exec]
	switch c := a.claim; {
	case c.kind != "user" && c.kind != "agent" && c.kind != "skill":
		return 400, inWords(place + "kind must be one of: skill, agent, user")
	case c.kind != "user" && c.id == "":
		return 400, inWords("id is required for kind: '" + c.kind + "'")
	case c.kind == "skill" && c.version == "":
		return 400, inWords(place + "version is required for kind: 'skill'")
	case c.kind != "skill" && c.version != "":
		return 400, inWords(place + "version is only valid for kind: 'skill'")
	}
	right := rightClaim(a.of)
	sameTenant, sameUser := strings.HasPrefix(a.caller, "acme/"), a.caller == "acme/ada"
	may := a.session == "live" && sameTenant && a.claim.kind == a.of
	switch a.of {
	case "user":
		may = may && sameUser // whatever id is claimed
	case "agent":
		may = may && a.claim.id == right.id
	case "skill":
		may = may && a.claim.id == right.id && (a.claim.version == "3" || a.claim.version == "3.0")
	}
	there := a.object == "there"
	switch {
	case !may && exec, exec && !there:
		return 403, inWords("Unauthorized file reference")
	case !may:
		return 403, unauthorized
	case there && a.route == "range":
		return 206, ""
	case there || a.route == "list":
		return 200, ""
	case a.route == "metadata":
		return 404, inWords("File not found")
	case a.route == "delete":
		return 500, inWords("Error deleting file")
	}
	return 404, `{"error":"File not found","details":"The file may have expired or does not exist"}`
}

// attempts are all cells.
func attempts() (all []attempt) {
	routes := []attempt{
		{route: "list"}, {route: "list", detail: "summary"}, {route: "list", detail: "full"}, {route: "list", detail: "normalized"},
		{route: "metadata"}, {route: "download"}, {route: "head"}, {route: "range"}, {route: "exec"}, {route: "delete"},
	}
	for _, a := range routes {
		for _, a.of = range []string{"user", "agent", "skill"} {
			for _, a.caller = range []string{"acme/ada", "acme/bob", "evil/ada", "acme:user:ada/", "acme/ada:v:3", ""} {
				for _, a.session = range []string{"live", "expired", "absent", "malformed"} {
					objects := []string{"there", "absent", "malformed", "elsewhere"}
					if a.route == "list" {
						objects = objects[:1]
					}
					for _, a.object = range objects {
						for _, a.claim = range claims(rightClaim(a.of)) {
							all = append(all, a)
						}
					}
				}
			}
		}
	}
	return all
}

// claims are the right one, and each that differs from it in one way.
func claims(right claim) []claim {
	list := []claim{
		right, {right.kind, "other", right.version}, {right.kind, "", right.version}, {right.kind, right.id, "4"}, {right.kind, right.id, ""},
		{"team", right.id, right.version}, {"", right.id, right.version}, {right.kind, right.id, "3.0"},
		{"user", right.id, ""}, {"agent", right.id, ""}, {"skill", right.id, "3"},
	}
	slices.SortFunc(list, func(a, b claim) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return slices.Compact(list)
}

// matrix is a depot with what attempts are made on.
type matrix struct {
	*depot
	tasks *taskRecord
	calls *traced

	ids      map[string]map[string]writ.SessionID // by kind, then live, expired, absent, malformed
	objects  map[string]map[string]writ.ObjectID  // by kind, then there, absent, malformed, elsewhere
	inExpire map[string]writ.ObjectID             // by kind, what the expired session holds
}

const matrixText = "what only some may read"

func newMatrix(t *testing.T, bend func(*matrix) func(Sessions) Sessions) *matrix {
	m := &matrix{tasks: &taskRecord{}, ids: map[string]map[string]writ.SessionID{}, objects: map[string]map[string]writ.ObjectID{}, inExpire: map[string]writ.ObjectID{}}
	m.depot = newDepot(t, depotOptions{tasks: m.tasks, wrap: func(s Sessions) Sessions {
		if bend != nil {
			s = bend(m)(s)
		}
		m.calls = &traced{Sessions: s}
		return m.calls
	}})
	ctx, ada := context.Background(), person("acme", "ada")
	for _, kind := range []string{"user", "agent", "skill"} {
		c := rightClaim(kind)
		e, err := session.ParseEntity(c.kind, c.id, c.version)
		if err != nil {
			t.Fatal(err)
		}
		live, err := m.sessions.Create(ctx, ada, e)
		if err != nil {
			t.Fatal(err)
		}
		other, err := m.sessions.Create(ctx, ada, e)
		if err != nil {
			t.Fatal(err)
		}
		there := m.put(t, e, live.ID)
		elsewhere := m.put(t, e, other.ID)
		expired := live
		expired.ID, expired.Expires, expired.Objects, expired.Bytes = writ.NewSessionID(), time.Now().Add(-time.Second), 0, 0
		gone := there
		gone.ID, gone.Session = writ.NewObjectID(), expired.ID
		if err := m.db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.InsertSession(ctx, expired); err != nil {
				return err
			}
			return tx.InsertObject(ctx, expired, gone)
		}); err != nil {
			t.Fatal(err)
		}
		m.ids[kind] = map[string]writ.SessionID{"live": live.ID, "expired": expired.ID, "absent": writ.NewSessionID(), "malformed": live.ID[1:] + "."}
		m.objects[kind] = map[string]writ.ObjectID{"there": there.ID, "absent": writ.NewObjectID(), "malformed": there.ID + "A", "elsewhere": elsewhere.ID}
		m.inExpire[kind] = gone.ID
	}
	return m
}

func (m *matrix) put(t testing.TB, e session.Entity, in writ.SessionID) writ.Object {
	t.Helper()
	o, err := m.sessions.Put(context.Background(), person("acme", "ada"), e, in, session.File{Name: "a.txt", Type: "text/plain", Body: strings.NewReader(matrixText), Max: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// make makes an attempt. id is of the object that it names.
func (m *matrix) make(t testing.TB, a attempt) (got answer, id writ.ObjectID) {
	t.Helper()
	in := string(m.ids[a.of][a.session])
	id = m.objects[a.of][a.object]
	if a.session == "expired" && a.object == "there" {
		id = m.inExpire[a.of]
	}
	query := "?kind=" + a.claim.kind + "&id=" + a.claim.id
	if a.claim.version != "" {
		query += "&version=" + a.claim.version
	}
	method, path, body := "GET", "/v1/download/"+in+"/"+string(id)+query, ""
	switch a.route {
	case "list":
		path = "/v1/files/" + in + query + "&detail=" + a.detail
	case "metadata":
		path = "/v1/sessions/" + in + "/objects/" + string(id) + query
	case "head":
		method = "HEAD"
	case "delete":
		method, path = "DELETE", "/v1/files/"+in+"/"+string(id)+query
	case "exec":
		ref := map[string]any{"id": id, "storage_session_id": in, "resource_id": a.claim.id, "name": "a.txt", "kind": a.claim.kind}
		if a.claim.version != "" {
			ref["version"] = json.Number(a.claim.version)
		}
		b, err := json.Marshal(map[string]any{"lang": "python", "code": "", "files": []any{ref}})
		if err != nil {
			t.Fatal(err)
		}
		method, path, body = "POST", "/v1/exec", string(b)
	}
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if a.caller != "" {
		r.Header.Set("Authorization", "Bearer "+a.caller)
	}
	switch a.route {
	case "range":
		r.Header.Set("Range", "bytes=5-8")
	case "exec":
		r.Header.Set("Content-Type", "application/json")
	}
	w := &deadlines{httptest.NewRecorder()}
	m.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}, id
}

// check makes an attempt and reports what is not as the oracle says, empty for nothing.
func (m *matrix) check(t testing.TB, a attempt) (got answer, fault string) {
	t.Helper()
	status, body := oracle(a)
	ran := len(m.tasks.files)
	m.calls.names = nil
	got, id := m.make(t, a)
	return got, m.fault(t, a, got, id, status, body, ran)
}

// fault is what is wrong with an answer.
func (m *matrix) fault(t testing.TB, a attempt, got answer, id writ.ObjectID, status int, body string, ran int) string {
	t.Helper()
	if got.status != status || body != "" && got.body != body {
		return fmt.Sprintf("%d %q, want %d %q", got.status, got.body, status, body)
	}
	want := ""
	switch {
	case status >= 300:
		if len(m.tasks.files) != ran {
			return "it ran, though it was refused"
		}
		return ""
	case a.route == "download":
		want = matrixText
	case a.route == "range":
		want = matrixText[5:9]
	case a.route == "exec":
		if files := m.tasks.files[len(m.tasks.files)-1]; len(m.tasks.files) != ran+1 || len(files) != 1 || files[0].Digest != writ.DigestOf([]byte(matrixText)) {
			return fmt.Sprintf("it ran with %+v", files)
		}
	case a.route == "head":
	default:
		want = string(id)
	}
	if !strings.Contains(got.body, want) {
		return fmt.Sprintf("%q, want %q in it", got.body, want)
	}
	if a.route == "delete" {
		c := rightClaim(a.of)
		e, _ := session.ParseEntity(c.kind, c.id, c.version) // as when it was made
		m.objects[a.of]["there"] = m.put(t, e, m.ids[a.of]["live"]).ID
	}
	return ""
}

// looks are all that a caller can see of a refusal, and how much was done for it.
type looks struct {
	Status int
	Body   string
	Header map[string][]string
	Calls  []string
}

// TestIO11_CrossTenantMatrix makes every attempt. Each answer is the oracle's. What is not
// the caller's, whether it is another's, over, or never was, is refused in one way: the
// same header, and the same work. Afterwards everything is there that nobody was to delete.
func TestIO11_CrossTenantMatrix(t *testing.T) {
	m := newMatrix(t, nil)
	all, wrong := attempts(), 0
	if raced { // one goroutine makes them
		all = slices.DeleteFunc(all, func(attempt) bool { wrong++; return wrong%7 != 0 })
		wrong = 0
	}
	statuses := map[int]int{}
	refused := map[string]looks{} // by route, of the first
	for _, a := range all {
		status, _ := oracle(a)
		statuses[status]++
		got, fault := m.check(t, a)
		if status == 403 {
			l := looks{got.status, got.body, got.header, m.calls.names}
			if first, ok := refused[a.route]; !ok {
				refused[a.route] = l
			} else if !cmp.Equal(first, l) {
				fault += " is told from another: (-another +this)\n" + cmp.Diff(first, l)
			}
		}
		if fault != "" {
			if wrong++; wrong <= 20 {
				t.Errorf("%+v: %s", a, fault)
			}
		}
	}
	if wrong > 20 {
		t.Errorf("%d of %d attempts are wrong", wrong, len(all))
	}
	for _, status := range []int{200, 206, 400, 401, 403, 404, 500} {
		if statuses[status] == 0 {
			t.Errorf("no attempt of %d expects %d", len(all), status)
		}
	}
	if len(refused) != 7 {
		t.Errorf("refusals of routes %v alone", slices.Collect(maps.Keys(refused)))
	}
	for kind, ids := range m.ids {
		for _, o := range []writ.ObjectRef{{ID: m.objects[kind]["there"], Session: ids["live"]}, {ID: m.inExpire[kind], Session: ids["expired"]}} {
			if err := m.db.View(context.Background(), func(tx *store.Tx) error { _, err := tx.Object(context.Background(), o.Session, o.ID); return err }); err != nil {
				t.Errorf("object %+v of kind %s: %v", o, kind, err)
			}
		}
	}
}

// TestMatrixNoticesEachCheckThatIsMissing takes one check away at a time, as a mistake
// would: the matrix finds each.
func TestMatrixNoticesEachCheckThatIsMissing(t *testing.T) {
	ada := person("acme", "ada")
	for what, bend := range map[string]func(m *matrix, p *writ.Principal, e *session.Entity, in *writ.SessionID, id *writ.ObjectID){
		"tenants": func(_ *matrix, p *writ.Principal, _ *session.Entity, _ *writ.SessionID, _ *writ.ObjectID) {
			p.Tenant = ada.Tenant
		},
		"users": func(_ *matrix, p *writ.Principal, _ *session.Entity, _ *writ.SessionID, _ *writ.ObjectID) {
			p.ID = ada.ID
		},
		"ids": func(_ *matrix, _ *writ.Principal, e *session.Entity, _ *writ.SessionID, _ *writ.ObjectID) {
			e.ID = rightClaim(string(e.Kind)).id
		},
		"versions": func(_ *matrix, _ *writ.Principal, e *session.Entity, _ *writ.SessionID, _ *writ.ObjectID) {
			if three := 3.0; e.Kind == writ.EntitySkill {
				e.Version = &three
			}
		},
		"expiry": func(m *matrix, _ *writ.Principal, _ *session.Entity, in *writ.SessionID, id *writ.ObjectID) {
			for kind, ids := range m.ids {
				if *in == ids["expired"] {
					*in = ids["live"]
					if *id == m.inExpire[kind] {
						*id = m.objects[kind]["there"]
					}
				}
			}
		},
		"sessions of objects": func(m *matrix, _ *writ.Principal, _ *session.Entity, _ *writ.SessionID, id *writ.ObjectID) {
			for _, objects := range m.objects {
				if *id == objects["elsewhere"] {
					*id = objects["there"]
				}
			}
		},
	} {
		m := newMatrix(t, func(m *matrix) func(Sessions) Sessions {
			return func(s Sessions) Sessions {
				return &bent{s, func(p *writ.Principal, e *session.Entity, in *writ.SessionID, id *writ.ObjectID) {
					bend(m, p, e, in, id)
				}}
			}
		})
		noticed := slices.ContainsFunc(attempts(), func(a attempt) bool {
			if status, _ := oracle(a); a.route == "exec" || status == 400 || status == 401 {
				return false // what bends is not asked
			}
			_, fault := m.check(t, a)
			return fault != ""
		})
		if !noticed {
			t.Errorf("no attempt notices that %s are not told apart", what)
		}
	}
}

// bent are sessions of whom the wrong is asked.
type bent struct {
	Sessions
	bend func(*writ.Principal, *session.Entity, *writ.SessionID, *writ.ObjectID)
}

func (b *bent) Find(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID) (writ.Session, error) {
	b.bend(&p, &e, &in, new(writ.ObjectID))
	return b.Sessions.Find(ctx, p, e, in)
}

func (b *bent) List(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID) ([]writ.Object, error) {
	b.bend(&p, &e, &in, new(writ.ObjectID))
	return b.Sessions.List(ctx, p, e, in)
}

func (b *bent) Get(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, id writ.ObjectID) (writ.Object, error) {
	b.bend(&p, &e, &in, &id)
	return b.Sessions.Get(ctx, p, e, in, id)
}

func (b *bent) Delete(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, id writ.ObjectID) error {
	b.bend(&p, &e, &in, &id)
	return b.Sessions.Delete(ctx, p, e, in, id)
}

// traced records what is asked of sessions.
type traced struct {
	Sessions
	names []string
}

func (s *traced) Find(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID) (writ.Session, error) {
	s.names = append(s.names, "find")
	return s.Sessions.Find(ctx, p, e, in)
}

func (s *traced) List(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID) ([]writ.Object, error) {
	s.names = append(s.names, "list")
	return s.Sessions.List(ctx, p, e, in)
}

func (s *traced) Get(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, id writ.ObjectID) (writ.Object, error) {
	s.names = append(s.names, "get")
	return s.Sessions.Get(ctx, p, e, in, id)
}

func (s *traced) Delete(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, id writ.ObjectID) error {
	s.names = append(s.names, "delete")
	return s.Sessions.Delete(ctx, p, e, in, id)
}

// taskRecord is the gateway behind a real interpreter: it keeps what runs would find, and
// says that each went well.
type taskRecord struct{ files [][]writ.FileInput }

func (r *taskRecord) Interpret(_ context.Context, _ writ.Principal, spec writ.RunSpec) (writ.Task, error) {
	r.files = append(r.files, spec.Files)
	return writ.Task{ID: "task", State: writ.TaskRunning}, nil
}

func (r *taskRecord) Wait(_ context.Context, _ writ.Principal, id writ.TaskID, _ time.Duration) (writ.Task, error) {
	zero := 0
	return writ.Task{ID: id, State: writ.TaskSucceeded, Result: &writ.Result{Started: true, Outcome: writ.Succeeded, ExitCode: &zero}}, nil
}

func (r *taskRecord) Cancel(_ context.Context, _ writ.Principal, id writ.TaskID, _ string) (writ.Task, error) {
	return writ.Task{ID: id}, nil
}
