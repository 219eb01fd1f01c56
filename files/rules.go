package files

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"writ"
)

// Rules say what of a workspace its file tools may touch, as patterns over paths
// relative to the root. A pattern without a slash is about names at any depth
// (".env", "*.pem"), one with a slash starts at the root (".git/hooks", "**/ci/*").
// What a pattern matches it covers with everything beneath.
//
// Denying beats allowing. What may not be read may not be written either. Patterns
// that deny also match other spellings of a name, as case-insensitive and normalising
// file systems fold them; patterns that allow do not.
//
// The zero Rules allow everything.
type Rules struct {
	Read      []string `json:"read,omitempty"`  // empty: everything
	Write     []string `json:"write,omitempty"` // empty: everything that may be read
	DenyRead  []string `json:"deny_read,omitempty"`
	DenyWrite []string `json:"deny_write,omitempty"`
}

// Validate reports every pattern that is none, as a *writ.Error of kind Invalid.
func (r Rules) Validate() error {
	_, err := r.compile()
	return err
}

type ruleset struct {
	read, write         []glob // nil: everything
	denyRead, denyWrite []glob // over folded paths
}

func (r Rules) compile() (ruleset, error) {
	var errs []error
	all := func(what string, texts []string, prepare func(string) string) (out []glob) {
		for i, text := range texts {
			globs, err := parseGlob(prepare(text))
			if err == nil && len(globs[0].names) == 0 {
				err = errors.New("the pattern is empty")
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s[%d]: %w", what, i, err))
				continue
			}
			for _, g := range globs {
				if !strings.Contains(strings.TrimSuffix(text, "/"), "/") && !g.names[0].deep {
					g.names = append([]namePattern{{deep: true}}, g.names...)
				}
				out = append(out, g)
			}
		}
		return out
	}
	same := func(s string) string { return s }
	set := ruleset{
		read: all("read", r.Read, same), write: all("write", r.Write, same),
		denyRead: all("deny_read", r.DenyRead, fold), denyWrite: all("deny_write", r.DenyWrite, fold),
	}
	if len(errs) > 0 {
		return ruleset{}, &writ.Error{Kind: writ.Invalid, Op: "read file rules", Msg: errors.Join(errs...).Error()}
	}
	return set, nil
}

func (r *ruleset) restrictsReading() bool { return r.denyRead != nil || r.read != nil }

// mayRead reports whether the rules let the file at a clean path be read.
func (r *ruleset) mayRead(path string) bool {
	return (r.denyRead == nil || !covers(r.denyRead, foldPath(path))) && (r.read == nil || covers(r.read, path))
}

// mayWrite reports whether the rules let the file at a clean path be written, made
// or taken away. A file at a place that leads to denied ones may not: as a file it
// would stand in for them, as .git does for the folder of that name.
func (r *ruleset) mayWrite(path string) bool {
	if !r.mayRead(path) {
		return false
	}
	if len(r.denyRead)+len(r.denyWrite) > 0 {
		folded := foldPath(path)
		if covers(r.denyWrite, folded) || leads(r.denyWrite, folded) || leads(r.denyRead, folded) {
			return false
		}
	}
	return r.write == nil || covers(r.write, path)
}

// covers reports whether a pattern matches path or a folder over it.
func covers(globs []glob, path string) bool {
	for end := 0; end < len(path); end++ {
		n := strings.IndexByte(path[end:], '/')
		if n < 0 {
			end = len(path)
		} else {
			end += n
		}
		for i := range globs {
			if globs[i].matches(path[:end]) {
				return true
			}
		}
	}
	return false
}

func leads(globs []glob, path string) bool {
	for i := range globs {
		if globs[i].leadsTo(path) {
			return true
		}
	}
	return false
}

// foldPath is fold for each name of a path, without the dots and blanks at its end,
// which some file systems drop.
func foldPath(path string) string {
	folded := fold(path)
	if !strings.Contains(folded+"/", "./") && !strings.Contains(folded+"/", " /") {
		return folded
	}
	names := strings.Split(folded, "/")
	for i, name := range names {
		if short := strings.TrimRight(name, ". "); short != "" {
			names[i] = short
		}
	}
	return strings.Join(names, "/")
}

// fold is the same for all spellings of a text that some file system takes for one:
// upper and lower case, composed and decomposed letters, invisible letters.
func fold(text string) string {
	ascii := true
	lower := true
	for i := range len(text) {
		c := text[i]
		ascii = ascii && c < 0x80
		lower = lower && !('A' <= c && c <= 'Z')
	}
	switch {
	case ascii && lower:
		return text
	case ascii:
		return strings.ToLower(text)
	}
	visible := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return r
	}, text)
	return norm.NFC.String(cases.Fold().String(norm.NFD.String(visible)))
}
