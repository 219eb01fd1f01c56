package patch

import (
	"fmt"
	"path"
	"strings"
)

// cleanPath resolves the path of a header to one that is relative and clean, without
// looking at any file (spec/02 §4): "." and empty names vanish, ".." takes away the
// name before it and must find one. An absolute path is taken relative to the first
// of roots that it is beneath. The error has no line.
func cleanPath(name string, roots []string) (string, *Error) {
	escape := func(format string, args ...any) (string, *Error) {
		return "", &Error{Code: PathEscape, Msg: fmt.Sprintf("path %q ", clip(name)) + fmt.Sprintf(format, args...)}
	}
	switch {
	case name == "":
		return "", &Error{Code: InvalidPatch, Msg: "the header has no path: write it after the colon and a space"}
	case strings.IndexByte(name, 0) >= 0:
		return escape("has a NUL byte")
	case strings.IndexByte(name, '\\') >= 0:
		return escape("has a backslash: separate names with /")
	case strings.HasSuffix(name, "/"):
		return "", &Error{Code: InvalidPatch, Msg: fmt.Sprintf("path %q ends in / and so names a folder: name a file", clip(name))}
	}
	clean := path.Clean(name)
	if path.IsAbs(clean) {
		rel, ok := beneath(clean, roots)
		if !ok {
			return escape("is absolute: give it relative to the workspace")
		}
		clean = rel
	}
	switch {
	case clean == ".":
		return escape("is the workspace itself: name a file in it")
	case clean == "..", strings.HasPrefix(clean, "../"):
		return escape("leads out of the workspace")
	}
	if n := strings.Count(clean, "/") + 1; n > MaxPathDepth {
		return "", &Error{Code: InvalidPatch, Msg: fmt.Sprintf("the path has %d names, the most is %d", n, MaxPathDepth)}
	}
	for part := range strings.SplitSeq(clean, "/") {
		if len(part) > MaxNameBytes {
			return "", &Error{Code: InvalidPatch, Msg: fmt.Sprintf("the path has a name of %d bytes, the most is %d", len(part), MaxNameBytes)}
		}
	}
	return clean, nil
}

// beneath is name, which is clean and absolute, relative to the first root over it.
func beneath(name string, roots []string) (string, bool) {
	for _, root := range roots {
		if !path.IsAbs(root) {
			continue
		}
		root = strings.TrimSuffix(path.Clean(root), "/")
		if name == root {
			return ".", true
		}
		if rel, ok := strings.CutPrefix(name, root+"/"); ok && rel != "" {
			return rel, true
		}
	}
	return "", false
}

// clip cuts a path for a message that quotes it.
func clip(s string) string {
	if len(s) > maxShownBytes {
		return s[:maxShownBytes] + "…"
	}
	return s
}
