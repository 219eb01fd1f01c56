package remote

import (
	"errors"
	"regexp"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"writ"
)

// answerTrailer marks a status that the runner gave, apart from those that a
// transport makes up.
const answerTrailer = "writ-answer"

// codeTrailer carries an error's Code, if it has one.
const codeTrailer = "writ-code"

// codePattern is what a Code looks like.
var codePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z_]{0,63}$`)

// maxMessageBytes bounds an error's text: it travels as a header.
const maxMessageBytes = 8 << 10

// codeOf is the status code of an error's kind.
func codeOf(k writ.Kind) codes.Code {
	switch k {
	case writ.Invalid:
		return codes.InvalidArgument
	case writ.Unauthenticated:
		return codes.Unauthenticated
	case writ.Denied:
		return codes.PermissionDenied
	case writ.NotFound:
		return codes.NotFound
	case writ.Conflict:
		return codes.FailedPrecondition
	case writ.Exhausted:
		return codes.ResourceExhausted
	case writ.Unavailable:
		return codes.Unavailable
	}
	return codes.Internal
}

// kindOf is the inverse of codeOf. Every code that codeOf does not answer is
// Internal.
func kindOf(c codes.Code) writ.Kind {
	for _, k := range writ.Kinds {
		if codeOf(k) == c {
			return k
		}
	}
	return writ.Internal
}

// toStatus is the trailer and the status that err crosses the wire as.
// The text of an internal error crosses too: the gateway's operator needs it, and
// writ.Message keeps it from anybody else.
func toStatus(err error) (metadata.MD, error) {
	kind := writ.KindOf(err)
	text := err.Error()
	if kind != writ.Internal {
		text = writ.Message(err)
	}
	text = cutMessage(text)
	trailer := metadata.Pairs(answerTrailer, "1")
	if code := writ.CodeOf(err); codePattern.MatchString(code) {
		trailer.Set(codeTrailer, code)
	}
	return trailer, status.Error(codeOf(kind), text)
}

// cutMessage is text, cut where it is longer than an error's may be.
func cutMessage(text string) string {
	if len(text) <= maxMessageBytes {
		return text
	}
	return string(writ.CutRune([]byte(text[:maxMessageBytes]))) + "..."
}

// fromStatus is the error that the runner gave, or nil when err comes from the
// transport.
func fromStatus(op string, err error, trailer metadata.MD) *writ.Error {
	if len(trailer.Get(answerTrailer)) == 0 {
		return nil
	}
	s := status.Convert(err)
	e := &writ.Error{Kind: kindOf(s.Code()), Op: op}
	if codes := trailer.Get(codeTrailer); len(codes) == 1 && codePattern.MatchString(codes[0]) {
		e.Code = codes[0]
	}
	if e.Kind == writ.Internal {
		e.Err = errors.New(s.Message())
	} else {
		e.Msg = s.Message()
	}
	return e
}
