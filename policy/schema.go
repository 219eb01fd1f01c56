package policy

import (
	_ "embed"
	"fmt"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"

	"writ"
)

// The entity types of schema.cedarschema.
const (
	typeTenant    types.EntityType = "Tenant"
	typeRole      types.EntityType = "Role"
	typeScope     types.EntityType = "Scope"
	typeLanguage  types.EntityType = "Language"
	typeWorkspace types.EntityType = "Workspace"
	typeAction    types.EntityType = "Action"
)

// principalType is the entity type of a principal of kind k, or "".
func principalType(k writ.PrincipalKind) types.EntityType {
	switch k {
	case writ.KindAgent:
		return "Identity"
	case writ.KindAgentRun:
		return "AgentRun"
	case writ.KindUser:
		return "User"
	case writ.KindOperator:
		return "Operator"
	case writ.KindLocal:
		return "Local"
	}
	return ""
}

//go:embed schema.cedarschema
var schemaText []byte

// Schema is the text of the schema that rules are checked against.
func Schema() string { return string(schemaText) }

// checker knows the schema.
type checker struct {
	schema    *resolved.Schema
	validator *validate.Validator
	// attributes of what a variable can stand for. All principals have the same, and
	// all contexts. What a resource lacks of them is for the validator to say.
	variables map[types.String]resolved.RecordType
}

func newChecker() (*checker, error) {
	var s schema.Schema
	s.SetFilename("schema.cedarschema")
	if err := s.UnmarshalCedar(schemaText); err != nil {
		return nil, fmt.Errorf("read policy schema: %w", err)
	}
	r, err := s.Resolve()
	if err != nil {
		return nil, fmt.Errorf("resolve policy schema: %w", err)
	}
	run := r.Actions[types.NewEntityUID(typeAction, types.String(writ.ActionRun))]
	if run.AppliesTo == nil {
		return nil, fmt.Errorf("policy schema: no action %q", writ.ActionRun)
	}
	return &checker{
		schema:    r,
		validator: validate.New(r),
		variables: map[types.String]resolved.RecordType{
			"context":   run.AppliesTo.Context, // as that of every action
			"principal": r.Entities[principalType(writ.KindAgent)].Shape,
			"resource":  r.Entities[typeWorkspace].Shape, // a Language has none
			"action":    {},
		},
	}, nil
}

// attributes are those of n, when n is a variable or an attribute of one, with n's
// name. ok is false for everything else.
func (c *checker) attributes(n ast.IsNode) (path string, attrs resolved.RecordType, ok bool) {
	switch n := n.(type) {
	case ast.NodeTypeVariable:
		return string(n.Name), c.variables[n.Name], true
	case ast.NodeTypeAccess:
		path, attrs, ok := c.attributes(n.Arg)
		if !ok {
			return "", nil, false
		}
		a, known := attrs[n.Value]
		if !known {
			return "", nil, false // told of n itself
		}
		rec, _ := a.Type.(resolved.RecordType) // nil for what has no attributes
		return path + "." + string(n.Value), rec, true
	}
	return "", nil, false
}
