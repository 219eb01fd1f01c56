package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"

	"writ/levenshtein"
)

// check reports what in p, which was parsed from st, does not fit the schema.
//
// Cedar's validator does the types, but does not look behind a condition that it
// knows to be false, nor minds an attribute that "has" asks for in vain. A
// mistyped forbid would load and never fire, so every part is checked apart.
func (c *checker) check(p *ast.Policy, st statement, fault func(position, string)) {
	head := *p
	head.Conditions = nil
	msgs := messages(c.validator.Policy("", &head))
	for _, msg := range msgs {
		switch {
		case !strings.HasPrefix(msg, "unable to find an applicable action"):
			fault(c.locate(st, 0, msg), c.explain(msg))
		case len(msgs) == 1: // else it only repeats that another fault spoils the rule
			fault(st.find(0, "principal"), "the rule can never match: no action takes such a principal with such a resource (see writ policy schema)")
		}
	}
	at := st.conditions()
	for i, cond := range p.Conditions {
		from := 0
		if i < len(at) { // always; a wrong place is better than none
			from = at[i]
		}
		c.condition(cond, st, from, fault)
	}
}

func (c *checker) condition(cond ast.ConditionType, st statement, from int, fault func(position, string)) {
	told := map[string]bool{}
	once := func(key string, at position, msg string) {
		if !told[key] {
			told[key] = true
			fault(at, msg)
		}
	}
	sound := true
	for _, part := range parts(cond.Body) {
		if !c.attributesOf(part, st, from, once) {
			sound = false // the validator would say the same again, in other words
			continue
		}
		msgs := c.types(part)
		for _, msg := range msgs {
			told[msg] = true
			at := c.locate(st, st.index(from, text(part)), msg)
			once(fmt.Sprint(at, msg), at, c.explain(msg))
		}
		if _, literal := part.(ast.NodeValue); len(msgs) == 0 && !literal && c.never(part) {
			once(text(part), st.toks[st.index(from, text(part))].position, text(part)+" can never hold: correct or remove it")
		}
	}
	if !sound {
		return
	}
	for _, msg := range c.types(cond.Body) {
		once(msg, c.locate(st, from, msg), c.explain(msg))
	}
}

// attributesOf reports every attribute in n that does not exist, and whether all do.
func (c *checker) attributesOf(n ast.IsNode, st statement, from int, once func(key string, at position, msg string)) (sound bool) {
	sound = true
	fault := func(at position, msg string) {
		sound = false
		once(fmt.Sprint(at, msg), at, msg)
	}
	ast.Inspect(ast.NewNode(n), func(n ast.IsNode) bool {
		switch n := n.(type) {
		case ast.NodeTypeAccess:
			c.attribute(n.Arg, n.Value, st, from, fault)
		case ast.NodeTypeHas:
			c.attribute(n.Arg, n.Value, st, from, fault)
		}
		return true
	})
	return sound
}

// attribute reports name when it is not an attribute of n.
func (c *checker) attribute(n ast.IsNode, name types.String, st statement, from int, fault func(position, string)) {
	path, attrs, ok := c.attributes(n)
	if !ok {
		switch n.(type) {
		case ast.NodeTypeVariable, ast.NodeTypeAccess: // told where it went wrong
		default:
			fault(st.find(from, string(name)), fmt.Sprintf("the attribute %q is asked of a computed value: ask principal, resource or context", name))
		}
		return
	}
	if _, known := attrs[name]; known {
		return
	}
	fault(st.find(from, string(name)), fmt.Sprintf("%s has no attribute %q: %s", path, name, suggest(string(name), attrs)))
}

// types are the validator's messages about n as a condition or a part of one.
func (c *checker) types(n ast.IsNode) []string {
	p := ast.Permit()
	p.Conditions = []ast.ConditionType{{Condition: ast.ConditionWhen, Body: n}}
	return messages(c.validator.Policy("", p))
}

// never reports whether n is false for every request that can be. The validator
// does not type what follows an && whose left side is always false, so a second
// side that is ill-typed tells.
func (c *checker) never(n ast.IsNode) bool {
	wrong := ast.Not(ast.Long(0))
	return len(c.types(ast.NewNode(n).And(wrong).AsIsNode())) == 0
}

// parts are the smallest conditions that n consists of, in order: what stands
// between &&, ||, ! and if, wherever in n those are. Values that are not
// conditions, as after then, are not among them.
func parts(n ast.IsNode) (list []ast.IsNode) {
	add := func(n ast.IsNode) {
		switch n.(type) {
		case ast.NodeTypeAnd, ast.NodeTypeOr, ast.NodeTypeNot, ast.NodeTypeIfThenElse:
		default:
			list = append(list, n)
		}
	}
	add(n)
	ast.Inspect(ast.NewNode(n), func(n ast.IsNode) bool {
		switch n := n.(type) {
		case ast.NodeTypeAnd:
			add(n.Left)
			add(n.Right)
		case ast.NodeTypeOr:
			add(n.Left)
			add(n.Right)
		case ast.NodeTypeNot:
			add(n.Arg)
		case ast.NodeTypeIfThenElse:
			add(n.If)
			// The branches may be of any type: compared with itself, one is a condition.
			for _, b := range []ast.IsNode{n.Then, n.Else} {
				node := ast.NewNode(b)
				list = append(list, node.Equal(node).AsIsNode())
			}
		}
		return true
	})
	return list
}

// messages are the texts of the errors that are joined in err, each once.
func messages(err error) (list []string) {
	switch e := err.(type) {
	case nil:
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			for _, m := range messages(inner) {
				if !slices.Contains(list, m) {
					list = append(list, m)
				}
			}
		}
	default:
		list = append(list, err.Error())
	}
	return list
}

var quoted = regexp.MustCompile("`([^`]+)`")

// locate is where the thing stands that msg names in backquotes, else where the
// part of st begins.
func (c *checker) locate(st statement, from int, msg string) position {
	for _, m := range quoted.FindAllStringSubmatch(msg, -1) {
		words := strings.FieldsFunc(m[1], func(r rune) bool { return strings.ContainsRune(`:".`, r) })
		for _, w := range slices.Backward(words) {
			if at := st.find(from, w); at != st.toks[from].position {
				return at
			}
		}
	}
	return st.toks[from].position
}

// explain adds to a message of the validator what there is to choose from.
func (c *checker) explain(msg string) string {
	msg = strings.ReplaceAll(msg, "__cedar::internal::", "")
	switch {
	case strings.HasPrefix(msg, "unrecognized entity type"):
		return msg + ": the types are " + names(c.schema.Entities) + " and Action"
	case strings.HasPrefix(msg, "unrecognized action"):
		var known []string
		for a := range c.schema.Actions {
			known = append(known, a.String())
		}
		slices.Sort(known)
		return msg + ": the actions are " + strings.Join(known, ", ")
	case strings.HasPrefix(msg, "unexpected type"), strings.HasPrefix(msg, "the types "):
		return msg + ": compare values of one type (see writ policy schema)"
	}
	return msg
}

func names[K ~string, V any](m map[K]V) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, string(k))
	}
	return strings.Join(list, ", ")
}

// suggest says which attribute may have been meant by name.
func suggest(name string, attrs resolved.RecordType) string {
	for _, known := range slices.Sorted(maps.Keys(attrs)) {
		if levenshtein.Distance(name, string(known)) <= min(2, len(name)/3) {
			return fmt.Sprintf("did you mean %q?", known)
		}
	}
	if len(attrs) == 0 {
		return "it has none at all"
	}
	return "it has " + names(attrs)
}

// text is n in Cedar's own words.
func text(n ast.IsNode) string {
	return condition(ast.ConditionType{Condition: ast.ConditionWhen, Body: n})
}
