package session

import (
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Bounds of a name (spec/03 §7).
const (
	MaxNameLength  = 256 // UTF-16 code units, as the contract's own language counts
	maxNameDepth   = 10  // parts between slashes
	maxSegmentSize = 255 // bytes: what file systems take
)

// NameFault is what is wrong with the name of an object, in the words of spec/03 §7 where
// it has some, to follow the name's place: "must not be empty". It is empty for a name
// that may be kept: UTF-8, relative, with "/" between its folders, that leads nowhere up,
// without NUL, line breaks and backslashes.
func NameFault(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case units(name) > MaxNameLength:
		return fmt.Sprintf("must not exceed %d characters", MaxNameLength)
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\\\r\n"):
		return "contains invalid path characters"
	case strings.HasPrefix(name, "/"):
		return "must be a relative path"
	}
	parts := strings.Split(name, "/")
	for _, part := range parts {
		switch part {
		case "", ".", "..":
			return "must not contain empty, current, or parent path segments"
		}
	}
	if len(parts) > maxNameDepth {
		return fmt.Sprintf("exceeds maximum nesting depth of %d", maxNameDepth)
	}
	for _, part := range parts {
		if len(part) > maxSegmentSize {
			return fmt.Sprintf("must not have path segments of more than %d bytes", maxSegmentSize)
		}
	}
	return ""
}

// units counts the UTF-16 code units of s.
func units(s string) (n int) {
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// UploadName is the name of a file out of the Content-Disposition of its part of a form,
// and false when it has none (spec/03 §10.1). Folders stay. Names are read as UTF-8, as
// clients send them in spite of the header's own rules, or as filename* says; a quote that
// a client wrote as %22 is one again, and letters are composed (NFC), so that a name has
// the bytes that a program which names it has. It may still be one that is refused.
func UploadName(disposition string) (string, bool) {
	_, params, err := mime.ParseMediaType(disposition)
	if err != nil {
		return "", false
	}
	name, ok := params["filename"]
	if !ok {
		return "", false
	}
	if !extended(disposition) {
		name = strings.ReplaceAll(name, "%22", `"`)
	}
	return norm.NFC.String(name), true
}

// extended reports whether a header says its file name in the form of RFC 5987, which has
// no %22 left.
func extended(disposition string) bool {
	return strings.Contains(strings.ToLower(disposition), "filename*=")
}

// Disposition is the Content-Disposition of a download, which is nothing but ASCII
// (spec/03 §11): slashes are %2F.
func Disposition(name string) string {
	var b strings.Builder
	b.WriteString("attachment; filename*=UTF-8''")
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

const (
	anyType     = "application/octet-stream"
	maxTypeSize = 255
)

// cleanType is a content type as it may stand in a header, or that of any bytes.
func cleanType(s string) string {
	media, _, err := mime.ParseMediaType(s)
	if err != nil || len(s) > maxTypeSize || !strings.Contains(media, "/") {
		return anyType
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return anyType
		}
	}
	return s
}
