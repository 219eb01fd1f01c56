package rest

import (
	"io"
	"net/http"

	"writ"
	"writ/room"
)

const (
	// smallBody is what every body may have without asking for room.
	smallBody = 1 << 20
	// roomBytes bounds the large bodies that are read and handled at one time: some times
	// the bytes of each, decoded, checked, digested and on the way to the store.
	roomBytes = 4 * maxSpecBody
)

// roomy is h, which reads a body of at most maxSpecBody, with room for it while h
// works. A body that finds none fails to be read with the error of that.
func (a *API) roomy(h handler) handler {
	return func(w *recorder, r *http.Request, who writ.Principal) error {
		b := &largeBody{ReadCloser: r.Body, room: a.room, who: who.Ref(), size: maxSpecBody}
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
	room *room.Room[writ.Ref]
	who  writ.Ref
	size int64 // of the body, or the most when it does not say

	read  int64
	taken bool
}

func (b *largeBody) Read(p []byte) (int, error) {
	if b.read >= smallBody && b.size > smallBody && !b.taken {
		if err := b.room.Take(b.who, b.size); err != nil {
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
		b.room.Give(b.who, b.size)
	}
}
