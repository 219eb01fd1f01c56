package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
)

const (
	maxSessions      = 1024 // open at one time
	maxOwnerSessions = 64   // of one principal
)

// sessions are the open sessions of the older era. The id of one says how its answers
// come and, under a key of this process, whose it is: who presents the id of another,
// or of a server that was restarted, has none.
type sessions struct {
	key [32]byte

	mu   sync.Mutex
	open map[*sdk.Server]*session // guarded by mu; each server has at most one session
}

type session struct {
	owner string
	new   bool // its initialize is under way; guarded by sessions.mu
}

func newSessions() *sessions {
	s := &sessions{open: map[*sdk.Server]*session{}}
	rand.Read(s.key[:])
	return s
}

// How answers come: as one JSON value, or as a stream of events, in which the server
// can ask the client's user while a call is open.
const (
	kindJSON   = "j"
	kindStream = "s"
)

// mint makes the id of a session of owner.
func (s *sessions) mint(kind, owner string) string {
	id := kind + rand.Text()
	return id + s.mac(id, owner)
}

// kind is how the session id answers, empty when owner has no session of that id.
// A session that is closed still has its kind; the SDK knows the open ones.
func (s *sessions) kind(id, owner string) string {
	cut := len(id) - 2*macBytes
	if cut < 1 || !hmac.Equal([]byte(id[cut:]), []byte(s.mac(id[:cut], owner))) {
		return ""
	}
	return id[:1]
}

const macBytes = 16

func (s *sessions) mac(id, owner string) string {
	h := hmac.New(sha256.New, s.key[:])
	h.Write([]byte(id + " " + owner))
	return hex.EncodeToString(h.Sum(nil)[:macBytes])
}

// add takes the place of a session of owner that srv is about to open; settled must
// follow. Its error says which bound is reached.
func (s *sessions) add(srv *sdk.Server, owner string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := 0
	for other, sess := range s.open {
		if !sess.new && !alive(other) {
			delete(s.open, other)
		} else if sess.owner == owner {
			mine++
		}
	}
	if mine >= maxOwnerSessions || len(s.open) >= maxSessions {
		return &writ.Error{
			Kind: writ.Exhausted, Op: "open session",
			Msg: "too many sessions are open: end some, or wait until idle ones end",
		}
	}
	s.open[srv] = &session{owner: owner, new: true}
	return nil
}

// settled says that the initialize of srv was answered, whatever the answer.
func (s *sessions) settled(srv *sdk.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess := s.open[srv]; sess != nil {
		sess.new = false
	}
}

func alive(srv *sdk.Server) bool {
	for range srv.Sessions() {
		return true
	}
	return false
}

// closeAll ends every session, after the calls under way in it, and waits for that until
// ctx ends: a call is under way while its client takes no answer.
func (s *sessions) closeAll(ctx context.Context) {
	s.mu.Lock()
	open := s.open
	s.open = map[*sdk.Server]*session{}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for srv := range open {
		for sess := range srv.Sessions() {
			wg.Go(func() { _ = sess.Close() }) // fails when the client is gone; nobody is left to tell
		}
	}
	closed := make(chan struct{})
	go func() { // ends at the latest when the clients are cut off
		wg.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}
