package policy

import (
	"testing"
	"time"

	"writ"
)

// compile makes a set of files that hold sources[0], sources[1], ...
func compile(t testing.TB, sources ...string) *Set {
	t.Helper()
	s, err := Compile(filesOf(sources...))
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return s
}

func filesOf(sources ...string) []File {
	var files []File
	for i, src := range sources {
		files = append(files, File{Name: string(rune('a'+i)) + ".cedar", Content: []byte(src)})
	}
	return files
}

// python is a request that nothing is odd about.
func python() Request {
	p := writ.Principal{Kind: writ.KindAgent, ID: "coder", Tenant: "acme", Roles: []string{"dev"}, Scopes: []writ.Scope{"python"}}
	return Request{
		Principal: p,
		Requester: writ.Principal{Kind: writ.KindOperator, ID: "anna", Tenant: "acme"},
		Action:    writ.ActionRun,
		Role:      "dev",
		Scope:     "python",
		Run: FactsOf(writ.RunSpec{
			Language: "python", Code: "print(1)", Args: []string{"-v", "a"}, Env: map[string]string{"TZ": "UTC"},
			Inputs: []writ.Input{{Path: "data/x.csv", Content: []byte("1,2")}}, Limits: writ.DefaultLimits,
		}),
		Now: time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC),
	}
}

func bash() Request {
	r := python()
	r.Scope, r.Run.Language = "shell", "bash"
	return r
}

const (
	permitAll = `@id("all") permit (principal, action, resource);`
	holdShell = `@id("hold") @hold("look") permit (principal, action, resource in Scope::"shell");`
	denyAcme  = `@id("deny") @reason("not here") forbid (principal in Tenant::"acme", action, resource);`
	// overflows compiles and cannot be evaluated.
	overflows = `(context.code_bytes * 9223372036854775807 > 0)`
)
