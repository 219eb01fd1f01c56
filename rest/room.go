package rest

import (
	"fmt"
	"io"
	"net/http"
	"sync"

	"writ"
)

const (
	// smallBody is what every body may have without asking for room.
	smallBody = 1 << 20
	// roomBytes bounds the large bodies that are read and handled at one time, so that
	// it does not grow with the number of requests what memory they take: some times
	// the bytes of each, decoded, checked, digested and on the way to the store.
	roomBytes = 4 * maxSpecBody
	// roomEach bounds those of one caller, so that none keeps the others out.
	roomEach = roomBytes / 2
)

// room is what large bodies may take of memory. Its zero value is empty.
type room struct {
	mu    sync.Mutex
	taken int64              // guarded by mu; by all, at most roomBytes
	by    map[writ.Ref]int64 // guarded by mu; by whom, at most roomEach; nothing of who has none
}

// take gives who n bytes of room, to be given back, or an error of kind Exhausted.
func (m *room) take(who writ.Ref, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	whose := "others"
	if m.by[who]+n > roomEach {
		whose = "yours"
	} else if m.taken+n <= roomBytes {
		if m.by == nil {
			m.by = map[writ.Ref]int64{}
		}
		m.by[who] += n
		m.taken += n
		return nil
	}
	return &writ.Error{
		Kind: writ.Exhausted, Op: "read body",
		Msg: fmt.Sprintf("other large requests of %s are under way: send this one again in a moment", whose),
	}
}

func (m *room) give(who writ.Ref, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken -= n
	if m.by[who] -= n; m.by[who] == 0 {
		delete(m.by, who)
	}
}

// roomy is h, which reads a body of at most maxSpecBody, with room for it while h
// works. A body that finds none fails to be read with take's error.
func (a *API) roomy(h handler) handler {
	return func(w *recorder, r *http.Request, who writ.Principal) error {
		b := &largeBody{ReadCloser: r.Body, room: &a.room, who: who.Ref(), size: maxSpecBody}
		if r.ContentLength >= 0 {
			b.size = min(r.ContentLength, maxSpecBody)
		}
		defer b.done()
		r = r.WithContext(r.Context()) // a copy: the server keeps the body that it made
		r.Body = b
		return h(w, r, who)
	}
}

// largeBody takes room for the whole of a body once it turns out to be a large one.
// One that comes slowly takes none until then.
type largeBody struct {
	io.ReadCloser
	room *room
	who  writ.Ref
	size int64 // of the body, or the most when it does not say

	read  int64
	taken bool
}

func (b *largeBody) Read(p []byte) (int, error) {
	if b.read >= smallBody && b.size > smallBody && !b.taken {
		if err := b.room.take(b.who, b.size); err != nil {
			return 0, err
		}
		b.taken = true
	}
	if !b.taken && b.size > smallBody {
		p = p[:min(int64(len(p)), smallBody-b.read)]
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	return n, err
}

func (b *largeBody) done() {
	if b.taken {
		b.room.give(b.who, b.size)
	}
}
