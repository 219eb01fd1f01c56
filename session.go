package writ

import (
	"crypto/rand"
	"path"
	"strings"
	"time"
)

type (
	// SessionID and ObjectID are 21 of A-Z a-z 0-9 _ - (spec/03 §4).
	SessionID string
	ObjectID  string
)

// EntityKind says for whom a storage session is: spec/03 §4.
type EntityKind string

const (
	EntitySkill EntityKind = "skill" // anybody of the tenant who names the skill and its version
	EntityAgent EntityKind = "agent" // anybody of the tenant who names the agent
	EntityUser  EntityKind = "user"  // who made it
)

// CodeFileTooLarge is the Code of the error for a file with more bytes than its limit.
const CodeFileTooLarge = "FILE_TOO_LARGE"

// Session is a storage session of the code interpreter: files that came together, in an
// upload or out of a run.
type Session struct {
	ID      SessionID  `json:"id"`
	Tenant  Tenant     `json:"tenant"`
	By      Ref        `json:"by"` // who made it
	Kind    EntityKind `json:"kind"`
	Key     Digest     `json:"key"` // of who may use it
	Created time.Time  `json:"created"`
	Expires time.Time  `json:"expires"` // with all that is in it
	Objects int64      `json:"objects"`
	Bytes   int64      `json:"bytes"` // of its objects
}

// SessionContents are a session and the files in it, in the order in which they came.
type SessionContents struct {
	Session
	Files []Object `json:"files"`
}

// SessionFilter narrows a list of sessions. Zero fields do not narrow.
type SessionFilter struct {
	Tenant Tenant
	Page   Page
}

// SessionTotals are what the sessions of a tenant hold together, also those that are
// over and still there.
type SessionTotals struct {
	Sessions int64 `json:"sessions"`
	Objects  int64 `json:"objects"`
	Bytes    int64 `json:"bytes"` // also those that runs left for the next one
}

// Object is a file in a storage session. It never changes.
type Object struct {
	ID       ObjectID  `json:"id"`
	Session  SessionID `json:"session"`
	Name     string    `json:"name"` // UTF-8, with its folders, separated by "/"
	Type     string    `json:"type"` // as it was sent
	Size     int64     `json:"size"` // bytes
	SHA256   Digest    `json:"sha256"`
	ReadOnly bool      `json:"read_only,omitempty"`
	// ModifiedFrom is the input that a run changed into this one.
	ModifiedFrom *ObjectRef `json:"modified_from,omitempty"`
	Created      time.Time  `json:"created"`
}

// ObjectRef names an object.
type ObjectRef struct {
	ID      ObjectID  `json:"id"`
	Session SessionID `json:"storage_session_id"`
}

// Ref names o.
func (o Object) Ref() ObjectRef { return ObjectRef{ID: o.ID, Session: o.Session} }

// Key is the name of o in lists: its session, "/", its id and the extension of its name,
// which clients cut off again (spec/03 §11).
func (o Object) Key() string {
	base := path.Base(o.Name)
	ext := ""
	if i := strings.LastIndexByte(base, '.'); i > 0 { // ".env" has none
		ext = base[i:]
	}
	return string(o.Session) + "/" + string(o.ID) + ext
}

// NewSessionID makes an id that nobody guesses.
func NewSessionID() SessionID { return SessionID(nanoID()) }

// NewObjectID makes an id that nobody guesses.
func NewObjectID() ObjectID { return ObjectID(nanoID()) }

const (
	nanoSize     = 21
	nanoAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
)

func nanoID() string {
	b := make([]byte, nanoSize)
	rand.Read(b) // never fails
	for i := range b {
		b[i] = nanoAlphabet[b[i]&63]
	}
	return string(b)
}

// Valid reports whether id has the form of one.
func (id SessionID) Valid() bool { return isNanoID(string(id)) }

// Valid reports whether id has the form of one.
func (id ObjectID) Valid() bool { return isNanoID(string(id)) }

func isNanoID(s string) bool {
	return len(s) == nanoSize && strings.Trim(s, nanoAlphabet) == ""
}
