package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
)

func valid(id writ.WorkspaceID, tenant writ.Tenant, root string) writ.Workspace {
	return writ.Workspace{
		ID: id, Tenant: tenant, Root: root, Profile: writ.WorkspaceWrite,
		Environment: LocalEnvironment, EnvironmentKind: writ.EnvironmentHost,
		Network: writ.NetworkRestricted, Approvals: writ.ApprovalsOff,
	}
}

func ids(all []writ.Workspace) (out []string) {
	for _, w := range all {
		out = append(out, string(w.ID))
	}
	return out
}

func TestRegistryShowsATenantItsOwn(t *testing.T) {
	r, err := NewRegistry([]writ.Workspace{
		valid("site", "acme", "/srv/site"), valid("api", "acme", "/srv/api"), valid("books", "umbrella", "/srv/books"),
	})
	if err != nil {
		t.Fatal(err)
	}
	agent := writ.Principal{Kind: writ.KindAgent, ID: "a", Tenant: "acme"}
	operator := writ.Principal{Kind: writ.KindOperator, ID: "o", Tenant: "acme"}
	local := writ.Principal{Kind: writ.KindLocal, ID: "uid-0", Tenant: writ.DefaultTenant}
	for _, c := range []struct {
		who  writ.Principal
		want []string
	}{
		{agent, []string{"api", "site"}},
		{operator, []string{"api", "site"}},
		{local, []string{"api", "books", "site"}},
		{writ.Principal{}, nil},
	} {
		if d := cmp.Diff(c.want, ids(r.List(c.who))); d != "" {
			t.Errorf("%v sees (-want +got):\n%s", c.who.Ref(), d)
		}
		for _, id := range []writ.WorkspaceID{"site", "api", "books", "", "none"} {
			w, err := r.Get(c.who, id)
			if seen := strings.Contains(" "+strings.Join(c.want, " ")+" ", " "+string(id)+" ") && id != ""; seen != (err == nil) || seen && w.ID != id {
				t.Errorf("%v gets %q: %v, %v", c.who.Ref(), id, w.ID, err)
			}
			if err != nil && (writ.CodeOf(err) != CodeNotFound || writ.KindOf(err) != writ.NotFound) {
				t.Errorf("%v gets %q: %v with code %q", c.who.Ref(), id, err, writ.CodeOf(err))
			}
		}
	}
	// One of another tenant is the same as none.
	_, other := r.Get(agent, "books")
	_, none := r.Get(agent, "nooks")
	if strings.ReplaceAll(other.Error(), "books", "nooks") != none.Error() {
		t.Errorf("%q tells more than %q", other, none)
	}
	if !strings.Contains(none.Error(), "api, site") {
		t.Errorf("%q does not say what there is", none)
	}
}

func TestRegistryRefusesEveryFaultAtOnce(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(filepath.Join(data, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	relative, open, badRule := valid("relative", "t", "srv"), valid("open", "t", "/srv/o"), valid("rule", "t", "/srv/r")
	open.Network, open.Participation = "open", "maybe"
	badRule.Rules.DenyRead = []string{"ok", ""}
	_, err := NewRegistry([]writ.Workspace{
		relative, open, badRule,
		valid("twice", "t", "/srv/1"), valid("twice", "u", "/srv/2"),
		valid("over", "t", dir), valid("same", "t", link), valid("beneath", "t", link+"/keys"),
		valid("beside", "t", data+"-2"),
	}, data)
	if writ.KindOf(err) != writ.Invalid {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{
		`workspace relative: root "srv" is not absolute`, `network "open"`, `workspace open: participation "maybe"`, "workspace rule: ", "deny_read[1]",
		"workspace twice is there twice", "workspace over: root", "workspace same: root", "workspace beneath: root",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "beside") {
		t.Errorf("a folder beside the private one is refused:\n%v", err)
	}
}

// A folder that a registered root covers has that workspace's rules.
func TestOverlapping(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	r, err := NewRegistry([]writ.Workspace{valid("a", "t", filepath.Join(dir, "link")), valid("z", "t", filepath.Join(dir, "z"))})
	if err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string][]string{
		dir: {"a", "z"}, dir + "/a": {"a"}, dir + "/a/b": {"a"}, dir + "/link/b": {"a"}, dir + "/z/y": {"z"}, dir + "/other": nil,
	} {
		if d := cmp.Diff(want, ids(r.Overlapping(folder))); d != "" {
			t.Errorf("%s (-want +got):\n%s", folder, d)
		}
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	home, work, data := filepath.Join(dir, "home"), filepath.Join(dir, "home", "work"), filepath.Join(dir, "home", "data")
	for _, d := range []string{work, data} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bad := filepath.Join(home, "\xff")
	if err := os.Mkdir(bad, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"tohome": home, "toroot": "/", "toetc": "/etc", "towork": work} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{work, filepath.Join(dir, "towork")} {
		got, err := Folder(d, home, data)
		want := valid(FolderID, writ.DefaultTenant, work)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", d, err, d)
		}
		if err := got.Validate(); err != nil {
			t.Error(err)
		}
	}
	for folder, want := range map[string]writ.Kind{
		"/": writ.Denied, "/etc": writ.Denied, "/usr/share": writ.Denied, "/bin": writ.Denied, "/tmp": writ.Denied, "/home": writ.Denied, "/proc/self": writ.Denied, "/dev": writ.Denied, "/var/lib": writ.Denied,
		home: writ.Denied, dir: writ.Denied, data: writ.Denied, filepath.Join(dir, "tohome"): writ.Denied, filepath.Join(dir, "toroot"): writ.Denied, filepath.Join(dir, "toetc"): writ.Denied,
		file: writ.Invalid, bad: writ.Invalid, filepath.Join(dir, "none"): writ.NotFound,
	} {
		if w, err := Folder(folder, home, data); writ.KindOf(err) != want || w.ID != "" {
			t.Errorf("%s: kind %v, want %v: %v", folder, writ.KindOf(err), want, err)
		} else if writ.Message(err) == "internal error" {
			t.Errorf("%s: the error says nothing: %v", folder, err)
		}
	}
	// A home folder of somebody else, as far as the system's own layout tells.
	if why := tooMuch(place{path: "/home/someone"}, "", nil); why == "" {
		t.Error("a folder in /home is offered")
	}
	if why := tooMuch(place{path: "/home/someone/work"}, "", nil); why != "" {
		t.Errorf("a folder in a home folder is refused: it %s", why)
	}
}
