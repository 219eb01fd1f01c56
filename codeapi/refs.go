package codeapi

import (
	"math"
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ"
	"writ/interpreter"
	"writ/session"
)

// refBody is one entry of files (spec/03 §7).
type refBody struct {
	ID       text           `json:"id"`
	Resource text           `json:"resource_id"`
	Session  text           `json:"storage_session_id"`
	Name     text           `json:"name"`
	Kind     text           `json:"kind"`
	Version  jsontext.Value `json:"version"`
}

var resourceID = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

// refsOf reads the files that a run shall find. Entries, and the fields of each, are
// checked in the contract's order; the first fault is the answer.
func refsOf(files jsontext.Value) ([]interpreter.Ref, error) {
	if len(files) == 0 || files.Kind() == jsontext.KindNull {
		return nil, nil
	}
	var entries []jsontext.Value
	if files.Kind() != jsontext.KindBeginArray || json.Unmarshal(files, &entries, lenient()) != nil {
		return nil, invalid("files must be an array")
	}
	refs := make([]interpreter.Ref, len(entries))
	for i, entry := range entries {
		var b refBody
		if entry.Kind() != jsontext.KindBeginObject || json.Unmarshal(entry, &b, lenient()) != nil {
			return nil, invalid("files[%d] must be an object", i)
		}
		var err error
		if refs[i], err = b.ref(i); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// ref is the i-th entry.
func (b refBody) ref(i int) (interpreter.Ref, error) {
	r := interpreter.Ref{
		Object: writ.ObjectRef{ID: writ.ObjectID(b.ID.value), Session: writ.SessionID(b.Session.value)},
		Name:   b.Name.value,
		Entity: session.Entity{Kind: writ.EntityKind(b.Kind.value), ID: b.Resource.value},
	}
	version, given := b.version()
	skill := r.Entity.Kind == writ.EntitySkill
	switch fault := session.NameFault(b.Name.value); {
	case !r.Object.ID.Valid():
		return r, invalid("files[%d].id is invalid", i)
	case !resourceID.MatchString(r.Entity.ID):
		return r, invalid("files[%d].resource_id is invalid", i)
	case !r.Object.Session.Valid():
		return r, invalid("files[%d].storage_session_id is invalid", i)
	case !b.Name.has():
		return r, invalid("files[%d].name must be a string", i)
	case fault != "":
		return r, invalid("files[].name %s", fault)
	case !skill && r.Entity.Kind != writ.EntityAgent && r.Entity.Kind != writ.EntityUser:
		return r, invalid("files[%d].kind must be one of: skill, agent, user", i)
	case skill && version == nil:
		return r, invalid("files[%d].version is required for kind: 'skill'", i)
	case !skill && given:
		return r, invalid("files[%d].version is only valid for kind: 'skill'", i)
	}
	r.Entity.Version = version
	return r, nil
}

// version is that of the entry, nil unless it is a number that can be one, and whether
// the entry says one at all.
func (b refBody) version() (v *float64, given bool) {
	switch b.Version.Kind() {
	case jsontext.KindNumber:
		f, err := strconv.ParseFloat(string(b.Version), 64)
		if err != nil || math.IsInf(f, 0) {
			return nil, true
		}
		return &f, true
	case 0, jsontext.KindNull:
		return nil, false
	}
	return nil, true
}
