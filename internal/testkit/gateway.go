package testkit

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/admin"
	"writ/audit"
	"writ/gateway"
	"writ/policy"
	"writ/store"
	"writ/task"
)

// GatewayPolicy is the policy of a System that asks for no other: python is allowed,
// shell is held, node is forbidden to tenant acme.
const GatewayPolicy = `@id("allow-python")
permit (principal, action, resource in Scope::"python");

@id("hold-shell")
@hold("a person looks at shell")
permit (principal, action, resource in Scope::"shell");

@id("no-node")
@reason("acme runs no node")
forbid (principal in Tenant::"acme", action, resource in Scope::"node");
`

// GatewaySetup is what a System is made of.
type GatewaySetup struct {
	URL       string // of the store; empty means SQLite in a temporary folder
	Policy    string // one file of Cedar
	Options   gateway.Options
	Operators []writ.Operator
	Jobs      bool            // work the store's jobs, as a server does
	Changed   func(writ.Task) // called after the hub, if not nil
	LogKey    writ.Secret     // private, of the audit log; empty means a new one
	State     string          // of a Workshop's files; empty means a temporary folder
	Processes writ.Limits     // of each process of a Workshop; zero means DefaultLimits
	Live      int             // processes of a Workshop at one time; 0 means what a runner has
	Apart     bool            // a Workshop's processes outlive its restarts, as those of a runner that is a service of its own
}

// observer is a hub and what a test hangs on it.
type observer struct {
	*task.Hub
	changed func(writ.Task)
}

// Changed tells both.
func (o observer) Changed(t writ.Task) {
	o.Hub.Changed(t)
	if o.changed != nil {
		o.changed(t)
	}
}

// System is a gateway on a real store and log, with a runner that a test scripts
// and the services that stand on it.
type System struct {
	*gateway.Gateway
	Setup  GatewaySetup
	DB     *store.DB
	Log    *audit.Log
	Hub    *task.Hub
	Tasks  *task.Service
	Admin  *admin.Service
	Runner *ScriptedRunner
	Slog   *LogText

	t     testing.TB
	file  string // of the SQLite store; empty for another
	stop  func() // nil once the gateway is stopped
	ended bool
}

// Gateway starts a System, changed by adjust. When t ends it is closed and its log
// verified. It knows the identities coder (tenant acme, role dev, scopes python,
// shell and node), idle (acme, no scopes) and guest (globex, python and shell), and
// the operators ann and bob of acme and eve of globex.
func Gateway(t testing.TB, adjust ...func(*GatewaySetup)) *System {
	t.Helper()
	setup := GatewaySetup{
		Policy: GatewayPolicy,
		Options: gateway.Options{
			Owner: "gw_test", Defaults: writ.DefaultLimits, Max: writ.MaxLimits,
			ApprovalTTL: time.Hour, Slots: 4, Backlog: 256, Share: 260, Held: 1000,
			Identities: []writ.Identity{
				{ID: "coder", Tenant: "acme", Roles: []string{"dev"}, Scopes: []writ.Scope{"python", "shell", "node"}},
				{ID: "idle", Tenant: "acme"},
				{ID: "guest", Tenant: "globex", Scopes: []writ.Scope{"python", "shell"}},
			},
		},
		Operators: []writ.Operator{{ID: "ann", Tenant: "acme"}, {ID: "bob", Tenant: "acme"}, {ID: "eve", Tenant: "globex"}},
	}
	for _, a := range adjust {
		a(&setup)
	}
	s := &System{Setup: setup, Log: openLog(t, setup.LogKey), Runner: &ScriptedRunner{}, Slog: &LogText{}, t: t}
	if setup.URL == "" {
		s.file = filepath.Join(t.TempDir(), "writ.db")
		s.Setup.URL = "sqlite:" + s.file
		empty, err := emptyStore()
		if err == nil {
			err = os.WriteFile(s.file, empty, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.open()
	update(t, s.DB, func(ctx context.Context, tx *store.Tx) error {
		for _, o := range setup.Operators {
			o.Created = writ.Now()
			if err := tx.InsertOperator(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
	s.sweepAndWork()
	return s
}

// emptyStore is the file of a store without rows, made once for all tests of a
// process: migrating takes longer than most of them.
var emptyStore = sync.OnceValues(func() (b []byte, err error) {
	dir, err := os.MkdirTemp("", "writ-store-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "writ.db")
	db, err := store.Open(context.Background(), "sqlite:"+file, store.Options{})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

func (s *System) open() {
	s.t.Helper()
	s.DB = OpenStore(s.t, s.Setup.URL)
	s.wire(CompilePolicy(s.t, s.Setup.Policy))
	s.t.Cleanup(s.End)
}

// End stops the gateway, verifies the log and closes the store. It is called when t
// ends, if not before.
func (s *System) End() {
	s.t.Helper()
	s.Stop()
	if s.ended {
		return
	}
	s.ended = true
	if r := verify(s.t, s.DB, s.Log); !r.OK {
		s.t.Errorf("the audit log does not verify: %+v", r.Faults)
	}
	if err := s.DB.Close(); err != nil {
		s.t.Error(err)
	}
}

func (s *System) wire(rules *policy.Set) {
	s.Hub = &task.Hub{}
	logger := slog.New(slog.NewJSONHandler(s.Slog, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.Gateway = gateway.New(s.DB, s.Runner, s.Log, rules, observer{s.Hub, s.Setup.Changed}, logger, s.Setup.Options)
	s.Tasks = task.New(s.Gateway, s.DB, s.Hub, s.Log)
	s.Admin = admin.New(s.Gateway, s.DB, s.Log, s.Runner)
}

func (s *System) sweepAndWork() {
	s.t.Helper()
	if err := s.Sweep(context.Background(), true); err != nil {
		s.t.Fatal(err)
	}
	gw, stopJobs := s.Gateway, func(context.Context) error { return nil }
	if s.Setup.Jobs {
		var err error
		if stopJobs, err = s.DB.Work(context.Background(), gw.Do); err != nil {
			s.t.Fatal(err)
		}
	}
	s.stop = func() {
		ctx, cancel := context.WithCancel(context.Background())
		if err := stopJobs(ctx); err != nil {
			s.t.Errorf("stop jobs: %v", err)
		}
		cancel() // what runs is killed, not waited for
		gw.Close(ctx)
	}
}

// Stop closes the gateway; what runs is killed. The store stays open.
func (s *System) Stop() {
	if s.stop != nil {
		s.stop()
	}
	s.stop = nil
}

// Restart stops the gateway, closes the store, and opens both again.
func (s *System) Restart() {
	s.t.Helper()
	s.Stop()
	if err := s.DB.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.open()
	s.sweepAndWork()
}

// Crashed is a System on a copy of what is on the disk now, as a server would find
// it that starts after this one was killed. Nothing may be writing. Its runner has
// seen nothing; s goes on by itself.
func (s *System) Crashed() *System {
	s.t.Helper()
	next := &System{Setup: s.Setup, Log: s.Log, Runner: &ScriptedRunner{}, Slog: &LogText{}, t: s.t}
	next.file = filepath.Join(s.t.TempDir(), "writ.db")
	next.Setup.URL = "sqlite:" + next.file
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(s.file + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(next.file+suffix, b, 0o600)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	next.open()
	next.sweepAndWork()
	return next
}

// Sibling is another gateway on the same store, with a runner of its own, that has
// swept once. Its options are those of s but for what change changes. It is closed before s.
func (s *System) Sibling(owner string, change ...func(*gateway.Options)) *System {
	s.t.Helper()
	next := &System{Setup: s.Setup, DB: s.DB, Log: s.Log, Runner: &ScriptedRunner{}, Slog: &LogText{}, t: s.t, file: s.file}
	next.Setup.Options.Owner = owner
	for _, fn := range change {
		fn(&next.Setup.Options)
	}
	next.wire(s.Policy())
	next.sweepAndWork()
	s.t.Cleanup(next.Stop)
	return next
}

// File is the path of the SQLite store.
func (s *System) File() string { return s.file }

// Agent is the principal of a registered identity.
func (s *System) Agent(id writ.IdentityID) writ.Principal {
	i, ok := s.Gateway.Identity(id)
	if !ok {
		s.t.Fatalf("no identity %s", id)
	}
	return i.Principal()
}

// Operator is the principal of an operator.
func (s *System) Operator(id string) writ.Principal {
	s.t.Helper()
	return view(s.t, s.DB, func(ctx context.Context, tx *store.Tx) (writ.Principal, error) {
		o, err := tx.Operator(ctx, id)
		return o.Principal(), err
	})
}

// Local is the principal of the data folder's owner.
func Local() writ.Principal {
	return writ.Principal{Kind: writ.KindLocal, ID: "0", Tenant: writ.DefaultTenant}
}

// Run is a request to run code.
func Run(l writ.Language, code string) writ.TaskRequest {
	return writ.TaskRequest{Spec: &writ.RunSpec{Language: l, Code: code}}
}

// MustSubmit submits req as coder and answers the new task.
func (s *System) MustSubmit(req writ.TaskRequest) writ.Task {
	s.t.Helper()
	t, created, err := s.Submit(context.Background(), s.Agent("coder"), req)
	if err != nil || !created {
		s.t.Fatalf("submit: created %v, %v", created, err)
	}
	return t
}

// Decide gives the verdict of who on the task's approval as who is shown it.
func (s *System) Decide(who writ.Principal, t writ.Task, v writ.Verdict, reason string) (writ.Approval, error) {
	seen, err := s.Approval(context.Background(), who, t.Approval)
	if err != nil {
		return writ.Approval{}, err
	}
	return s.Vote(context.Background(), who, t.Approval, writ.VoteRequest{Verdict: v, Reason: reason, Shown: seen.Shown})
}

// MustGrant has ann grant the task's approval.
func (s *System) MustGrant(t writ.Task) writ.Approval {
	s.t.Helper()
	a, err := s.Decide(s.Operator("ann"), t, writ.Grant, "looks fine")
	if err != nil {
		s.t.Fatalf("grant: %v", err)
	}
	return a
}

// Stored is the task as it is stored.
func (s *System) Stored(id writ.TaskID) writ.Task {
	s.t.Helper()
	return view(s.t, s.DB, func(ctx context.Context, tx *store.Tx) (writ.Task, error) { return tx.Task(ctx, id) })
}

// StoredApproval is the approval as it is stored.
func (s *System) StoredApproval(id writ.ApprovalID) writ.Approval {
	s.t.Helper()
	return view(s.t, s.DB, func(ctx context.Context, tx *store.Tx) (writ.Approval, error) { return tx.Approval(ctx, id) })
}

// Until waits until the task is in state want and answers it. Another terminal
// state fails the test.
func (s *System) Until(id writ.TaskID, want writ.TaskState) writ.Task {
	s.t.Helper()
	var t writ.Task
	Eventually(s.t, "task becomes "+string(want), func() bool {
		t = s.Stored(id)
		if t.State != want && t.State.Terminal() {
			s.t.Fatalf("task is %s (%s), want %s\n%s", t.State, t.Reason, want, s.Slog)
		}
		return t.State == want
	}, func() string { return string(t.State) + "\n" + s.Slog.String() })
	return t
}

// Events are all events of the task, or of the whole log when id is empty.
func (s *System) Events(id writ.TaskID) []writ.Event {
	s.t.Helper()
	var all []writ.Event
	for after := int64(-1); ; {
		page := view(s.t, s.DB, func(ctx context.Context, tx *store.Tx) ([]writ.Event, error) {
			return tx.Events(ctx, writ.EventFilter{Task: id, After: after})
		})
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		after = page[len(page)-1].Seq
	}
}

// Types are the types of the task's events, in order.
func (s *System) Types(id writ.TaskID) []writ.EventType {
	s.t.Helper()
	var types []writ.EventType
	for _, e := range s.Events(id) {
		types = append(types, e.Type)
	}
	return types
}

// CompilePolicy is the set of one file of Cedar, test.cedar.
func CompilePolicy(t testing.TB, text string) *policy.Set {
	t.Helper()
	rules, err := policy.Compile([]policy.File{{Name: "test.cedar", Content: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}
