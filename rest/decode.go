package rest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ"
)

const (
	// maxSpecBody bounds a body that holds a run's spec: MaxCodeBytes and
	// MaxStdinBytes as JSON strings and MaxInputBytes as base64 fit.
	maxSpecBody = 64 << 20
	maxBody     = 64 << 10 // of any other body
)

// valid is a body that can say what is wrong with itself.
type valid interface{ Validate() error }

// decode reads the body of r, of at most limit bytes, into a T. It takes one JSON
// value of exactly the shape of T and nothing else. Its errors are of kind
// Invalid and say what is wrong and where, as a JSON pointer; of kind Exhausted when
// there is no room for a large body.
func decode[T valid](w http.ResponseWriter, r *http.Request, limit int64) (T, error) {
	var v T
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return v, &refusal{http.StatusUnsupportedMediaType, &writ.Error{
			Kind: writ.Invalid, Op: "read body", Msg: "want Content-Type: application/json",
		}}
	}
	body := http.MaxBytesReader(w, r.Body, limit)
	if err := json.UnmarshalRead(body, &v, strict()); err != nil {
		var zero T
		return zero, faultOf(err, limit)
	}
	// The body is read: what follows may take its time (an event stream, a wait).
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if err := v.Validate(); err != nil {
		return v, &writ.Error{Kind: writ.Invalid, Op: "check body", Msg: err.Error(), Err: err}
	}
	return v, nil
}

// strict refuses what encoding/json lets pass: unknown members, and null where a
// value belongs. Repeated names, names in another case, bad UTF-8, lone
// surrogates, trailing data and nesting beyond the shape of the type are errors of
// the decoder by default.
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

var errNull = errors.New("null is no value here: leave the member out")

// faultOf says in the client's terms why a body was not decoded.
func faultOf(err error, limit int64) error {
	fail := func(format string, args ...any) error {
		return &writ.Error{Kind: writ.Invalid, Op: "read body", Msg: fmt.Sprintf(format, args...), Err: err}
	}
	if e, ok := errors.AsType[*writ.Error](err); ok {
		return e // of the body itself: there is no room for it
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &refusal{http.StatusRequestEntityTooLarge, &writ.Error{
			Kind: writ.Invalid, Op: "read body", Msg: fmt.Sprintf("the body is larger than %d bytes", limit), Err: err,
		}}
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		switch {
		case errors.Is(e.Err, jsontext.ErrDuplicateName):
			return fail("%s is given twice", place(e.JSONPointer))
		case errors.Is(e.Err, io.ErrUnexpectedEOF) && e.ByteOffset == 0:
			return fail("the body is empty: want a JSON object")
		case errors.Is(e.Err, io.ErrUnexpectedEOF):
			return fail("not JSON: it ends too early, at byte %d, in %s", e.ByteOffset, place(e.JSONPointer))
		}
		return fail("not JSON at byte %d, %s: %v", e.ByteOffset, place(e.JSONPointer), e.Err)
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		switch {
		case errors.Is(e.Err, errNull):
			return fail("%s: %v", place(e.JSONPointer), errNull)
		case errors.Is(e.Err, json.ErrUnknownName):
			return fail("%s is not a member that is known here (names are case-sensitive)", place(e.JSONPointer))
		case e.JSONKind != 0 && e.GoType != nil:
			return fail("%s: a JSON %s does not fit: want %s", place(e.JSONPointer), kindName(e.JSONKind), wanted(e.GoType))
		}
		return fail("%s: %v", place(e.JSONPointer), e.Err)
	}
	return fail("the body could not be read")
}

// place is where in a body something is, for a message.
func place(p jsontext.Pointer) string {
	if p == "" {
		return "the body"
	}
	return string(p)
}

// kindName is a kind of JSON value in words.
func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindBeginObject, jsontext.KindEndObject:
		return "object"
	case jsontext.KindBeginArray, jsontext.KindEndArray:
		return "array"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "boolean"
	}
	return k.String()
}

// wanted is the JSON form of a Go type in words.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number of at most 64 bits"
	case reflect.Map:
		return "an object"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a base64 string"
		}
		return "an array"
	}
	if t == reflect.TypeFor[time.Time]() {
		return "an RFC 3339 time"
	}
	return "an object"
}
