//lint:file-ignore SA1019 the suite also asks for what the protocol has deprecated

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ/mcp"
)

// fixtures are what the conformance suite expects of a server under test, by the names
// and texts that it looks for. Those that ask the client are in fixtures_ask_test.go.
type fixtures struct{ server *mcp.Server }

// extend has s offer the fixtures beside its own tools.
func (f fixtures) extend() {
	caps := &sdk.ServerCapabilities{
		Tools:       &sdk.ToolCapabilities{ListChanged: true},
		Prompts:     &sdk.PromptCapabilities{ListChanged: true},
		Resources:   &sdk.ResourceCapabilities{ListChanged: true, Subscribe: true},
		Completions: &sdk.CompletionCapabilities{},
		Logging:     &sdk.LoggingCapabilities{},
	}
	f.server.Extend(caps, func(opt *sdk.ServerOptions) {
		opt.CompletionHandler = func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}, nil
		}
		opt.SubscribeHandler = func(context.Context, *sdk.SubscribeRequest) error { return nil }
		opt.UnsubscribeHandler = func(context.Context, *sdk.UnsubscribeRequest) error { return nil }
	}, func(srv *sdk.Server) {
		f.tools(srv)
		f.askingTools(srv)
		f.resources(srv)
		f.prompts(srv)
	})
}

func (f fixtures) tools(srv *sdk.Server) {
	image := &sdk.ImageContent{Data: []byte(png), MIMEType: "image/png"}
	answer := func(content ...sdk.Content) sdk.ToolHandler {
		return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: content}, nil
		}
	}
	// The suite also calls the first of the list without arguments, as it sorts.
	addTool(srv, "_first", answer(text("done")))
	addTool(srv, "test_simple_text", answer(text("This is a simple text response for testing.")))
	addTool(srv, "test_image_content", answer(image))
	addTool(srv, "test_audio_content", answer(&sdk.AudioContent{Data: []byte(wav), MIMEType: "audio/wav"}))
	addTool(srv, "test_embedded_resource", answer(embedded("test://embedded-resource", "This is an embedded resource")))
	addTool(srv, "test_multiple_content_types", answer(text("Several kinds of content:"), image, embedded("test://embedded-in-multiple", "A resource")))
	addTool(srv, "test_reconnection", answer(text("done")))
	addTool(srv, "test_streaming_elicitation", answer(text("done")))
	addTool(srv, "test_error_handling", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{text("This tool intentionally returns an error for testing")}}, nil
	})
	addTool(srv, "test_tool_with_logging", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for _, said := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if err := req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: said}); err != nil {
				return nil, err
			}
		}
		return result("done"), nil
	})
	// The SDK lets nothing of this out to a client that did not ask for it.
	addTool(srv, "test_logging_tool", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return result("done"), req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: "called"})
	})
	addTool(srv, "test_tool_with_progress", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		token := req.Params.GetProgressToken()
		for _, done := range []float64{0, 50, 100} {
			if err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
				return nil, err
			}
		}
		return result(fmt.Sprint(token)), nil
	})
	addTool(srv, "test_missing_capability", func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if caps := req.ClientCapabilities(); caps != nil && caps.Sampling != nil {
			return result("done"), nil
		}
		data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{RequiredCapabilities: &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}}})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "this tool samples", Data: data}
	})
	// Adding one anew is a change of the list that clients are told of.
	addTool(srv, "test_trigger_tool_change", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		addTool(srv, "test_added_later", answer(text("done")))
		return result("done"), nil
	})
	addTool(srv, "test_trigger_prompt_change", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		srv.AddPrompt(&sdk.Prompt{Name: "test_added_later", Description: forSuite}, prompt(text("done")))
		return result("done"), nil
	})
	srv.AddTool(&sdk.Tool{Name: "json_schema_2020_12_tool", Description: forSuite, InputSchema: json.RawMessage(richSchema)}, answer(text("done")))
	srv.AddTool(&sdk.Tool{Name: "test_x_mcp_header", Description: forSuite, InputSchema: json.RawMessage(`{"type": "object", "properties": {
		"region": {"type": "string", "x-mcp-header": "Region"}, "level": {"type": "integer"}}}`)}, answer(text("done")))
}

func (fixtures) resources(srv *sdk.Server) {
	read := func(mime, said string, blob []byte) sdk.ResourceHandler {
		return func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: mime, Text: said, Blob: blob}}}, nil
		}
	}
	srv.AddResource(&sdk.Resource{Name: "static-text", URI: "test://static-text", MIMEType: "text/plain"}, read("text/plain", "This is the content of the static text resource.", nil))
	srv.AddResource(&sdk.Resource{Name: "static-binary", URI: "test://static-binary", MIMEType: "image/png"}, read("image/png", "", []byte(png)))
	srv.AddResource(&sdk.Resource{Name: "watched-resource", URI: "test://watched-resource", MIMEType: "text/plain"}, read("text/plain", "Watched resource content", nil))
	srv.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"},
		func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
			return read("application/json", fmt.Sprintf(`{"id": %q, "templateTest": true, "data": "Data for ID: %s"}`, id, id), nil)(ctx, req)
		})
}

func (fixtures) prompts(srv *sdk.Server) {
	srv.AddPrompt(&sdk.Prompt{Name: "test_simple_prompt", Description: forSuite}, prompt(text("This is a simple prompt for testing.")))
	srv.AddPrompt(&sdk.Prompt{Name: "test_prompt_with_image", Description: forSuite}, prompt(&sdk.ImageContent{Data: []byte(png), MIMEType: "image/png"}, text("Please analyze the image above.")))
	srv.AddPrompt(&sdk.Prompt{Name: "test_prompt_with_arguments", Description: forSuite, Arguments: []*sdk.PromptArgument{
		{Name: "arg1", Description: "First", Required: true}, {Name: "arg2", Description: "Second", Required: true},
	}}, func(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		args := req.Params.Arguments
		return prompt(text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])))(ctx, req)
	})
	srv.AddPrompt(&sdk.Prompt{Name: "test_prompt_with_embedded_resource", Description: forSuite, Arguments: []*sdk.PromptArgument{
		{Name: "resourceUri", Description: "What to embed", Required: true},
	}}, func(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return prompt(embedded(req.Params.Arguments["resourceUri"], "A resource"), text("Please process the resource above."))(ctx, req)
	})
	srv.AddPrompt(&sdk.Prompt{Name: "test_input_required_result_prompt", Description: forSuite}, func(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		answer, ok := accepted(req.Params.InputResponses, "user_context")
		if !ok {
			return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": form("What is it about?", "context", "string")}}, nil
		}
		return prompt(text(fmt.Sprintf("Context: %s", answer["context"])))(ctx, req)
	})
}

func addTool(srv *sdk.Server, name string, h sdk.ToolHandler) {
	srv.AddTool(&sdk.Tool{Name: name, Description: forSuite, InputSchema: json.RawMessage(`{"type": "object"}`)}, h)
}

const forSuite = "For the conformance suite."

func text(s string) *sdk.TextContent { return &sdk.TextContent{Text: s} }

func result(said string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{text(said)}}
}

func embedded(uri, said string) *sdk.EmbeddedResource {
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: said}}
}

// prompt is the prompt in which the user says these.
func prompt(content ...sdk.Content) sdk.PromptHandler {
	return func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		res := &sdk.GetPromptResult{}
		for _, c := range content {
			res.Messages = append(res.Messages, &sdk.PromptMessage{Role: "user", Content: c})
		}
		return res, nil
	}
}

var errNoAnswer = errors.New("the client answered with something else than it was asked for")

// One red pixel, and a moment of silence.
const (
	png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde" +
		"\x00\x00\x00\x0cIDATx\xdac\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xf7\x03A\x43\x00\x00\x00\x00IEND\xaeB`\x82"
	wav = "RIFF&\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00\x80>\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00"
)

// richSchema has the words of JSON Schema 2020-12 that a list of tools must not lose.
const richSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`
