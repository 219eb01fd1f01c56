package policy

import (
	"fmt"
	"maps"
	"slices"
	"time"

	cedar "github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"writ"
)

// Request is one question to policy. Its names come from an agent and mean nothing
// but themselves.
type Request struct {
	Principal writ.Principal // who the run is for, with tenant, roles and scopes
	Requester writ.Principal // who sent the request
	Action    writ.Action
	Role      string         // that the request was made in; empty when it named none
	Scope     writ.Scope     // that the language, or the action, needs
	Run       RunFacts       // of ActionRun
	Workspace WorkspaceFacts // of all other actions
	Now       time.Time
}

// RunFacts are what policy may know of a run.
type RunFacts struct {
	Language   writ.Language // as in lang's table, not an alias
	CodeDigest writ.Digest
	CodeBytes  int64
	StdinBytes int64
	Args       []string
	Env        []string // names
	Inputs     []string // paths
	InputBytes int64    // all together
	Limits     writ.Limits
}

// WorkspaceFacts are what policy may know of work on a workspace.
type WorkspaceFacts struct {
	writ.Workspace
	Paths []string // that the request names
}

// FactsOf are the facts of an admitted spec: its language is the table's name and
// its limits are all set.
func FactsOf(s writ.RunSpec) RunFacts {
	f := RunFacts{
		Language:   s.Language,
		CodeDigest: writ.DigestOf([]byte(s.Code)),
		CodeBytes:  int64(len(s.Code)),
		StdinBytes: int64(len(s.Stdin)),
		Args:       s.Args,
		Env:        slices.Sorted(maps.Keys(s.Env)),
		Limits:     s.Limits,
	}
	for _, in := range s.Inputs {
		f.Inputs = append(f.Inputs, in.Path)
		f.InputBytes += int64(len(in.Content))
	}
	return f
}

// question is a request in Cedar's terms.
type question struct {
	cedar.Request
	entities
}

// entities are the two things of a request that have attributes or parents.
type entities struct{ principal, resource cedar.Entity }

// Get answers Cedar.
func (e entities) Get(uid cedar.EntityUID) (cedar.Entity, bool) {
	switch uid {
	case e.principal.UID:
		return e.principal, true
	case e.resource.UID:
		return e.resource, true
	}
	return cedar.Entity{}, false
}

func newQuestion(r Request) (question, error) {
	kind := principalType(r.Principal.Kind)
	if kind == "" {
		return question{}, fmt.Errorf("policy does not know the principal kind %q", r.Principal.Kind)
	}
	parents := []cedar.EntityUID{uid(typeTenant, r.Principal.Tenant)}
	for _, role := range r.Principal.Roles {
		parents = append(parents, uid(typeRole, role))
	}
	e := entities{
		resource: resourceOf(r),
		principal: cedar.Entity{
			UID:     uid(kind, r.Principal.ID),
			Parents: cedar.NewEntityUIDSet(parents...),
			Attributes: cedar.NewRecord(cedar.RecordMap{
				"id":     cedar.String(r.Principal.ID),
				"tenant": cedar.String(r.Principal.Tenant),
			}),
		},
	}
	return question{
		Request: cedar.Request{
			Principal: e.principal.UID,
			Action:    uid(typeAction, r.Action),
			Resource:  e.resource.UID,
			Context:   newContext(r),
		},
		entities: e,
	}, nil
}

func resourceOf(r Request) cedar.Entity {
	if r.Action == writ.ActionRun {
		return cedar.Entity{
			UID:     uid(typeLanguage, r.Run.Language),
			Parents: cedar.NewEntityUIDSet(uid(typeScope, r.Scope)),
		}
	}
	return cedar.Entity{
		UID:     uid(typeWorkspace, r.Workspace.ID),
		Parents: cedar.NewEntityUIDSet(uid(typeTenant, r.Workspace.Tenant)),
		Attributes: cedar.NewRecord(cedar.RecordMap{
			"id":     cedar.String(r.Workspace.ID),
			"tenant": cedar.String(r.Workspace.Tenant),
		}),
	}
}

// newContext has every attribute of the schema, so that no condition can fail for
// want of one.
func newContext(r Request) cedar.Record {
	c := cedar.RecordMap{
		"now": cedar.NewDatetime(r.Now),
		"requester": cedar.NewRecord(cedar.RecordMap{
			"kind":   cedar.String(r.Requester.Kind),
			"id":     cedar.String(r.Requester.ID),
			"tenant": cedar.String(r.Requester.Tenant),
		}),
		"role":   cedar.String(r.Role),
		"scopes": set(r.Principal.Scopes),
		"scope":  cedar.String(r.Scope),
	}
	addRun(c, r.Run)
	w := r.Workspace
	c["workspace"], c["profile"], c["approvals"] = cedar.String(w.ID), cedar.String(w.Profile), cedar.String(w.Approvals)
	c["paths"], c["path_count"] = set(w.Paths), cedar.Long(len(w.Paths))
	return cedar.NewRecord(c)
}

func addRun(c cedar.RecordMap, r RunFacts) {
	limits := make(cedar.RecordMap, 10)
	for _, f := range r.Limits.Fields() {
		limits[types.String(f.Name)] = cedar.Long(*f.Value)
	}
	c["language"] = cedar.String(r.Language)
	c["code_digest"], c["code_bytes"] = cedar.String(r.CodeDigest), cedar.Long(r.CodeBytes)
	c["stdin_bytes"] = cedar.Long(r.StdinBytes)
	c["args"], c["arg_count"] = set(r.Args), cedar.Long(len(r.Args))
	c["env"] = set(r.Env)
	c["inputs"], c["input_count"], c["input_bytes"] = set(r.Inputs), cedar.Long(len(r.Inputs)), cedar.Long(r.InputBytes)
	c["limits"] = cedar.NewRecord(limits)
}

func uid[S ~string](t types.EntityType, id S) cedar.EntityUID {
	return cedar.NewEntityUID(t, cedar.String(id))
}

func set[S ~string](list []S) cedar.Set {
	values := make([]cedar.Value, len(list))
	for i, s := range list {
		values[i] = cedar.String(s)
	}
	return cedar.NewSet(values...)
}
