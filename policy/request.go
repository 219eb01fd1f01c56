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
	// Line and Command are of ActionExec. Of ActionInput, Line.TTY and Command.Program
	// are those of the process that is written to.
	Line       LineFacts
	Command    CommandFacts
	InputBytes int64 // that ActionInput writes
	Now        time.Time
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
	for _, in := range s.Files {
		f.Inputs = append(f.Inputs, in.Path)
		f.InputBytes += in.Size
	}
	return f
}

// question is a request in Cedar's terms.
type question struct {
	cedar.Request
	entities
	command CommandFacts // of ActionExec
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
	q := question{
		Request: cedar.Request{
			Principal: e.principal.UID,
			Action:    uid(typeAction, r.Action),
			Resource:  e.resource.UID,
			Context:   newContext(r),
		},
		entities: e,
	}
	if r.Action == writ.ActionExec {
		q.command = r.Command
	}
	return q, nil
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
	addCommand(c, r)
	return cedar.NewRecord(c)
}

func addCommand(c cedar.RecordMap, r Request) {
	switch r.Action { // names that runs have too
	case writ.ActionExec:
		c["args"], c["arg_count"] = set(r.Command.Args), cedar.Long(len(r.Command.Args))
	case writ.ActionInput:
		c["input_bytes"] = cedar.Long(r.InputBytes)
	}
	first := ""
	if len(r.Command.Args) > 0 {
		first = r.Command.Args[0]
	}
	c["program"], c["program_path"] = cedar.String(r.Command.Program), cedar.String(r.Command.Path)
	c["first_arg"], c["args_known"] = cedar.String(first), cedar.Boolean(!r.Command.ArgsUnknown)
	c["opaque"] = cedar.Boolean(len(r.Command.Opaque) > 0 || r.Command.Unreadable)
	c["opaque_why"] = set(r.Command.Opaque)
	c["programs"], c["redirect_writes"] = set(r.Line.Programs), set(r.Line.Writes)
	c["tty"], c["command_digest"] = cedar.Boolean(r.Line.TTY), cedar.String(r.Line.Digest)
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
