package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/blob"
	"writ/internal/testkit"
	"writ/store"
)

// desk is a service on a real store and a real folder, with a clock of its own.
type desk struct {
	*Service
	db  *store.DB
	dir string // of the blobs

	mu    sync.Mutex
	later time.Duration // guarded by mu; how far the service's clock is ahead
}

func newDesk(t testing.TB, opt Options) *desk {
	t.Helper()
	return newDeskAt(t, "sqlite:"+filepath.Join(t.TempDir(), "writ.db"), opt)
}

// newDeskAt is a desk on the store at url.
func newDeskAt(t testing.TB, url string, opt Options) *desk {
	t.Helper()
	d := &desk{dir: filepath.Join(t.TempDir(), "blobs")}
	blobs, err := blob.OpenFolder(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { blobs.Close() })
	d.db = testkit.OpenStore(t, url)
	d.serve(t, blobs, opt)
	return d
}

// serve makes the service.
func (d *desk) serve(t testing.TB, blobs Blobs, opt Options) {
	t.Helper()
	var err error
	if d.Service, err = New(d.db, blobs, opt); err != nil {
		t.Fatal(err)
	}
	d.now = func() time.Time {
		d.mu.Lock()
		defer d.mu.Unlock()
		return writ.Now().Add(d.later)
	}
}

// sibling is another gateway on the same store and bytes.
func (d *desk) sibling(t testing.TB, url string) *desk {
	t.Helper()
	other := &desk{dir: d.dir, db: d.db}
	if d.db.Engine() == "postgres" {
		other.db = testkit.OpenStore(t, url)
	}
	other.serve(t, d.Service.blobs, d.opt)
	return other
}

func (d *desk) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.later += by
}

func user(id string) writ.Principal {
	return writ.Principal{Kind: writ.KindUser, ID: id, Tenant: "acme"}
}

var own = Entity{Kind: writ.EntityUser}

func text(name, body string) File {
	return File{Name: name, Type: "text/plain", Body: strings.NewReader(body), Max: 1 << 20}
}

func (d *desk) create(t testing.TB, p writ.Principal, e Entity) writ.SessionID {
	t.Helper()
	s, err := d.Create(context.Background(), p, e)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

func (d *desk) put(t testing.TB, p writ.Principal, e Entity, in writ.SessionID, f File) writ.Object {
	t.Helper()
	o, err := d.Put(context.Background(), p, e, in, f)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// bytesOf reads an object as a download does.
func (d *desk) bytesOf(p writ.Principal, e Entity, in writ.SessionID, id writ.ObjectID) (string, error) {
	o, err := d.Get(context.Background(), p, e, in, id)
	if err != nil {
		return "", err
	}
	body, err := d.read(o.SHA256)
	if err == nil && int64(len(body)) != o.Size {
		err = fmt.Errorf("%d bytes of an object of %d", len(body), o.Size)
	}
	return body, err
}

// read is the bytes with that digest.
func (d *desk) read(digest writ.Digest) (string, error) {
	r, err := d.Open(context.Background(), writ.Object{SHA256: digest}, 0, -1)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), errors.Join(err, r.Close())
}

// blobNames are the names of the blobs that are there.
func (d *desk) blobNames(t interface{ Fatal(...any) }) (names []string) {
	entries, err := os.ReadDir(filepath.Join(d.dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (d *desk) blobs(t testing.TB) int { return len(d.blobNames(t)) }

// TestLC19_LC23_LC24_ObjectsNeverChange puts the versions of a file as two runs make them,
// and one without bytes.
func TestLC19_LC23_LC24_ObjectsNeverChange(t *testing.T) {
	d, ada := newDesk(t, Defaults()), user("ada")
	in, out := d.create(t, ada, own), d.create(t, ada, own)
	first := d.put(t, ada, own, in, text("d.csv", "a"))
	f := text("d.csv", "ab")
	f.ReadOnly = true
	second := d.put(t, ada, own, out, f)
	empty := d.put(t, ada, own, out, text("keep/zero.txt", ""))
	for o, want := range map[writ.ObjectID]string{first.ID: "a", second.ID: "ab", empty.ID: ""} {
		s := out
		if o == first.ID {
			s = in
		}
		if got, err := d.bytesOf(ada, own, s, o); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", o, got, err, want)
		}
	}
	list, err := d.List(context.Background(), ada, own, out)
	if diff := cmp.Diff([]writ.Object{second, empty}, list, cmp.Transformer("byID", func(os []writ.Object) map[writ.ObjectID]writ.Object {
		m := map[writ.ObjectID]writ.Object{}
		for _, o := range os {
			m[o.ID] = o
		}
		return m
	})); diff != "" || err != nil || len(list) != 2 {
		t.Errorf("list (-put +listed) %v:\n%s", err, diff)
	}
	r, err := d.Open(context.Background(), second, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); string(b) != "b" || err != nil {
		t.Errorf("range: %q, %v", b, err)
	}
	if _, err := d.Open(context.Background(), second, 3, -1); writ.KindOf(err) != writ.Invalid {
		t.Errorf("a range behind the end: %v", err)
	}
}

// TestLC18_IO11_WhoMayUseWhat tries each call × kind × caller × session; what is not for
// the caller is never told from what is not there.
func TestLC18_IO11_WhoMayUseWhat(t *testing.T) {
	d, ctx := newDesk(t, Defaults()), context.Background()
	v3, v4 := 3.0, 4.0
	ada := user("ada")
	entities := map[string]Entity{
		"user": own, "agent": {Kind: writ.EntityAgent, ID: "a1"}, "skill": {Kind: writ.EntitySkill, ID: "s1", Version: &v3},
	}
	type caller struct {
		p       writ.Principal
		claim   func(Entity) Entity
		expired bool
		may     map[string]bool // kinds
	}
	same := func(e Entity) Entity { return e }
	all, shared := map[string]bool{"user": true, "agent": true, "skill": true}, map[string]bool{"agent": true, "skill": true}
	callers := map[string]caller{
		"same user":                     {ada, same, false, all},
		"same user, another id":         {ada, func(e Entity) Entity { e.ID += "x"; return e }, false, map[string]bool{"user": true}},
		"same user, another kind":       {ada, func(e Entity) Entity { return Entity{Kind: writ.EntityAgent, ID: "ada"} }, false, nil},
		"same user, another version":    {ada, func(e Entity) Entity { return Entity{Kind: writ.EntitySkill, ID: e.ID + "s1", Version: &v4} }, false, nil},
		"same user, expired":            {ada, same, true, nil},
		"other user, same tenant":       {user("bob"), same, false, shared},
		"other user who claims the id":  {user("bob"), func(e Entity) Entity { e.ID = "ada"; return e }, false, nil},
		"identity of the user's name":   {writ.Principal{Kind: writ.KindAgent, ID: "ada", Tenant: "acme"}, same, false, shared},
		"other tenant":                  {writ.Principal{Kind: writ.KindUser, ID: "ada", Tenant: "evil"}, same, false, nil},
		"tenant with the user's prefix": {writ.Principal{Kind: writ.KindUser, ID: "", Tenant: "acme:user:ada"}, same, false, nil},
	}
	calls := []struct {
		name string
		do   func(writ.Principal, Entity, writ.SessionID, writ.ObjectID) error
	}{ // what deletes is last
		{"find", func(p writ.Principal, e Entity, s writ.SessionID, _ writ.ObjectID) error {
			_, err := d.Find(ctx, p, e, s)
			return err
		}},
		{"get", func(p writ.Principal, e Entity, s writ.SessionID, o writ.ObjectID) error {
			_, err := d.Get(ctx, p, e, s, o)
			return err
		}},
		{"list", func(p writ.Principal, e Entity, s writ.SessionID, _ writ.ObjectID) error {
			_, err := d.List(ctx, p, e, s)
			return err
		}},
		{"put", func(p writ.Principal, e Entity, s writ.SessionID, _ writ.ObjectID) error {
			_, err := d.Put(ctx, p, e, s, text("more", "more"))
			return err
		}},
		{"delete", func(p writ.Principal, e Entity, s writ.SessionID, o writ.ObjectID) error {
			return d.Delete(ctx, p, e, s, o)
		}},
	}
	message := ""
	for kind, entity := range entities {
		for who, c := range callers {
			d.later = 0
			s := d.create(t, ada, entity)
			o := d.put(t, ada, entity, s, text("a.txt", "secret"))
			if c.expired {
				d.pass(d.opt.TTL)
			}
			for _, call := range calls {
				name := fmt.Sprint(kind, ", ", who, ", ", call.name)
				err := call.do(c.p, c.claim(entity), s, o.ID)
				if c.may[kind] {
					if err != nil {
						t.Errorf("%s: %v, want it let through", name, err)
					}
					continue
				}
				if writ.KindOf(err) != writ.NotFound {
					t.Errorf("%s: %v, want NotFound", name, err)
					continue
				}
				if message == "" {
					message = writ.Message(err)
				}
				if writ.Message(err) != message || strings.Contains(err.Error(), string(s)) {
					t.Errorf("%s: %q differs from %q", name, err, message)
				}
			}
		}
	}
	d.later = 0
	s := d.create(t, ada, own)
	o := d.put(t, ada, own, s, text("a.txt", "x"))
	for _, call := range calls {
		for _, bad := range []writ.SessionID{"", "none", "../../../../../etc/p.", writ.NewSessionID(), s + "x", "a\x00b"} {
			if err := call.do(ada, own, bad, o.ID); writ.KindOf(err) != writ.NotFound || writ.Message(err) != message {
				t.Errorf("%s in session %q: %v", call.name, bad, err)
			}
		}
		if err := call.do(ada, Entity{Kind: "company"}, s, o.ID); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%s of an entity that is none: %v", call.name, err)
		}
	}
	for _, bad := range []writ.ObjectID{"", "none", writ.NewObjectID(), "a\x00b", writ.ObjectID(s)} {
		_, err := d.Get(ctx, ada, own, s, bad)
		if err1 := d.Delete(ctx, ada, own, s, bad); writ.Message(err) != message || writ.Message(err1) != message {
			t.Errorf("object %q: %v, %v", bad, err, err1)
		}
	}
	if err := d.Delete(ctx, ada, own, s, o.ID); err != nil {
		t.Error(err)
	}
	if _, err := d.Get(ctx, ada, own, s, o.ID); writ.Message(err) != message {
		t.Errorf("a deleted object: %v", err)
	}
	if err := d.Delete(ctx, ada, own, s, o.ID); writ.Message(err) != message {
		t.Errorf("deleted twice: %v", err)
	}
}

// TestLC15_FileAboveTheLimit: nothing is stored of it, and the next one works.
func TestLC15_FileAboveTheLimit(t *testing.T) {
	d, ada, ctx := newDesk(t, Defaults()), user("ada"), context.Background()
	s := d.create(t, ada, own)
	f := text("big.bin", "123456")
	f.Max = 5
	if _, err := d.Put(ctx, ada, own, s, f); writ.CodeOf(err) != writ.CodeFileTooLarge || writ.KindOf(err) != writ.Invalid {
		t.Errorf("got %v, want %s", err, writ.CodeFileTooLarge)
	}
	broken := text("cut.bin", "")
	broken.Body = io.MultiReader(strings.NewReader("123"), errorReader{io.ErrUnexpectedEOF})
	if _, err := d.Put(ctx, ada, own, s, broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a body that breaks: %v", err)
	}
	if _, err := d.Put(ctx, ada, own, s, text("../x", "12")); writ.Message(err) != "file name must not contain empty, current, or parent path segments" {
		t.Errorf("a name that leads out: %v", err)
	}
	if got, err := d.List(ctx, ada, own, s); len(got) != 0 || err != nil || d.blobs(t) != 0 {
		t.Errorf("listed %v, %v, and there are %d blobs", got, err, d.blobs(t))
	}
	f = text("ok.bin", "12345")
	f.Max = 5
	d.put(t, ada, own, s, f)
}

type errorReader struct{ error }

func (e errorReader) Read([]byte) (int, error) { return 0, e.error }

// TestIO04_Bounds fills a session and a tenant.
func TestIO04_Bounds(t *testing.T) {
	opt := Defaults()
	opt.Limits = Limits{SessionObjects: 3, SessionBytes: 10, TenantSessions: 3, TenantBytes: 15, RuntimeFiles: 1, RuntimeBytes: 1}
	d, ada, ctx := newDesk(t, opt), user("ada"), context.Background()
	exhausted := func(what string, err error) {
		t.Helper()
		if writ.KindOf(err) != writ.Exhausted {
			t.Errorf("%s: %v, want Exhausted", what, err)
		}
	}
	one, two, three := d.create(t, ada, own), d.create(t, ada, own), d.create(t, ada, own)
	_, err := d.Create(ctx, user("bob"), own)
	exhausted("a fourth session", err)
	if _, err := d.Create(ctx, writ.Principal{Kind: writ.KindUser, ID: "ada", Tenant: "other"}, own); err != nil {
		t.Errorf("another tenant: %v", err)
	}

	a := d.put(t, ada, own, one, text("a", "123456"))
	_, err = d.Put(ctx, ada, own, one, text("b", "12345"))
	exhausted("the 11th byte of a session", err)
	d.put(t, ada, own, one, text("b", "1234"))
	_, err = d.Put(ctx, ada, own, two, text("c", "123456"))
	exhausted("the 16th byte of a tenant", err)
	d.put(t, ada, own, two, text("c", "12345"))
	d.put(t, ada, own, three, text("d", "")) // nothing more fits, and it is nothing
	if err := d.Delete(ctx, ada, own, one, a.ID); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"e", "f"} {
		d.put(t, ada, own, three, text(name, "1"))
	}
	unread := text("g", "1")
	body := &countingReader{r: strings.NewReader("1")}
	unread.Body = body
	_, err = d.Put(ctx, ada, own, three, unread)
	exhausted("a fourth object", err)
	if body.n != 0 {
		t.Error("a body was read that cannot be kept")
	}

	// Together they do not pass it: 4 bytes are left.
	s := one
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { _, _ = d.Put(ctx, ada, own, s, text("x", "123")) })
	}
	wg.Wait()
	totals := testTotals(t, d)
	if totals.Bytes > opt.Limits.TenantBytes || totals.Bytes < 13 {
		t.Errorf("the tenant has %+v", totals)
	}
}

type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func testTotals(t testing.TB, d *desk) (got writ.SessionTotals) {
	t.Helper()
	ctx := context.Background()
	if err := d.db.View(ctx, func(tx *store.Tx) (err error) { got, err = tx.SessionTotals(ctx, "acme"); return err }); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestListings holds the four details and the metadata against what the reference server
// answered.
func TestListings(t *testing.T) {
	at := time.Date(2026, 11, 29, 14, 11, 20, 110_000_000, time.UTC)
	os := []writ.Object{
		{ID: "XDLaBfcU4SLj-zey4Mhhs", Session: "FkhP-JUEnsy-Zl9Tk9MiM", Name: "x/a.txt", Type: "text/plain", Size: 1, SHA256: writ.DigestOf([]byte("1")), Created: at},
		{ID: "uRhm7qNnTX0NqbQGDRoZO", Session: "FkhP-JUEnsy-Zl9Tk9MiM", Name: "№/.env", Type: "text/markdown", Size: 7, SHA256: writ.DigestOf([]byte("2")), Created: at.Truncate(time.Second), ReadOnly: true},
	}
	e0, e1 := ETag(os[0]), ETag(os[1])
	const n0, n1 = `"FkhP-JUEnsy-Zl9Tk9MiM/XDLaBfcU4SLj-zey4Mhhs.txt"`, `"FkhP-JUEnsy-Zl9Tk9MiM/uRhm7qNnTX0NqbQGDRoZO"`
	s0 := `{"name":` + n0 + `,"size":1,"lastModified":"2026-11-29T14:11:20.110Z","etag":"` + e0 + `"`
	s1 := `{"name":` + n1 + `,"size":7,"lastModified":"2026-11-29T14:11:20.000Z","etag":"` + e1 + `"`
	for detail, want := range map[Detail]string{
		"": `[` + n0 + `,` + n1 + `]`, "bogus": `[` + n0 + `,` + n1 + `]`, DetailSimple: `[` + n0 + `,` + n1 + `]`,
		DetailSummary: `[` + s0 + `},` + s1 + `}]`,
		DetailFull: `[` + s0 + `,"metadata":{"content-type":"text/plain","original-filename":"x/a.txt","original-filename-encoded":"none"},"versionId":null,"contentType":"text/plain"},` +
			s1 + `,"metadata":{"content-type":"text/markdown","original-filename":"№/.env","original-filename-encoded":"none","read-only":"true"},"versionId":null,"contentType":"text/markdown"}]`,
		DetailNormalized: `[{"id":"XDLaBfcU4SLj-zey4Mhhs","name":"x/a.txt","storage_session_id":"FkhP-JUEnsy-Zl9Tk9MiM","size":1,"contentType":"text/plain","lastModified":"2026-11-29T14:11:20.110Z"},` +
			`{"id":"uRhm7qNnTX0NqbQGDRoZO","name":"№/.env","storage_session_id":"FkhP-JUEnsy-Zl9Tk9MiM","size":7,"contentType":"text/markdown","lastModified":"2026-11-29T14:11:20.000Z","read_only":true}]`,
	} {
		got, err := json.Marshal(Listing(os, detail))
		if d := cmp.Diff(want, string(got)); d != "" || err != nil {
			t.Errorf("%s (-want +got) %v:\n%s", detail, err, d)
		}
		if none, err := json.Marshal(Listing(nil, detail)); string(none) != "[]" || err != nil {
			t.Errorf("%s of nothing: %s, %v", detail, none, err)
		}
	}
	got, err := json.Marshal(MetadataOf(os[1]))
	if want := `{"name":` + n1 + `,"originalFilename":"№/.env","size":7,"lastModified":"2026-11-29T14:11:20.000Z","etag":"` + e1 + `","contentType":"text/markdown","readOnly":true}`; string(got) != want || err != nil {
		t.Errorf("metadata %s, %v, want %s", got, err, want)
	}
	twin := os[0]
	twin.Session = "elsewhere"
	if e0 == e1 || ETag(twin) == e0 || len(e0) != 32 {
		t.Errorf("IO-10: tags %s, %s, %s of a twin", e0, e1, ETag(twin))
	}
}

func TestTypes(t *testing.T) {
	for in, want := range map[string]string{
		"text/plain": "text/plain", "text/html; charset=utf-8": "text/html; charset=utf-8", "image/svg+xml": "image/svg+xml",
		"": anyType, "text": anyType, "text/plain\r\nX-Evil: 1": anyType, "text/плэйн": anyType, "text/" + strings.Repeat("x", 300): anyType,
	} {
		if got := cleanType(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestNewRefusesOptionsWithoutSense(t *testing.T) {
	for n, change := range []func(*Options){
		func(o *Options) { o.TTL = 0 }, func(o *Options) { o.Retention = -1 }, func(o *Options) { o.Grace = 0 }, func(o *Options) { o.Limits.TenantBytes = 0 },
	} {
		opt := Defaults()
		change(&opt)
		if _, err := New(nil, nil, opt); err == nil {
			t.Errorf("options %d were accepted", n)
		}
	}
}

// TestPutIsNotBufferedWhole counts what is allocated for a file of many times that.
func TestPutIsNotBufferedWhole(t *testing.T) {
	d, ada := newDesk(t, Defaults()), user("ada")
	s := d.create(t, ada, own)
	const size = 8 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := d.put(t, ada, own, s, File{Name: "big", Body: io.LimitReader(zeros{}, size), Max: size})
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > size/4 || o.Size != size || o.Type != anyType {
		t.Errorf("%d bytes were allocated for %+v", used, o)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
