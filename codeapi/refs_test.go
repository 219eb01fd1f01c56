package codeapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/interpreter"
	"writ/session"
)

const (
	anID      = "bbbbbbbbbbbbbbbbbbbbb"
	anotherID = "ccccccccccccccccccccc"
)

// refText is one entry of files with members changed: name and raw JSON; an empty one
// leaves the member out.
func refText(change map[string]string) string {
	m := map[string]string{"id": `"` + anID + `"`, "resource_id": `"u1"`, "storage_session_id": `"` + anotherID + `"`, "name": `"a.txt"`, "kind": `"user"`}
	for k, v := range change {
		m[k] = v
	}
	var parts []string
	for _, k := range []string{"id", "resource_id", "storage_session_id", "name", "kind", "version", "session_id", "inherited", "path"} {
		if m[k] != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", k, m[k]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestReferenceFileRefs: each refusal as the contract's reference worded it (spec/03 §7),
// and nothing runs.
func TestReferenceFileRefs(t *testing.T) {
	d := newDesk(t, deskOptions{})
	one := func(change map[string]string) string { return "[" + refText(change) + "]" }
	long := strings.Repeat("n", 257)
	for name, tt := range map[string]struct{ files, want string }{
		"files not array":                {`{}`, "files must be an array"},
		"files a string":                 {`"a"`, "files must be an array"},
		"entry not object":               {`["x"]`, "files[0] must be an object"},
		"entry null":                     {`[` + refText(nil) + `,null]`, "files[1] must be an object"},
		"entry an array":                 {`[[]]`, "files[0] must be an object"},
		"id bad":                         {one(map[string]string{"id": `"../etc/passwd"`}), "files[0].id is invalid"},
		"id missing":                     {one(map[string]string{"id": ""}), "files[0].id is invalid"},
		"id a number":                    {one(map[string]string{"id": "1"}), "files[0].id is invalid"},
		"resource_id missing":            {one(map[string]string{"resource_id": ""}), "files[0].resource_id is invalid"},
		"resource_id bad chars":          {one(map[string]string{"resource_id": `"a/b"`}), "files[0].resource_id is invalid"},
		"resource_id long":               {one(map[string]string{"resource_id": `"` + strings.Repeat("r", 129) + `"`}), "files[0].resource_id is invalid"},
		"resource_id, line break":        {one(map[string]string{"resource_id": `"a\n"`}), "files[0].resource_id is invalid"},
		"legacy session_id":              {one(map[string]string{"resource_id": "", "storage_session_id": "", "session_id": `"` + anotherID + `"`, "kind": ""}), "files[0].resource_id is invalid"},
		"storage_session_id missing":     {one(map[string]string{"storage_session_id": ""}), "files[0].storage_session_id is invalid"},
		"name missing":                   {one(map[string]string{"name": ""}), "files[0].name must be a string"},
		"name a number":                  {one(map[string]string{"name": "1"}), "files[0].name must be a string"},
		"name empty":                     {one(map[string]string{"name": `""`}), "files[].name must not be empty"},
		"name abs":                       {one(map[string]string{"name": `"/etc/passwd"`}), "files[].name must be a relative path"},
		"name ..":                        {one(map[string]string{"name": `"a/../b"`}), "files[].name must not contain empty, current, or parent path segments"},
		"name ./":                        {one(map[string]string{"name": `"./a"`}), "files[].name must not contain empty, current, or parent path segments"},
		"name trailing slash":            {one(map[string]string{"name": `"a/"`}), "files[].name must not contain empty, current, or parent path segments"},
		"name backslash":                 {one(map[string]string{"name": `"a\\b"`}), "files[].name contains invalid path characters"},
		"name NUL":                       {one(map[string]string{"name": `"a\u0000b"`}), "files[].name contains invalid path characters"},
		"name 257":                       {one(map[string]string{"name": `"` + long + `"`}), "files[].name must not exceed 256 characters"},
		"name depth 11":                  {one(map[string]string{"name": `"1/2/3/4/5/6/7/8/9/10/11"`}), "files[].name exceeds maximum nesting depth of 10"},
		"kind missing":                   {one(map[string]string{"kind": ""}), "files[0].kind must be one of: skill, agent, user"},
		"kind bad":                       {one(map[string]string{"kind": `"admin"`}), "files[0].kind must be one of: skill, agent, user"},
		"kind in capitals":               {one(map[string]string{"kind": `"User"`}), "files[0].kind must be one of: skill, agent, user"},
		"skill no version":               {one(map[string]string{"kind": `"skill"`}), "files[0].version is required for kind: 'skill'"},
		"skill version null":             {one(map[string]string{"kind": `"skill"`, "version": "null"}), "files[0].version is required for kind: 'skill'"},
		"skill version string":           {one(map[string]string{"kind": `"skill"`, "version": `"3"`}), "files[0].version is required for kind: 'skill'"},
		"skill version beyond all":       {one(map[string]string{"kind": `"skill"`, "version": "1e999"}), "files[0].version is required for kind: 'skill'"},
		"user with version":              {one(map[string]string{"version": "1"}), "files[0].version is only valid for kind: 'skill'"},
		"agent with version":             {one(map[string]string{"kind": `"agent"`, "version": `"1"`}), "files[0].version is only valid for kind: 'skill'"},
		"first fault wins in an entry":   {one(map[string]string{"id": `"x"`, "kind": `"x"`}), "files[0].id is invalid"},
		"first fault wins among entries": {`[` + refText(nil) + `,` + refText(map[string]string{"kind": `"x"`}) + `,` + refText(map[string]string{"id": `"x"`}) + `]`, "files[1].kind must be one of: skill, agent, user"},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, d.exec(t, `{"lang":"bash","code":"","files":`+tt.files+`}`), 400, `{"error":"`+tt.want+`"}`)
		})
	}
	if asked, _ := d.runs.all(); len(asked) > 0 {
		t.Errorf("%d runs began", len(asked))
	}
}

// TestFileRefs: what the interpreter is asked for.
func TestFileRefs(t *testing.T) {
	d := newDesk(t, deskOptions{})
	three, half := 3.0, 3.5
	object := writ.ObjectRef{ID: anID, Session: anotherID}
	files := `[` + refText(map[string]string{"inherited": "true", "path": `"/mnt/data/a.txt"`, "version": "null"}) + `,` +
		refText(map[string]string{"kind": `"agent"`, "resource_id": `"agent:x_1.-"`, "name": `"d/é 日.txt"`}) + `,` +
		refText(map[string]string{"kind": `"skill"`, "version": "3"}) + `,` + refText(map[string]string{"kind": `"skill"`, "version": "35e-1"}) + `]`
	want(t, d.exec(t, `{"lang":"bash","code":"","files":`+files+`}`), 200, hiReply)
	for _, none := range []string{"null", "[]"} {
		want(t, d.exec(t, `{"lang":"bash","code":"","files":`+none+`}`), 200, hiReply)
	}
	asked, _ := d.runs.all()
	if diff := cmp.Diff([]interpreter.Ref{
		{Object: object, Name: "a.txt", Entity: session.Entity{Kind: writ.EntityUser, ID: "u1"}},
		{Object: object, Name: "d/é 日.txt", Entity: session.Entity{Kind: writ.EntityAgent, ID: "agent:x_1.-"}},
		{Object: object, Name: "a.txt", Entity: session.Entity{Kind: writ.EntitySkill, ID: "u1", Version: &three}},
		{Object: object, Name: "a.txt", Entity: session.Entity{Kind: writ.EntitySkill, ID: "u1", Version: &half}},
	}, asked[0].Files); diff != "" {
		t.Errorf("refs (want -, got +):\n%s", diff)
	}
	if len(asked[1].Files)+len(asked[2].Files) > 0 {
		t.Errorf("no files became %v and %v", asked[1].Files, asked[2].Files)
	}
}
