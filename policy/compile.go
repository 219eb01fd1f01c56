package policy

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	cedar "github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"writ"
)

// Set is a validated policy set. It is immutable and safe for concurrent use. The
// zero Set has no rules and denies everything.
type Set struct {
	version writ.Digest
	rules   ruleList // sorted by place
}

// rule is one policy, with what its annotations say.
type rule struct {
	writ.Rule
	policy *cedar.Policy
	why    string    // of @hold or @reason
	need   writ.Need // when it holds
	opaque bool      // it speaks of what cannot be known of a command
}

// Version is a digest over the names and contents of all files of the set.
func (s *Set) Version() writ.Digest { return s.version }

// Count is how many rules of the set have that effect.
func (s *Set) Count(e writ.Effect) int {
	n := 0
	for _, r := range s.rules {
		if r.Effect == e {
			n++
		}
	}
	return n
}

// ruleList is rules as Cedar takes them: each under its index.
type ruleList []rule

// All yields every rule.
func (l ruleList) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for i := range l {
			if !yield(cedar.PolicyID(strconv.Itoa(i)), l[i].policy) {
				return
			}
		}
	}
}

// rule is the rule that Cedar names by id.
func (l ruleList) rule(id cedar.PolicyID) *rule {
	i, err := strconv.Atoi(string(id))
	if err != nil || i < 0 || i >= len(l) {
		return &rule{Rule: writ.Rule{ID: string(id), Effect: writ.Deny}} // cannot be: All made it
	}
	return &l[i]
}

// Compile makes a set of files, in any order. It does not keep them. Either every
// rule of every file is in the set, or the error is a *writ.Error of kind Invalid
// whose message has one line per fault, "file:line:column: what, what to do", in
// the order of the files. A set without any rule is a fault: it would deny
// everything, which nobody means by a policy folder.
func Compile(files []File) (*Set, error) {
	check, err := newChecker()
	if err != nil {
		return nil, err
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, byName)
	c := compiler{checker: check, ids: map[string]string{}}
	total := 0
	for i, f := range files {
		total += len(f.Content)
		switch {
		case i > 0 && files[i-1].Name == f.Name:
			c.fault(f.Name, position{1, 1}, "there are two files of this name: rename one")
		case !validFileName(f.Name):
			c.fault(strconv.Quote(f.Name), position{1, 1}, "not a file name: want 1 to 255 printable characters without / and :")
		case total > MaxSetBytes:
			c.fault(f.Name, position{1, 1}, fmt.Sprintf("the files up to this one have more than %d bytes together: remove some", MaxSetBytes))
		default:
			c.file(f)
		}
	}
	switch {
	case len(c.rules) > MaxPolicies:
		r := c.rules[MaxPolicies]
		c.fault(r.File, position{r.Line, 1}, fmt.Sprintf("there are more than %d rules: merge some", MaxPolicies))
	case len(c.rules) == 0 && len(c.faults) == 0:
		return nil, invalid("there is no rule in the policy: everything would be denied: write at least one permit")
	}
	if len(c.faults) > 0 {
		return nil, c.err()
	}
	return &Set{version: version(files), rules: c.rules}, nil
}

func validFileName(s string) bool {
	printable := strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0
	return s != "" && len(s) <= 255 && printable && !strings.ContainsAny(s, "/:")
}

type compiler struct {
	*checker
	rules  ruleList
	ids    map[string]string // @id → where it was given
	faults []faultAt
}

type faultAt struct {
	file string
	position
	msg string
}

func (c *compiler) fault(file string, at position, msg string) {
	c.faults = append(c.faults, faultAt{file, at, msg})
}

// err is every fault, in the order of places.
func (c *compiler) err() error {
	slices.SortStableFunc(c.faults, func(a, b faultAt) int {
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.col, b.col))
	})
	var lines []string
	for i, f := range c.faults {
		if i == maxFaults {
			lines = append(lines, fmt.Sprintf("and %d more", len(c.faults)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", f.file, f.line, f.col, f.msg))
	}
	return invalid("%s", strings.Join(lines, "\n"))
}

func (c *compiler) file(f File) {
	if len(f.Content) > MaxFileBytes {
		c.fault(f.Name, position{1, 1}, fmt.Sprintf("the file has %d bytes, the most is %d: split it", len(f.Content), MaxFileBytes))
		return
	}
	src := string(f.Content)
	if off, what := unseen(src); off >= 0 {
		lx := lexer{src: src, line: 1}
		lx.advance(off)
		c.fault(f.Name, lx.here(), what+" would let the file be read otherwise than it looks: remove it, or write it as an escape in a string")
		return
	}
	list, msg, at := split(src)
	for _, st := range list {
		// A little over is told, and the work is bounded.
		if len(c.rules) <= MaxPolicies && len(c.faults) <= 10*maxFaults {
			c.statement(f.Name, st)
		}
	}
	if msg != "" {
		c.fault(f.Name, at, msg)
	}
}

func (c *compiler) statement(file string, st statement) {
	fault := func(at position, msg string) { c.fault(file, at, msg) }
	if msg, at := st.shape(); msg != "" {
		fault(at, msg)
		return
	}
	policies, err := cedar.NewPolicyListFromBytes(file, []byte(st.src))
	if err != nil {
		fault(st.parseFault(err))
		return
	}
	if len(policies) != 1 {
		// Our tokens and Cedar's disagree; nothing may be lost for it.
		fault(st.start(), fmt.Sprintf("the text up to the next \";\" is %d rules instead of one: rewrite it", len(policies)))
		return
	}
	p := policies[0]
	r := c.annotations(file, p, st)
	r.opaque = speaksOfOpaque((*ast.Policy)(p.AST()))
	c.check((*ast.Policy)(p.AST()), st, fault)
	c.rules = append(c.rules, r)
}

var (
	parseError  = regexp.MustCompile(`^(?:parser error: )?(?:parse error at )?<input>:(\d+):(\d+)(?: ("(?:[^"\\]|\\.)*"))?: (?s:(.*))$`)
	exactGot    = regexp.MustCompile(`^exact got (.*) want (.*)$`)
	wantOrOther = regexp.MustCompile(`^got (.*) want (.*)$`)
)

// parseFault is where in the file Cedar's parser gave up, and why, in our words.
func (st statement) parseFault(err error) (position, string) {
	for _, t := range st.toks {
		if t.text == "?" {
			return t.position, "templates are not supported: write the entity itself in place of ?principal or ?resource"
		}
	}
	last := st.toks[len(st.toks)-1]
	if last.text != ";" {
		if _, err := cedar.NewPolicyListFromBytes("", []byte(st.src+";")); err == nil {
			return last.position, `the rule is not ended: add ";" after it`
		}
	}
	if errors.Is(err, strconv.ErrRange) {
		return st.start(), fmt.Sprintf("a number in the rule is too large: the most is %d", int64(math.MaxInt64))
	}
	m := parseError.FindStringSubmatch(err.Error())
	if m == nil {
		return st.start(), "not a rule: " + strings.TrimPrefix(err.Error(), "parser error: ")
	}
	line, _ := strconv.Atoi(m[1])
	col, _ := strconv.Atoi(m[2])
	at, msg := st.inFile(line, col), m[4]
	// The parser has mostly stepped over the word that it did not like.
	i := slices.IndexFunc(st.toks, func(t token) bool { return t.position == at })
	back := at
	if i > 0 {
		back = st.toks[i-1].position
	}
	switch {
	case exactGot.MatchString(msg):
		w := exactGot.FindStringSubmatch(msg)
		if w[1] == "" {
			return last.position, fmt.Sprintf("the text ends where %q is wanted", w[2])
		}
		return back, fmt.Sprintf("%q stands where %q is wanted", w[1], w[2])
	case wantOrOther.MatchString(msg):
		w := wantOrOther.FindStringSubmatch(msg)
		return at, fmt.Sprintf("%q stands where %q or the end of the list is wanted", w[1], w[2])
	case strings.HasPrefix(msg, "unexpected effect: "):
		return back, fmt.Sprintf("%q stands where a rule begins: want permit, forbid or an annotation", strings.TrimPrefix(msg, "unexpected effect: "))
	case msg == "invalid primary":
		return back, "no value stands here: want principal, action, resource, context, an entity, a string, a number, a set or a record"
	case strings.HasPrefix(msg, "duplicate annotation: "):
		return at, msg + ": remove one"
	}
	return back, msg + ": correct the rule's grammar (https://docs.cedarpolicy.com/policies/syntax-grammar.html)"
}

// inFile is the place in the file of a place in the text of st.
func (st statement) inFile(line, col int) position {
	at := position{line, col}
	if line == 1 {
		at.col += st.start().col - 1
	}
	at.line += st.start().line - 1
	return at
}
