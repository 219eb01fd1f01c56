package files

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// resolve makes a path that an agent gave clean and relative to the root, without
// looking at any file (spec/02 §4): "." and empty names vanish, ".." takes the name
// before it away and must find one. The root itself is ".". A backslash is a letter
// like any other; nothing is decoded. Every refusal is a PATH_ESCAPE.
func resolve(name string) (string, error) {
	switch {
	case name == "":
		return "", fault(CodePathEscape, "the path is empty: name a file, relative to the workspace")
	case strings.IndexByte(name, 0) >= 0:
		return "", fault(CodePathEscape, "path %s has a NUL byte", quoted(name))
	case !utf8.ValidString(name):
		return "", fault(CodePathEscape, "path %s is not UTF-8", quoted(name))
	case name[0] == '/':
		return "", fault(CodePathEscape, "path %s is absolute: give it relative to the workspace", quoted(name))
	}
	clean := path.Clean(name)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fault(CodePathEscape, "path %s leads out of the workspace", quoted(name))
	}
	return clean, nil
}

// split cuts a clean path into its folder, "." for the root, and its last name.
func split(name string) (dir, base string) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return ".", name
}

var reservedName = regexp.MustCompile(`^\.writ-[0-9a-f]{32}-[0-9]+\.(new|old|part)$`)

// reserved reports whether base is a name that transactions set aside.
func reserved(base string) bool {
	return strings.HasPrefix(base, ".writ-") && reservedName.MatchString(base)
}
