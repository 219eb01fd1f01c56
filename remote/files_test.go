package remote

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/runner"
)

// The same suite as in one process, over the wire.
func TestFilesOverTheWire(t *testing.T) {
	testkit.Files(t, func(t *testing.T, opt runner.FilesOptions) (testkit.AnyFiles, func()) {
		f, err := runner.OpenFiles(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		c, stopServer := serveFiles(t, fake{}, f, ownUID())
		stop := func() {
			_ = c.Close()
			stopServer()
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		t.Cleanup(stop)
		return c.Files(), stop
	})
}

// fakeFiles is Files of functions; those that are nil refuse.
type fakeFiles struct {
	noFiles
	read  func() (writ.FileWindow, error)
	patch func(ctx context.Context, w writ.Workspace, id writ.OperationID, req writ.PatchRequest, bound writ.Digest) (writ.PatchResult, error)
}

func (f fakeFiles) Read(context.Context, writ.Workspace, string, int64, int64) (writ.FileWindow, error) {
	return f.read()
}

func (f fakeFiles) Patch(ctx context.Context, w writ.Workspace, id writ.OperationID, req writ.PatchRequest, bound writ.Digest) (writ.PatchResult, error) {
	return f.patch(ctx, w, id, req, bound)
}

func TestErrorsOfFilesKeepKindCodeAndText(t *testing.T) {
	var next error
	c, _ := serveFiles(t, fake{}, fakeFiles{
		read: func() (writ.FileWindow, error) { return writ.FileWindow{}, next },
		patch: func(context.Context, writ.Workspace, writ.OperationID, writ.PatchRequest, writ.Digest) (writ.PatchResult, error) {
			return writ.PatchResult{}, next
		},
	}, ownUID())
	for _, kind := range writ.Kinds {
		for _, code := range []string{"", "PATH_ESCAPE"} {
			next = fmt.Errorf("on the way: %w", &writ.Error{Kind: kind, Code: code, Op: "read", Msg: "naïve \"file\"\nline two"})
			_, read := c.Files().Read(t.Context(), writ.Workspace{}, "a", 0, 1)
			_, patch := c.Files().Patch(t.Context(), writ.Workspace{}, "op", writ.PatchRequest{}, "")
			for what, err := range map[string]error{"read": read, "patch": patch} {
				if writ.KindOf(err) != kind || writ.CodeOf(err) != code || writ.Message(err) != writ.Message(next) {
					t.Errorf("%s: %v of kind %v with code %q became %v of kind %v with code %q", what, next, kind, code, err, writ.KindOf(err), writ.CodeOf(err))
				}
			}
		}
	}
	// What is no code does not become one.
	for _, code := range []string{"-", "a-b", "WITH SPACE", "A\nB", strings.Repeat("A", 65)} {
		next = &writ.Error{Kind: writ.Denied, Code: code, Msg: "m"}
		if _, err := c.Files().Read(t.Context(), writ.Workspace{}, "a", 0, 1); writ.CodeOf(err) != "" || writ.KindOf(err) != writ.Denied {
			t.Errorf("code %q became %q of %v", code, writ.CodeOf(err), err)
		}
	}
}

func TestOrdersCrossWhole(t *testing.T) {
	type call struct {
		W     writ.Workspace
		ID    writ.OperationID
		Req   writ.PatchRequest
		Bound writ.Digest
	}
	var got call
	c, _ := serveFiles(t, fake{}, fakeFiles{patch: func(_ context.Context, w writ.Workspace, id writ.OperationID, req writ.PatchRequest, bound writ.Digest) (writ.PatchResult, error) {
		got = call{w, id, req, bound}
		return writ.PatchResult{Status: writ.PatchApplied, Changes: []writ.FileChange{{Path: "<a>", Kind: "add", After: "x"}}, Reason: "r"}, nil
	}}, ownUID())
	want := call{
		writ.Workspace{
			ID: "w", Tenant: "t", Root: "/srv/<w>", Profile: writ.WorkspaceWrite, Environment: "local", EnvironmentKind: writ.EnvironmentHost,
			Network: writ.NetworkEnabled, Approvals: writ.ApprovalsReview, Participation: writ.ParticipationOff,
			Rules: writ.PathRules{Read: []string{"a"}, Write: []string{"b"}, DenyRead: []string{"c"}, DenyWrite: []string{"d"}},
		},
		"op-1",
		writ.PatchRequest{
			Workspace: "w", Undo: "op-0", Expected: map[string]string{"p\u2028": "v"}, CheckOnly: true,
			Patch: strings.Repeat("\x01", 8<<20), // the largest one, of what JSON makes most of
		},
		writ.DigestOf([]byte("plan")),
	}
	res, err := c.Files().Patch(t.Context(), want.W, want.ID, want.Req, want.Bound)
	if err != nil || res.Status != writ.PatchApplied || res.Reason != "r" || len(res.Changes) != 1 || res.Changes[0].Path != "<a>" {
		t.Errorf("%+v, %v", res, err)
	}
	if got.Req.Patch != want.Req.Patch {
		t.Errorf("the patch of %d bytes came as %d other ones", len(want.Req.Patch), len(got.Req.Patch))
	}
	got.Req.Patch, want.Req.Patch = "", ""
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-sent +came):\n%s", d)
	}
	_, err = c.Files().Patch(t.Context(), want.W, want.ID, writ.PatchRequest{Patch: strings.Repeat("x", maxPatchText+1)}, "")
	if writ.KindOf(err) != writ.Invalid || writ.CodeOf(err) != "INVALID_PATCH" {
		t.Errorf("one that does not fit: %v", err)
	}
}

func TestARunnerWithoutStateServesNoFiles(t *testing.T) {
	c, _ := serve(t, fake{}, ownUID())
	_, read := c.Files().Read(t.Context(), writ.Workspace{}, "a", 0, 1)
	_, find := c.Files().Find(t.Context(), writ.Workspace{}, writ.FileQuery{})
	_, plan := c.Files().Plan(t.Context(), writ.Workspace{}, writ.PatchRequest{})
	_, patch := c.Files().Patch(t.Context(), writ.Workspace{}, "op", writ.PatchRequest{}, "")
	_, settle := c.Files().Recover(t.Context())
	for what, err := range map[string]error{"read": read, "find": find, "plan": plan, "patch": patch, "recover": settle, "forget": c.Files().Forget(t.Context(), "op")} {
		if writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), "--state") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Spec/02 §12: what was not sent did not happen.
func TestFilesOfNobodyAreUnavailable(t *testing.T) {
	c, err := dial(filepath.Join(socketDir(t), "nobody"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, read := c.Files().Read(t.Context(), writ.Workspace{}, "a", 0, 1)
	_, patch := c.Files().Patch(t.Context(), writ.Workspace{}, "op", writ.PatchRequest{}, "")
	for what, err := range map[string]error{"read": read, "patch": patch} {
		if writ.KindOf(err) != writ.Unavailable || writ.CodeOf(err) != "TIMEOUT" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// blocked is files whose Patch says that it is there and waits for the test.
type blocked struct {
	fakeFiles
	there  chan struct{}
	answer chan writ.PatchResult
}

func newBlocked() blocked {
	b := blocked{there: make(chan struct{}, 1), answer: make(chan writ.PatchResult, 1)}
	b.patch = func(ctx context.Context, _ writ.Workspace, _ writ.OperationID, _ writ.PatchRequest, _ writ.Digest) (writ.PatchResult, error) {
		b.there <- struct{}{}
		select {
		case r := <-b.answer:
			return r, nil
		case <-ctx.Done():
			return writ.PatchResult{}, ctx.Err()
		}
	}
	return b
}

// outcome is what a call of Patch answered.
type outcome struct {
	res writ.PatchResult
	err error
}

func begin(ctx context.Context, c *Client) <-chan outcome {
	done := make(chan outcome, 1)
	go func() { // ends with its call
		res, err := c.Files().Patch(ctx, writ.Workspace{}, "op", writ.PatchRequest{}, "")
		done <- outcome{res, err}
	}()
	return done
}

func wantUnknown(t *testing.T, o outcome) {
	t.Helper()
	if o.err != nil || o.res.Status != writ.PatchUnknown || o.res.Reason == "" {
		t.Errorf("%+v, want status unknown and no error", o)
	}
}

// Scenario 62, at the wire: once the order was sent, loss is a result.
func TestScenario62_APatchWhoseAnswerIsLostIsUnknown(t *testing.T) {
	b := newBlocked()
	c, _ := serveFiles(t, fake{}, b, ownUID())
	done := begin(t.Context(), c)
	testkit.Receive(t, "the runner has the order", b.there)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	wantUnknown(t, testkit.Receive(t, "the call ends", done))
}

func TestACancelledPatchStillHasAnAnswer(t *testing.T) {
	b := newBlocked()
	c, _ := serveFiles(t, fake{}, b, ownUID())
	c.cancelWait = time.Hour // it need not be given up
	ctx, cancel := context.WithCancel(t.Context())
	done := begin(ctx, c)
	testkit.Receive(t, "the runner has the order", b.there)
	cancel()
	b.answer <- writ.PatchResult{Status: writ.PatchApplied}
	if o := testkit.Receive(t, "the call ends", done); o.err != nil || o.res.Status != writ.PatchApplied {
		t.Errorf("%+v", o)
	}
}

func TestACancelledPatchIsGivenUpInTheEnd(t *testing.T) {
	b := newBlocked()
	c, _ := serveFiles(t, fake{}, b, ownUID())
	c.cancelWait = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := begin(ctx, c)
	testkit.Receive(t, "the runner has the order", b.there)
	cancel()
	wantUnknown(t, testkit.Receive(t, "the call ends", done))
}

func TestAPatchThatIsOverIsNotSent(t *testing.T) {
	b := newBlocked()
	c, _ := serveFiles(t, fake{}, b, ownUID())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := testkit.Receive(t, "the call ends", begin(ctx, c)); !errors.Is(o.err, context.Canceled) {
		t.Errorf("%+v", o)
	}
	select {
	case <-b.there:
		t.Error("the order was sent")
	default:
	}
}

func TestNonsenseAboutAPatchIsUnknown(t *testing.T) {
	for _, status := range []writ.PatchStatus{"", "rejected", "done"} {
		b := newBlocked()
		c, _ := serveFiles(t, fake{}, b, ownUID())
		b.answer <- writ.PatchResult{Status: status}
		wantUnknown(t, testkit.Receive(t, "the call ends", begin(t.Context(), c)))
	}
}
