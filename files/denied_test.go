package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
)

func TestDenied(t *testing.T) {
	everything := layout{
		"a.go": "", ".env": "", "conf/.ENV": "", "conf/key.pem": "", "conf/other": "", "link": "-> conf/.ENV", ".env.d/": "",
		"secrets/one": "", "secrets/deep/two": "", "src/x.go": "", "src/gen/y.go": "", "docs/z": "",
		".git/config": "", ".git/hooks/pre-commit": "", "sub/.git": "a file",
	}
	for _, tt := range []struct {
		name        string
		rules       Rules
		read, write []string
	}{
		{name: "no rules"},
		{name: "names at any depth, and other spellings", rules: Rules{DenyRead: []string{".env", "*.pem"}}, read: []string{".env", "conf/.ENV", "conf/key.pem"}},
		{name: "a folder alone", rules: Rules{DenyRead: []string{"secrets"}, DenyWrite: []string{"src/gen"}}, read: []string{"secrets"}, write: []string{"src/gen"}},
		{name: "reading beats writing", rules: Rules{DenyRead: []string{"secrets/deep"}, DenyWrite: []string{"secrets"}}, read: []string{"secrets/deep"}, write: []string{"secrets"}},
		{name: "a folder in one that is hidden", rules: Rules{DenyRead: []string{"secrets", "deep"}, DenyWrite: []string{"deep"}}, read: []string{"secrets"}},
		{name: "a file where a denied folder would be", rules: Rules{DenyWrite: []string{"**/.git/hooks", "sub/.git/hooks"}}, write: []string{".git/hooks", "sub/.git"}},
		{
			name: "only some may be read", rules: Rules{Read: []string{"src/**", "*.go"}},
			read: []string{".env", ".git/config", ".git/hooks/pre-commit", "conf/.ENV", "conf/key.pem", "conf/other", "docs/z", "secrets/deep/two", "secrets/one", "sub/.git"},
		},
		{name: "only a folder may be read", rules: Rules{Read: []string{"src/**"}}, read: []string{".env", ".env.d", ".git", "a.go", "conf", "docs", "secrets", "sub"}},
		{name: "only a folder may be written", rules: Rules{Write: []string{"src/**"}, DenyRead: []string{"src/gen"}}, read: []string{"src/gen"}, write: []string{".env", ".env.d", ".git", "a.go", "conf", "docs", "secrets", "sub"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			read, write, err := newTree(t, everything, tt.rules).Denied(t.Context())
			if d := cmp.Diff([][]string{tt.read, tt.write}, [][]string{read, write}); err != nil || d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
}

// A sandbox holds names: each one of a denied file must be listed.
func TestDeniedListsEveryNameOfAFile(t *testing.T) {
	tree := newTree(t, layout{"secrets/key": "k", "free/": "", "fixed/cfg": "c", "alone": ""}, Rules{DenyRead: []string{"secrets"}, DenyWrite: []string{"fixed", "free/also"}})
	for _, link := range [][2]string{{"secrets/key", "free/key"}, {"secrets/key", "fixed/key"}, {"fixed/cfg", "free/cfg"}, {"fixed/cfg", "free/also"}, {"alone", "free/alone"}} {
		must(t, os.Link(filepath.Join(tree.Root(), link[0]), filepath.Join(tree.Root(), link[1])))
	}
	read, write, err := tree.Denied(t.Context())
	want := [][]string{{"fixed/key", "free/key"}, {"fixed", "free/also", "free/cfg"}}
	want[0] = append(want[0], "secrets")
	if d := cmp.Diff(want, [][]string{read, write}); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestDeniedIsWholeOrAnError(t *testing.T) {
	rules := Rules{DenyRead: []string{"*.key"}}
	deep := newTree(t, layout{strings.Repeat("d/", MaxDepth+2) + "x.key": ""}, rules)
	odd := newTree(t, layout{"\xff.key": ""}, rules)
	for what, tree := range map[string]*Tree{"too deep": deep, "a name that is not UTF-8": odd} {
		if read, _, err := tree.Denied(t.Context()); writ.CodeOf(err) != CodeOperationFailed || read != nil {
			t.Errorf("%s: %q, %v", what, read, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := newTree(t, layout{"a": "", "b": ""}, rules).Denied(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}

	// More than a find would look at.
	wide := newTree(t, layout{"zz/last.key": ""}, rules)
	for i := range MaxFolders {
		must(t, os.Mkdir(filepath.Join(wide.Root(), strconv.Itoa(i)), 0o700))
	}
	if read, _, err := wide.Denied(t.Context()); err != nil || len(read) != 1 || read[0] != "zz/last.key" {
		t.Errorf("a wide one: %q, %v", read, err)
	}
}
