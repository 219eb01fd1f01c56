package codeapi

import (
	"context"
	"io"
	"log/slog"
	"time"

	"writ"
	"writ/interpreter"
	"writ/limit"
	"writ/room"
	"writ/session"
)

// Sessions is what the API needs of package session; see there.
type Sessions interface {
	Create(ctx context.Context, p writ.Principal, e session.Entity) (writ.Session, error)
	Discard(ctx context.Context, p writ.Principal, e session.Entity, id writ.SessionID) error
	Find(ctx context.Context, p writ.Principal, e session.Entity, id writ.SessionID) (writ.Session, error)
	List(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID) ([]writ.Object, error)
	Get(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, id writ.ObjectID) (writ.Object, error)
	Put(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, f session.File) (writ.Object, error)
	Open(ctx context.Context, o writ.Object, from, n int64) (io.ReadCloser, error)
	Delete(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, id writ.ObjectID) error
}

// Auth says who sends a request.
type Auth interface {
	// User is who r speaks for; body answers user_id of the JSON body, if it has one. exec
	// tells that the request is POST /exec. Errors are *writ.Error: Invalid, Unauthenticated,
	// Denied, with the contract's words, and Unavailable and Internal; of these the message
	// is the contract's, too, when the code is writ.CodeMisconfigured.
	User(ctx context.Context, header func(name string) []string, exec bool, body func() string) (writ.Principal, error)
}

// Limits counts requests.
type Limits interface {
	// Count counts one more request of p under the rule of that name, one of package limit's.
	Count(ctx context.Context, rule string, p writ.Principal) (limit.Answer, error)
}

// Services are what the API calls. All are required.
type Services struct {
	Auth     Auth
	Limits   Limits
	Sessions Sessions
	Runs     interpreter.Runs
	// Live reports why the server cannot work, nil when it can. Its message is the "error"
	// of a 503.
	Live func(ctx context.Context) error
}

// Options are the API's settings. All but Hosts and Observe are required.
type Options struct {
	JSONBytes int64 // of a body, decoded
	// FileBytes is how many bytes a file of who's plan must stay below.
	FileBytes func(who writ.Principal) int64
	// Hosts, when it is not nil, has requests checked as a browser page could send them: the
	// Host header must be an address, localhost or one of these names, and a page of another
	// origin is refused. It is for deployments that ask for no credential, which a page
	// would not have (case CP-10).
	Hosts []string
	// Observe, when it is not nil, hears of each request when it was answered. It must not
	// block.
	Observe func(Observation)
}

// Observation is what became of a request.
type Observation struct {
	Route  string // as the contract writes it; empty where there is none
	Status int    // 0 when no answer was begun
	Took   time.Duration
}

// API is the handler of all routes. It is safe for concurrent use.
type API struct {
	log  *slog.Logger
	svc  Services
	opt  Options
	room *room.Room[caller] // of the bodies that are not small

	// In which a body of JSON, and a form, must have come; set once, tests have others.
	bodyTime, uploadTime time.Duration
}

// New makes the API.
func New(log *slog.Logger, svc Services, opt Options) *API {
	return &API{log: log, svc: svc, opt: opt, room: room.New[caller](4 * opt.JSONBytes), bodyTime: bodyTime, uploadTime: uploadTime}
}
