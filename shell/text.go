package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// dialects are the languages that a text is read in: all that the shell may be.
type dialects []syntax.LangVariant

var (
	bash  = dialects{syntax.LangBash}
	posix = dialects{syntax.LangPOSIX, syntax.LangBash} // sh is dash here and bash there
	korn  = dialects{syntax.LangMirBSDKorn, syntax.LangBash}
	zsh   = dialects{syntax.LangZsh, syntax.LangBash} // the parser knows zsh in part
)

// script reads text that a shell in one of langs runs for the command at. depth is
// that of the command.
func (r *reader) script(at int, text word, langs dialects, depth int) {
	key := fmt.Sprint(langs, text.text)
	switch {
	case !text.known:
		r.note(at, Computed, text.text)
		return
	case depth >= MaxDepth:
		r.note(at, TooLarge, fmt.Sprintf("more than %d shells and wrappers in one another", MaxDepth))
		return
	case r.texts[key]:
		return
	case !readable(text.text):
		r.note(at, Unparsable, "a control character, or bytes that are not UTF-8")
		return
	}
	r.texts[key] = true
	for _, lang := range langs {
		if r.left -= len(text.text); r.left < 0 || openers(text.text) > maxOpeners {
			r.note(at, TooLarge, fmt.Sprintf("more than %d bytes of shell text, or more than %d brackets", MaxTextBytes, maxOpeners))
			return
		}
		file, err := parse(text.text, lang)
		if err != nil {
			r.note(at, Unparsable, lang.String()+": "+err.Error())
		}
		s := scope{reader: r, text: text.text, langs: langs, at: at, depth: depth + 1}
		s.numbers = numbers(file)
		s.walk(file)
	}
}

// expansions reads the substitutions in text that bash expands for the command at.
func (r *reader) expansions(at int, text word, depth int) {
	if !text.known || depth >= MaxDepth || !readable(text.text) || openers(text.text) > maxOpeners {
		return // its command is not known already
	}
	if r.left -= len(text.text); r.left < 0 {
		return
	}
	defer func() { _ = recover() }() // as parse does
	w, err := syntax.NewParser().Document(strings.NewReader(text.text))
	if err != nil || w == nil {
		return
	}
	s := scope{reader: r, text: text.text, langs: bash, at: at, depth: depth + 1}
	s.walk(w)
}

// parse is text as a tree; beside an error, that of the statements before it, which a
// shell runs before it comes to the fault. A panic of the parser is an error: the text
// is an agent's, and the parser is somebody else's.
func parse(text string, lang syntax.LangVariant) (file *syntax.File, err error) {
	file = &syntax.File{}
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the parser failed")
		}
	}()
	for st, err := range syntax.NewParser(syntax.Variant(lang)).StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			return file, err
		}
		file.Stmts = append(file.Stmts, st)
	}
	return file, nil
}

func openers(text string) (n int) {
	for _, c := range []byte(text) {
		switch c {
		case '(', '[', '{', '`':
			n++
		}
	}
	return n
}

// scope is one text while its tree is walked.
type scope struct {
	*reader
	text    string
	langs   dialects
	at      int             // the command that runs the text
	depth   int             // of the commands in it
	numbers map[string]bool // variables that hold numbers and nothing else
}

// walk runs every command in node, and notes what of it cannot be known.
func (s *scope) walk(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			s.stmt(n)
		case *syntax.CmdSubst:
			// Backslashes are taken off before the text within is read at all.
			if n.Backquotes && strings.Contains(s.source(n), `\`) {
				s.note(s.at, Unparsable, "a backslash within backquotes: "+s.source(n))
			}
		case *syntax.ExtGlob:
			if strings.ContainsAny(n.Pattern.Value, "$`<>") {
				s.note(s.at, Unparsable, "an expansion within a pattern: "+s.source(n))
			}
		case *syntax.ParamExp:
			s.param(n)
		case *syntax.WordIter:
			s.variable(n.Name.Value)
		case *syntax.ArithmExp:
			s.arithmetic(n.X)
		case *syntax.ArithmCmd:
			s.arithmetic(n.X)
		case *syntax.LetClause:
			for _, x := range n.Exprs {
				s.arithmetic(x)
			}
		case *syntax.CStyleLoop:
			for _, x := range []syntax.ArithmExpr{n.Init, n.Cond, n.Post} {
				s.arithmetic(x)
			}
		case *syntax.BinaryTest:
			s.compare(n)
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet {
				s.operand(n.X)
			}
		case *syntax.Assign:
			s.arithmetic(n.Index)
		}
		return true
	})
}

// stmt runs the command of st, when it is a simple one. What is in a compound one, the
// walk comes to.
func (s *scope) stmt(st *syntax.Stmt) {
	c := call{depth: s.depth, owner: s.at, langs: s.langs}
	c.redirects, c.stdin = s.redirects(st.Redirs)
	s.out.Redirects = append(s.out.Redirects, c.redirects...)
	switch cmd := st.Cmd.(type) {
	case *syntax.CallExpr:
		for _, w := range cmd.Args {
			c.words = append(c.words, s.word(w))
		}
		c.assigns = s.assigns(cmd.Assigns)
		if len(c.words) == 0 {
			for _, a := range c.assigns {
				s.assign(s.at, a, s.depth) // for all that follows
			}
		}
	case *syntax.DeclClause:
		c.words = []word{known(cmd.Variant.Value)}
		for _, a := range cmd.Args {
			c.words = append(c.words, s.assigns([]*syntax.Assign{a})...)
		}
	case *syntax.LetClause:
		c.words = []word{known("let")}
		for _, x := range cmd.Exprs {
			c.words = append(c.words, word{text: s.source(x)})
		}
	}
	s.run(c)
}

// assigns are NAME=value, or what stands in the place of one.
func (s *scope) assigns(list []*syntax.Assign) (words []word) {
	for _, a := range list {
		switch {
		case a.Name == nil:
			words = append(words, s.word(a.Value))
		case a.Naked:
			words = append(words, known(s.source(a)))
		case a.Index != nil || a.Array != nil || a.Append:
			words = append(words, word{text: s.source(a)})
		case a.Value == nil:
			words = append(words, known(a.Name.Value+"="))
		default:
			v := s.word(a.Value)
			words = append(words, word{text: a.Name.Value + "=" + v.text, known: v.known})
		}
	}
	return words
}

// redirects are the files of list, and what a here-document among them makes of
// standard input when it alone is that.
func (s *scope) redirects(list []*syntax.Redirect) (files []Redirect, stdin *word) {
	inputs := 0
	for _, d := range list {
		target := s.word(d.Word)
		fd := ""
		if d.N != nil {
			fd = d.N.Value
		}
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			if fd == "" || fd == "0" {
				inputs++
				body := s.hereDocument(d, target)
				stdin = &body
			}
			continue
		case syntax.RdrIn, syntax.DplIn, syntax.RdrInOut:
			if fd == "" || fd == "0" {
				inputs++
			}
		}
		if (d.Op == syntax.DplIn || d.Op == syntax.DplOut) && isDescriptor(target) || isProcess(d.Word) {
			continue
		}
		write := d.Op != syntax.RdrIn && d.Op != syntax.DplIn
		if write && !target.known {
			s.note(s.at, Target, target.text)
		}
		files = append(files, Redirect{Path: target.text, Write: write})
	}
	if inputs != 1 {
		stdin = nil
	}
	return files, stdin
}

// isDescriptor reports whether w, after >& or <&, is a descriptor and not a file.
func isDescriptor(w word) bool {
	return w.known && strings.Trim(w.text, "0123456789-") == ""
}

func isProcess(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	_, ok := w.Parts[0].(*syntax.ProcSubst)
	return ok
}

// param notes an expansion that is run as text, or that zsh gives meanings to that
// our parser does not know.
func (s *scope) param(p *syntax.ParamExp) {
	if p.Flags != nil || p.NestedParam != nil {
		s.note(s.at, Computed, s.source(p))
	}
	if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps && p.Exp.Word != nil && s.word(p.Exp.Word).text == "P" {
		s.note(s.at, Computed, s.source(p))
	}
	if assignsDefault(p) {
		s.variable(p.Param.Value)
	}
	s.arithmetic(p.Index)
	if p.Slice != nil {
		s.arithmetic(p.Slice.Offset)
		s.arithmetic(p.Slice.Length)
	}
}

// assignsDefault reports whether p is ${x=y} or ${x:=y}.
func assignsDefault(p *syntax.ParamExp) bool {
	return p.Exp != nil && p.Param != nil && slices.Contains([]syntax.ParExpOperator{syntax.AssignUnset, syntax.AssignUnsetOrNull}, p.Exp.Op)
}

// source is the text of n.
func (s *scope) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(s.text) || from > to {
		return ""
	}
	return s.text[from:to]
}
