package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"writ"
)

// Example is a request and the answer that is wanted: one item of the list that a
// file of examples is.
type Example struct {
	Name      string         `yaml:"name"`
	Identity  ExamplePerson  `yaml:"identity"`
	Requester *ExamplePerson `yaml:"requester"` // the identity itself when not given
	Role      string         `yaml:"role"`
	Now       string         `yaml:"now"`   // RFC 3339; 2026-01-01T12:00:00Z when not given
	Run       *ExampleRun    `yaml:"run"`   // this,
	Exec      *ExampleExec   `yaml:"exec"`  // or this,
	Input     *ExampleInput  `yaml:"input"` // or this
	Want      writ.Effect    `yaml:"want"`
	Rules     []string       `yaml:"rules"` // ids that must have decided, no more and no fewer; not looked at when not given
}

// ExamplePerson is a principal in an example.
type ExamplePerson struct {
	Kind   writ.PrincipalKind `yaml:"kind"` // agent when not given
	ID     string             `yaml:"id"`
	Tenant writ.Tenant        `yaml:"tenant"` // writ.DefaultTenant when not given
	Roles  []string           `yaml:"roles"`
	Scopes []writ.Scope       `yaml:"scopes"`
}

// ExampleRun is a run in an example. Limits that are not given are the defaults.
type ExampleRun struct {
	Language   writ.Language `yaml:"language"`
	Scope      writ.Scope    `yaml:"scope"` // that the language needs
	Code       string        `yaml:"code"`
	CodeBytes  int64         `yaml:"code_bytes"` // instead of a long code
	StdinBytes int64         `yaml:"stdin_bytes"`
	Args       []string      `yaml:"args"`
	Env        []string      `yaml:"env"`    // names
	Inputs     []string      `yaml:"inputs"` // paths
	InputBytes int64         `yaml:"input_bytes"`
	Limits     writ.Limits   `yaml:"limits"`
}

// ExampleWorkspace is what an example needs of a workspace.
type ExampleWorkspace struct {
	ID        writ.WorkspaceID  `yaml:"id"`        // "default" when not given
	Tenant    writ.Tenant       `yaml:"tenant"`    // that of the identity when not given
	Profile   writ.Profile      `yaml:"profile"`   // writ.WorkspaceWrite when not given
	Approvals writ.ApprovalMode `yaml:"approvals"` // writ.ApprovalsOff when not given
}

// ExampleExec is a command in an example: the argv as a tool gets it.
type ExampleExec struct {
	Workspace ExampleWorkspace `yaml:"workspace"`
	Command   []string         `yaml:"command"`
	TTY       bool             `yaml:"tty"`
}

// ExampleInput is a write to a process in an example.
type ExampleInput struct {
	Workspace ExampleWorkspace `yaml:"workspace"`
	Program   string           `yaml:"program"` // that runs
	TTY       bool             `yaml:"tty"`
	Bytes     int64            `yaml:"bytes"`
}

// ExampleResult is how one example came out.
type ExampleResult struct {
	File  string        `json:"file"`
	Name  string        `json:"name"`
	OK    bool          `json:"ok"`
	Want  writ.Effect   `json:"want"`
	Got   writ.Decision `json:"got"`
	Fault string        `json:"fault,omitempty"` // what differs, in words
}

// Check decides every example of files, YAML or JSON, and compares. The results
// are in the order of the files. A file that cannot be read as examples is an
// error of kind Invalid with its place; an answer that differs is a result that is
// not OK. An example whose identity lacks the scope that it needs is not OK unless it
// wants a deny, since such a request never gets as far as policy.
func (s *Set) Check(files []File) ([]ExampleResult, error) {
	var results []ExampleResult
	for _, f := range files {
		examples, err := parseExamples(f)
		if err != nil {
			return nil, err
		}
		for i, e := range examples {
			r, err := e.request()
			if err != nil {
				return nil, invalid("%s: example %d (%q): %v", f.Name, i+1, e.Name, err)
			}
			results = append(results, s.compare(f.Name, e, r))
		}
	}
	return results, nil
}

func parseExamples(f File) ([]Example, error) {
	if len(f.Content) > MaxFileBytes {
		return nil, invalid("%s: the file has %d bytes, the most is %d: split it", f.Name, len(f.Content), MaxFileBytes)
	}
	dec := yaml.NewDecoder(bytes.NewReader(f.Content), yaml.Strict())
	var list []Example
	switch err := dec.Decode(&list); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, invalid("%s: %s", f.Name, yamlFault(err))
	default:
		var more any
		if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
			return nil, invalid(`%s: there is a second document after "---": put all examples into one list`, f.Name)
		}
	}
	if len(list) == 0 {
		return nil, invalid("%s: there is no example in it: write one or remove the file", f.Name)
	}
	return list, nil
}

// yamlFault is err on one line, with its place.
func yamlFault(err error) string {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		p := at.GetToken().Position
		return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, at.GetMessage())
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

func (p ExamplePerson) principal() writ.Principal {
	return writ.Principal{
		Kind: cmp.Or(p.Kind, writ.KindAgent), ID: p.ID, Tenant: cmp.Or(p.Tenant, writ.DefaultTenant),
		Roles: p.Roles, Scopes: p.Scopes,
	}
}

// request is the question of e, or every fault of e.
func (e Example) request() (Request, error) {
	var errs []error
	need := func(what, v string) {
		if v == "" {
			errs = append(errs, fmt.Errorf("%s is missing", what))
		}
	}
	need("name", e.Name)
	need("identity.id", e.Identity.ID)
	if !slices.Contains([]writ.Effect{writ.Allow, writ.Hold, writ.Deny}, e.Want) {
		errs = append(errs, fmt.Errorf("want is %q: it must be allow, hold or deny", e.Want))
	}
	r := Request{
		Principal: e.Identity.principal(),
		Role:      e.Role,
		Now:       time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
	}
	r.Requester = r.Principal
	if e.Requester != nil {
		need("requester.id", e.Requester.ID)
		r.Requester = e.Requester.principal()
	}
	for _, p := range []writ.Principal{r.Principal, r.Requester} {
		if principalType(p.Kind) == "" {
			errs = append(errs, fmt.Errorf("there is no principal kind %q", p.Kind))
		}
	}
	if e.Now != "" {
		now, err := time.Parse(time.RFC3339, e.Now)
		if err != nil {
			errs = append(errs, fmt.Errorf("now is %q: it must be like 2026-01-31T15:04:05Z", e.Now))
		}
		r.Now = now
	}
	switch {
	case e.Run != nil && e.Exec == nil && e.Input == nil:
		need("run.language", string(e.Run.Language))
		need("run.scope", string(e.Run.Scope))
		e.Run.ask(&r)
	case e.Exec != nil && e.Run == nil && e.Input == nil:
		if err := e.Exec.command().Validate(); err != nil {
			errs = append(errs, fmt.Errorf("exec: %w", err))
		}
		r.Action, r.Scope, r.Workspace = writ.ActionExec, writ.ScopeExec, e.Exec.Workspace.facts(r.Principal)
	case e.Input != nil && e.Run == nil && e.Exec == nil:
		need("input.program", e.Input.Program)
		r.Action, r.Scope, r.Workspace = writ.ActionInput, writ.ScopeExec, e.Input.Workspace.facts(r.Principal)
		r.Command.Program, r.Line.TTY, r.InputBytes = e.Input.Program, e.Input.TTY, e.Input.Bytes
	default:
		errs = append(errs, errors.New("want one of run, exec and input"))
	}
	return r, errors.Join(errs...)
}

// ask makes r the question about the run.
func (x ExampleRun) ask(r *Request) {
	r.Action, r.Scope = writ.ActionRun, x.Scope
	r.Run = RunFacts{
		Language: x.Language, CodeDigest: writ.DigestOf([]byte(x.Code)),
		CodeBytes: cmp.Or(x.CodeBytes, int64(len(x.Code))), StdinBytes: x.StdinBytes,
		Args: x.Args, Env: x.Env, Inputs: x.Inputs, InputBytes: x.InputBytes,
	}
	r.Run.Limits, _ = x.Limits.Within(writ.DefaultLimits, writ.MaxLimits)
}

func (w ExampleWorkspace) facts(p writ.Principal) WorkspaceFacts {
	return WorkspaceFacts{Workspace: writ.Workspace{
		ID: cmp.Or(w.ID, "default"), Tenant: cmp.Or(w.Tenant, p.Tenant),
		Profile: cmp.Or(w.Profile, writ.WorkspaceWrite), Approvals: cmp.Or(w.Approvals, writ.ApprovalsOff),
	}}
}

func (x ExampleExec) command() writ.CommandRequest {
	return writ.CommandRequest{Workspace: cmp.Or(x.Workspace.ID, "default"), Command: x.Command, TTY: x.TTY}
}

// decideExample answers r, the question of e.
func (s *Set) decideExample(e Example, r Request) writ.Decision {
	if e.Exec == nil {
		return s.Decide(r)
	}
	line, commands := CommandFactsOf(e.Exec.command())
	r.Line = line
	return s.DecideCommand(r, commands)
}

func (s *Set) compare(file string, e Example, r Request) ExampleResult {
	res := ExampleResult{File: file, Name: e.Name, Want: e.Want, Got: s.decideExample(e, r)}
	var ids []string
	for _, rule := range res.Got.Rules {
		ids = append(ids, rule.ID)
	}
	sorted := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	switch {
	case !r.Principal.Has(r.Scope) && e.Want != writ.Deny:
		res.Fault = fmt.Sprintf("the identity lacks the scope %q, so that it is denied before policy is asked: add it to identity.scopes", r.Scope)
	case res.Got.Effect != e.Want:
		res.Fault = fmt.Sprintf("want %s, got %s: %s", e.Want, res.Got.Effect, res.Got.Reason)
	case e.Rules != nil && !slices.Equal(sorted(e.Rules), sorted(ids)):
		res.Fault = fmt.Sprintf("want the rules [%s], got [%s]", strings.Join(e.Rules, ", "), strings.Join(ids, ", "))
	default:
		res.OK = true
	}
	return res
}
