package gateway_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
)

// memoryBlobs is bytes by digest, and drafts of some.
type memoryBlobs struct {
	named  map[writ.Digest][]byte
	drafts map[string][]byte
	full   bool // nothing gets a name
}

func newMemoryBlobs() *memoryBlobs {
	return &memoryBlobs{named: map[writ.Digest][]byte{}, drafts: map[string][]byte{}}
}

func (m *memoryBlobs) Open(_ context.Context, d writ.Digest, _, _ int64) (io.ReadCloser, error) {
	b, ok := m.named[d]
	if !ok {
		return nil, &writ.Error{Op: "open blob", Kind: writ.NotFound, Msg: "there is no such blob"}
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (m *memoryBlobs) Draft(_ context.Context, r io.Reader, limit int64) (writ.Draft, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return writ.Draft{}, err
	}
	if int64(len(b)) > limit {
		return writ.Draft{}, &writ.Error{Op: "put blob", Kind: writ.Invalid, Code: writ.CodeFileTooLarge, Msg: "too large"}
	}
	d := writ.Draft{Name: rand.Text(), Digest: writ.DigestOf(b), Size: int64(len(b))}
	m.drafts[d.Name] = b
	return d, nil
}

func (m *memoryBlobs) Publish(_ context.Context, drafts ...writ.Draft) error {
	defer m.Drop(drafts...)
	for _, d := range drafts {
		b, ok := m.drafts[d.Name]
		switch {
		case !ok:
			return fmt.Errorf("there is no draft %s", d.Name)
		case m.full:
			return errors.New("no space left on device")
		}
		m.named[d.Digest] = b
	}
	return nil
}

func (m *memoryBlobs) Drop(drafts ...writ.Draft) error {
	for _, d := range drafts {
		delete(m.drafts, d.Name)
	}
	return nil
}

const interpreterPolicy = `@id("users")
permit (principal is User, action == Action::"run", resource);
@id("hold-shell")
@hold("a person looks at shell")
permit (principal is User, action == Action::"run", resource in Scope::"shell");
@id("no-interns")
forbid (principal in Role::"intern", action == Action::"run", resource);
`

// interpreting is a System whose users may run python and shells.
func interpreting(t *testing.T, scopes ...writ.Scope) (*testkit.System, *memoryBlobs) {
	t.Helper()
	blobs := newMemoryBlobs()
	return testkit.Gateway(t, func(s *testkit.GatewaySetup) {
		s.Policy, s.Options.Users, s.Options.Blobs = interpreterPolicy, append(scopes, "python", "shell"), blobs
	}), blobs
}

// user is one of a front end, as its token made it.
func user(id string) writ.Principal {
	return writ.Principal{Kind: writ.KindUser, ID: id, Tenant: "acme", Scopes: []writ.Scope{"python", "shell"}}
}

// interpret is a run with files that keeps what it leaves.
func interpret(lang writ.Language, code string, files ...writ.FileInput) writ.RunSpec {
	return writ.RunSpec{
		Kind: writ.RunInterpreter, Language: lang, Code: code, Files: files,
		Collect: &writ.Collect{Files: 3, FileBytes: 10, TotalBytes: 15, Depth: 10, PathLength: 256},
	}
}

func fileOf(path, content string) writ.FileInput {
	return writ.FileInput{Path: path, Digest: writ.DigestOf([]byte(content)), Size: int64(len(content))}
}

// runOver waits until a task is over, and answers it with its files.
func runOver(t *testing.T, s *testkit.System, who writ.Principal, id writ.TaskID) writ.Task {
	t.Helper()
	s.Until(id, writ.TaskSucceeded)
	got, err := s.Tasks.Get(t.Context(), who, id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestUsersRunTakesAndGivesFiles(t *testing.T) {
	s, blobs := interpreting(t)
	blobs.named[writ.DigestOf([]byte("in"))] = []byte("in")
	s.Runner.Trades(func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) (writ.Result, error) {
		r, err := x.Open(ctx, spec.Files[0].Digest)
		if err != nil {
			return writ.Result{}, err
		}
		in, err := io.ReadAll(r)
		if err != nil || string(in) != "in" {
			return writ.Result{}, errors.Join(err, errors.New("the input is "+string(in)))
		}
		for _, f := range []string{"in.txt", "new.txt"} {
			if err := x.Keep(ctx, writ.OutputFile{Path: f, Link: f == "new.txt"}, strings.NewReader(f[:5])); err != nil {
				return writ.Result{}, err
			}
		}
		res := testkit.Ran(0, "done\n", "")
		res.Files = []writ.OutputFile{
			{Path: "new.txt", State: writ.OutputNew}, {Path: "in.txt", State: writ.OutputChanged}, {Path: "same.txt", State: writ.OutputSame, Exec: true, Link: true},
		}
		return res, nil
	})
	task, err := s.Interpret(t.Context(), user("ada"), interpret("py", "x", fileOf("in.txt", "in"), fileOf("same.txt", "in")))
	if err != nil {
		t.Fatal(err)
	}
	got := runOver(t, s, user("ada"), task.ID)
	if got.Identity != "user:ada" || got.Language != "python" || got.Requester != user("ada").Ref() {
		t.Errorf("task = %+v", got)
	}
	want := []writ.OutputFile{
		{Path: "new.txt", Digest: writ.DigestOf([]byte("new.t")), Size: 5, State: writ.OutputNew, Link: true},
		{Path: "in.txt", Digest: writ.DigestOf([]byte("in.tx")), Size: 5, State: writ.OutputChanged},
		{Path: "same.txt", Digest: writ.DigestOf([]byte("in")), Size: 2, State: writ.OutputSame, Exec: true},
	}
	if diff := cmp.Diff(want, got.Result.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	types := []writ.EventType{}
	for _, e := range s.Events(task.ID) {
		types = append(types, e.Type)
	}
	if diff := cmp.Diff([]writ.EventType{
		writ.EventTaskReceived, writ.EventTaskDecided, writ.EventAgentStarted, writ.EventToolInvoked, writ.EventToolResult, writ.EventAgentFinished,
	}, types); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestRunnerIsNotBelievedAboutFiles: what a runner says of bytes is worth nothing.
func TestRunnerIsNotBelievedAboutFiles(t *testing.T) {
	s, blobs := interpreting(t)
	secret := writ.DigestOf([]byte("another tenant's"))
	blobs.named[secret] = []byte("another tenant's")
	s.Runner.Trades(func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) (writ.Result, error) {
		if _, err := x.Open(ctx, secret); writ.KindOf(err) != writ.Denied {
			t.Errorf("a digest that the run has not: %v", err)
		}
		for name, tt := range map[string]struct{ path, content string }{
			"too large": {"large", strings.Repeat("x", 11)}, "no path": {"../up", "x"},
		} {
			if err := x.Keep(ctx, writ.OutputFile{Path: tt.path}, strings.NewReader(tt.content)); err == nil {
				t.Errorf("%s is kept", name)
			}
		}
		for _, p := range []string{"a", "b"} {
			if err := x.Keep(ctx, writ.OutputFile{Path: p, Digest: secret}, strings.NewReader("1234567")); err != nil {
				t.Error(err)
			}
		}
		if err := x.Keep(ctx, writ.OutputFile{Path: "c"}, strings.NewReader("12")); err == nil {
			t.Error("more than all bytes together are kept")
		}
		if err := x.Keep(ctx, writ.OutputFile{Path: "c"}, strings.NewReader("1")); err != nil {
			t.Error(err)
		}
		if err := x.Keep(ctx, writ.OutputFile{Path: "d"}, strings.NewReader("")); err == nil {
			t.Error("more files than asked for are kept")
		}
		res := testkit.Ran(0, "", "")
		res.Files = []writ.OutputFile{
			{Path: "a", Digest: secret, Size: 99, State: writ.OutputNew},
			{Path: "a", Digest: secret, State: writ.OutputNew},
			{Path: "never kept", Digest: secret, State: writ.OutputNew},
			{Path: "never given", Digest: secret, State: writ.OutputSame},
			{Path: "given", Digest: secret, State: writ.OutputSame},
		}
		for range 2 * writ.MaxDropped {
			res.Dropped = append(res.Dropped, writ.DroppedFile{Path: strings.Repeat("p", 1<<20)})
		}
		return res, nil
	})
	task, err := s.Interpret(t.Context(), user("ada"), interpret("python", "x", fileOf("given", "mine")))
	if err != nil {
		t.Fatal(err)
	}
	got := runOver(t, s, user("ada"), task.ID)
	want := []writ.OutputFile{
		{Path: "a", Digest: writ.DigestOf([]byte("1234567")), Size: 7, State: writ.OutputNew},
		{Path: "given", Digest: writ.DigestOf([]byte("mine")), Size: 4, State: writ.OutputSame},
	}
	if diff := cmp.Diff(want, got.Result.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if n := len(got.Result.Dropped); n != writ.MaxDropped || len(got.Result.Dropped[0].Path) > 5000 {
		t.Errorf("%d dropped files are kept, the first with %d bytes", n, len(got.Result.Dropped[0].Path))
	}
}

// fullDisk keeps nothing.
type fullDisk struct{ *memoryBlobs }

func (fullDisk) Draft(context.Context, io.Reader, int64) (writ.Draft, error) {
	return writ.Draft{}, errors.New("no space left on device")
}

// TestFilesThatCannotBeKeptAreLogged: once for a run, and the run is what it was.
func TestFilesThatCannotBeKeptAreLogged(t *testing.T) {
	s := testkit.Gateway(t, func(s *testkit.GatewaySetup) {
		s.Policy, s.Options.Users, s.Options.Blobs = interpreterPolicy, []writ.Scope{"python"}, fullDisk{}
	})
	s.Runner.Trades(func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) (writ.Result, error) {
		for _, p := range []string{"a", "b"} {
			if err := x.Keep(ctx, writ.OutputFile{Path: p}, strings.NewReader("x")); err == nil {
				t.Errorf("%s is kept", p)
			}
		}
		return testkit.Ran(0, "", ""), nil
	})
	task, err := s.Interpret(t.Context(), user("ada"), interpret("python", "x"))
	if err != nil {
		t.Fatal(err)
	}
	runOver(t, s, user("ada"), task.ID)
	if got := s.Slog.String(); strings.Count(got, "files of a run were not kept") != 1 || !strings.Contains(got, `"files":2`) || !strings.Contains(got, "no space left") {
		t.Errorf("log:\n%s", got)
	}
}

// TestFilesThatDoNotReachTheDisk: what was taken and cannot be published is dropped, and no
// draft stays.
func TestFilesThatDoNotReachTheDisk(t *testing.T) {
	s, blobs := interpreting(t)
	blobs.full = true
	in := fileOf("in.txt", "in")
	s.Runner.Trades(func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) (writ.Result, error) {
		res := testkit.Ran(0, "", "")
		res.Files = []writ.OutputFile{{Path: "in.txt", State: writ.OutputSame}}
		for _, p := range []string{"a", "b", "never told"} {
			if err := x.Keep(ctx, writ.OutputFile{Path: p}, strings.NewReader(p[:1])); err != nil {
				t.Error(err)
			}
			if p != "never told" {
				res.Files = append(res.Files, writ.OutputFile{Path: p, State: writ.OutputNew})
			}
		}
		return res, nil
	})
	task, err := s.Interpret(t.Context(), user("ada"), interpret("python", "x", in))
	if err != nil {
		t.Fatal(err)
	}
	got := runOver(t, s, user("ada"), task.ID)
	want := []writ.OutputFile{{Path: "in.txt", Digest: in.Digest, Size: 2, State: writ.OutputSame}}
	if diff := cmp.Diff(want, got.Result.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if d := got.Result.Dropped; len(d) != 2 || d[0].Path != "a" || d[1].Path != "b" || got.Result.DroppedFiles != 2 || d[0].Class != writ.DropUnreadable {
		t.Errorf("dropped %+v of %d", d, got.Result.DroppedFiles)
	}
	if len(blobs.drafts) != 0 || len(blobs.named) != 0 {
		t.Errorf("left are %d drafts and %d blobs", len(blobs.drafts), len(blobs.named))
	}
	if got := s.Slog.String(); !strings.Contains(got, `"files":2`) {
		t.Errorf("log:\n%s", got)
	}
}

// TestInputsThatAreGone: why is told by its code, which is the runner's in an error alone.
func TestInputsThatAreGone(t *testing.T) {
	s, _ := interpreting(t)
	in := fileOf("in.txt", "in")
	for name, tt := range map[string]struct {
		run  func(context.Context, *writ.Exchange) (writ.Result, error)
		want string
	}{
		"gone": {func(ctx context.Context, x *writ.Exchange) (writ.Result, error) {
			_, err := x.Open(ctx, in.Digest)
			if writ.KindOf(err) != writ.NotFound {
				t.Errorf("open: %v", err)
			}
			return writ.Result{}, &writ.Error{Kind: writ.NotFound, Code: writ.CodeInputUnavailable, Msg: "gone", Err: err}
		}, writ.CodeInputUnavailable},
		"another code": {func(context.Context, *writ.Exchange) (writ.Result, error) {
			return writ.Result{}, &writ.Error{Kind: writ.Unavailable, Code: "PATH_ESCAPE", Msg: "no"}
		}, ""},
		"without an error": {func(context.Context, *writ.Exchange) (writ.Result, error) {
			return writ.Result{Outcome: writ.Failed, Code: writ.CodeInputTooLarge}, nil
		}, ""},
	} {
		s.Runner.Trades(func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) (writ.Result, error) {
			return tt.run(ctx, x)
		})
		task, err := s.Interpret(t.Context(), user("ada"), interpret("python", "x", in))
		if err != nil {
			t.Fatal(err)
		}
		s.Until(task.ID, writ.TaskFailed)
		got, err := s.Tasks.Get(t.Context(), user("ada"), task.ID)
		if err != nil || got.Result.Code != tt.want || got.Result.Started {
			t.Errorf("%s: %+v, %v", name, got.Result, err)
		}
	}
	if log := s.Slog.String(); strings.Count(log, "an input of a run could not be read") != 1 || !strings.Contains(log, "there is no such blob") {
		t.Errorf("log:\n%s", log)
	}
}

func TestOnlyUsersInterpret(t *testing.T) {
	s, _ := interpreting(t)
	spec := interpret("python", "x")
	for _, who := range []writ.Principal{s.Agent("coder"), s.Operator("ann"), testkit.Local()} {
		if _, err := s.Interpret(t.Context(), who, spec); writ.KindOf(err) != writ.Denied {
			t.Errorf("%s: %v", who.Ref(), err)
		}
	}
	// Files are named by digest: a request from outside could name anybody's.
	for _, who := range []writ.Principal{s.Agent("coder"), user("ada")} {
		if _, _, err := s.Submit(t.Context(), who, writ.TaskRequest{Identity: "coder", Spec: &spec}); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%s submits it: %v", who.Ref(), err)
		}
	}
	none := testkit.Gateway(t)
	if _, err := none.Interpret(t.Context(), user("ada"), spec); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("a server without an interpreter: %v", err)
	}
	for name, spec := range map[string]writ.RunSpec{"a task's kind": testkit.Spec("python", "x"), "no such language": interpret("cobol", "x")} {
		if _, err := s.Interpret(t.Context(), user("ada"), spec); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := s.Runner.Calls(); n != 0 {
		t.Errorf("%d runs", n)
	}
}

func TestPolicyDecidesAboutUsers(t *testing.T) {
	s, _ := interpreting(t)
	intern, weak := user("ivo"), user("wim")
	intern.Roles, weak.Scopes = []string{"intern"}, nil
	for name, who := range map[string]writ.Principal{"a forbidden role": intern, "no scope": weak} {
		task, err := s.Interpret(t.Context(), who, interpret("python", "x"))
		if err != nil || task.State != writ.TaskDenied {
			t.Errorf("%s: %s, %v", name, task.State, err)
		}
	}
	held, err := s.Interpret(t.Context(), user("ada"), interpret("bash", "ls", fileOf("a.txt", "a")))
	if err != nil || held.State != writ.TaskHeld {
		t.Fatalf("%s, %v", held.State, err)
	}
	view, err := s.Approval(t.Context(), s.Operator("ann"), held.Approval)
	if err != nil || !strings.Contains(view.Text, "file a.txt: 1 bytes, SHA-256 "+string(writ.DigestOf([]byte("a")))) || !strings.Contains(view.Text, "user:ada") {
		t.Errorf("%v, shown:\n%s", err, view.Text)
	}
	if _, err := s.Decide(s.Operator("ann"), held, writ.Grant, ""); err != nil {
		t.Fatal(err)
	}
	s.Until(held.ID, writ.TaskSucceeded)
}

// TestUsersRightsAreThoseInForce: what a user was allowed when it asked counts for nothing
// once the configuration gives users less.
func TestUsersRightsAreThoseInForce(t *testing.T) {
	s := testkit.Gateway(t, func(s *testkit.GatewaySetup) {
		s.Policy, s.Options.Users, s.Options.Blobs = interpreterPolicy, []writ.Scope{"python"}, newMemoryBlobs()
	})
	held, err := s.Interpret(t.Context(), user("ada"), interpret("bash", "ls")) // ada's token was made when users had a shell
	if err != nil || held.State != writ.TaskHeld {
		t.Fatalf("%s, %v", held.State, err)
	}
	if _, err := s.Decide(s.Operator("ann"), held, writ.Grant, ""); err != nil {
		t.Fatal(err)
	}
	s.Until(held.ID, writ.TaskDenied)
	if n := s.Runner.Calls(); n != 0 {
		t.Errorf("%d runs", n)
	}
}

// TestJW15_UsersSeeTheirOwnRuns: nobody of another name, kind or tenant.
func TestJW15_UsersSeeTheirOwnRuns(t *testing.T) {
	s, _ := interpreting(t)
	task, err := s.Interpret(t.Context(), user("coder"), interpret("python", "x"))
	if err != nil {
		t.Fatal(err)
	}
	s.Until(task.ID, writ.TaskSucceeded)
	other := user("coder")
	other.Tenant = "globex"
	for name, who := range map[string]writ.Principal{"another user": user("bob"), "an agent of its name": s.Agent("coder"), "its name elsewhere": other, "an operator elsewhere": s.Operator("eve")} {
		if _, err := s.Tasks.Get(t.Context(), who, task.ID); writ.KindOf(err) != writ.NotFound {
			t.Errorf("%s: %v", name, err)
		}
		if list, _, err := s.Tasks.List(t.Context(), who, writ.TaskFilter{}); err != nil || len(list) != 0 {
			t.Errorf("%s lists %d, %v", name, len(list), err)
		}
	}
	for name, who := range map[string]writ.Principal{"itself": user("coder"), "its operator": s.Operator("ann")} {
		if _, err := s.Tasks.Get(t.Context(), who, task.ID); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
