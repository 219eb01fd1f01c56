package session

import (
	"math"
	"mime"
	"strings"
	"testing"

	"writ"
)

// TestIO05_IO06_Names: what is kept is kept as it is, and what leads out is refused.
func TestIO05_IO06_Names(t *testing.T) {
	deep := strings.Repeat("d/", maxNameDepth-1) + "f"
	const segments = "must not contain empty, current, or parent path segments"
	for name, want := range map[string]string{
		"a.txt": "", "pdf/scripts/run.py": "", ".env": "", ".config/app.toml": "", "noext": "", "..a": "", "a..": "", "...": "",
		"отчёт № 3.csv": "", "-rf": "", "con": "", "trailing.": "", "a\u202eb": "", "😀.png": "", "%00": "", `"<script>'`: "", "a:b": "", " ": "", "tab\there": "",
		"": "must not be empty", "../x": segments, "a/../x": segments, "a/..": segments, "./a": segments, "a//b": segments, "a/": segments, "..": segments,
		"../../../../app/client/dist/poc.txt": segments,
		"/etc/passwd":                         "must be a relative path", "//x": "must be a relative path",
		"a\x00b": "contains invalid path characters", `a\b`: "contains invalid path characters", `..\x`: "contains invalid path characters",
		"a\nb": "contains invalid path characters", "a\rb": "contains invalid path characters", "a\xff": "contains invalid path characters",
		deep: "", "d/" + deep: "exceeds maximum nesting depth of 10",
		strings.Repeat("a", 255):                           "",
		strings.Repeat("a/", 8) + strings.Repeat("b", 240): "", strings.Repeat("a/", 8) + strings.Repeat("b", 241): "must not exceed 256 characters",
		"d/" + strings.Repeat("😀", 127):                    "must not have path segments of more than 255 bytes",
		strings.Repeat("я/", 2) + strings.Repeat("é", 127): "",
	} {
		if got := NameFault(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got := NameFault(strings.Repeat("😀/", 86)); got != "must not exceed 256 characters" {
		t.Errorf("258 units in 172 characters: %q", got)
	}
}

// TestLC07_LC09_LC10_UploadNames reads what clients send.
func TestLC07_LC09_LC10_UploadNames(t *testing.T) {
	for header, want := range map[string]string{
		`form-data; name="file"; filename="отчёт № 3.csv"`:                      "отчёт № 3.csv",
		`form-data; name="file"; filename*=UTF-8''%D0%BE.csv`:                   "о.csv",
		`form-data; name="file"; filename="x.csv"; filename*=UTF-8''%D0%BE.csv`: "о.csv",
		`form-data; name="file"; filename="июль.csv"`:                           "июль.csv",
		`form-data; name="file"; filename="июнь.csv"`:                           "июнь.csv",
		`form-data; name="file"; filename="pdf/scripts/run.py"`:                 "pdf/scripts/run.py",
		`form-data; name="file"; filename="../up.txt"`:                          "../up.txt", // refused by NameFault
		`form-data; name="file"; filename="a\b.txt"`:                            `a\b.txt`,
		`form-data; name="file"; filename="say %22hi%22.txt"`:                   `say "hi".txt`,
		`form-data; name="file"; filename="100%2F.txt"`:                         "100%2F.txt",
		`form-data; name="file"; filename*=UTF-8''a%2522b`:                      "a%22b",
		`form-data; name="file"; filename=""`:                                   "",
		"form-data; name=\"file\"; filename=\"e\u0301.txt\"":                    "\u00e9.txt",
	} {
		if got, ok := UploadName(header); got != want || !ok {
			t.Errorf("%s: %q, %v, want %q", header, got, ok, want)
		}
	}
	for _, header := range []string{"", `form-data; name="kind"`, `form-data; filename="a"; filename="b"`, ";", "form-data; filename"} {
		if got, ok := UploadName(header); ok {
			t.Errorf("%q has the name %q", header, got)
		}
	}
}

func TestLC16_Disposition(t *testing.T) {
	if got, want := Disposition("naïve № 1.txt"), "attachment; filename*=UTF-8''na%C3%AFve%20%E2%84%96%201.txt"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := Disposition("out/sum.json"), "attachment; filename*=UTF-8''out%2Fsum.json"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzNames: a name comes back out of the header that carries it, and one that is kept
// stays beneath the folder that it is relative to.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"a.txt", "a/b c/№.csv", `"';*%22`, "..", "a\r\nb", "\u202e", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		header := Disposition(name)
		for _, c := range []byte(header) {
			if c < ' ' || c > '~' {
				t.Fatalf("%q has the byte %x", header, c)
			}
		}
		if _, params, err := mime.ParseMediaType(header); name != "" && (err != nil || params["filename"] != name) {
			t.Errorf("%q comes back as %q, %v", name, params["filename"], err)
		}
		if NameFault(name) != "" {
			return
		}
		o := writ.Object{ID: "o", Session: "s", Name: name}
		if got, _ := strings.CutPrefix(o.Key(), "s/o"); strings.Contains(got, "/") {
			t.Errorf("the key of %q is %q", name, o.Key())
		}
		for part := range strings.SplitSeq(name, "/") {
			if part == "" || part == "." || part == ".." {
				t.Errorf("%q was let through", name)
			}
		}
	})
}

func TestEntities(t *testing.T) {
	for _, c := range []struct{ kind, id, version, want string }{
		{"user", "", "", ""}, {"user", "anything:at all", "", ""}, {"agent", "a", "", ""}, {"skill", "s", "3", ""}, {"skill", "s", " 3.5 ", ""}, {"skill", "s", "-1e2", ""},
		{"", "", "", "kind must be one of: skill, agent, user"}, {"User", "u", "", "kind must be one of: skill, agent, user"},
		{"agent", "", "", "id is required for kind: 'agent'"}, {"skill", "", "3", "id is required for kind: 'skill'"},
		{"skill", "s", "", "version is required for kind: 'skill'"},
		{"skill", "s", "three", "version must be a number for kind: 'skill'"}, {"skill", "s", "NaN", "version must be a number for kind: 'skill'"},
		{"skill", "s", "1e999", "version must be a number for kind: 'skill'"}, {"skill", "s", "0x10", "version must be a number for kind: 'skill'"}, {"skill", "s", " ", "version must be a number for kind: 'skill'"},
		{"agent", "a", "3", "version is only valid for kind: 'skill'"}, {"user", "", "x", "version is only valid for kind: 'skill'"},
		{"agent", strings.Repeat("a", 257), "", "id must not exceed 256 bytes"},
	} {
		_, err := ParseEntity(c.kind, c.id, c.version)
		if got := writ.Message(err); (err == nil) != (c.want == "") || err != nil && (got != c.want || writ.KindOf(err) != writ.Invalid) {
			t.Errorf("%q %q %q: %v, want %q", c.kind, c.id, c.version, err, c.want)
		}
	}
}

// TestKeysDoNotRunIntoEachOther: the same letters, cut elsewhere, are another key.
func TestKeysDoNotRunIntoEachOther(t *testing.T) {
	type claim struct {
		tenant, user string
		kind         writ.PrincipalKind
		entity       Entity
	}
	version := func(v float64) *float64 { return &v }
	claims := []claim{
		{"t", "u", writ.KindUser, Entity{Kind: writ.EntityUser}},
		{"t", "u", writ.KindAgent, Entity{Kind: writ.EntityUser}},
		{"t:user", "u", writ.KindUser, Entity{Kind: writ.EntityUser}},
		{"t", "user:u", writ.KindUser, Entity{Kind: writ.EntityUser}},
		{"t", "", writ.KindUser, Entity{Kind: writ.EntityAgent, ID: "u"}},
		{"t", "", writ.KindUser, Entity{Kind: writ.EntityAgent, ID: "s:v:3"}},
		{"t:agent", "", writ.KindUser, Entity{Kind: writ.EntityAgent, ID: "s"}},
		{"t", "", writ.KindUser, Entity{Kind: writ.EntitySkill, ID: "s", Version: version(3)}},
		{"t", "", writ.KindUser, Entity{Kind: writ.EntitySkill, ID: "s", Version: version(3.5)}},
		{"t", "", writ.KindUser, Entity{Kind: writ.EntitySkill, ID: "s:v:3", Version: version(3)}},
		{"t:skill:s", "", writ.KindUser, Entity{Kind: writ.EntitySkill, ID: "v", Version: version(3)}},
	}
	seen := map[writ.Digest]claim{}
	for _, c := range claims {
		k := c.entity.key(writ.Principal{Kind: c.kind, ID: c.user, Tenant: writ.Tenant(c.tenant)})
		if other, taken := seen[k]; taken {
			t.Errorf("%+v and %+v have one key", c, other)
		}
		seen[k] = c
	}
	p := writ.Principal{Kind: writ.KindUser, ID: "u", Tenant: "t"}
	for _, same := range [][2]Entity{
		{{Kind: writ.EntityUser, ID: "x"}, {Kind: writ.EntityUser, ID: "y"}},
		{{Kind: writ.EntitySkill, ID: "s", Version: version(0)}, {Kind: writ.EntitySkill, ID: "s", Version: version(math.Copysign(0, -1))}},
	} {
		if same[0].key(p) != same[1].key(p) {
			t.Errorf("%+v and %+v have two keys", same[0], same[1])
		}
	}
}
