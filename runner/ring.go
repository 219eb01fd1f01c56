package runner

// ring is the last bytes of a stream that has no end. The zero ring keeps nothing; it is
// not safe for concurrent use.
type ring struct {
	max   int
	b     []byte // byte n of the stream is at n modulo max; grows up to that
	total int64  // bytes that were written
}

func (r *ring) write(p []byte) {
	if skip := len(p) - r.max; skip > 0 {
		r.b = append(r.b, make([]byte, r.max-len(r.b))...) // all of it is written below
		r.total += int64(skip)
		p = p[skip:]
	}
	if room := min(r.max-len(r.b), len(p)); room > 0 {
		r.b = append(r.b, p[:room]...)
		r.total += int64(room)
		p = p[room:]
	}
	for len(p) > 0 {
		n := copy(r.b[r.total%int64(r.max):], p)
		r.total += int64(n)
		p = p[n:]
	}
}

// from is where the stream begins that is kept: behind the rest of a character whose
// beginning was dropped.
func (r *ring) from() int64 {
	from := r.total - int64(len(r.b))
	for n := 0; from > 0 && n < 3 && from < r.total && r.b[from%int64(r.max)]&0xC0 == 0x80; n++ {
		from++
	}
	return from
}

// copy is n bytes of the stream from start on, which must be kept.
func (r *ring) copy(start int64, n int) []byte {
	out := make([]byte, 0, n)
	for len(out) < n {
		at := int((start + int64(len(out))) % int64(r.max))
		out = append(out, r.b[at:min(len(r.b), at+n-len(out))]...)
	}
	return out
}
