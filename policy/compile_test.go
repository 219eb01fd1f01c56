package policy

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"writ"
)

var update = flag.Bool("update", false, "rewrite the expected messages in testdata")

// Each archive holds files that must not load and, as "want", every fault in them.
func TestPOL10_BrokenFilesDoNotLoad(t *testing.T) {
	paths, _ := filepath.Glob("testdata/faults/*.txtar")
	if len(paths) < 10 {
		t.Fatalf("found only %d archives", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var files []File
			var want string
			kept := ar.Files[:0]
			for _, f := range ar.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				kept = append(kept, f)
				files = append(files, File{Name: f.Name, Content: f.Data})
			}
			set, err := Compile(files)
			if err == nil || set != nil {
				t.Fatalf("Compile = %v, %v; want an error alone", set, err)
			}
			if writ.KindOf(err) != writ.Invalid {
				t.Errorf("kind is %v, want invalid", writ.KindOf(err))
			}
			got := writ.Message(err) + "\n"
			if *update {
				ar.Files = append(kept, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("faults differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPOL11_SizeBounds(t *testing.T) {
	rule := func(cond string) string { return "permit (principal, action, resource) when { " + cond + " };" }
	big := func(n int) string { return strings.Repeat("// "+strings.Repeat("x", 60)+"\n", n/64+1) }
	tests := []struct {
		name  string
		files []File
		want  string
	}{
		{"file", filesOf(permitAll + big(MaxFileBytes)), "a.cedar:1:1: the file has"},
		{"all files", filesOf(slices.Repeat([]string{permitAll[10:] + big(MaxFileBytes-2000)}, 9)...), "bytes together"},
		{"rules", filesOf(strings.Repeat(permitAll[10:]+"\n", MaxPolicies+1)), "a.cedar:1001:1: there are more than 1000 rules"},
		{"brackets", filesOf(rule(strings.Repeat("(", 300_000) + "true" + strings.Repeat(")", 300_000))), "more than 5000 words"},
		{"depth", filesOf(rule(strings.Repeat("(", 100) + "true" + strings.Repeat(")", 100))), "nested more than 64 deep"},
		{"chain", filesOf(rule("true" + strings.Repeat(" && true", 100_000))), "more than 5000 words"},
		{"not", filesOf(rule(strings.Repeat("!", 900_000) + "true")), "more than 5000 words"},
		{"faults", filesOf(strings.Repeat(rule("context.x")+"\n", 150)), "and 50 more"},
		{"same name", []File{{"a.cedar", []byte(permitAll)}, {"a.cedar", []byte(denyAcme)}}, "two files of this name"},
		{"odd name", []File{{"../a.cedar", []byte(permitAll)}}, "not a file name"},
		{"newline in name", []File{{"a\n.cedar", []byte(permitAll)}}, `"a\n.cedar":1:1: not a file name`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(tt.files)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %.300q, want one with %q", fmt.Sprint(err), tt.want)
			}
		})
	}
	t.Run("at the bound", func(t *testing.T) {
		compile(t, strings.Repeat(permitAll[10:]+"\n", MaxPolicies))
		compile(t, rule("true"+strings.Repeat(" && context.code_bytes >= 0", 800)))
	})
}

func TestCompileNothing(t *testing.T) {
	for _, files := range [][]File{nil, filesOf(""), filesOf("// only words\n", "/* and */")} {
		if _, err := Compile(files); writ.KindOf(err) != writ.Invalid {
			t.Errorf("Compile(%q) = %v, want invalid", files, err)
		}
	}
	var zero Set
	if d := zero.Decide(python()); d.Effect != writ.Deny {
		t.Errorf("the zero set decides %v", d)
	}
}

func TestCompileReadsWhatCedarReads(t *testing.T) {
	src := "\n\t@id(\"a;b\\\"\") // not a name\n"
	if _, err := Compile(filesOf(src + "permit(principal, action, resource);")); err == nil || !strings.HasPrefix(writ.Message(err), "a.cedar:2:2: @id") {
		t.Errorf("error is %v", err)
	}
	s := compile(t, `/* a ; in a comment */ @hold("; // not a comment") permit (principal, action, resource)
when { context.role != "/* ; */\"" && "\u{2066}" != context.role };`+"\r\n// the end")
	if d := s.Decide(python()); d.Effect != writ.Hold || d.Reason != "; // not a comment" {
		t.Errorf("decision is %+v", d)
	}
}

func TestCountByEffect(t *testing.T) {
	s := mustCompile(t, filesOf(permitAll, denyAcme, `@hold("look") permit (principal, action, resource);`, `forbid (principal, action, resource);`))
	for effect, want := range map[writ.Effect]int{writ.Allow: 1, writ.Hold: 1, writ.Deny: 2, "": 0} {
		if got := s.Count(effect); got != want {
			t.Errorf("%d rules with effect %q, want %d", got, effect, want)
		}
	}
}

func TestVersion(t *testing.T) {
	base := []File{{"a.cedar", []byte(permitAll)}, {"b.cedar", []byte(denyAcme)}}
	want := mustCompile(t, base).Version()
	if len(want) != 64 {
		t.Errorf("version is %q, want a SHA-256", want)
	}
	swapped := []File{base[1], base[0]}
	if got := mustCompile(t, swapped).Version(); got != want {
		t.Errorf("the order of files changes the version")
	}
	others := map[string][]File{
		"content":           {{"a.cedar", []byte(permitAll + " ")}, base[1]},
		"name":              {{"aa.cedar", base[0].Content}, base[1]},
		"comment file":      {base[0], base[1], {"c.cedar", nil}},
		"moved name bytes":  {{"a.cedar" + "x", base[0].Content}, base[1]},
		"moved file bounds": {{"a.cedar", bytes.Join([][]byte{base[0].Content, base[1].Content}, nil)}},
	}
	for name, files := range others {
		if mustCompile(t, files).Version() == want {
			t.Errorf("%s: the version did not change", name)
		}
	}
}

func mustCompile(t *testing.T, files []File) *Set {
	t.Helper()
	s, err := Compile(files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
