package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// render writes the faults in the order of the file, each as
//
//	file:line:column: what is wrong
//	   12 | the line
//	      |   ^
func (s *source) render(faults []fault) string {
	for i, f := range faults {
		if f.at.line == 0 {
			faults[i].at = s.nearest(f.path)
			faults[i].msg = f.path + ": " + f.msg
		}
	}
	slices.SortStableFunc(faults, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.column, b.at.column))
	})
	var b strings.Builder
	for i, f := range faults {
		if i > 0 {
			b.WriteByte('\n')
		}
		if f.at.line == 0 {
			fmt.Fprintf(&b, "%s: %s", s.name, strings.TrimPrefix(f.msg, ": "))
			continue
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s", s.name, f.at.line, f.at.column, f.msg)
		if f.at.line <= len(s.lines) && !secretKey(f.path) && !s.continues(f.at.line) {
			b.WriteString(excerpt(s.lines[f.at.line-1], f.at))
		}
	}
	return b.String()
}

// nearest is where path is set, or the closest key above it that is.
func (s *source) nearest(path string) position {
	for path != "" {
		if at, ok := s.at[path]; ok {
			return at
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return position{}
}

// secretLine matches what may stand in a line that holds a password, a token or a key.
var secretLine = regexp.MustCompile(`(?i)://|password|^\s*["']?database\b|\b(secret|token)["']?\s*:`)

// secretKey reports whether a key's value, which may have lines of its own, is secret.
func secretKey(path string) bool {
	return path == "database" || strings.HasSuffix(path, ".secret") || strings.HasSuffix(path, ".token")
}

// continues reports whether a line may be the value of a secret key on the line above.
func (s *source) continues(line int) bool {
	if line < 2 {
		return false
	}
	key := strings.TrimRight(s.lines[line-2], " \t\r|>+-")
	return strings.HasSuffix(key, ":") && secretLine.MatchString(key)
}

const maxExcerpt = 120

// excerpt shows a line and the place in it. A line that may hold a password is
// not shown: an error ends up in terminals, logs and bug reports.
func excerpt(line string, at position) string {
	line = strings.TrimRight(line, "\r")
	if secretLine.MatchString(line) || !utf8.ValidString(line) || len(line) > maxExcerpt {
		return ""
	}
	pad := []rune(line)
	pad = pad[:min(len(pad), max(0, at.column-1))]
	for i, r := range pad {
		if r != '\t' {
			pad[i] = ' '
		}
	}
	return fmt.Sprintf("\n%5d | %s\n      | %s^", at.line, line, string(pad))
}
