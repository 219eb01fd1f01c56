package auth

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const maxKid = 256 // bytes

var segmentEncoding = base64.RawURLEncoding.Strict()

// tokenHeader is the header of a token that is three segments, of which the first
// two are JSON objects in which no name stands twice. Names are what they are by
// every letter: "ALG" is not "alg".
type tokenHeader struct {
	members map[string]jsontext.Value
	alg     string // set by check
}

// parseHeader is the header of token. Base64 has one spelling: no padding, no line
// ends, no bits to spare, so that two texts are two tokens.
func parseHeader(token string) (*tokenHeader, error) {
	if len(token) > maxToken {
		return nil, refuse(ReasonMalformed, "%d bytes are more than %d", len(token), maxToken)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, refuse(ReasonMalformed, "%d segments, want 3", len(parts))
	}
	var raw [3][]byte
	for i, part := range parts {
		b, err := segmentEncoding.DecodeString(part)
		if err != nil || strings.ContainsAny(part, "\r\n") {
			return nil, refuse(ReasonMalformed, "segment %d is not base64url", i+1)
		}
		raw[i] = b
	}
	h := &tokenHeader{}
	var ok bool
	if h.members, ok = object(raw[0]); !ok {
		return nil, refuse(ReasonMalformed, "the header is not a JSON object with distinct names")
	}
	if _, ok := object(raw[1]); !ok {
		return nil, refuse(ReasonMalformed, "the payload is not a JSON object with distinct names")
	}
	return h, nil
}

// check is the id of the key that the header names, when the rest of it may be.
func (h *tokenHeader) check(algs []string) (kid string, err error) {
	alg, isText := text(h.members["alg"])
	if !isText || !slices.Contains(algs, alg) {
		return "", refuse(ReasonWrongAlg, "the algorithm is not one of %s", strings.Join(algs, ", "))
	}
	h.alg = alg
	if typ, has := h.members["typ"]; has {
		if s, _ := text(typ); s != "JWT" {
			return "", refuse(ReasonMalformed, "typ is not JWT")
		}
	}
	// Extensions that must be understood are not, and a token never brings its key.
	for _, no := range []string{"crit", "b64", "jwk", "jku", "x5u", "x5c"} {
		if _, has := h.members[no]; has {
			return "", refuse(ReasonMalformed, "the header has %s", no)
		}
	}
	kid, isText = text(h.members["kid"])
	if !isText || blank(kid) || len(kid) > maxKid {
		return "", refuse(ReasonMalformedClaims, "kid is not a text of 1 to %d bytes", maxKid)
	}
	return kid, nil
}

// object is the members of data, when that is one JSON object in UTF-8 in which no
// name stands twice, at any depth.
func object(data []byte) (map[string]jsontext.Value, bool) {
	var m map[string]jsontext.Value
	if err := json.Unmarshal(data, &m); err != nil || m == nil {
		return nil, false
	}
	return m, true
}

// text is v, when that is a JSON string.
func text(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(v, &s)
	return s, err == nil
}
