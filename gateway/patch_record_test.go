package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
)

func TestEventsOfEachOutcome(t *testing.T) {
	coder := "agent:coder"
	for name, tt := range map[string]struct {
		adjust func(*writ.Workspace)
		rules  string
		do     func(t *testing.T, s *testkit.Workshop, ws writ.Workspace)
		want   []string
	}{
		"applied": {
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				req := keyed("k", slices.Concat(edit("a", "1", "2"), add("b", "x"))...)
				mustPatch(t, s, s.Agent("coder"), req, writ.PatchApplied)
				if _, replayed, err := s.Tools.Patch(t.Context(), s.Agent("coder"), req); err != nil || !replayed {
					t.Error(err)
				}
			},
			want: []string{"patch.started effect=allow key=k paths=a,b by " + coder, "patch.finished patch=applied count=2"},
		},
		"checked": {
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				req := change(edit("a", "1", "2")...)
				req.CheckOnly = true
				mustPatch(t, s, s.Agent("coder"), req, writ.PatchChecked)
			},
			want: []string{"patch.started effect=allow paths=a by " + coder, "patch.finished patch=checked count=1"},
		},
		"rejected": {
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), change("*** Delete File: none"))
				wantCode(t, "patch", err, "FILE_NOT_FOUND")
			},
			want: []string{"patch.started effect=allow paths=none by " + coder, "patch.finished patch=rejected code=FILE_NOT_FOUND"},
		},
		"unreadable": {
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), writ.PatchRequest{Workspace: "app", Patch: "no patch"})
				wantCode(t, "patch", err, "INVALID_PATCH")
			},
			want: []string{"patch.started effect=allow by " + coder, "patch.finished patch=rejected code=INVALID_PATCH"},
		},
		"not begun": {
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				s.Files.Before("Patch", func(context.Context) error { return &writ.Error{Kind: writ.Unavailable, Msg: "no runner"} })
				mustPatch(t, s, s.Agent("coder"), change(edit("a", "1", "2")...), writ.PatchRolledBack)
			},
			want: []string{"patch.started effect=allow paths=a by " + coder, "patch.finished patch=failed_rolled_back"},
		},
		"unknown": {
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				s.Files.Answer(func(writ.PatchResult, error) (writ.PatchResult, error) {
					return writ.PatchResult{Status: writ.PatchUnknown, Reason: "lost"}, nil
				})
				mustPatch(t, s, s.Agent("coder"), change(edit("a", "1", "2")...), writ.PatchUnknown)
			},
			want: []string{"patch.started effect=allow paths=a by " + coder, "patch.finished patch=unknown"},
		},
		"denied by the profile": {
			adjust: readOnly,
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), change(edit("a", "1", "2")...))
				wantCode(t, "patch", err, "UNAUTHORIZED")
			},
			want: []string{"workspace.refused effect=deny code=UNAUTHORIZED paths=a by " + coder},
		},
		"held, granted, resumed": {
			adjust: confirm,
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				a := mustHold(t, s, s.Agent("coder"), keyed("k", edit("a", "1", "2")...))
				mustHold(t, s, s.Agent("coder"), keyed("k", edit("a", "1", "2")...))
				if _, err := s.Tools.ResolveApproval(t.Context(), s.Agent("coder"), a.ID, true); err != nil {
					t.Error(err)
				}
				mustResume(t, s, s.Operator("ann"), a.ID, writ.PatchApplied)
				mustResume(t, s, s.Operator("ann"), a.ID, writ.PatchApplied)
			},
			want: []string{
				"approval.requested status=pending", "approval.voted status=granted by " + coder, "approval.decided status=granted by " + coder,
				"patch.started effect=hold key=k paths=a by operator:ann", "patch.finished patch=applied count=1",
			},
		},
		"held, denied": {
			adjust: confirm,
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				a := mustHold(t, s, s.Agent("coder"), change(edit("a", "1", "2")...))
				s.MustResolve(s.Operator("ann"), a.ID, false)
				_, _, err := s.Resume(t.Context(), s.Agent("coder"), a.ID)
				wantCode(t, "resume", err, "APPROVAL_CONFLICT")
			},
			want: []string{"approval.requested status=pending", "approval.voted status=denied by operator:ann", "approval.decided status=denied by operator:ann"},
		},
		"held, expired": {
			adjust: confirm,
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				expire(t, s, mustHold(t, s, s.Agent("coder"), change(edit("a", "1", "2")...)).ID)
			},
			want: []string{"approval.requested status=pending", "approval.decided status=expired"},
		},
		"held, moved": {
			adjust: confirm,
			do: func(t *testing.T, s *testkit.Workshop, ws writ.Workspace) {
				a := mustHold(t, s, s.Agent("coder"), change(edit("a", "1", "2")...))
				s.MustResolve(s.Agent("coder"), a.ID, true)
				testkit.PutFiles(t, ws.Root, map[string]string{"a": "0\n1\n"})
				_, _, err := s.Resume(t.Context(), s.Agent("coder"), a.ID)
				wantCode(t, "resume", err, "APPROVAL_REQUIRED")
			},
			want: []string{
				"approval.requested status=pending", "approval.voted status=granted by " + coder, "approval.decided status=granted by " + coder,
				"approval.decided status=cancelled", "approval.requested status=pending",
			},
		},
		"held, then denied by a rule": {
			adjust: confirm,
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				a := mustHold(t, s, s.Agent("coder"), change(edit("a", "1", "2")...))
				s.MustResolve(s.Agent("coder"), a.ID, true)
				setPolicy(t, s.System, testkit.WorkspacePolicy+noPatches)
				_, _, err := s.Resume(t.Context(), s.Agent("coder"), a.ID)
				wantCode(t, "resume", err, "UNAUTHORIZED")
			},
			want: []string{
				"approval.requested status=pending", "approval.voted status=granted by " + coder, "approval.decided status=granted by " + coder,
				"policy.loaded by local:0", "workspace.refused effect=deny code=UNAUTHORIZED paths=a by " + coder,
			},
		},
		"a vote that is refused": {
			adjust: review,
			do: func(t *testing.T, s *testkit.Workshop, _ writ.Workspace) {
				a := mustHold(t, s, s.Agent("coder"), change(edit("a", "1", "2")...))
				_, err := s.Tools.ResolveApproval(t.Context(), s.Agent("coder"), a.ID, true)
				wantCode(t, "vote", err, "UNAUTHORIZED")
			},
			want: []string{"approval.requested status=pending", "approval.voted status=pending by " + coder},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, ws := app(t, map[string]string{"a": "1\n"}, tt.adjust, withPolicy(tt.rules))
			tt.do(t, s, ws)
			wantShapes(t, s, tt.want...)
			for _, e := range s.Events("") {
				if e.Type != writ.EventPolicyLoaded && e.Tenant != "acme" {
					t.Errorf("%s is of tenant %q", e.Type, e.Tenant)
				}
			}
		})
	}
}

// The records of one held patch name each other, and all that decided.
func TestEventsBindTogether(t *testing.T) {
	s, _ := app(t, map[string]string{"a": "1\n"}, confirm)
	a := mustHold(t, s, s.Agent("coder"), keyed("k", edit("a", "1", "2")...))
	s.MustResolve(s.Operator("ann"), a.ID, true)
	op := mustResume(t, s, s.Agent("coder"), a.ID, writ.PatchApplied)
	e := s.Events("")
	for _, e := range e {
		if e.Approval != a.ID {
			t.Errorf("%s is not of the approval", e.Type)
		}
	}
	asked, granted, started, finished := e[0].Data, e[2].Data, e[3].Data, e[4].Data
	if asked.Binds != a.Digest || asked.Spec != a.Spec || granted.Binds != a.Digest || len(granted.Votes) != 1 || granted.Votes[0].Shown == "" {
		t.Errorf("asked %+v\ngranted %+v", asked, granted)
	}
	if started.Operation != op.ID || started.Binds != a.Digest || started.Plan != a.Call.Plan || started.Spec != op.Fingerprint ||
		started.Workspace != "app" || started.Policy == "" || len(started.Rules) == 0 || started.Action != writ.ActionPatch {
		t.Errorf("started %+v", started)
	}
	want := []writ.FileChange{{Path: "a", Before: version("1\n"), After: version("2\n"), Kind: "update"}}
	if d := cmp.Diff(want, finished.Changes); d != "" || finished.Operation != op.ID || finished.Workspace != "app" {
		t.Errorf("finished %+v\n%s", finished, d)
	}
}

// PA-12, spec/02 §6.2, §15 invariant 15: of a patch and of files nothing is kept but
// names and hashes, whatever became of it.
func TestPA12_NoTextOfPatchesIsKept(t *testing.T) {
	const marker = "MARKER"
	file := strings.Repeat("MARKER of the file\n", 3)
	for name, lines := range map[string][]string{
		"applied":               {"*** Update File: a", "@@", "-MARKER of the file", "+MARKER of the patch"},
		"lines that are not":    {"*** Update File: a", "@@", "-MARKER of the fil", "+MARKER"},
		"an anchor that is not": {"*** Update File: a", "@@ MARKER anchor", "-MARKER of the file", "+MARKER"},
		"a bad header":          {"*** Frobnicate File: MARKER"},
		"a bad line of an add":  {"*** Add File: b", "MARKER without a plus"},
		"a bad line of a chunk": {"*** Update File: a", "@@", "MARKER without a sign"},
		"a diff header":         {"*** Update File: a", "@@ -1,2 +1,2 @@ MARKER", "-MARKER", "+MARKER"},
		"text behind the end":   {"*** Add File: b", "+MARKER", "*** End Patch", "MARKER"},
		"an add that is there":  {"*** Add File: a", "+MARKER"},
		"a delete and more":     {"*** Delete File: a", "MARKER"},
		"out of order":          {"*** Update File: b", "@@", "-MARKER 2", "+x", "@@", "-MARKER 1", "+y"},
	} {
		for _, adjust := range []func(*writ.Workspace){nil, confirm} {
			t.Run(fmt.Sprint(name, ", held ", adjust != nil), func(t *testing.T) {
				s, _ := app(t, map[string]string{"a": file, "b": "MARKER 1\nMARKER 2\n"}, adjust)
				_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), change(lines...))
				if h, ok := errors.AsType[*writ.Held](err); ok {
					s.MustResolve(s.Agent("coder"), h.Approval, true)
					_, _, err = s.Resume(t.Context(), s.Agent("coder"), h.Approval)
				}
				if err == nil != (name == "applied") {
					t.Fatalf("%v", err)
				}
				text, err := json.Marshal([]any{s.Events(""), s.Operations()})
				if err != nil {
					t.Fatal(err)
				}
				text = append(text, s.Slog.String()...)
				if i := strings.Index(string(text), marker); i >= 0 {
					t.Errorf("…%.300s", text[max(0, i-100):])
				}
			})
		}
	}
}

// A refused patch that was held, whose files moved so that it does not fit: the end that
// is kept is without its text, and is answered with the same code again.
func TestPA12_RejectedWhenResumed(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
	a := mustHold(t, s, s.Agent("coder"), change(edit("a", "1", "MARKER")...))
	s.MustResolve(s.Agent("coder"), a.ID, true)
	testkit.PutFiles(t, ws.Root, map[string]string{"a": "MARKER of the file\n"})
	_, _, first := s.Resume(t.Context(), s.Agent("coder"), a.ID)
	wantCode(t, "resume", first, "INVALID_PATCH")
	_, _, again := s.Resume(t.Context(), s.Agent("coder"), a.ID)
	wantCode(t, "resume again", again, "INVALID_PATCH")
	if operationOf(first) != operationOf(again) || strings.Contains(writ.Message(again), "MARKER") || !strings.Contains(writ.Message(again), "line 3") {
		t.Errorf("first %v of %s, again %v of %s", first, operationOf(first), again, operationOf(again))
	}
}

func TestReadsAreRecorded(t *testing.T) {
	s, _ := app(t, map[string]string{"a": "1\n", "b": "1\n"}, nil)
	ctx, coder := t.Context(), s.Agent("coder")
	for range 3 {
		for _, name := range []string{"a", "b"} {
			if _, err := s.Tools.Read(ctx, coder, "app", name, 0, 10); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Tools.Find(ctx, coder, "app", writ.FileQuery{Glob: "*.go", Content: "MARKER", Limit: 10}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tools.Read(ctx, s.Agent("mate"), "app", "none", 0, 10); err == nil {
		t.Fatal("read what is not there")
	}
	// It is recorded by itself, in more records than two where this took more than a second.
	testkit.Eventually(t, "the reads are recorded", func() bool {
		var calls int64
		for _, e := range s.Events("") {
			calls += e.Data.Count
		}
		return calls >= 8
	})
	var coders, mates int64
	seen := map[string]bool{}
	for _, e := range s.Events("") {
		if e.Type != writ.EventWorkspaceRead || e.Tenant != "acme" || e.Data.Workspace != "app" || e.Data.Action != writ.ActionRead {
			t.Errorf("%+v", e)
		}
		switch e.Actor {
		case coder.Ref():
			coders += e.Data.Count
			for _, p := range e.Data.Paths {
				seen[p] = true
			}
		case s.Agent("mate").Ref():
			mates += e.Data.Count
		}
	}
	if coders != 7 || mates != 1 || !seen["a"] || !seen["b"] || !seen["find *.go"] || len(seen) != 3 {
		t.Errorf("%d and %d calls, paths %v", coders, mates, seen)
	}
}

// What was read right before the end is recorded by the end.
func TestReadsAreRecordedAtTheEnd(t *testing.T) {
	s, _ := app(t, map[string]string{"a": "1\n"}, nil)
	for i := range 300 {
		_, _ = s.Tools.Read(t.Context(), s.Agent("coder"), "app", fmt.Sprint("f", i), 0, 10)
	}
	s.Restart()
	var calls int64
	for _, e := range s.Events("") {
		calls += e.Data.Count
		if len(e.Data.Paths) > 100 {
			t.Errorf("%d paths in one record", len(e.Data.Paths))
		}
	}
	if calls != 300 {
		t.Errorf("%d calls are recorded", calls)
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	s, _ := app(t, map[string]string{"a": "1\n"}, readOnly)
	for range 200 {
		_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), change(edit("a", "1", "2")...))
		wantCode(t, "patch", err, "UNAUTHORIZED")
	}
	if n := len(s.Events("")); n == 0 || n > 100 {
		t.Errorf("%d records of 200 refusals", n)
	}
	before := len(s.Events(""))
	_, _, err := s.Tools.Patch(t.Context(), s.Agent("mate"), change(edit("a", "1", "2")...))
	wantCode(t, "another's", err, "UNAUTHORIZED")
	if n := len(s.Events("")); n != before+1 {
		t.Errorf("another's refusal made %d records", n-before)
	}
}

// A record has a size, whatever a patch names.
func TestRecordsOfLargePatchesAreBounded(t *testing.T) {
	s, _ := app(t, nil, nil)
	var lines []string
	for i := range 700 {
		lines = append(lines, add(fmt.Sprintf("%s/%04d", strings.Repeat("d", 200), i), "x")...)
	}
	op := mustPatch(t, s, s.Agent("coder"), change(lines...), writ.PatchApplied)
	e := s.Events("")
	if len(op.Result.Changes) != 700 || e[1].Data.Count != 700 || len(e[1].Data.Changes) > 500 || len(e[0].Data.Paths) > 100 {
		t.Errorf("%d changes answered, %d counted, %d and %d recorded", len(op.Result.Changes), e[1].Data.Count, len(e[1].Data.Changes), len(e[0].Data.Paths))
	}
}

// No record, no change: what cannot be recorded does not begin, and is not held.
func TestAUD04_NoRecordOfAPatch(t *testing.T) {
	for typ, adjust := range map[writ.EventType]func(*writ.Workspace){
		writ.EventPatchStarted: nil, writ.EventApprovalRequested: confirm, writ.EventWorkspaceRefused: readOnly,
	} {
		t.Run(string(typ), func(t *testing.T) {
			s, ws := app(t, map[string]string{"a": "1\n"}, adjust)
			req := keyed("k", edit("a", "1", "2")...)
			mend := failOn(t, s.System, typ)
			_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), req)
			if writ.KindOf(err) != writ.Internal {
				t.Errorf("%v of kind %v", err, writ.KindOf(err))
			}
			approvals, _, err := s.Approvals(t.Context(), testkit.Local(), writ.ApprovalFilter{})
			if err != nil || len(approvals) != 0 || len(s.Operations()) != 0 || len(s.Events("")) != 0 || s.Files.Calls("Patch") != 0 {
				t.Errorf("%d approvals, %d operations, %d events, %d patches, %v", len(approvals), len(s.Operations()), len(s.Events("")), s.Files.Calls("Patch"), err)
			}
			wantDisk(t, ws, map[string]string{"a": "1\n"})
			mend()
			if adjust == nil { // the lease is free, and the key too
				mustPatch(t, s, s.Agent("coder"), req, writ.PatchApplied)
			}
		})
	}
	t.Run("of a resume", func(t *testing.T) {
		s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
		a := mustHold(t, s, s.Agent("coder"), change(edit("a", "1", "2")...))
		s.MustResolve(s.Agent("coder"), a.ID, true)
		mend := failOn(t, s.System, writ.EventPatchStarted)
		_, op, err := s.Resume(t.Context(), s.Agent("coder"), a.ID)
		if writ.KindOf(err) != writ.Internal || op.ID != "" {
			t.Errorf("%s, %v", op.ID, err)
		}
		if got := s.StoredApproval(a.ID); got.State != writ.ApprovalQueued || len(s.Operations()) != 0 {
			t.Errorf("approval is %s, %d operations", got.State, len(s.Operations()))
		}
		wantDisk(t, ws, map[string]string{"a": "1\n"})
		mend()
		mustResume(t, s, s.Agent("coder"), a.ID, writ.PatchApplied)
	})
}
