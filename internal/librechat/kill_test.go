package librechat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/blob"
	"writ/internal/testkit"
	"writ/session"
	"writ/store"
)

// promised is a file that a client was told is kept.
type promised struct{ session, id, name, text string }

// promises are those of all clients.
type promises struct {
	mu  sync.Mutex
	all []promised // guarded by mu
}

func (p *promises) add(session, id, name, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, promised{session, id, name, text})
}

func (p *promises) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all)
}

// TestKill kills the server in the middle of uploads and runs, WRIT_CRASHES times. After
// that every file that a client was told of has its bytes, every one that a session lists
// has its own, and a pass of the retention leaves bytes of no other.
func TestKill(t *testing.T) {
	times := 20
	if text := os.Getenv("WRIT_CRASHES"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("WRIT_CRASHES=%q: want a number from 1", text)
		}
		times = n
	}
	s := serve(t, setup{mode: signed})
	d := testkit.NewDice(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var kept promises
	var clients sync.WaitGroup
	for i := range 6 {
		k := &soaker{user: s.user(fmt.Sprintf("client-%d", i)), dice: d.Fork(), done: map[string]int{}}
		clients.Go(func() {
			for ctx.Err() == nil {
				if k.interrupted(ctx, &kept) != nil {
					pause(ctx, 20*time.Millisecond) // it is away
				}
			}
		})
	}
	for range times {
		before := kept.count()
		pause(ctx, 50*time.Millisecond+d.UpTo(900*time.Millisecond))
		testkit.Eventually(t, "a client was told of a file in this life of the server", func() bool { return kept.count() > before })
		s.kill()
		s.start()
	}
	cancel()
	clients.Wait()

	t.Logf("%d files were promised", len(kept.all))
	lists := map[string][]listed{}
	for _, p := range kept.all {
		owner := tester{user{s, owner(p.name), "legacy"}, t}
		if err := owner.has(t.Context(), p.session, p.id, p.text); err != nil {
			t.Errorf("a promised file: %v", err)
		}
		if lists[p.session] == nil {
			lists[p.session] = owner.list(p.session)
			for _, o := range lists[p.session] {
				if got := owner.text(o.Session, o.ID); int64(len(got)) != o.Size {
					t.Errorf("%+v has %d bytes", o, len(got))
				}
			}
		}
		if !slices.ContainsFunc(lists[p.session], func(o listed) bool { return o.ID == p.id && o.Name == p.name }) {
			t.Errorf("the list of %s lacks %s %q", p.session, p.id, p.name)
		}
	}
	s.stop()
	s.gone()
	s.swept()
}

// owner is whose file it is, by its name.
func owner(name string) string {
	for i, r := range name {
		if r == '.' {
			return name[:i]
		}
	}
	return name
}

// interrupted uploads files and runs something over them, and notes what it was told. An
// error means that the server went away, or does not work yet.
func (k *soaker) interrupted(ctx context.Context, kept *promises) error {
	name := fmt.Sprintf("%s.%x.txt", k.name, k.dice.Next())
	text := k.text(400_000)
	kind, body := form(mine, upload{name, text}, upload{name + ".csv", text + "2"})
	refs, err := uploaded(k.send(ctx, http.MethodPost, "/upload", kind, body))
	if err != nil || len(refs) != 2 {
		return fmt.Errorf("upload: %w", err)
	}
	kept.add(refs[0].Session, refs[0].ID, name, text)
	kept.add(refs[1].Session, refs[1].ID, name+".csv", text+"2")
	code := fmt.Sprintf("tr a-z A-Z < %[1]s > %[1]s.md; printf more >> %[1]s; sleep 0.0$((RANDOM %% 10))", name)
	a, err := k.sendJSON(ctx, "/exec", map[string]any{"lang": "bash", "code": code, "files": refs})
	if err != nil || a.status != http.StatusOK {
		return fmt.Errorf("exec: %v %s", err, a)
	}
	var r run
	if err := json.Unmarshal(a.body, &r); err != nil {
		return err
	}
	if f := r.file(name); f.ID != "" && !f.Inherited {
		kept.add(f.Session, f.ID, name, text+"more")
	}
	if f := r.file(name + ".md"); f.ID != "" {
		kept.add(f.Session, f.ID, f.Name, upper(text))
	}
	return nil
}

func upper(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// whole reads every object of every session, also of those of which nobody was told, and
// answers how many there are.
func (s *server) whole(db *store.DB, bytes *blob.Folder) (n int) {
	s.t.Helper()
	ctx := s.t.Context()
	const all = 100_000
	var objects []writ.Object
	err := db.View(ctx, func(tx *store.Tx) error {
		f := writ.SessionFilter{Page: writ.Page{Limit: writ.MaxPage}}
		for {
			sessions, next, err := tx.Sessions(ctx, f)
			if err != nil {
				return err
			}
			for _, in := range sessions {
				more, err := tx.Objects(ctx, in.ID, all)
				if err != nil {
					return err
				}
				objects = append(objects, more...)
			}
			if next == "" {
				return nil
			}
			f.Page.Cursor = next
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range objects {
		r, err := bytes.Open(ctx, o.SHA256, 0, -1)
		var got int64
		if err == nil {
			got, err = io.Copy(io.Discard, r) // and the digest with it
			err = errors.Join(err, r.Close())
		}
		if err != nil || got != o.Size {
			s.t.Errorf("%s/%s %q has %d of %d bytes: %v", o.Session, o.ID, o.Name, got, o.Size, err)
		}
	}
	return len(objects)
}

// swept fails the test when an object has not its bytes, or bytes are left that nobody
// names after a pass of the retention. The server is not running.
func (s *server) swept() {
	s.t.Helper()
	ctx := s.t.Context()
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(s.data(), "writ.db"), store.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	folder, err := blob.OpenFolder(filepath.Join(s.data(), "blobs"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer folder.Close()
	objects := s.whole(db, folder)
	options := session.Defaults()
	options.Grace = time.Millisecond
	sessions, err := session.New(db, folder, options)
	if err != nil {
		s.t.Fatal(err)
	}
	pause(ctx, 2*options.Grace) // what is there is older than that
	before := s.blobs()
	removed, err := sessions.Retain(ctx, writ.Ref{}, false)
	if err != nil {
		s.t.Fatal(err)
	}
	after := s.blobs()
	s.t.Logf("%d objects; %d blobs, of which %d were nobody's", objects, len(before), removed.Blobs)
	if int64(len(before))-removed.Blobs != int64(len(after)) || removed.Sessions != 0 {
		s.t.Errorf("of %d blobs the pass says it removed %d, and %d are left; of sessions it removed %d", len(before), removed.Blobs, len(after), removed.Sessions)
	}
	var named, digests []writ.Digest
	for _, d := range after {
		digests = append(digests, writ.Digest(d))
	}
	err = db.View(ctx, func(tx *store.Tx) (err error) {
		named, err = tx.UsedDigests(ctx, digests)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(named) != len(after) {
		s.t.Errorf("%d blobs are left, and %d of them are named", len(after), len(named))
	}
	drafts, err := os.ReadDir(filepath.Join(s.data(), "blobs", "drafts"))
	if err != nil || len(drafts) > 0 {
		s.t.Errorf("drafts are left: %v, %v", drafts, err)
	}
}
