package session

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"writ"
)

// maxEntityID bounds the id of an entity, in bytes.
const maxEntityID = 256

// Entity is for whom a session is, as a caller claims it. Of a user the ID is ignored:
// the session is the caller's own (spec/03 §4).
type Entity struct {
	Kind    writ.EntityKind
	ID      string
	Version *float64 // of a skill, nil for all others
}

// ParseEntity reads an entity out of a form or a query, where a version is text
// (spec/03 §10, §11). What is wrong with it is Invalid, in the words of the contract.
func ParseEntity(kind, id, version string) (Entity, error) {
	e := Entity{Kind: writ.EntityKind(kind), ID: id}
	if err := e.checkKindAndID(); err != nil {
		return Entity{}, err
	}
	if version != "" {
		v, err := strconv.ParseFloat(strings.TrimSpace(version), 64)
		if e.Kind == writ.EntitySkill && (err != nil || strings.ContainsAny(version, "xX_pP") || math.IsInf(v, 0) || math.IsNaN(v)) {
			return Entity{}, invalid("version must be a number for kind: 'skill'")
		}
		e.Version = &v
	}
	return e, e.Check()
}

// Check reports what is wrong with e as an Invalid error, in the words of the contract.
func (e Entity) Check() error {
	if err := e.checkKindAndID(); err != nil {
		return err
	}
	switch skill := e.Kind == writ.EntitySkill; {
	case skill && e.Version == nil:
		return invalid("version is required for kind: 'skill'")
	case skill && (math.IsInf(*e.Version, 0) || math.IsNaN(*e.Version)):
		return invalid("version must be a number for kind: 'skill'")
	case !skill && e.Version != nil:
		return invalid("version is only valid for kind: 'skill'")
	}
	return nil
}

func (e Entity) checkKindAndID() error {
	switch e.Kind {
	case writ.EntitySkill, writ.EntityAgent:
		if e.ID == "" {
			return invalid(fmt.Sprintf("id is required for kind: '%s'", e.Kind))
		}
	case writ.EntityUser:
	default:
		return invalid("kind must be one of: skill, agent, user")
	}
	if len(e.ID) > maxEntityID {
		return invalid(fmt.Sprintf("id must not exceed %d bytes", maxEntityID))
	}
	return nil
}

func invalid(msg string) error { return &writ.Error{Kind: writ.Invalid, Msg: msg} }

// key is what a session of e that p made has in common with those who may use it.
func (e Entity) key(p writ.Principal) writ.Digest {
	parts := []string{"writ storage session 1", string(p.Tenant), string(e.Kind)}
	switch e.Kind {
	case writ.EntitySkill:
		// One number is one version, however it was written: 3, 3.0, 3e0.
		parts = append(parts, e.ID, strconv.FormatFloat(*e.Version+0, 'g', -1, 64)) // +0: no -0
	case writ.EntityAgent:
		parts = append(parts, e.ID)
	default: // who asks, whatever id was sent; a user and an identity may have one name
		parts = append(parts, string(p.Kind), p.ID)
	}
	return digestOf(parts...)
}

// digestOf is a digest over texts, each with its length before it.
func digestOf(parts ...string) writ.Digest {
	var b []byte
	for _, s := range parts {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	sum := sha256.Sum256(b)
	return writ.Digest(hex.EncodeToString(sum[:]))
}
