package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// strict refuses what would be lost in silence: unknown keys, and null for a value.
// Keys given twice or in another case and trailing text are refused by default.
func strict() json.Options {
	return json.JoinOptions(
		json.RejectUnknownMembers(true),
		json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ any) error {
			if d.PeekKind() == 'n' {
				return errNull
			}
			return errors.ErrUnsupported // go on with the type's own decoding
		})),
	)
}

var errNull = errors.New("null is no value here: leave the key out")

// formFault says where data is not of the file's form.
func formFault(name string, data []byte, err error) error {
	offset, pointer, why := int64(len(data)), jsontext.Pointer(""), err
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset, pointer, why = e.ByteOffset, e.JSONPointer, e.Err
		if errors.Is(e.Err, jsontext.ErrDuplicateName) {
			why = errors.New("is given twice")
		}
	} else if e, ok := errors.AsType[*json.SemanticError](err); ok {
		offset, pointer, why = e.ByteOffset, e.JSONPointer, e.Err
		switch {
		case errors.Is(e.Err, json.ErrUnknownName):
			why = errors.New("is an unknown key")
		case why == nil:
			why = errors.New("has a value of another type")
		}
	}
	what := string(pointer)
	if what == "" {
		what = "the file"
	}
	return invalid("%s:%d: %s: %v", name, lineAt(data, offset), what, why)
}

// at is the JSON pointer of keys.
func at(keys ...string) string {
	var p jsontext.Pointer
	for _, k := range keys {
		p = p.AppendToken(k)
	}
	return string(p)
}

// keyLines is the line of each key in data, which is JSON, by its JSON pointer.
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	d := jsontext.NewDecoder(bytes.NewReader(data))
	line, counted := 1, int64(0)
	for {
		if _, err := d.ReadToken(); err != nil {
			return lines
		}
		offset := d.InputOffset()
		line += bytes.Count(data[counted:offset], []byte{'\n'})
		counted = offset
		if p := string(d.StackPointer()); lines[p] == 0 {
			lines[p] = line
		}
	}
}

// nearestLine is the line of a key, or of the closest one above it that is there.
func nearestLine(lines map[string]int, path string) int {
	for ; path != ""; path = path[:strings.LastIndexByte(path, '/')] {
		if line, ok := lines[path]; ok {
			return line
		}
	}
	return 1
}

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte{'\n'})
}

// lineFault is one thing that is wrong, and where.
type lineFault struct {
	line int
	text string
}

func render(name string, faults []lineFault) string {
	slices.SortFunc(faults, func(a, b lineFault) int {
		if a.line != b.line {
			return a.line - b.line
		}
		return strings.Compare(a.text, b.text)
	})
	var lines []string
	for _, f := range faults {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", name, f.line, f.text))
	}
	return strings.Join(lines, "\n")
}
