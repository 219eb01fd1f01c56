package codeapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/big"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/session"
)

// TestLC12_LC18_SoakOfFiles has 8 clients of 2 tenants upload, list, download and delete at
// once, while retention passes. No byte is another one, nobody sees what is not theirs,
// and goroutines, open files and heap are in the end what they were after a while.
//
// WRIT_SOAK is how long it takes, as 3m: 2 s if unset.
func TestLC12_LC18_SoakOfFiles(t *testing.T) {
	length := 2 * time.Second
	if text := os.Getenv("WRIT_SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil || length < time.Second {
			t.Fatalf("WRIT_SOAK=%q: want a time from 1s", text)
		}
	}
	d := newDepot(t, depotOptions{session: func(o *session.Options) { o.Grace = 20 * time.Second }})
	start := restOf(d)
	clients := make([]*soaker, 8)
	for i := range clients {
		clients[i] = &soaker{d: d, badge: fmt.Sprintf("t%d/u%d", i%2, i), other: fmt.Sprintf("t%d/u%d", (i+1)%2, i), done: map[string]int{}}
	}
	part := func(length time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		var group sync.WaitGroup
		errs := make([]error, len(clients)+1)
		for i, c := range clients {
			group.Go(func() { errs[i] = c.work(ctx) })
		}
		group.Go(func() {
			d.sessions.Watch(ctx, time.Second, false, func(_ writ.FileRemoval, err error) {
				if err != nil && ctx.Err() == nil {
					errs[len(clients)] = fmt.Errorf("retention: %w", err)
				}
			})
		})
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	part(length / 4)
	warm := restOf(d)
	part(length)
	var end rest
	const slack = 20 // connections of the store come and go, with files of their own
	testkit.Eventually(t, "as many goroutines and open files as at first, and the heap of a quarter", func() bool {
		end = restOf(d)
		return end.goroutines <= start.goroutines+2 && end.files <= start.files+slack && end.heap <= warm.heap+(8<<20)
	}, func() string { return fmt.Sprintf("at first %+v, warm %+v, at the end %+v", start, warm, end) })
	done := map[string]int{}
	for _, c := range clients {
		for what, n := range c.done {
			done[what] += n
		}
	}
	t.Logf("%v; at first %+v, warm %+v, at the end %+v", done, start, warm, end)
	for _, what := range []string{"upload", "batch", "list", "download", "range", "delete", "foreign"} {
		if done[what] == 0 {
			t.Errorf("nothing of the kind %q was done", what)
		}
	}
	for _, tenant := range []writ.Tenant{"t0", "t1"} {
		if held, drafts := d.stored(t, tenant); held.Objects != 0 || drafts != 0 {
			t.Errorf("%d objects and %d drafts of %s stay", held.Objects, drafts, tenant)
		}
	}
}

// rest is what a process has that rests.
type rest struct {
	goroutines, files int
	heap              uint64
}

func restOf(d *depot) rest {
	d.server.Client().CloseIdleConnections()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return rest{}
	}
	return rest{runtime.NumGoroutine(), len(open), m.HeapAlloc}
}

// soaker is one client. It is for one goroutine.
type soaker struct {
	d            *depot
	badge, other string
	done         map[string]int
}

func below(n int64) int64 {
	i, _ := rand.Int(rand.Reader, big.NewInt(n)) // never fails
	return i.Int64()
}

// work goes on until ctx ends, for one round at least, and leaves nothing.
func (s *soaker) work(ctx context.Context) error {
	for {
		if err := s.round(); err != nil {
			return fmt.Errorf("%s: %w", s.badge, err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// round uploads some files, reads them in each way, and deletes them.
func (s *soaker) round() error {
	parts, want := []part{field("kind", "user")}, map[string]string{}
	for i := range 1 + below(3) {
		body := make([]byte, below(20_000))
		rand.Read(body) // never fails
		name := fmt.Sprintf("d/%d.bin", i)
		parts, want[name] = append(parts, file(name, string(body))), string(body)
	}
	path, kind := "/upload", "upload"
	if s.done["upload"] > s.done["batch"] { // in turn, so that a slow machine does both
		path, kind = "/upload/batch", "batch"
	}
	got, err := s.d.try(s.badge, "POST", path, io.MultiReader(strings.NewReader(formOf(parts...))), "Content-Type", formType)
	if err != nil {
		return err
	}
	var up uploadAnswer
	if err := got.decode(&up); err != nil || got.status != http.StatusOK || len(up.Files) != len(want) {
		return fmt.Errorf("%s: %d %s: %w", path, got.status, got.body, err)
	}
	s.done[kind]++
	in := string(up.Session)
	for _, f := range up.Files {
		object := "/" + in + "/" + string(f.ID) + "?kind=user"
		body := want[f.Name]
		from := below(int64(len(body)) + 1)
		for _, c := range []struct {
			what, badge, method, path string
			header                    []string
			status                    int
			body                      string
		}{
			{"download", s.badge, "GET", "/download" + object, nil, 200, body},
			{"range", s.badge, "GET", "/download" + object, []string{"Range", fmt.Sprintf("bytes=%d-", from)}, 206, body[from:]},
			{"foreign", s.other, "GET", "/download" + object, nil, 403, unauthorized},
			{"foreign", s.other, "DELETE", "/files" + object, nil, 403, unauthorized},
		} {
			if c.what == "range" && from == int64(len(body)) {
				c.status = http.StatusRequestedRangeNotSatisfiable
				c.body = inWords(http.StatusText(c.status))
				if body == "" { // of nothing all is all
					continue
				}
			}
			got, err := s.d.try(c.badge, c.method, c.path, nil, c.header...)
			if err != nil {
				return err
			}
			if !got.is(c.status, c.body) {
				return fmt.Errorf("%s of %s as %s: %d with %d bytes, want %d with %d", c.what, f.Name, c.badge, got.status, len(got.body), c.status, len(c.body))
			}
			s.done[c.what]++
		}
	}
	for i, f := range up.Files {
		list, err := s.d.try(s.badge, "GET", "/files/"+in+"?kind=user", nil)
		if err != nil {
			return err
		}
		if n := strings.Count(list.body, in); n != len(up.Files)-i {
			return fmt.Errorf("%d files are listed of %d: %d %s", n, len(up.Files)-i, list.status, list.body)
		}
		s.done["list"]++
		got, err := s.d.try(s.badge, "DELETE", "/files/"+in+"/"+string(f.ID)+"?kind=user", nil)
		if err != nil {
			return err
		}
		if got.status != http.StatusOK {
			return fmt.Errorf("delete: %d %s", got.status, got.body)
		}
		s.done["delete"]++
	}
	return nil
}

// heapWatch measures the heap as bytes pass.
type heapWatch struct {
	hash.Hash
	n, next   int64
	base, top uint64
}

func newHeapWatch() *heapWatch {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return &heapWatch{Hash: sha256.New(), base: m.HeapAlloc}
}

func (h *heapWatch) Write(p []byte) (int, error) {
	if h.n += int64(len(p)); h.n >= h.next {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		h.top, h.next = max(h.top, m.HeapAlloc), h.n+(4<<20)
	}
	return h.Hash.Write(p)
}

// TestLargeFileStreams sends 200 MB and fetches them, in a heap that does not grow with
// them.
func TestLargeFileStreams(t *testing.T) {
	const size, room = 200_000_000, 16 << 20
	// Else garbage may grow to as much as other tests of this process left alive.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	d := newDepot(t, depotOptions{fileBytes: size + 1, uploadTime: 10 * time.Minute})
	form := formOf(field("kind", "user"), file("large.bin", "HERE"))
	before, after, _ := strings.Cut(form, "HERE")
	block := make([]byte, 1<<20)
	rand.Read(block) // never fails
	sent := newHeapWatch()
	body := io.MultiReader(strings.NewReader(before), io.TeeReader(io.LimitReader(&again{block: block}, size), sent), strings.NewReader(after))
	got := d.ask(t, ada, "POST", "/upload", body, "Content-Type", formType)
	var up uploadAnswer
	if got.into(t, &up); got.status != http.StatusOK || sent.n != size {
		t.Fatalf("%d %s after %d bytes", got.status, got.body, sent.n)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", fmt.Sprintf("%s/download/%s/%s?kind=user", d.url, up.Session, up.Files[0].ID), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+ada)
	resp, err := d.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	fetched := newHeapWatch()
	if _, err := io.Copy(fetched, resp.Body); err != nil || resp.ContentLength != size {
		t.Fatalf("%d bytes of %d: %v", fetched.n, resp.ContentLength, err)
	}
	if !bytes.Equal(sent.Sum(nil), fetched.Sum(nil)) {
		t.Error("what was fetched is not what was sent")
	}
	for what, h := range map[string]*heapWatch{"upload": sent, "download": fetched} {
		t.Logf("%s: heap of %d KiB before, at most %d KiB", what, h.base>>10, h.top>>10)
		if h.top > h.base+room {
			t.Errorf("%s: the heap grew from %d to %d bytes", what, h.base, h.top)
		}
	}
}

// again reads one block over and over.
type again struct {
	block []byte
	at    int
}

func (a *again) Read(p []byte) (int, error) {
	n := copy(p, a.block[a.at:])
	a.at = (a.at + n) % len(a.block)
	return n, nil
}
