package mcp

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"writ"
)

// sealer makes the state that a client of the stateless era keeps between two sends of
// one request: encrypted and authenticated, bound to who asked, what was asked and
// when it ends, and used at most once by this server. That it is used once over all
// servers is the approval's doing, which is resolved once.
type sealer struct {
	aead cipher.AEAD

	mu   sync.Mutex
	used map[string]time.Time // by nonce, until when it counts; guarded by mu
}

// maxUsed bounds how many used states are remembered. Each took an approval.
const maxUsed = 100_000

// state is what a client keeps. Its fields are for this package; outside they are
// sealed.
type state struct {
	Approval writ.ApprovalID `json:"approval"`
	Who      string          `json:"who"`
	Request  writ.Digest     `json:"request"`
	Expires  time.Time       `json:"expires"`
	Nonce    string          `json:"nonce"`
}

// newSealer seals with a key of 32 bytes. It panics at another length.
func newSealer(key []byte) *sealer {
	if len(key) != 32 {
		panic("mcp: the key of request states has 32 bytes")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("mcp: " + err.Error()) // the length is right
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("mcp: " + err.Error()) // AES has the block size of GCM
	}
	return &sealer{aead: aead, used: map[string]time.Time{}}
}

// sealedAs keeps what was sealed for one purpose from being opened for another.
var sealedAs = []byte("writ mcp request state v1")

// close seals the state of the request of who for the hold id.
func (s *sealer) close(id writ.ApprovalID, who writ.Principal, request writ.Digest, expires time.Time) string {
	plain, err := json.Marshal(state{Approval: id, Who: owner(who), Request: request, Expires: expires, Nonce: rand.Text()})
	if err != nil {
		panic("mcp: a state always encodes: " + err.Error()) // strings and a time
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, sealedAs))
}

// errState has one text for every cause: who altered a state learns nothing.
var errState = errors.New("requestState is not of this request, was used before or has expired: send the call again without it")

// open is the state that close sealed, if it is of who and this request and has not
// expired; else errState.
func (s *sealer) open(sealed string, who writ.Principal, request writ.Digest, now time.Time) (state, error) {
	var st state
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return st, errState
	}
	plain, err := s.aead.Open(nil, nil, raw, sealedAs)
	if err != nil || json.Unmarshal(plain, &st) != nil {
		return state{}, errState
	}
	if st.Who != owner(who) || st.Request != request || !now.Before(st.Expires) || s.wasUsed(st.Nonce) {
		return state{}, errState
	}
	return st, nil
}

func (s *sealer) wasUsed(nonce string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, used := s.used[nonce]
	return used
}

// use marks st as used; errState when it was.
func (s *sealer) use(st state, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, used := s.used[st.Nonce]; used {
		return errState
	}
	if len(s.used) >= maxUsed {
		for nonce, until := range s.used {
			if !now.Before(until) {
				delete(s.used, nonce)
			}
		}
		if len(s.used) >= maxUsed {
			return errors.New("too many approvals were answered in a short time: try again in some minutes")
		}
	}
	s.used[st.Nonce] = st.Expires
	return nil
}

// owner names a principal among those of all tenants.
func owner(who writ.Principal) string { return string(who.Tenant) + "/" + who.Ref().String() }
