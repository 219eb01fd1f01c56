package rest

import (
	"cmp"
	"context"
	_ "embed"
	"log/slog"
	"net"
	"net/http"
	"time"

	"writ"
	"writ/room"
)

// document is the OpenAPI 3.1 document of the API, which GET /openapi.yaml serves.
//
//go:embed openapi.yaml
var document []byte

// Services are the parts behind the API. All but Metrics are required.
type Services struct {
	Auth       Authenticator
	Tasks      Tasks
	Approvals  Approvals
	Workspaces Workspaces
	Inbox      Inbox
	Files      Files
	Audit      Audit
	Access     Access
	Policy     Policy
	// Metrics answers GET /metrics, to operators and the owner of the data folder alone;
	// nil means that there are none.
	Metrics http.Handler
}

// Options are what a caller may set. The zero value is good.
type Options struct {
	// Heartbeat is the time between two comments on a quiet event stream, so that
	// neither end mistakes it for a dead one. 0 means 15 seconds.
	Heartbeat time.Duration
}

// API is the HTTP API. It keeps no state between requests; one API may serve any
// number of listeners.
type API struct {
	Services
	log       *slog.Logger
	heartbeat time.Duration
	room      *room.Room[writ.Ref] // of all listeners together
}

// New is the API over s. It logs one line per request to log.
func New(log *slog.Logger, s Services, opt Options) *API {
	return &API{Services: s, log: log, heartbeat: cmp.Or(opt.Heartbeat, 15*time.Second), room: room.New[writ.Ref](roomBytes)}
}

const (
	headerTime     = 10 * time.Second // to send the headers
	bodyTime       = 2 * time.Minute  // to send the body
	idleTime       = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// TCP is a server for a TCP listener. It answers requests whose Host is a loopback
// name or one of hosts (names or addresses, without port), from pages of the same
// host or from none, and wants a bearer key. The caller serves and shuts it down;
// Shutdown also ends event streams and waits.
func (a *API) TCP(hosts ...string) *http.Server {
	return a.server(&door{api: a, hosts: hosts, guarded: true})
}

// Unix is a server for a unix socket. peer makes the principal of a connection
// from its credentials; it is called once for each connection, and its error is the
// answer to requests that bring no bearer key. Otherwise it is as TCP.
func (a *API) Unix(peer func(net.Conn) (writ.Principal, error)) *http.Server {
	srv := a.server(&door{api: a})
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		who, err := peer(c)
		return context.WithValue(ctx, peerKey{}, peerOf{who, err})
	}
	return srv
}

// peerKey is where ConnContext, the one way from a connection to its requests,
// leaves a peerOf. door.authenticate alone reads it; from there the principal is a
// parameter.
type peerKey struct{}

type peerOf struct {
	who writ.Principal
	err error
}

func (a *API) server(d *door) *http.Server {
	ctx, stop := context.WithCancel(context.Background())
	d.stopping = ctx
	d.mux = d.newMux()
	srv := &http.Server{
		Handler:           d,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
		// No ReadTimeout and no WriteTimeout: both would end event streams. The
		// deadlines of bodies and of single writes are set where they happen.
	}
	// Shutdown waits for handlers, and those of streams would wait for their tasks.
	srv.RegisterOnShutdown(stop)
	return srv
}
