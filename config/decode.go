package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// position is a place in the file, counted from 1. Zero means the file as a whole.
type position struct{ line, column int }

// fault is one thing that is wrong. path is the key, as "identities[0].tenant";
// at is set when the decoder found the fault, else it is looked up by path.
type fault struct {
	path string
	at   position
	msg  string
}

// within reports whether f and g concern one key, or one a key inside the other.
func (f fault) within(g fault) bool {
	return strings.HasPrefix(f.path, g.path) || strings.HasPrefix(g.path, f.path)
}

// source is a file while it is read.
type source struct {
	name  string
	lines []string
	at    map[string]position // of the value of each key that the file sets
	found []fault
}

// decode reads data into the struct that dst points to, which holds the
// defaults. It goes on after a fault, so that all are found in one reading; only
// text that is not YAML ends it at once.
//
// The library's own strict decoder stops at the first fault. It parses here, and
// the tree is read by this package.
func (s *source) decode(data []byte, dst any) []fault {
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		f := fault{msg: "not YAML: " + err.Error()}
		if e, ok := errors.AsType[yaml.Error](err); ok {
			f.msg, f.at = "not YAML: "+e.GetMessage(), place(e.GetToken())
		}
		return []fault{f}
	}
	documents := 0
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if documents++; documents > 1 {
			s.fault("", doc.Body, "a second document: the file has one")
			continue
		}
		s.value("", doc.Body, reflect.ValueOf(dst).Elem())
	}
	return s.found
}

func (s *source) fault(path string, n ast.Node, format string, args ...any) {
	s.found = append(s.found, fault{path: path, at: start(n), msg: fmt.Sprintf(format, args...)})
}

// start is where n begins. The token of a mapping is its first colon.
func start(n ast.Node) position {
	if m, ok := n.(ast.MapNode); ok {
		if it := m.MapRange(); it.Next() {
			return start(it.Key())
		}
	}
	return place(n.GetToken())
}

func place(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{t.Position.Line, t.Position.Column}
}

// value reads node n into dst. A key without a value keeps the default.
func (s *source) value(path string, n ast.Node, dst reflect.Value) {
	if n == nil || n.Type() == ast.NullType {
		return
	}
	switch n.Type() {
	case ast.AnchorType, ast.AliasType, ast.TagType, ast.MergeKeyType:
		s.fault(path, n, "anchors, aliases and tags are not used here: write the value out")
		return
	}
	s.at[path] = start(n)
	switch dst.Kind() {
	case reflect.Struct:
		s.mapping(path, n, dst)
	case reflect.Slice:
		s.sequence(path, n, dst)
	default:
		if want := scalar(path, n, dst); want != "" {
			s.fault(path, n, "%s: want %s", path, want)
		}
	}
}

func (s *source) mapping(path string, n ast.Node, dst reflect.Value) {
	m, ok := n.(ast.MapNode)
	if !ok {
		s.fault(path, n, "%s: want keys and values: %s", whole(path), strings.Join(keys(dst.Type()), ", "))
		return
	}
	seen := map[string]position{}
	for it := m.MapRange(); it.Next(); {
		key := it.Key()
		name := key.GetToken().Value
		if key.Type() == ast.MergeKeyType {
			s.fault(join(path, name), key, "anchors, aliases and tags are not used here: write the value out")
			continue
		}
		if first, twice := seen[name]; twice {
			s.fault(join(path, name), key, "key %q stands here a second time; the first is on line %d", name, first.line)
			continue
		}
		seen[name] = start(key)
		i := slices.Index(keys(dst.Type()), name)
		if i < 0 {
			s.fault(join(path, name), key, "unknown key %q in %s; known are %s", name, whole(path), strings.Join(keys(dst.Type()), ", "))
			continue
		}
		s.value(join(path, name), it.Value(), dst.Field(i))
	}
}

func (s *source) sequence(path string, n ast.Node, dst reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		s.fault(path, n, "%s: want a list", path)
		return
	}
	out := reflect.MakeSlice(dst.Type(), len(seq.Values), len(seq.Values))
	for i, v := range seq.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		if v.Type() == ast.NullType {
			s.fault(at, v, "%s is empty", at)
			continue
		}
		s.value(at, v, out.Index(i))
	}
	dst.Set(out)
}

// scalar sets dst from n, or says what was wanted. YAML's guesses are not
// trusted: text must be text, so that the names no, 007 and 1e3 cannot change,
// and numbers are decimal.
func scalar(path string, n ast.Node, dst reflect.Value) (want string) {
	text, isText := stringOf(n)
	switch {
	case dst.Type() == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		if !isText || err != nil {
			return `a duration such as "30s", "5m" or "1h"`
		}
		dst.SetInt(int64(d))
	case dst.Kind() == reflect.String:
		if !isText {
			return "text; write the value in quotes"
		}
		dst.SetString(text)
	case dst.Kind() == reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return "true or false"
		}
		dst.SetBool(b.Value)
	case dst.CanInt():
		v, ok := number(path, n)
		if !ok || dst.OverflowInt(v) {
			return units(path).want
		}
		dst.SetInt(v)
	}
	return ""
}

func stringOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

// unit says how a number may be written beside plain digits.
type unit struct {
	want  string
	parse func(string) (int64, bool)
}

// units goes by the key's ending, which in the vocabulary names the unit.
func units(path string) unit {
	switch {
	case strings.HasSuffix(path, "_ms"):
		return unit{`milliseconds, or a duration such as "30s"`, func(s string) (int64, bool) {
			d, err := time.ParseDuration(s)
			return d.Milliseconds(), err == nil && d%time.Millisecond == 0
		}}
	case strings.HasSuffix(path, "_bytes"):
		return unit{`bytes, or a size such as "512MiB"`, parseSize}
	}
	return unit{"a whole number, in decimal digits", func(string) (int64, bool) { return 0, false }}
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9_]*)$`)

func number(path string, n ast.Node) (int64, bool) {
	if text, ok := stringOf(n); ok {
		return units(path).parse(text)
	}
	digits := n.GetToken().Value
	if n.Type() != ast.IntegerType || !decimal.MatchString(digits) {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(digits, "_", ""), 10, 64)
	return v, err == nil
}

func parseSize(s string) (int64, bool) {
	for i, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if digits, ok := strings.CutSuffix(s, suffix); ok {
			shift := 10 * (i + 1)
			v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
			return v << shift, err == nil && v >= 0 && v <= math.MaxInt64>>shift
		}
	}
	return 0, false
}

// keys are the names of t's fields in the file, in order.
func keys(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func whole(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}
