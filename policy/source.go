package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"writ"
)

// Bounds of what Compile and Check accept.
const (
	MaxFileBytes = 1 << 20
	MaxSetBytes  = 8 << 20 // all files together
	MaxPolicies  = 1000

	maxTokens = 5000 // of one rule: bounds the recursion over its syntax tree
	maxDepth  = 64   // brackets in brackets
	maxFaults = 100  // shown
)

// File is one policy source or file of examples: its name as messages show it
// ("10-base.cedar") and its content.
type File struct {
	Name    string
	Content []byte
}

// FromFS reads the rules of one folder: every file whose name ends in ".cedar",
// sorted by name. Files with other endings and folders are left alone. An ending
// like ".CEDAR", a name that is not a regular file and a file above MaxFileBytes
// are errors of kind Invalid, since leaving one out could drop a forbid.
func FromFS(fsys fs.FS) ([]File, error) {
	return read(fsys, ".cedar")
}

// ExamplesFromFS reads the examples of one folder, for Check: every file whose
// name ends in ".test.yaml", ".test.yml" or ".test.json", sorted by name, with the
// errors of FromFS.
func ExamplesFromFS(fsys fs.FS) ([]File, error) {
	return read(fsys, ".test.yaml", ".test.yml", ".test.json")
}

func read(fsys fs.FS, endings ...string) ([]File, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("list policy folder: %w", err)
	}
	var files []File
	for _, e := range entries {
		name := e.Name()
		ends := func(s string) bool { return strings.HasSuffix(strings.ToLower(name), s) }
		i := slices.IndexFunc(endings, ends)
		if i < 0 {
			continue
		}
		// Stat follows a link, as a mounted folder of configuration has them.
		info, err := fs.Stat(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read policy %s: %w", name, err)
		}
		if info.IsDir() {
			continue
		}
		switch {
		case !strings.HasSuffix(name, endings[i]):
			return nil, invalid("%s: the ending is not in lower case: rename it to end in %s", name, endings[i])
		case !info.Mode().IsRegular():
			return nil, invalid("%s: not a regular file: replace or remove it", name)
		}
		b, err := readFile(fsys, name)
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: name, Content: b})
	}
	slices.SortFunc(files, byName)
	return files, nil
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read policy %s: %w", name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read policy %s: %w", name, err)
	}
	if len(b) > MaxFileBytes {
		return nil, invalid("%s: more than %d bytes: split it", name, MaxFileBytes)
	}
	return b, nil
}

func byName(a, b File) int { return strings.Compare(a.Name, b.Name) }

func invalid(format string, args ...any) error {
	return &writ.Error{Kind: writ.Invalid, Op: "load policy", Msg: fmt.Sprintf(format, args...)}
}

// version is the SHA-256 over a prefix of its own and the name and content of each
// file, each preceded by its length in 8 bytes, big-endian. files are sorted.
func version(files []File) writ.Digest {
	h := sha256.New()
	h.Write([]byte("writ policy set v1\n"))
	put := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	for _, f := range files {
		put([]byte(f.Name))
		put(f.Content)
	}
	return writ.Digest(hex.EncodeToString(h.Sum(nil)))
}

// unseen finds the first character of src that an editor shows otherwise than the
// parser reads it: a rule behind a lone carriage return stands on its own line on
// the screen and in a comment for the parser.
func unseen(src string) (off int, what string) {
	for i, r := range src {
		switch {
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(src[i:]); n == 1 {
				return i, "a byte that is not UTF-8"
			}
		case r == '\r':
			if !strings.HasPrefix(src[i+1:], "\n") {
				return i, "a carriage return without a line feed"
			}
		case r == '\n' || r == '\t':
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			return i, fmt.Sprintf("the invisible character %U", r)
		}
	}
	return -1, ""
}
