package interpreter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
)

// stored is an object of that name, and what it has.
func stored(id, name string) writ.Object {
	return writ.Object{ID: writ.ObjectID(id), Session: "s", Name: name, SHA256: writ.DigestOf([]byte(id)), Size: int64(len(id))}
}

func called(o writ.Object, name string) Ref { return Ref{Object: o.Ref(), Name: name} }

// TestLC05_TwoFilesOfOneName: a file that was uploaded again is no conflict for ever.
func TestLC05_TwoFilesOfOneName(t *testing.T) {
	a, b, c := stored("A", "t.csv"), stored("B", "t.csv"), stored("C", "other.csv")
	for name, tt := range map[string]struct {
		objects []writ.Object
		names   []string
		want    map[string]string // path to id
	}{
		"the last one counts":                     {[]writ.Object{a, b}, []string{"t.csv", "t.csv"}, map[string]string{"t.csv": "B"}},
		"whatever the order":                      {[]writ.Object{b, a}, []string{"t.csv", "t.csv"}, map[string]string{"t.csv": "A"}},
		"both, as the front end calls them":       {[]writ.Object{a, b}, []string{"t-old.csv", "t.csv"}, map[string]string{"t-old.csv": "A", "t.csv": "B"}},
		"one twice":                               {[]writ.Object{a, a}, []string{"t.csv", "t.csv"}, map[string]string{"t.csv": "A"}},
		"one under two names is where it was":     {[]writ.Object{a, a}, []string{"x.csv", "y.csv"}, map[string]string{"t.csv": "A"}},
		"a file alone lies under its stored name": {[]writ.Object{c}, []string{"renamed.csv"}, map[string]string{"other.csv": "C"}},
	} {
		var refs []Ref
		for i, o := range tt.objects {
			refs = append(refs, called(o, tt.names[i]))
		}
		p, err := place(refs, tt.objects, "main.py")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := map[string]string{}
		for path, o := range p.inputs {
			got[path] = string(o.ID)
			if f := p.files[path]; f.Path != path || f.Digest != o.SHA256 || f.Size != o.Size {
				t.Errorf("%s: %q is placed as %+v", name, path, f)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPlacesThatConflict(t *testing.T) {
	for name, tt := range map[string]struct {
		names []string
		want  string
	}{
		"the entry file":                   {[]string{"main.py"}, `files contains duplicate destination "main.py"`},
		"a file where a folder must be":    {[]string{"a", "a/b"}, `files contains conflicting destinations "a" and "a/b"`},
		"the other way round":              {[]string{"a/b/c", "a"}, `files contains conflicting destinations "a" and "a/b/c"`},
		"beneath the entry file":           {[]string{"main.py/x"}, `files contains conflicting destinations "main.py" and "main.py/x"`},
		"the entry file of another tongue": {[]string{"script.sh", "data/main.py"}, ""},
	} {
		var refs []Ref
		var objects []writ.Object
		for _, n := range tt.names {
			o := stored(n, n)
			refs, objects = append(refs, called(o, n)), append(objects, o)
		}
		_, err := place(refs, objects, "main.py")
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if writ.KindOf(err) != writ.Invalid || writ.CodeOf(err) != "bad_request" || writ.Message(err) != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// TestNamesOfTheFrontEndThatConflict: also where they are not where the files lie.
func TestNamesOfTheFrontEndThatConflict(t *testing.T) {
	a, b := stored("A", "a.csv"), stored("B", "b.csv")
	for names, want := range map[[2]string]string{
		{"main.py", "b.csv"}: `files contains duplicate destination "main.py"`,
		{"x", "x/y"}:         `files contains conflicting destinations "x" and "x/y"`,
	} {
		_, err := place([]Ref{called(a, names[0]), called(b, names[1])}, []writ.Object{a, b}, "main.py")
		if writ.CodeOf(err) != "bad_request" || writ.Message(err) != want {
			t.Errorf("%q: %v, want %s", names, err, want)
		}
	}
}

func TestKeptFoldersGiveWay(t *testing.T) {
	p := newPlaced()
	p.put("a/b.txt", stored("1", "a/b.txt"))
	for name, want := range map[string]bool{
		"c/.dirkeep": true, "a/.dirkeep": true, "a/b.txt": false, "a/b.txt/.dirkeep": false, "a": false,
	} {
		if got := p.free(name); got != want {
			t.Errorf("free(%q) = %v", name, got)
		}
	}
}
