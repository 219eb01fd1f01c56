package mcp

import (
	"strings"
	"unicode"
)

// place is which object of a message something stands in, as far as names count there.
type place int

const (
	elsewhere    place = iota
	envelope           // the message
	params             // its params
	arguments          // of a tool, also those that approval_create holds
	versionMap         // expected_versions: its names are paths
	meta               // params._meta
	capabilities       // of the client, in initialize
	answers            // params.inputResponses: its names are ours
	answer             // one of them, or the result of a request of ours
)

// below is the place of the object name in an object at p.
func (p place) below(name string) place {
	switch p {
	case envelope:
		switch name {
		case "params":
			return params
		case "result":
			return answer
		}
	case params:
		switch name {
		case "arguments":
			return arguments
		case "_meta":
			return meta
		case "capabilities":
			return capabilities
		case "inputResponses":
			return answers
		}
	case arguments:
		switch name {
		case "arguments":
			return arguments
		case "expected_versions":
			return versionMap
		}
	case answers:
		return answer
	}
	return elsewhere
}

// counting are the names that this server or the SDK decodes at a place. A name that
// folds to one of them and is another is refused, also where the one is absent: a
// decoder that folds would take it. Those of arguments are the tools'; a test holds
// that.
var counting = map[place]map[string]string{
	envelope: folded("jsonrpc id method params result error"),
	params: folded("name arguments _meta inputResponses requestState cursor protocolVersion capabilities " +
		"clientInfo requestId reason progressToken progress total message uri level ref argument notifications"),
	arguments: folded("workspace_id path offset limit work_id glob content patch expected_versions " +
		"operation_key check_only operation_id tool arguments approval_id decision title intent_id outcome " +
		"command tty cwd process_id data close cursor wait_ms stream signal grace_ms rows cols"),
	capabilities: folded("experimental extensions roots sampling elicitation"),
	answer:       folded("_meta action content role roots"),
}

func folded(names string) map[string]string {
	m := map[string]string{}
	for name := range strings.FieldsSeq(names) {
		m[fold(name)] = name
	}
	return m
}

// known is the name that counts at p and folds to key, or empty.
func (p place) known(key string) string { return counting[p][key] }

// fold maps names that differ only in case to one, by Unicode's simple folding as
// encoding/json does: also U+017F, a long s, and U+212A, the Kelvin sign.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}
