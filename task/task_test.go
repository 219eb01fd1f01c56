package task_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"writ"
	"writ/internal/testkit"
	"writ/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func wantKind(t *testing.T, what string, err error, want writ.Kind) {
	t.Helper()
	if err == nil || writ.KindOf(err) != want {
		t.Errorf("%s: got error %v, want one of kind %v", what, err, want)
	}
}

// wantIdle fails unless nothing is kept of any task, soon.
func wantIdle(t *testing.T, h *task.Hub) {
	t.Helper()
	testkit.Eventually(t, "the hub keeps nothing", func() bool { return h.Feeds() == 0 })
}

func TestOutputAndSpec(t *testing.T) {
	s := testkit.Gateway(t)
	ctx, coder := t.Context(), s.Agent("coder")
	raw := []byte("a\xffb\x00c")
	s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
		return testkit.Ran(0, string(raw), ""), nil
	})
	req := testkit.Run("py", "print(1)")
	req.Spec.Inputs = []writ.Input{{Path: "a/b", Content: raw}}
	tk := s.MustSubmit(req)
	s.Until(tk.ID, writ.TaskSucceeded)

	out, err := s.Tasks.Output(ctx, coder, tk.ID, writ.Stdout)
	if err != nil || !bytes.Equal(out, raw) {
		t.Errorf("stdout %q, %v", out, err)
	}
	if out, err := s.Tasks.Output(ctx, coder, tk.ID, writ.Stderr); err != nil || len(out) != 0 {
		t.Errorf("stderr %q, %v", out, err)
	}
	got, err := s.Tasks.Get(ctx, coder, tk.ID)
	if err != nil || !bytes.Equal(got.Result.Stdout.Data(), raw) || !bytes.Equal(got.Result.Stdout.Raw, raw) || got.Result.Stderr.Text != "" {
		t.Errorf("%+v, %v", got.Result, err)
	}
	spec, err := s.Tasks.Spec(ctx, coder, tk.ID)
	if err != nil || spec.Digest() != tk.Digest || spec.Language != "python" || spec.Limits != writ.DefaultLimits {
		t.Errorf("%+v, %v", spec, err)
	}

	_, err = s.Tasks.Output(ctx, coder, tk.ID, "spec")
	wantKind(t, "a stream that is none", err, writ.Invalid)
	for _, who := range []writ.Principal{s.Agent("guest"), s.Agent("idle"), s.Operator("eve")} {
		_, err1 := s.Tasks.Output(ctx, who, tk.ID, writ.Stdout)
		_, err2 := s.Tasks.Spec(ctx, who, tk.ID)
		_, err3 := s.Tasks.Get(ctx, who, tk.ID)
		_, err4 := s.Tasks.Cancel(ctx, who, tk.ID, "")
		for _, err := range []error{err1, err2, err3, err4} {
			wantKind(t, who.ID, err, writ.NotFound)
		}
	}

	// Deleting needs an operator of the tenant and a task that is over; the log keeps
	// its digests and still verifies.
	held := s.MustSubmit(testkit.Run("bash", "1"))
	wantKind(t, "delete by the agent", s.Tasks.DeleteBodies(ctx, coder, tk.ID), writ.Denied)
	wantKind(t, "delete by another tenant", s.Tasks.DeleteBodies(ctx, s.Operator("eve"), tk.ID), writ.NotFound)
	wantKind(t, "delete before the end", s.Tasks.DeleteBodies(ctx, s.Operator("ann"), held.ID), writ.Conflict)
	if err := s.Tasks.DeleteBodies(ctx, s.Operator("ann"), tk.ID); err != nil {
		t.Fatal(err)
	}
	es := s.Events(tk.ID)
	if e := es[len(es)-1]; e.Type != writ.EventBodiesDeleted || e.Actor != s.Operator("ann").Ref() || e.Data.Count != 3 {
		t.Errorf("%+v", e)
	}
	_, err = s.Tasks.Output(ctx, coder, tk.ID, writ.Stdout)
	wantKind(t, "deleted output", err, writ.NotFound)
	_, err = s.Tasks.Spec(ctx, coder, tk.ID)
	wantKind(t, "deleted spec", err, writ.NotFound)
	after, err := s.Tasks.Get(ctx, coder, tk.ID)
	if err != nil || after.Result.Stdout.SHA256 != writ.DigestOf(raw) || after.Result.Stdout.Text != "" {
		t.Errorf("%+v, %v", after.Result, err)
	}
}

func TestList(t *testing.T) {
	s := testkit.Gateway(t)
	ctx := t.Context()
	var mine []writ.TaskID
	for range 5 {
		mine = append(mine, s.MustSubmit(testkit.Run("bash", "1")).ID)
	}
	denied := s.MustSubmit(testkit.Run("node", "1")).ID
	foreign, _, err := s.Submit(ctx, s.Agent("guest"), testkit.Run("bash", "1"))
	if err != nil {
		t.Fatal(err)
	}
	idle, _, err := s.Submit(ctx, s.Agent("idle"), testkit.Run("bash", "1"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(mine)
	acme := append([]writ.TaskID{idle.ID, denied}, mine...)
	tests := []struct {
		name string
		who  writ.Principal
		f    writ.TaskFilter
		want []writ.TaskID
	}{
		{"an agent its own", s.Agent("coder"), writ.TaskFilter{}, append([]writ.TaskID{denied}, mine...)},
		{"an agent that names another", s.Agent("coder"), writ.TaskFilter{Identity: "guest", Tenant: "globex"}, append([]writ.TaskID{denied}, mine...)},
		{"an operator its tenant's", s.Operator("ann"), writ.TaskFilter{}, acme},
		{"an operator that names another tenant", s.Operator("ann"), writ.TaskFilter{Tenant: "globex"}, acme},
		{"an operator one identity's", s.Operator("ann"), writ.TaskFilter{Identity: "idle"}, []writ.TaskID{idle.ID}},
		{"an operator a foreign identity's", s.Operator("ann"), writ.TaskFilter{Identity: "guest"}, nil},
		{"the owner of the folder all", testkit.Local(), writ.TaskFilter{}, append([]writ.TaskID{idle.ID, foreign.ID, denied}, mine...)},
		{"the owner one tenant's", testkit.Local(), writ.TaskFilter{Tenant: "globex"}, []writ.TaskID{foreign.ID}},
		{"by state", s.Agent("coder"), writ.TaskFilter{States: []writ.TaskState{writ.TaskHeld}}, mine},
	}
	for _, tt := range tests {
		var got []writ.TaskID
		f := tt.f
		f.Page.Limit = 2
		for more := true; more; more = f.Page.Cursor != "" {
			page, next, err := s.Tasks.List(ctx, tt.who, f)
			if err != nil || len(page) > 2 {
				t.Fatalf("%s: %d tasks, %v", tt.name, len(page), err)
			}
			for _, tk := range page {
				got = append(got, tk.ID)
			}
			f.Page.Cursor = next
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// A page of tasks is small whatever they wrote: the text is read task by task.
func TestListHasNoOutput(t *testing.T) {
	s := testkit.Gateway(t)
	s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
		return testkit.Ran(0, strings.Repeat("x", 100_000), "\xff"), nil
	})
	tk := s.MustSubmit(testkit.Run("python", "1"))
	s.Until(tk.ID, writ.TaskSucceeded)
	list, _, err := s.Tasks.List(t.Context(), s.Agent("coder"), writ.TaskFilter{})
	if err != nil || len(list) != 1 || list[0].Result == nil {
		t.Fatalf("%+v, %v", list, err)
	}
	out, errs := list[0].Result.Stdout, list[0].Result.Stderr
	if out.Text != "" || out.Raw != nil || errs.Text != "" || errs.Raw != nil {
		t.Errorf("the list has %d bytes of stdout, %q of stderr", len(out.Data()), errs.Data())
	}
	if out.Kept != 100_000 || out.SHA256 == "" || errs.Bytes != 1 {
		t.Errorf("sizes and digests are missing: %+v, %+v", out, errs)
	}
}

// A resend answers the first task with its output.
func TestResendAnswersTheResult(t *testing.T) {
	s := testkit.Gateway(t)
	s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
		return testkit.Ran(0, "42\n", ""), nil
	})
	req := testkit.Run("python", "1")
	req.Key = "k"
	first, created, err := s.Tasks.Submit(t.Context(), s.Agent("coder"), req)
	if err != nil || !created {
		t.Fatal(created, err)
	}
	s.Until(first.ID, writ.TaskSucceeded)
	again, created, err := s.Tasks.Submit(t.Context(), s.Agent("coder"), req)
	if err != nil || created || again.ID != first.ID || again.Result == nil || again.Result.Stdout.Text != "42\n" {
		t.Errorf("created %v, %v, %+v", created, err, again.Result)
	}
	if err := s.Tasks.Refuse(t.Context(), s.Agent("coder"), "a body that is no JSON"); err != nil {
		t.Fatal(err)
	}
	es := s.Events("")
	if e := es[len(es)-1]; e.Type != writ.EventTaskRefused || e.Data.Reason != "a body that is no JSON" {
		t.Errorf("%+v", e)
	}
}
