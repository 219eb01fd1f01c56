package rest_test

import (
	"time"

	"writ"
)

// The values below fill every field, so that a member which the document does not
// know, or which is lost on the way, shows.

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 250e6, time.UTC) }

func digest(s string) writ.Digest { return writ.DigestOf([]byte(s)) }

func ptr[T any](v T) *T { return &v }

func someRules() []writ.Rule {
	return []writ.Rule{{ID: "review-shell", File: "base.cedar", Line: 12, Effect: writ.Hold}}
}

func someSpec() writ.RunSpec {
	return writ.RunSpec{
		Language: "python", Code: "print('é')", Args: []string{"-x"}, Stdin: "in", Env: map[string]string{"A": "b"},
		Inputs: []writ.Input{{Path: "data/a.bin", Content: []byte{0, 255}, Exec: true}}, Limits: writ.DefaultLimits,
	}
}

func someEnforcement() writ.Enforcement {
	return writ.Enforcement{Provider: "bubblewrap 0.8.0", Active: []string{"seccomp"}, Missing: []string{"memory-cgroup"}}
}

func someTask() writ.Task {
	return writ.Task{
		ID: "task_1", Key: "k", Tenant: "default", Identity: "coder", Role: "dev", Requester: agent().Ref(), Step: "try it",
		RetryOf: "task_0", State: writ.TaskFailed, Reason: "exit code 3", Rules: someRules(), Language: "python", Digest: digest("spec"),
		Clamped: []string{"wall_ms"}, Approval: "appr_1",
		Result: &writ.Result{
			Outcome: writ.Failed, Started: true, ExitCode: ptr(3), Signal: "SIGTERM", Reason: "because",
			Stdout: writ.NewOutput([]byte("<b>out</b>"), 100), Stderr: writ.NewOutput([]byte{'x', 0xff, 'y'}, 3),
			WallMS: 12, CPUMS: 3, PeakBytes: 1 << 40, Sandbox: someEnforcement(),
		},
		Created: noon(), Updated: noon(), Started: ptr(noon()), Finished: ptr(noon()),
	}
}

// someTasks are a task with all fields and one with as few as there can be.
func someTasks() []writ.Task {
	return []writ.Task{someTask(), {
		ID: "task_2", Tenant: "default", Identity: "coder", Requester: agent().Ref(), State: writ.TaskHeld,
		Created: noon(), Updated: noon(),
	}}
}

func someVotes() []writ.Vote {
	return []writ.Vote{{By: writ.Ref{Kind: writ.KindOperator, ID: "ada"}, Verdict: writ.Grant, Reason: "fine", Shown: digest("text"), At: noon()}}
}

func someNeed() writ.Need { return writ.Need{Grants: 2, Reason: true, Roles: []string{"lead"}} }

func someApproval() writ.Approval {
	return writ.Approval{
		ID: "appr_1", Action: writ.ActionRun, Task: "task_1", Tenant: "default", Identity: "coder", Requester: agent().Ref(), State: writ.ApprovalPending,
		Reason: "shell is reviewed", Rules: someRules(), Need: someNeed(), Spec: digest("spec"), Policy: digest("policy"),
		Digest: digest("all"), Votes: someVotes(), Replaces: "appr_0", Created: noon(), Expires: noon(), Decided: ptr(noon()),
	}
}

func someHeldPatch() writ.Approval {
	a := someApproval()
	a.ID, a.Action, a.Task = "appr-2", writ.ActionPatch, ""
	a.Call = &writ.HeldCall{
		Workspace: "site", Root: "/srv/site", Mode: writ.ApprovalsReview, Key: "k", Plan: digest("plan"), Operation: "op-1",
	}
	return a
}

func someChanges() []writ.FileChange {
	return []writ.FileChange{
		{Path: "a.txt", Before: "absent", After: "sha256:" + string(digest("a")), Kind: "add"},
		{Path: "b.txt", Kind: "update"},
	}
}

func someWorkspaces() []writ.Workspace {
	return []writ.Workspace{{
		ID: "site", Tenant: "default", Root: "/srv/site", Profile: writ.WorkspaceWrite, Environment: "local",
		EnvironmentKind: writ.EnvironmentHost, Network: writ.NetworkRestricted, Approvals: writ.ApprovalsReview,
		Participation: writ.ParticipationOff,
		Rules:         writ.PathRules{Read: []string{"*"}, Write: []string{"src/"}, DenyRead: []string{".env"}, DenyWrite: []string{".git/hooks"}},
	}, {
		ID: "bare", Tenant: "default", Root: "/srv/bare", Profile: writ.ReadOnly, Environment: "ci",
		EnvironmentKind: writ.EnvironmentContainer, Network: writ.NetworkEnabled, Approvals: writ.ApprovalsOff,
	}}
}

func someOperation() writ.Operation {
	return writ.Operation{
		ID: "op-2", Key: "k", Workspace: "site", Root: "/srv/site", Tenant: "default", By: agent().Ref(), CheckOnly: true,
		Undoes: "op-1", Fingerprint: digest("request"), Approval: "appr-2",
		Result: writ.PatchResult{Status: writ.PatchRejected, Changes: someChanges(), Reason: "because"},
		Code:   "VERSION_CONFLICT", Message: "a.txt moved on", Created: noon(), Finished: ptr(noon()),
	}
}

// someResumed is a patch, or for appr-3 a command, that was carried out.
func someResumed(id writ.ApprovalID) writ.Resumed {
	if id == "appr-3" {
		return writ.Resumed{Approval: someApproval(), Process: ptr(someProcess())}
	}
	return writ.Resumed{Approval: someHeldPatch(), Operation: ptr(someOperation())}
}

func someProcess() writ.Process {
	return writ.Process{
		Workspace: "site", Root: "/srv/site", Tenant: "default", By: agent().Ref(), Fingerprint: digest("command"), Program: "bash",
		Programs: []string{"go", "rm"}, TTY: true, Approval: "appr-3", Dispatch: writ.DispatchConfirmed,
		ProcessStatus: writ.ProcessStatus{
			ID: "proc-1", State: writ.ProcessExited, Termination: writ.TerminationSignaled, ExitCode: ptr(1),
			Signal: &writ.Signal{Number: 9, Name: "SIGKILL"}, Reason: "because", Total: 7, Retained: 3, EOF: true, Started: noon(), Ended: ptr(noon()),
		},
	}
}

// someOperations are one with all fields and one that is not finished. Its changes are
// no list where it comes from, and one on the wire.
func someOperations() []writ.Operation {
	return []writ.Operation{someOperation(), {
		ID: "op-3", Workspace: "site", Root: "/srv/site", Tenant: "default", By: owner().Ref(), Fingerprint: digest("request"),
		Result: writ.PatchResult{Status: writ.PatchUnknown}, Created: noon(),
	}}
}

func someEvents() []writ.Event {
	facts := writ.NewOutput([]byte("out"), 100).Facts()
	return []writ.Event{
		{Time: noon(), Type: writ.EventServerStarted},
		{
			Seq: 1, Time: noon(), Type: writ.EventToolResult, Tenant: "default", Task: "task_1", Approval: "appr_1", Actor: agent().Ref(),
			Data: writ.EventData{
				Reason: "r", Key: "k", Identity: "coder", Role: "dev", State: writ.TaskFailed, RetryOf: "task_0",
				Language: "python", Spec: digest("spec"), Code: digest("code"), CodeBytes: 9, Args: 1, Inputs: 1,
				Limits: writ.DefaultLimits, Clamped: []string{"wall_ms"}, Effect: writ.Hold, Rules: someRules(), Policy: digest("policy"),
				Need: ptr(someNeed()), Status: writ.ApprovalQueued, Votes: someVotes(), Binds: digest("all"),
				Outcome: writ.Failed, Started: ptr(true), ExitCode: ptr(3), Signal: "SIGTERM", Stdout: facts, Stderr: facts,
				WallMS: 12, CPUMS: 3, PeakBytes: 1 << 40, Sandbox: ptr(someEnforcement()), Subject: "ada", Count: 2,
			},
		},
		{
			Seq: 2, Time: noon(), Type: writ.EventPatchFinished, Tenant: "default", Approval: "appr-2", Actor: agent().Ref(),
			Data: writ.EventData{
				Workspace: "site", Action: writ.ActionPatch, Operation: "op-2", Undoes: "op-1", Plan: digest("plan"), Paths: []string{"a.txt"},
				Patch: writ.PatchRejected, ErrorCode: "VERSION_CONFLICT", Changes: someChanges(),
			},
		},
		{
			Seq: 3, Time: noon(), Type: writ.EventIntentClaimed, Tenant: "default", Actor: agent().Ref(),
			Data: writ.EventData{
				Workspace: "site", Work: "work-1", WorkState: writ.WorkClosing, Intent: "fb-1", IntentState: writ.IntentClaimed,
				Text: digest("text"), TextBytes: 4,
			},
		},
	}
}

// someWorks are one with all fields and one that is new.
func someWorks() []writ.Work {
	return []writ.Work{
		{
			ID: "work-2", Workspace: "site", Root: "/srv/site", Tenant: "default", Title: "mend <it>", State: writ.WorkClosed,
			Revision: 1 << 40, By: agent().Ref(), Created: noon(), Closed: ptr(noon()),
		},
		{ID: "work-1", Workspace: "site", Root: "/srv/site", Tenant: "default", State: writ.WorkActive, Revision: 1, By: owner().Ref(), Created: noon()},
	}
}

func someIntent() writ.Intent {
	return writ.Intent{
		ID: "fb-1", Work: "work-1", Workspace: "site", Position: 7, Revision: 2, Kind: writ.IntentNote, Delivery: writ.DeliverCheckpoint,
		Body: "use <b> ☃", State: writ.IntentQueued, By: owner().Ref(), Created: noon(), Updated: noon(),
	}
}

// someIntents are one with all fields and one without a work.
func someIntents() []writ.Intent {
	loose := someIntent()
	loose.ID, loose.Work, loose.Kind, loose.Delivery, loose.State = "fb-2", "", writ.IntentFollowUp, writ.DeliverNextWork, writ.IntentDraft
	return []writ.Intent{someIntent(), loose}
}

func someStop() writ.Stop { return writ.Stop{OK: true, Killed: 3, Intent: someIntent()} }

func someCheckpoint() writ.Checkpoint {
	return writ.Checkpoint{Size: 3, Root: digest("root"), Note: "writ\n3\nroot\n\n— writ sig\n"}
}

func someKey() writ.Key {
	return writ.Key{
		ID: "k2", Kind: writ.KindAgent, Subject: "coder", Tenant: "default",
		Created: noon(), Expires: ptr(noon()), Revoked: ptr(noon()),
	}
}

func someRemoval() writ.FileRemoval {
	return writ.FileRemoval{Sessions: 1, Objects: 2, Bytes: 3, Runtimes: 4, RuntimeBytes: 5, Bodies: 6, Blobs: 7, BlobBytes: 8}
}

// someContents is a session whose id begins as no other id does.
func someContents() writ.SessionContents {
	o := writ.Object{
		ID: "_BCDEFGHIJKLMNOPQRST-", Session: "-0123456789abcdefghi_", Name: "a/ä ☃.csv", Type: "text/csv", Size: 3, SHA256: digest("abc"),
		ReadOnly: true, ModifiedFrom: &writ.ObjectRef{ID: "ABCDEFGHIJKLMNOPQRSTU", Session: "0123456789abcdefghijk"}, Created: noon(),
	}
	return writ.SessionContents{Session: writ.Session{
		ID: o.Session, Tenant: "acme", By: writ.Ref{Kind: writ.KindUser, ID: "a:b"}, Kind: writ.EntitySkill, Key: digest("key"),
		Created: noon(), Expires: noon().Add(time.Hour), Objects: 1, Bytes: 3,
	}, Files: []writ.Object{o}}
}

func someUsage() writ.FileUsage {
	return writ.FileUsage{Sessions: 11, Objects: 12, Bytes: 13, Runtimes: 14, RuntimeBytes: 15, Removed: someRemoval()}
}
