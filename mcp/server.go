package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
)

// versions are the revisions of the protocol that are spoken, newest first
// (spec/02 §2).
var versions = []string{stateless, "2025-11-25", "2025-06-18", "2025-03-26"}

// stateless is the first revision without sessions: each request brings what an
// older client says once, in initialize.
const stateless = "2026-07-28"

// Services are the parts behind the tools. All are required.
type Services struct {
	Workspaces Workspaces
	Processes  Processes
	Sandbox    Prober
	Works      Works
}

// Options are what a caller may set.
type Options struct {
	// Version is that of the program, as clients are told.
	Version string
	// StateKey seals what clients keep for the server between two requests: 32 random
	// bytes, the same in all servers that answer on one URL. Empty means a key of this
	// server's own.
	StateKey []byte
	// Commands is what is true of commands on this server.
	Commands Commands
}

// Commands says how commands of workspaces are run. Clients are told by workspace_info,
// which never claims more than this and what Services.Sandbox says.
type Commands struct {
	// Egress says that commands of a workspace whose network is enabled reach it, through
	// a managed proxy. Else none is started in such a workspace.
	Egress bool
	// Apart says that the runner is a service of its own: processes outlive this server,
	// which finds them again. Else they end with it, and their ids answer how.
	Apart bool
	// Dir lets exec_command choose the folder to start in. The contract has no such
	// argument.
	Dir bool
}

// Server offers the tools. One Server may serve any number of connections.
type Server struct {
	log       *slog.Logger
	ws        Workspaces
	processes Processes
	sandbox   Prober
	works     Works
	version   string
	commands  Commands
	tools     []tool
	seal      *sealer
	homes     homes

	// The SDK's side of a connection, and what is said of it. Only the conformance test,
	// which serves things that are not the product's, has others.
	capabilities *sdk.ServerCapabilities
	newSDK       func(*sdk.Implementation, *sdk.ServerOptions) *sdk.Server

	stopping context.Context // ends with Close, and with it every call
	stop     context.CancelFunc
}

// New is a server over services. It logs one line per tool call to log. It panics
// when opt.StateKey has another length than 0 or 32. The caller must call Close.
func New(log *slog.Logger, services Services, opt Options) *Server {
	key := opt.StateKey
	if len(key) == 0 {
		key = make([]byte, 32)
		rand.Read(key)
	}
	s := &Server{
		log: log, ws: services.Workspaces, processes: services.Processes, sandbox: services.Sandbox, works: services.Works,
		version: cmp.Or(opt.Version, "dev"), commands: opt.Commands,
		tools: allTools(opt.Commands), seal: newSealer(key),
		// Tools and nothing else, and the list of them does not change.
		capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		newSDK:       sdk.NewServer,
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	return s
}

// Close ends every call that is under way. Connections are the business of who
// opened them: the context of Stdio, the Close of a Handler.
func (s *Server) Close() { s.stop() }

// identify finds who sent a request.
type identify func(*sdk.RequestExtra) writ.Principal

// connect makes the SDK's side of one connection, or of all that need not be told
// apart. newID makes session ids; nil means the SDK's own. What tools answer is put on results, from
// where the connection takes them; nil means that the SDK encodes and writes them.
func (s *Server) connect(who identify, newID func() string, results *shelf) *sdk.Server {
	srv := s.newSDK(&sdk.Implementation{Name: serverName, Version: s.version}, &sdk.ServerOptions{
		Instructions:              instructions,
		SupportedProtocolVersions: versions,
		GetSessionID:              newID,
		Capabilities:              s.capabilities,
		SetCacheable:              func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
		Logger:                    slog.New(slog.DiscardHandler), // it would log what clients send
	})
	for _, t := range s.tools {
		srv.AddTool(t.listing(), func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return s.call(ctx, t, who(req.Extra), req)
		})
	}
	srv.AddReceivingMiddleware(s.receive, func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			res, err := next(ctx, method, req)
			if err != nil {
				return nil, err
			}
			return encodeOnce(res, results), nil
		}
	})
	return srv
}

const serverName = "writ"

// receive answers what the SDK would answer otherwise than we want.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch p := req.GetParams().(type) {
		case *sdk.DiscoverParams:
			// The SDK takes a probe for the start of a session, and would refuse the
			// initialize of a client that goes on with an older revision.
			return &sdk.DiscoverResult{
				Cacheable:         sdk.Cacheable{CacheScope: "private"},
				SupportedVersions: slices.Clone(versions),
				Capabilities:      s.capabilities,
				Instructions:      instructions,
			}, nil
		case *sdk.ListToolsParams:
			// The list is one page. A cursor is not ours; the SDK would decode it.
			if p != nil && p.Cursor != "" {
				return nil, invalidParams("cursor: there is no such page: leave it out")
			}
		}
		return next(ctx, method, req)
	}
}

// invalidParams is the protocol's error for a call that is not one of the tool's.
func invalidParams(msg string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: msg}
}
