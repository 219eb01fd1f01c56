package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"writ"
)

// model is what the rules say of one user's sessions, beside the service.
type model struct {
	*desk
	ctx      context.Context
	sessions []*modelSession
	put      map[string]time.Time // bodies whose bytes may be there: when they were put last
}

type modelSession struct {
	id      writ.SessionID
	expires time.Time
	objects []modelObject
}

type modelObject struct {
	writ.Object
	body string
}

// TestModel puts, reads, deletes, lets time pass and removes what is over, in any order,
// and compares all that anybody can see, and which bytes are there.
func TestModel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, Defaults())
	rapid.Check(t, func(rt *rapid.T) {
		d.empty(rt)
		m := &model{desk: d, ctx: context.Background(), put: map[string]time.Time{}}
		steps := []func(*rapid.T){m.create, m.keep, m.keep, m.keep, m.remove, m.wait, m.retain}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			steps[rapid.IntRange(0, len(steps)-1).Draw(rt, "step")](rt)
		}
		m.compare(rt)
	})
	d.empty(t)
}

// empty lets everything be over. Whatever was done, nothing is left then.
func (d *desk) empty(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}) {
	d.pass(d.opt.TTL + d.opt.Retention + d.opt.Grace + time.Second)
	_, err := d.Retain(context.Background(), writ.Ref{}, false)
	if left := d.blobNames(t); err != nil || len(left) != 0 {
		t.Fatalf("left in the end: %v, %v", left, err)
	}
	d.pass(-d.later)
}

func (m *model) create(rt *rapid.T) {
	s, err := m.Create(m.ctx, user("ada"), own)
	if err != nil {
		rt.Fatal(err)
	}
	m.sessions = append(m.sessions, &modelSession{id: s.ID, expires: s.Expires})
}

// pick draws a session, also one that is over.
func (m *model) pick(rt *rapid.T) *modelSession {
	if len(m.sessions) == 0 {
		m.create(rt)
	}
	return m.sessions[rapid.IntRange(0, len(m.sessions)-1).Draw(rt, "session")]
}

func (m *model) live(s *modelSession) bool { return m.now().Before(s.expires) }

func (m *model) keep(rt *rapid.T) {
	s, body := m.pick(rt), fmt.Sprint("body ", rapid.IntRange(0, 3).Draw(rt, "body"))
	o, err := m.Put(m.ctx, user("ada"), own, s.id, text("f", body))
	switch {
	case m.live(s) && err == nil:
		s.objects = append(s.objects, modelObject{o, body})
		m.put[body] = writ.Now() // by the disk's clock, which nobody sets
	case m.live(s) || writ.KindOf(err) != writ.NotFound:
		rt.Fatalf("put in a session that is live=%v: %v", m.live(s), err)
	}
}

func (m *model) remove(rt *rapid.T) {
	s := m.pick(rt)
	if len(s.objects) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.objects)-1).Draw(rt, "object")
	err := m.Delete(m.ctx, user("ada"), own, s.id, s.objects[i].ID)
	switch {
	case m.live(s) && err == nil:
		s.objects = slices.Delete(s.objects, i, i+1)
	case m.live(s) || writ.KindOf(err) != writ.NotFound:
		rt.Fatalf("delete in a session that is live=%v: %v", m.live(s), err)
	}
}

func (m *model) wait(rt *rapid.T) {
	m.pass(rapid.SampledFrom([]time.Duration{time.Minute, 2 * m.opt.Grace, m.opt.TTL, m.opt.Retention + time.Minute}).Draw(rt, "wait"))
}

func (m *model) retain(rt *rapid.T) {
	var want writ.FileRemoval
	m.sessions = slices.DeleteFunc(m.sessions, func(s *modelSession) bool {
		if !s.expires.Before(m.now().Add(-m.opt.Retention)) {
			return false
		}
		want.Sessions++
		for _, o := range s.objects {
			want.Objects++
			want.Bytes += o.Size
		}
		return true
	})
	for body, at := range m.put {
		if m.names(body) == 0 && at.Before(m.now().Add(-m.opt.Grace)) {
			delete(m.put, body)
			want.Blobs++
			want.BlobBytes += int64(len(body))
		}
	}
	if got, err := m.Retain(m.ctx, writ.Ref{}, false); got != want || err != nil {
		rt.Fatalf("removed %+v, %v, the rules say %+v", got, err, want)
	}
}

// names counts the objects that have body.
func (m *model) names(body string) (n int) {
	for _, s := range m.sessions {
		for _, o := range s.objects {
			if o.body == body {
				n++
			}
		}
	}
	return n
}

func (m *model) compare(rt *rapid.T) {
	for _, s := range m.sessions {
		list, err := m.List(m.ctx, user("ada"), own, s.id)
		if !m.live(s) {
			if writ.KindOf(err) != writ.NotFound {
				rt.Fatalf("a session that is over: %v, %v", list, err)
			}
			continue
		}
		if err != nil || len(list) != len(s.objects) {
			rt.Fatalf("listed %v, %v, want %v", list, err, s.objects)
		}
		for _, o := range s.objects {
			if got, err := m.bytesOf(user("ada"), own, s.id, o.ID); got != o.body || err != nil || !slices.Contains(list, o.Object) {
				rt.Fatalf("object %+v: %q, %v; listed %v", o, got, err, list)
			}
		}
	}
	entries := m.blobNames(rt)
	for body := range m.put {
		if !slices.Contains(entries, string(writ.DigestOf([]byte(body)))) {
			rt.Fatalf("the bytes of %q are gone", body)
		}
	}
	if len(entries) != len(m.put) {
		rt.Fatalf("there are %d blobs (%s), want %d", len(entries), strings.Join(entries, " "), len(m.put))
	}
}
