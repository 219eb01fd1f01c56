package interpreter_test

import (
	"context"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/blob"
	"writ/internal/testkit"
	"writ/interpreter"
	"writ/runner"
	"writ/sandbox"
	"writ/session"
)

const policyOfUsers = `@id("users")
permit (principal is User, action == Action::"run", resource);
@id("hold-node")
@hold("a person looks at node")
permit (principal is User, action == Action::"run", resource in Scope::"node");
@id("no-php")
@reason("nobody runs php")
forbid (principal is User, action == Action::"run", resource in Scope::"php");
`

// system is a service on a real store, real bytes and a real gateway. Its runs are real,
// too, unless a test scripts them.
type system struct {
	*interpreter.Service
	sys   *testkit.System
	files *session.Service
	blobs *blob.Folder
	opt   interpreter.Options
	t     *testing.T
}

var scopes = []writ.Scope{"python", "shell", "node", "php"}

func user(tenant writ.Tenant, id string) writ.Principal {
	return writ.Principal{Kind: writ.KindUser, ID: id, Tenant: tenant, Scopes: scopes}
}

var ada = user("acme", "ada")

// spoken is a host that speaks python, bash and node.
type spoken struct{}

func (spoken) Languages(context.Context) ([]writ.LanguageStatus, error) {
	list := []writ.LanguageStatus{{Name: "rust", Kind: writ.RunTask, Interpreter: "/usr/bin/rustc"}}
	for _, l := range []writ.Language{"python", "bash", "node", "php"} {
		list = append(list, writ.LanguageStatus{Name: l, Kind: writ.RunInterpreter, Interpreter: "/usr/bin/" + string(l)})
	}
	return list, nil
}

func options() interpreter.Options {
	l := writ.DefaultLimits
	l.WallMS, l.WorkspaceBytes = 30_000, 32<<20
	return interpreter.Options{
		Limits: l, Compile: l, OutputUnits: 65536, Inputs: 256,
		Collect: writ.Collect{Files: 50, FileBytes: 10_000_000, TotalBytes: 20_000_000, Depth: 10, PathLength: 256, Names: []string{"csv", "sh", "txt"}},
		Plan:    interpreter.Plan{MemoryBytes: 128 << 20, FileBytes: 1 << 20}, Plans: map[string]interpreter.Plan{"small": {MemoryBytes: 64 << 20}},
		Mode: interpreter.Stateless, LockWait: 50 * time.Millisecond, Deadline: time.Minute,
	}
}

func open(t *testing.T, adjust func(*interpreter.Options)) *system {
	t.Helper()
	return openOn(t, "", adjust)
}

// openOn is open, on the store of that URL.
func openOn(t *testing.T, url string, adjust func(*interpreter.Options)) *system {
	t.Helper()
	return openIn(t, t.TempDir(), url, adjust)
}

// openIn is openOn, with its bytes in dir.
func openIn(t *testing.T, dir, url string, adjust func(*interpreter.Options)) *system {
	t.Helper()
	blobs, err := blob.OpenFolder(dir + "/blobs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := blobs.Close(); err != nil {
			t.Error(err)
		}
	})
	sys := testkit.Gateway(t, func(s *testkit.GatewaySetup) {
		s.URL, s.Policy, s.Options.Users, s.Options.Blobs = url, policyOfUsers, scopes, blobs
	})
	files, err := session.New(sys.DB, blobs, session.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	opt := options()
	if adjust != nil {
		adjust(&opt)
	}
	return (&system{sys: sys, blobs: blobs, opt: opt, t: t}).with(files)
}

// with is s with that service of files.
func (s *system) with(files *session.Service) *system {
	next := *s
	next.files = files
	next.Service = interpreter.New(s.sys.Tasks, files, session.NewRuntimes(files), spoken{}, slog.New(slog.DiscardHandler), s.opt)
	return &next
}

// openReal is open, with runs in real boxes.
func openReal(t *testing.T, adjust func(*interpreter.Options)) *system {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.Missing(t, "bwrap", "bwrap is not installed")
	}
	return open(t, adjust).real()
}

// real has s run in real boxes.
func (s *system) real() *system {
	t := s.t
	t.Helper()
	p, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := runner.New(p, runner.Options{Slots: 2})
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Errorf("close runner: %v", err)
		}
		if err := p.Close(); err != nil {
			t.Errorf("close sandbox: %v", err)
		}
	})
	s.sys.Runner.Trades(func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) (writ.Result, error) {
		return r.Run(ctx, writ.NewID("run"), spec, spec.Digest(), x)
	})
	return s
}

// upload keeps a file for who, and answers a reference to it.
func (s *system) upload(who writ.Principal, e session.Entity, f session.File) interpreter.Ref {
	s.t.Helper()
	in, err := s.files.Create(s.t.Context(), who, e)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.add(who, e, in.ID, f)
}

func (s *system) add(who writ.Principal, e session.Entity, in writ.SessionID, f session.File) interpreter.Ref {
	s.t.Helper()
	f.Max, f.Type = 1<<20, "text/plain"
	o, err := s.files.Put(s.t.Context(), who, e, in, f)
	if err != nil {
		s.t.Fatal(err)
	}
	return interpreter.Ref{Object: o.Ref(), Name: o.Name, Entity: e}
}

func text(name, content string) session.File {
	return session.File{Name: name, Body: strings.NewReader(content)}
}

func mine(who writ.Principal) session.Entity {
	return session.Entity{Kind: writ.EntityUser, ID: who.ID}
}

// bash has who run code, and answers what it was told.
func (s *system) bash(who writ.Principal, hint, code string, refs ...interpreter.Ref) interpreter.Reply {
	s.t.Helper()
	reply, err := s.Exec(s.t.Context(), who, interpreter.Request{Language: "bash", Code: code, Files: refs, Hint: hint})
	if err != nil {
		s.t.Fatalf("%q: %v", code, err)
	}
	return reply
}

// listed is what an answer says of files: a line each, in order.
func listed(r interpreter.Reply) string {
	var lines []string
	for _, f := range r.Files {
		line := f.Name
		if f.Inherited {
			line += " inherited"
		}
		if f.ModifiedFrom != nil {
			line += " modified"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

// refsTo are references to the files of an answer, as clients send them again.
func refsTo(who writ.Principal, r interpreter.Reply) (refs []interpreter.Ref) {
	for _, f := range r.Files {
		refs = append(refs, interpreter.Ref{Object: f.Object, Name: f.Name, Entity: session.Entity{Kind: writ.EntityUser, ID: string(f.Object.ID)}})
	}
	return refs
}

func (s *system) read(who writ.Principal, o writ.ObjectRef) string {
	s.t.Helper()
	got, err := s.files.Get(s.t.Context(), who, mine(who), o.Session, o.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := s.files.Open(s.t.Context(), got, 0, -1)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// TestLC01_LC19_LC24_FilesFromRunToRun: continuity through references alone.
func TestLC01_LC19_LC24_FilesFromRunToRun(t *testing.T) {
	s := openReal(t, nil)
	first := s.bash(ada, "", "echo 42 >n.txt; mkdir -p keep/me; : >zero.txt; echo x >no.kind")
	if got := listed(first); got != "keep/me/.dirkeep, n.txt, zero.txt" {
		t.Fatalf("first: %s", got)
	}
	if first.DroppedFiles != 1 || first.Dropped[0].Path != "no.kind" || first.Dropped[0].Class != writ.DropKind {
		t.Errorf("dropped: %+v", first.Dropped)
	}
	second := s.bash(ada, "", "cat n.txt; test -d keep/me && ls -A keep/me; printf +1 >>n.txt", refsTo(ada, first)...)
	if second.Stdout != "42\n" {
		t.Errorf("second: %+v", second)
	}
	if got := listed(second); got != "n.txt modified, keep/me/.dirkeep inherited, zero.txt inherited" {
		t.Errorf("second: %s", got)
	}
	old, changed := first.Files[1].Object, second.Files[0]
	if *changed.ModifiedFrom != old || changed.Object.Session != second.Session {
		t.Errorf("%+v is from %+v", changed, old)
	}
	if a, b := s.read(ada, old), s.read(ada, changed.Object); a != "42\n" || b != "42\n+1" {
		t.Errorf("the old one has %q, the new one %q", a, b)
	}
	// The folder comes by its session, also when the client does not name it.
	third := s.bash(ada, "", "test -d keep/me && echo yes", refsTo(ada, first)[1:]...)
	if third.Stdout != "yes\n" {
		t.Errorf("third: %+v", third)
	}
}

// TestFilesOnPostgreSQL: the same on the other engine, also of a runtime session.
func TestFilesOnPostgreSQL(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.Missing(t, "bwrap", "bwrap is not installed")
	}
	s := openOn(t, testkit.Postgres(t)(t), stateful(interpreter.Affinity)).real()
	first := s.bash(ada, "", "echo 42 >n.txt; mkdir -p keep/me")
	second := s.bash(ada, "", "cat n.txt; test -d keep/me && printf +1 >>n.txt", refsTo(ada, first)...)
	if got := listed(second); second.Stdout != "42\n" || got != "n.txt modified, keep/me/.dirkeep inherited" {
		t.Errorf("%+v", second)
	}
	if got := s.read(ada, second.Files[0].Object); got != "42\n+1" {
		t.Errorf("%q", got)
	}
	s.bash(ada, "h", "echo kept >state.txt; : >empty.txt")
	if got := s.bash(ada, "h", "cat state.txt; ls empty.txt; rm empty.txt"); got.Stdout != "kept\nempty.txt\n" || got.RuntimeStatus != "reused" || len(got.Deleted) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestSkillsAreSharedAndStay(t *testing.T) {
	s := openReal(t, nil)
	v := 3.0
	skill := session.Entity{Kind: writ.EntitySkill, ID: "s1", Version: &v}
	bob := user("acme", "bob")
	f := text("skills/demo/SKILL.xsd", "# Skill\n")
	f.ReadOnly = true
	ref := s.upload(bob, skill, f)
	got := s.bash(ada, "", "rm -f skills/demo/SKILL.xsd; echo hacked >skills/demo/SKILL.xsd; cat skills/demo/SKILL.xsd", ref)
	if got.Stdout != "hacked\n" || listed(got) != "skills/demo/SKILL.xsd inherited" || got.Files[0].Object != ref.Object {
		t.Errorf("%+v", got)
	}
}

// TestIO11_FilesOfOthers: what is another's is as what never was, and nothing runs.
func TestIO11_FilesOfOthers(t *testing.T) {
	s := open(t, nil)
	bob, elsewhere := user("acme", "bob"), user("globex", "ada")
	mineToo := s.upload(ada, mine(ada), text("a.txt", "a"))
	agent := session.Entity{Kind: writ.EntityAgent, ID: "agent_1"}
	foreign := map[string]interpreter.Ref{
		"another user's":      s.upload(bob, mine(bob), text("b.txt", "b")),
		"another tenant's":    s.upload(elsewhere, mine(elsewhere), text("b.txt", "b")),
		"another entity's":    {Object: s.upload(ada, agent, text("b.txt", "b")).Object, Name: "b.txt", Entity: session.Entity{Kind: writ.EntityAgent, ID: "agent_2"}},
		"of an entity as own": {Object: s.upload(ada, agent, text("b.txt", "b")).Object, Name: "b.txt", Entity: mine(ada)},
		"never there":         {Object: writ.ObjectRef{ID: writ.NewObjectID(), Session: writ.NewSessionID()}, Name: "b.txt", Entity: mine(ada)},
		"in another session":  {Object: writ.ObjectRef{ID: mineToo.Object.ID, Session: writ.NewSessionID()}, Name: "a.txt", Entity: mine(ada)},
	}
	for name, ref := range foreign {
		for _, refs := range [][]interpreter.Ref{{ref}, {mineToo, ref}} {
			_, err := s.Exec(t.Context(), ada, interpreter.Request{Language: "bash", Files: refs})
			if writ.KindOf(err) != writ.Denied || writ.CodeOf(err) != "" || writ.Message(err) != "Unauthorized file reference" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if n := s.sys.Runner.Calls(); n != 0 {
		t.Errorf("%d runs", n)
	}
	if _, err := s.Exec(t.Context(), ada, interpreter.Request{Language: "bash", Files: []interpreter.Ref{mineToo}}); err != nil {
		t.Errorf("its own: %v", err)
	}
}

func TestCP07_LimitsAreThoseOfThePlan(t *testing.T) {
	s := open(t, nil)
	for plan, memory := range map[string]int64{"": 128 << 20, "small": 64 << 20, "unknown": 128 << 20} {
		who := ada
		who.Plan = plan
		if _, err := s.Exec(t.Context(), who, interpreter.Request{Language: "bash", WallMS: 3_600_000}); err != nil {
			t.Fatal(err)
		}
		got := s.sys.Runner.SpecOf(s.last().ID).Limits
		if got.MemoryBytes != memory+32<<20 || got.WallMS != 30_000 || got.OutputBytes != 3*65536 {
			t.Errorf("plan %q: %+v", plan, got)
		}
	}
	if _, err := s.Exec(t.Context(), ada, interpreter.Request{Language: "bash", WallMS: 2000}); err != nil {
		t.Fatal(err)
	}
	if got := s.sys.Runner.SpecOf(s.last().ID).Limits.WallMS; got != 2000 {
		t.Errorf("LC-29: a run that asked for 2 s gets %d ms", got)
	}
}

func TestLC28_Languages(t *testing.T) {
	s := open(t, nil)
	for name, want := range map[writ.Language]string{
		"cobol": "Unsupported language: cobol", "": "Unsupported language: ", "../bash": "Unsupported language: ../bash",
		"rs": "Unsupported language: rs (not installed on this server: apt-get install rustc)",
		"js": "Unsupported language: js (not installed on this server: npm install -g bun)",
	} {
		for _, err := range []error{s.Language(t.Context(), name), func() error {
			_, err := s.Exec(t.Context(), ada, interpreter.Request{Language: name})
			return err
		}()} {
			if writ.KindOf(err) != writ.Invalid || writ.Message(err) != want {
				t.Errorf("%q: %v, want %s", name, err, want)
			}
		}
	}
	for _, name := range []writ.Language{"py", "PY", "Python", "sh", "bash", "nodejs", "node-js"} {
		if err := s.Language(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTooManyFiles(t *testing.T) {
	s := open(t, func(o *interpreter.Options) { o.Inputs = 2 })
	ref := s.upload(ada, mine(ada), text("a.txt", "a"))
	_, err := s.Exec(t.Context(), ada, interpreter.Request{Language: "bash", Files: slices.Repeat([]interpreter.Ref{ref}, 3)})
	if writ.KindOf(err) != writ.Invalid || writ.CodeOf(err) != "bad_request" {
		t.Errorf("%v", err)
	}
}
