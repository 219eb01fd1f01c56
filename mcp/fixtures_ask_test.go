//lint:file-ignore SA1019 the suite also asks for what the protocol has deprecated

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// askingTools are those that need something of the client: in an open call, as clients
// with a session are asked, and as results that say what is needed.
func (f fixtures) askingTools(srv *sdk.Server) {
	addTool(srv, "test_sampling", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args struct{ Prompt string }
		if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
			return nil, err
		}
		res, err := req.Session.CreateMessage(ctx, sample(args.Prompt))
		if err != nil {
			return nil, err
		}
		said, ok := res.Content.(*sdk.TextContent)
		if !ok {
			return nil, errNoAnswer
		}
		return result("LLM response: " + said.Text), nil
	})
	for name, schema := range elicitations {
		addTool(srv, name, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			res, err := req.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Please fill in", RequestedSchema: json.RawMessage(schema)})
			if err != nil {
				return nil, err
			}
			return result(fmt.Sprintf("Elicitation result: action=%s, content=%v", res.Action, res.Content)), nil
		})
	}

	ask := func(name string, h func(*sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		addTool(srv, "test_input_required_result_"+name, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return h(req) })
	}
	ask("elicitation", func(req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, _ := accepted(req.Params.InputResponses, "user_name")
		if name, _ := answer["name"].(string); name != "" {
			return result("Hello, " + name + "!"), nil
		}
		return needs(sdk.InputRequestMap{"user_name": askName()}), nil
	})
	ask("sampling", func(req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if said, ok := sampled(req.Params.InputResponses, "capital_question"); ok {
			return result("Sampling response: " + said), nil
		}
		return needs(sdk.InputRequestMap{"capital_question": sample("What is the capital of France?")}), nil
	})
	ask("list_roots", func(req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if roots, ok := req.Params.InputResponses["client_roots"].(*sdk.ListRootsResult); ok {
			return result(fmt.Sprintf("%d roots", len(roots.Roots))), nil
		}
		return needs(sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}}), nil
	})
	ask("multiple_inputs", func(req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		in := req.Params.InputResponses
		answer, named := accepted(in, "user_name")
		said, greeted := sampled(in, "greeting")
		roots, rooted := in["client_roots"].(*sdk.ListRootsResult)
		if named && greeted && rooted {
			return result(fmt.Sprintf("%s, %v: %d roots", said, answer["name"], len(roots.Roots))), nil
		}
		res := needs(sdk.InputRequestMap{"user_name": askName(), "greeting": sample("Greet somebody"), "client_roots": &sdk.ListRootsParams{}})
		res.RequestState = f.server.SealState("asked")
		return res, nil
	})
	ask("capabilities", func(req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		caps, in := req.ClientCapabilities(), sdk.InputRequestMap{}
		switch {
		case len(req.Params.InputResponses) > 0 || caps == nil:
			return result("done"), nil
		case caps.Elicitation != nil:
			in["user_name"] = askName()
		}
		if caps.Sampling != nil {
			in["greeting"] = sample("Greet somebody")
		}
		if caps.RootsV2 != nil {
			in["client_roots"] = &sdk.ListRootsParams{}
		}
		if len(in) == 0 {
			return result("This client cannot be asked"), nil
		}
		return needs(in), nil
	})

	// These keep the state of a request as the product does.
	confirm := func(req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if sealed := req.Params.RequestState; sealed != "" {
			if _, err := f.server.OpenState(sealed); err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
			}
			if _, ok := accepted(req.Params.InputResponses, "confirm"); ok {
				return result("state-ok"), nil
			}
		}
		res := needs(sdk.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")})
		res.RequestState = f.server.SealState("confirm")
		return res, nil
	}
	ask("request_state", confirm)
	ask("tampered_state", confirm)
	ask("multi_round", func(req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		round := ""
		if sealed := req.Params.RequestState; sealed != "" {
			var err error
			if round, err = f.server.OpenState(sealed); err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
			}
		}
		var res *sdk.CallToolResult
		switch round {
		case "":
			res = needs(sdk.InputRequestMap{"step1": askName()})
			res.RequestState = f.server.SealState("named")
		case "named":
			res = needs(sdk.InputRequestMap{"step2": form("What colour?", "color", "string")})
			res.RequestState = f.server.SealState("coloured")
		default:
			answer, _ := accepted(req.Params.InputResponses, "step2")
			res = result(fmt.Sprintf("You like %v", answer["color"]))
		}
		return res, nil
	})
}

func needs(in sdk.InputRequestMap) *sdk.CallToolResult { return &sdk.CallToolResult{InputRequests: in} }

func askName() *sdk.ElicitParams { return form("What is your name?", "name", "string") }

// form asks for one required value.
func form(message, name, kind string) *sdk.ElicitParams {
	schema := fmt.Sprintf(`{"type": "object", "properties": {%q: {"type": %q}}, "required": [%q]}`, name, kind, name)
	return &sdk.ElicitParams{Message: message, RequestedSchema: json.RawMessage(schema)}
}

func sample(said string) *sdk.CreateMessageParams {
	return &sdk.CreateMessageParams{MaxTokens: 100, Messages: []*sdk.SamplingMessage{{Role: "user", Content: text(said)}}}
}

// accepted is the form that the user filled in and sent.
func accepted(in sdk.InputResponseMap, name string) (map[string]any, bool) {
	res, ok := in[name].(*sdk.ElicitResult)
	if !ok || res.Action != "accept" {
		return nil, false
	}
	return res.Content, true
}

// sampled is the text that the client's model said.
func sampled(in sdk.InputResponseMap, name string) (string, bool) {
	res, ok := in[name].(*sdk.CreateMessageWithToolsResult)
	if !ok || len(res.Content) == 0 {
		return "", false
	}
	said, ok := res.Content[0].(*sdk.TextContent)
	if !ok {
		return "", false
	}
	return said.Text, true
}

// elicitations are tools that ask for what their schema says.
var elicitations = map[string]string{
	"test_elicitation": `{"type": "object", "properties": {"username": {"type": "string", "description": "Your name"}}, "required": ["username"]}`,
	"test_elicitation_sep1034_defaults": `{"type": "object", "properties": {
		"name": {"type": "string", "default": "John Doe"},
		"age": {"type": "integer", "default": 30},
		"score": {"type": "number", "default": 95.5},
		"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
		"verified": {"type": "boolean", "default": true}}}`,
	"test_elicitation_sep1330_enums": `{"type": "object", "properties": {
		"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
		"titledSingle": {"type": "string", "oneOf": [
			{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
		"untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
		"titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": [
			{"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}]}}}}`,
}
