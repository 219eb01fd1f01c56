package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/client"
)

// roundTrip is one operation through client, wire and API: what the client is
// asked, what the backend must then be called with, and what must come back.
type roundTrip struct {
	name string
	do   func(context.Context, *client.Client) (any, error)
	args []any // of the call of the method of that name; nil means none is expected
	want any
}

// list is an answer of two values.
type list struct {
	Items any
	Next  string
}

func roundTrips() []roundTrip {
	spec := someSpec()
	req := writ.TaskRequest{Key: "k", Identity: "coder", Role: "dev", Step: "try it", RetryOf: "task_0", Spec: &spec}
	tasks := writ.TaskFilter{Identity: "coder", States: []writ.TaskState{writ.TaskHeld, writ.TaskQueued}, Page: writ.Page{Limit: 7, Cursor: "c&1"}}
	approvals := writ.ApprovalFilter{Identity: "coder", States: []writ.ApprovalState{writ.ApprovalPending}, Page: writ.Page{Limit: writ.DefaultPage}}
	events := writ.EventFilter{Tenant: "acme", Task: "task_1", Types: []writ.EventType{writ.EventToolResult}, After: 4, Limit: 9}
	vote := writ.VoteRequest{Verdict: writ.Grant, Reason: "fine", Shown: digest("text")}
	key := writ.KeyRequest{Kind: writ.KindAgent, Subject: "coder", Expires: ptr(noon())}
	operations := writ.OperationFilter{By: writ.Ref{Kind: writ.KindAgent, ID: "a:b"}, Workspace: "site", Page: writ.Page{Limit: 3, Cursor: "c&1"}}
	sessions := writ.SessionFilter{Tenant: "te:nant ☃&", Page: writ.Page{Limit: 3, Cursor: "c&1"}}
	undo := writ.UndoRequest{CheckOnly: true, Key: "k 1"}
	works := writ.WorkFilter{Workspace: "site", States: []writ.WorkState{writ.WorkActive, writ.WorkClosing}, Page: writ.Page{Limit: 3, Cursor: "c&1"}}
	intent := writ.IntentRequest{Body: "use ☃\n", Kind: writ.IntentNote, Delivery: writ.DeliverCheckpoint}
	edit := writ.IntentEdit{Revision: 2, Body: "<b>", Delivery: writ.DeliverNextWork}
	return []roundTrip{
		{"Submit", func(ctx context.Context, c *client.Client) (any, error) {
			t, created, err := c.Submit(ctx, req)
			if !created {
				t.Reason = "not created"
			}
			return t, err
		}, []any{req}, someTask()},
		{"Get", func(ctx context.Context, c *client.Client) (any, error) { return c.Task(ctx, "task_1") },
			[]any{writ.TaskID("task_1")}, someTask()},
		{"Spec", func(ctx context.Context, c *client.Client) (any, error) { return c.Spec(ctx, "task_1") },
			[]any{writ.TaskID("task_1")}, someSpec()},
		{"List", func(ctx context.Context, c *client.Client) (any, error) {
			l, next, err := c.Tasks(ctx, tasks)
			return list{l, next}, err
		}, []any{tasks}, list{someTasks(), "more"}},
		{"Wait", func(ctx context.Context, c *client.Client) (any, error) {
			return c.Wait(ctx, "task_1", 1500*time.Millisecond)
		},
			nil, someTask()}, // its argument is in TestWait
		{"Cancel", func(ctx context.Context, c *client.Client) (any, error) { return c.Cancel(ctx, "task_1", "too slow") },
			[]any{writ.TaskID("task_1"), "too slow"}, someTask()},
		{"Output", func(ctx context.Context, c *client.Client) (any, error) { return c.Output(ctx, "task_1", writ.Stderr) },
			[]any{writ.TaskID("task_1"), writ.Stderr}, []byte("<script>\x00\xff")},
		{"DeleteBodies", func(ctx context.Context, c *client.Client) (any, error) { return nil, c.DeleteBodies(ctx, "task_1") },
			[]any{writ.TaskID("task_1")}, nil},
		{"Approvals", func(ctx context.Context, c *client.Client) (any, error) {
			l, next, err := c.Approvals(ctx, writ.ApprovalFilter{Identity: "coder", States: approvals.States})
			return list{l, next}, err
		}, []any{approvals}, list{[]writ.Approval{someApproval(), someHeldPatch()}, ""}},
		{"Approval", func(ctx context.Context, c *client.Client) (any, error) { return c.Approval(ctx, "appr_1") },
			[]any{writ.ApprovalID("appr_1")}, writ.ApprovalView{Approval: someApproval(), Text: "print(1)", Shown: digest("text")}},
		{"Vote", func(ctx context.Context, c *client.Client) (any, error) { return c.Vote(ctx, "appr_1", vote) },
			[]any{writ.ApprovalID("appr_1"), vote}, someApproval()},
		{"Resume", func(ctx context.Context, c *client.Client) (any, error) { return c.Resume(ctx, "appr-2") },
			[]any{writ.ApprovalID("appr-2")}, someResumed("appr-2")},
		{"Resume", func(ctx context.Context, c *client.Client) (any, error) { return c.Resume(ctx, "appr-3") },
			[]any{writ.ApprovalID("appr-3")}, someResumed("appr-3")},
		{"Workspaces", func(ctx context.Context, c *client.Client) (any, error) { return c.Workspaces(ctx) },
			[]any{}, someWorkspaces()},
		{"Operations", func(ctx context.Context, c *client.Client) (any, error) {
			l, next, err := c.Operations(ctx, operations)
			return list{l, next}, err
		}, []any{operations}, list{wired(someOperations()), "more"}},
		{"Operation", func(ctx context.Context, c *client.Client) (any, error) { return c.Operation(ctx, "op-2") },
			[]any{writ.OperationID("op-2"), ""}, someOperation()},
		{"Undo", func(ctx context.Context, c *client.Client) (any, error) { return c.Undo(ctx, "op-1", undo) },
			[]any{writ.OperationID("op-1"), undo}, someOperation()},
		{"Works", func(ctx context.Context, c *client.Client) (any, error) {
			l, next, err := c.Works(ctx, works)
			return list{l, next}, err
		}, []any{works}, list{someWorks(), "more"}},
		{"Work", func(ctx context.Context, c *client.Client) (any, error) { return c.Work(ctx, "work-2") },
			[]any{writ.WorkID("work-2")}, someWorks()[0]},
		{"Intents", func(ctx context.Context, c *client.Client) (any, error) { return c.Intents(ctx, "work-1") },
			[]any{writ.WorkID("work-1")}, someIntents()},
		{"AddIntent", func(ctx context.Context, c *client.Client) (any, error) { return c.AddIntent(ctx, "work-1", intent) },
			[]any{writ.WorkID("work-1"), intent}, someIntent()},
		{"EditIntent", func(ctx context.Context, c *client.Client) (any, error) { return c.EditIntent(ctx, "fb-1", edit) },
			[]any{writ.IntentID("fb-1"), edit}, someIntent()},
		{"QueueIntent", func(ctx context.Context, c *client.Client) (any, error) { return c.QueueIntent(ctx, "fb-1", 2) },
			[]any{writ.IntentID("fb-1"), int64(2)}, someIntent()},
		{"CancelIntent", func(ctx context.Context, c *client.Client) (any, error) { return c.CancelIntent(ctx, "fb-1") },
			[]any{writ.IntentID("fb-1")}, someIntent()},
		{"ReorderIntents", func(ctx context.Context, c *client.Client) (any, error) {
			return c.ReorderIntents(ctx, "work-1", []writ.IntentID{"fb-2", "fb-1"})
		}, []any{writ.WorkID("work-1"), writ.ReorderRequest{Intents: []writ.IntentID{"fb-2", "fb-1"}}}, someIntents()},
		{"StopWork", func(ctx context.Context, c *client.Client) (any, error) { return c.StopWork(ctx, "work-1", "enough") },
			[]any{writ.WorkID("work-1"), writ.StopRequest{Reason: "enough"}}, someStop()},
		{"Usage", func(ctx context.Context, c *client.Client) (any, error) { return c.FileUsage(ctx) },
			[]any{}, someUsage()},
		{"Remove", func(ctx context.Context, c *client.Client) (any, error) {
			return c.RemoveFiles(ctx, writ.FileRemovalRequest{DryRun: true})
		}, []any{writ.FileRemovalRequest{DryRun: true}}, someRemoval()},
		{"Sessions", func(ctx context.Context, c *client.Client) (any, error) {
			l, next, err := c.Sessions(ctx, sessions)
			return list{l, next}, err
		}, []any{sessions}, list{[]writ.Session{someContents().Session}, "c&2"}},
		{"Contents", func(ctx context.Context, c *client.Client) (any, error) { return c.Session(ctx, someContents().ID) },
			[]any{someContents().ID}, someContents()},
		{"RemoveSession", func(ctx context.Context, c *client.Client) (any, error) {
			return c.RemoveSession(ctx, someContents().ID)
		}, []any{someContents().ID}, someRemoval()},
		{"Events", func(ctx context.Context, c *client.Client) (any, error) {
			l, more, err := c.Events(ctx, events)
			return list{l, fmt.Sprint(more)}, err
		}, []any{events}, list{someEvents(), "true"}},
		{"Checkpoint", func(ctx context.Context, c *client.Client) (any, error) { return c.Checkpoint(ctx) },
			[]any{}, someCheckpoint()},
		{"Verifier", func(ctx context.Context, c *client.Client) (any, error) { return c.Verifier(ctx) },
			nil, "writ+0123abcd+key"},
		{"Prove", func(ctx context.Context, c *client.Client) (any, error) { return c.Prove(ctx, 7) },
			[]any{int64(7)}, writ.AuditProof{Seq: 7, Record: `{"seq":7}`, Checkpoint: someCheckpoint(), Hashes: []writ.Digest{digest("h")}}},
		{"Verify", func(ctx context.Context, c *client.Client) (any, error) { return c.Verify(ctx, []string{"a note\n"}) },
			[]any{[]string{"a note\n"}}, writ.AuditReport{Events: 3, Head: someCheckpoint(), Faults: []writ.AuditFault{{Seq: 2, Fault: "changed"}}}},
		{"Export", func(ctx context.Context, c *client.Client) (any, error) {
			var b bytes.Buffer
			err := c.Export(ctx, &b, "cloudevents", writ.EventFilter{Tenant: "acme", After: -1})
			return b.String(), err
		}, []any{"cloudevents", writ.EventFilter{Tenant: "acme", After: -1}}, "{\"seq\":0}\n"},
		{"CreateKey", func(ctx context.Context, c *client.Client) (any, error) { return c.CreateKey(ctx, key) },
			[]any{key}, writ.NewKey{Key: someKey(), Token: "writ_k2_shown-once"}},
		{"Keys", func(ctx context.Context, c *client.Client) (any, error) { return c.Keys(ctx) },
			[]any{}, []writ.Key{someKey()}},
		{"RevokeKey", func(ctx context.Context, c *client.Client) (any, error) { return nil, c.RevokeKey(ctx, "k2") },
			[]any{writ.KeyID("k2")}, nil},
		{"AddOperator", func(ctx context.Context, c *client.Client) (any, error) {
			return c.AddOperator(ctx, writ.OperatorRequest{ID: "ada", Tenant: "default", Roles: []string{"lead"}})
		}, []any{writ.Operator{ID: "ada", Tenant: "default", Roles: []string{"lead"}}}, writ.NewKey{Key: someKey(), Token: "writ_k2_shown-once"}},
		{"Operators", func(ctx context.Context, c *client.Client) (any, error) { return c.Operators(ctx) },
			[]any{}, []writ.Operator{{ID: "ada", Tenant: "default", Roles: []string{"lead"}, Created: noon()}}},
		{"DisableOperator", func(ctx context.Context, c *client.Client) (any, error) { return nil, c.DisableOperator(ctx, "ada") },
			[]any{"ada"}, nil},
		{"Explain", func(ctx context.Context, c *client.Client) (any, error) {
			raw, err := c.Explain(ctx, req)
			var v map[string]any
			if err == nil {
				err = json.Unmarshal(raw, &v)
			}
			return v, err
		}, []any{req}, map[string]any{"effect": "hold"}},
		{"Status", func(ctx context.Context, c *client.Client) (any, error) { return c.Status(ctx) },
			nil, someEnforcement()},
	}
}

// wired is operations as the wire has them: lists are never null.
func wired(operations []writ.Operation) []writ.Operation {
	for i := range operations {
		if r := &operations[i].Result; r.Changes == nil {
			r.Changes = []writ.FileChange{}
		}
	}
	return operations
}

// TestRoundTrips runs every operation through the client: over TCP as the agent
// whose key it is, over the unix socket as its owner, and there with a key as the
// agent again.
func TestRoundTrips(t *testing.T) {
	s := start(t, time.Minute)
	for _, from := range []struct {
		name string
		c    *client.Client
		who  writ.Ref
	}{
		{"tcp", s.overTCP, agent().Ref()},
		{"unix", s.overUnix, owner().Ref()},
		{"unix with a key", s.overUnix.WithKey(token), agent().Ref()},
	} {
		for _, rt := range roundTrips() {
			t.Run(from.name+"/"+rt.name, func(t *testing.T) {
				s.take()
				got, err := rt.do(t.Context(), from.c)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(rt.want, got); diff != "" {
					t.Errorf("answer (want -, got +):\n%s", diff)
				}
				if rt.args != nil {
					if len(rt.args) == 0 {
						rt.args = nil
					}
					s.wantCalls(t, call{rt.name, from.who, rt.args})
				}
			})
		}
	}
}

// TestErrorsKeepTheirKind sends an error of every kind through every operation.
func TestErrorsKeepTheirKind(t *testing.T) {
	s := start(t, time.Minute)
	for _, kind := range writ.Kinds {
		s.fail(&writ.Error{Kind: kind, Op: "try", Msg: "say what to do", Err: context.DeadlineExceeded})
		want := "say what to do"
		if kind == writ.Internal {
			want = "internal error"
		}
		for _, rt := range roundTrips() {
			if rt.name == "Verifier" || rt.name == "Workspaces" { // cannot fail
				continue
			}
			_, err := rt.do(t.Context(), s.overTCP)
			if kind == writ.Unauthenticated && ofInbox(rt.name) {
				wantError(t, rt.name, err, kind, "unauthorized") // its one body
				continue
			}
			wantError(t, rt.name, err, kind, want)
		}
	}
}

// ofInbox reports whether a method is one of the inbox.
func ofInbox(name string) bool {
	return name == "Works" || name == "StopWork" || name == "Work" || strings.Contains(name, "Intent")
}

func wantError(t *testing.T, what string, err error, kind writ.Kind, msg string) {
	t.Helper()
	e, ok := err.(*writ.Error)
	if !ok || e.Kind != kind || e.Msg != msg {
		t.Errorf("%s: error is %#v, want kind %s and %q", what, err, kind, msg)
	}
}

// TestErrorsOfWorkspacesKeepTheirCode: what the tools would answer beside kind and
// message comes through, and the log has it.
func TestErrorsOfWorkspacesKeepTheirCode(t *testing.T) {
	s := start(t, time.Minute)
	held := &writ.Error{Kind: writ.Conflict, Code: "APPROVAL_REQUIRED", Msg: "held"}
	s.fail(fmt.Errorf("undo: %w", &writ.Held{Approval: "appr-2", Self: true, Err: held}))
	_, err := s.overTCP.Undo(t.Context(), "op-1", writ.UndoRequest{})
	if h, ok := errors.AsType[*writ.Held](err); !ok || h.Approval != "appr-2" || writ.CodeOf(err) != "APPROVAL_REQUIRED" || writ.KindOf(err) != writ.Conflict || writ.Message(err) != "held" {
		t.Errorf("a held undo is %#v", err)
	}
	s.fail(&writ.OperationError{Operation: "op-9", Err: &writ.Error{Kind: writ.Conflict, Code: "VERSION_CONFLICT", Msg: "moved on"}})
	_, err = s.overTCP.Resume(t.Context(), "appr-2")
	if o, ok := errors.AsType[*writ.OperationError](err); !ok || o.Operation != "op-9" || writ.CodeOf(err) != "VERSION_CONFLICT" || writ.Message(err) != "moved on" {
		t.Errorf("a failed resume is %#v", err)
	}
	for _, want := range []string{`"code":"APPROVAL_REQUIRED","approval":"appr-2"`, `"code":"VERSION_CONFLICT","operation":"op-9"`} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, s.log)
		}
	}
}

// TestWait: the time to wait reaches the backend, and is over when the client's is.
func TestWait(t *testing.T) {
	s := start(t, time.Minute)
	if _, err := s.overTCP.Wait(t.Context(), "task_1", -time.Second); err != nil {
		t.Fatal(err)
	}
	s.wantCalls(t, call{"Wait", agent().Ref(), []any{writ.TaskID("task_1"), time.Duration(0)}})
	if _, err := s.overTCP.Wait(t.Context(), "task_1", time.Hour); err != nil {
		t.Fatal(err)
	}
	s.wantCalls(t, call{"Wait", agent().Ref(), []any{writ.TaskID("task_1"), time.Minute}})
}

// TestScenario11_TheSameKeyAnswersTheFirstTask: 201 once, then 200.
func TestScenario11_TheSameKeyAnswersTheFirstTask(t *testing.T) {
	s := start(t, time.Minute)
	spec := someSpec()
	_, created, err := s.overTCP.Submit(t.Context(), writ.TaskRequest{Key: "k", Spec: &spec})
	if err != nil || !created {
		t.Errorf("first: created %v, error %v", created, err)
	}
	s.dup = true
	_, created, err = s.overTCP.Submit(t.Context(), writ.TaskRequest{Key: "k", Spec: &spec})
	if err != nil || created {
		t.Errorf("second: created %v, error %v", created, err)
	}
}

// TestUnreachable: a server that is not there is Unavailable, an address that is
// none is Invalid, and a context that ended stays one.
func TestUnreachable(t *testing.T) {
	c := client.Unix(t.TempDir() + "/none.sock")
	_, err := c.Status(t.Context())
	if writ.KindOf(err) != writ.Unavailable {
		t.Errorf("no server: %v", err)
	}
	for _, bad := range []string{"", "localhost:80", "ftp://x", "http://", "http://u:p@h", "http://h?q"} {
		if _, err := client.New(bad, ""); writ.KindOf(err) != writ.Invalid {
			t.Errorf("New(%q): %v", bad, err)
		}
	}
	s := start(t, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.overTCP.Status(ctx); err == nil || writ.KindOf(err) != writ.Internal || ctx.Err() == nil {
		t.Errorf("ended context: %v", err)
	}
}
