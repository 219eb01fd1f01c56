package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"writ"
)

// timeUnit is the precision of all recorded times.
const timeUnit = time.Millisecond

// encode is the record of e: its JSON, one line, in which every character that does
// not print is escaped, so that no field of an event can end the line, move a
// cursor or turn the reading direction wherever the log is looked at.
func encode(e writ.Event) ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Type, err)
	}
	// JSON escapes what is below U+0020; these are DEL, the C1 controls, and the
	// invisible rest of Unicode. Outside strings JSON has none of them.
	hidden := func(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
	if bytes.IndexFunc(b, hidden) < 0 {
		return b, nil
	}
	out := make([]byte, 0, len(b)+64)
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case !hidden(r):
			out = append(out, b[i:i+n]...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out, nil
}

// decode reads a record. Fields that this version does not know are left out.
func decode(data []byte) (writ.Event, error) {
	var e writ.Event
	if err := json.Unmarshal(data, &e); err != nil {
		return writ.Event{}, fmt.Errorf("the record is not an event: %w", err)
	}
	return e, nil
}
