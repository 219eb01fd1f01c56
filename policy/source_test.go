package policy

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"writ"
)

func fileNames(files []File) (list []string) {
	for _, f := range files {
		list = append(list, f.Name)
	}
	return list
}

func TestFromFS(t *testing.T) {
	fsys := fstest.MapFS{
		"20-b.cedar":      {Data: []byte("b")},
		"10-a.cedar":      {Data: []byte("a")},
		"10-a.cedar~":     {Data: []byte("an editor's copy")},
		"10-a.test.yaml":  {Data: []byte("e")},
		"x.test.json":     {Data: []byte("j")},
		"README.md":       {Data: []byte("r")},
		"more/30-c.cedar": {Data: []byte("c")},
		"folder.cedar/x":  {Data: []byte("x")},
		"other.yaml":      {Data: []byte("y")},
	}
	rules, err := FromFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]File{{"10-a.cedar", []byte("a")}, {"20-b.cedar", []byte("b")}}, rules); diff != "" {
		t.Errorf("rules differ (-want +got):\n%s", diff)
	}
	examples, err := ExamplesFromFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"10-a.test.yaml", "x.test.json"}, fileNames(examples)); diff != "" {
		t.Errorf("examples differ (-want +got):\n%s", diff)
	}
}

// Whatever looks like a rule is read or refused, never passed over.
func TestPOL10_FromFSRefusesWhatItCannotRead(t *testing.T) {
	for name, fsys := range map[string]fstest.MapFS{
		"lower case":     {"deny.CEDAR": {Data: []byte(denyAcme)}},
		"regular file":   {"deny.cedar": {Mode: fs.ModeNamedPipe}},
		"more than 1048": {"deny.cedar": {Data: make([]byte, MaxFileBytes+1)}},
	} {
		_, err := FromFS(fsys)
		if writ.KindOf(err) != writ.Invalid || !strings.Contains(err.Error(), name) {
			t.Errorf("error is %v, want one with %q", err, name)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "gone"), filepath.Join(dir, "deny.cedar")); err != nil {
		t.Fatal(err)
	}
	if files, err := FromFS(os.DirFS(dir)); err == nil {
		t.Errorf("a link to nothing is %v", files)
	}
	if files, err := FromFS(os.DirFS(filepath.Join(dir, "missing"))); err == nil {
		t.Errorf("a missing folder is %v", files)
	}
}
