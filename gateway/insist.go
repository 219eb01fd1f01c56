package gateway

import (
	"cmp"
	"time"

	"writ"
)

// insistFor is how long it is tried to record what has happened, while the store fails:
// it may be restarting.
const insistFor = 8 * time.Second

// insist calls record until it succeeds or answers a Conflict, which another try does not
// mend, or the time for it is over. It is for what has happened: that cannot be refused.
func (g *Gateway) insist(record func() error) error {
	end := time.Now().Add(cmp.Or(g.opt.Insist, insistFor))
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		err := record()
		if err == nil || writ.KindOf(err) == writ.Conflict || time.Now().Add(wait).After(end) {
			return err
		}
		time.Sleep(wait)
	}
}
