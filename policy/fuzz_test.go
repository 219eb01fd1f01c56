package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"writ"
)

var faultLine = regexp.MustCompile(`^f\.cedar:[1-9]\d*:[1-9]\d*: .`)

// Whatever the bytes, Compile answers with a set that decides, or with faults that
// say where they are.
func FuzzCompile(f *testing.F) {
	paths, _ := filepath.Glob("testdata/faults/*.txtar")
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(b).Files {
			f.Add(string(file.Data))
		}
	}
	f.Add(defaultRules)
	f.Add(holdShell + denyAcme + permitAll)
	f.Add(`permit(principal,action,resource)when{if context.args.isEmpty() then -1 < 2 else {"a":1,b:[ip("::1")]}["a"] == 1};`)
	f.Fuzz(func(t *testing.T, src string) {
		s, err := Compile([]File{{"f.cedar", []byte(src)}})
		if err != nil {
			if writ.KindOf(err) != writ.Invalid {
				t.Fatalf("not a fault of the file: %v", err)
			}
			for line := range strings.SplitSeq(writ.Message(err), "\n") {
				if !faultLine.MatchString(line) && !strings.HasPrefix(line, "there is no rule") && !strings.HasPrefix(line, "and ") {
					t.Fatalf("a fault without its place: %q", line)
				}
			}
			return
		}
		for _, r := range []Request{python(), bash(), {}} {
			d := s.Decide(r)
			if width(d.Effect) < 0 || d.Reason == "" || (d.Need != nil) != (d.Effect == writ.Hold) {
				t.Fatalf("decision is %+v", d)
			}
			if x := s.Explain(r); x.Decision.Effect != d.Effect {
				t.Fatalf("Explain says %+v", x)
			}
		}
		// Nothing is dropped on the way: a forbid that is added to what compiles denies.
		with, err := Compile([]File{{"f.cedar", []byte(src + "\nforbid (principal, action, resource);")}})
		if err == nil {
			if d := with.Decide(python()); d.Effect != writ.Deny {
				t.Fatalf("a forbid after it is lost: %+v", d)
			}
		} else if len(s.rules) < MaxPolicies {
			t.Fatalf("does not compile with a forbid after it: %v", err)
		}
	})
}
