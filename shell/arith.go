package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Arithmetic runs commands: bash takes the value of a variable in it for an expression
// again, and runs what a subscript there has between $( and ). So an operand is known
// when it is a number, or a variable that the same text gives numbers only.

// arithmetic notes what in x is neither. x may be nil.
func (s *scope) arithmetic(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			s.operand(w)
			return false
		}
		return true
	})
}

// compare looks at the operands of a numeric comparison within [[ ]].
func (s *scope) compare(b *syntax.BinaryTest) {
	numeric := []syntax.BinTestOperator{syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr}
	if slices.Contains(numeric, b.Op) {
		s.operand(b.X)
		s.operand(b.Y)
	}
}

func (s *scope) operand(n syntax.Node) {
	w, ok := n.(*syntax.Word)
	if !ok {
		return
	}
	for _, p := range w.Parts {
		if q, ok := p.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
			p = q.Parts[0]
		}
		switch p := p.(type) {
		case *syntax.Lit:
			if !isNumber(p.Value) && !s.numbers[p.Value] && !in(counts, p.Value) && p.Value != "@" && p.Value != "*" {
				s.note(s.at, Computed, "arithmetic on "+p.Value)
			}
		case *syntax.ParamExp:
			if !isCount(p) && (p.Param == nil || p.Index != nil || p.Exp != nil || p.Repl != nil || !s.numbers[p.Param.Value]) {
				s.note(s.at, Computed, "arithmetic on "+s.source(p))
			}
		case *syntax.ArithmExp:
		default:
			s.note(s.at, Computed, "arithmetic on "+s.source(w))
		}
	}
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// isCount reports whether p is a number whatever happens: $#, ${#x}, $?, $$, $RANDOM.
func isCount(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Excl || p.Flags != nil {
		return false
	}
	return p.Length || in(counts, p.Param.Value)
}

// counts are the parameters that hold numbers whatever a text does to them.
const counts = " # ? $ RANDOM SECONDS LINENO UID EUID PPID BASHPID "

// numbers are the variables that file gives a number in each place where it gives them
// anything.
func numbers(file *syntax.File) map[string]bool {
	is := map[string]bool{}
	set := func(name string, number bool) {
		before, seen := is[name]
		is[name] = number && (before || !seen)
	}
	anything := false // can be set from where we do not look
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil && !n.Naked {
				set(n.Name.Value, n.Array == nil && n.Index == nil && isNumeric(n.Value))
			}
		case *syntax.BinaryArithm:
			if w, ok := n.X.(*syntax.Word); ok && n.Op == syntax.Assgn {
				set(w.Lit(), true) // its value is that of an expression, which is looked at
			}
		case *syntax.WordIter:
			set(n.Name.Value, len(n.Items) > 0 && !slices.ContainsFunc(n.Items, func(w *syntax.Word) bool { return !isNumeric(w) }))
		case *syntax.ParamExp:
			if assignsDefault(n) {
				set(n.Param.Value, false)
			}
		case *syntax.DeclClause:
			for _, a := range n.Args {
				anything = anything || a.Name == nil
			}
		case *syntax.CallExpr:
			for _, w := range n.Args {
				switch strings.ReplaceAll(w.Lit(), `\`, "") {
				case "eval", "trap", "source", ".", "read", "mapfile", "readarray", "printf", "getopts":
					anything = true
				case "":
					anything = anything || w == n.Args[0]
				}
			}
		}
		return true
	})
	if anything {
		return nil
	}
	return is
}

// isNumeric reports whether w is a number whatever happens. Nothing at all is one: 0.
func isNumeric(w *syntax.Word) bool {
	if w == nil {
		return true
	}
	if len(w.Parts) != 1 {
		return false
	}
	p := w.Parts[0]
	if q, ok := p.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
		p = q.Parts[0]
	}
	switch p := p.(type) {
	case *syntax.Lit:
		from, to, isRange := strings.Cut(strings.Trim(p.Value, "{}"), "..")
		return isNumber(p.Value) || isRange && isNumber(from) && isNumber(to)
	case *syntax.ArithmExp:
		return true
	case *syntax.ParamExp:
		return isCount(p)
	}
	return false
}
