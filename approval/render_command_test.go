package approval_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/approval"
	"writ/shell"
)

// read is what package shell reads out of argv, in words.
func read(argv []string) (r approval.Reading) {
	for _, c := range shell.Read(argv).Commands {
		line := append(append([]string{}, c.Assigns...), c.Path)
		r.Commands = append(r.Commands, approval.ShellLine(append(line, c.Args...)))
		for _, u := range c.Unknown {
			r.Unknown = append(r.Unknown, fmt.Sprintf("%s: %s", u.Why, u.Text))
		}
	}
	return r
}

// askedCommand is what an approver reads of p.
func askedCommand(p approval.CommandOrder) string {
	a := approval.RequestCommand(p, hold(writ.Need{}), start, ttl)
	a.ID = "appr-2"
	return approval.RenderCommand(a, p.Request, p.Workspace, read(p.Request.Command))
}

func TestPOL09_RenderCommandGolden(t *testing.T) {
	for name, change := range map[string]func(p *approval.CommandOrder){
		"plain": func(*approval.CommandOrder) {},
		"terminal": func(p *approval.CommandOrder) {
			p.Mode, p.Request.TTY, p.Request.Dir = writ.ApprovalsConfirm, true, "sub/folder"
			p.Request.Command = []string{"vi", "it's here.txt", ""}
			p.Workspace.Profile, p.Workspace.Network = writ.ReadOnly, writ.NetworkEnabled
			p.Workspace.Rules = writ.PathRules{Read: []string{"src/**"}, Write: []string{"src/a"}, DenyRead: []string{"secrets/**"}, DenyWrite: []string{"go.mod"}}
		},
		"shell": func(p *approval.CommandOrder) {
			p.Request.Command = []string{"bash", "-c", "git status | head -3 && curl -s \"$URL\"\nrm -rf ./build # tidy\n"}
		},
		"hidden": func(p *approval.CommandOrder) {
			p.Request.Command = []string{"/usr/bin/\u0440ython3", "-c", "print('ok')\u202e\x1b[8m#\u200b" + strings.Repeat(" ", 300) + "; import os", "x\rCAUTION      none", "ünder"}
			p.Request.Dir = "\u0430\u200b\nrequester    operator:alice"
			p.Workspace.Root = "/srv/si\u202ete"
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := testCommand(writ.ApprovalsReview)
			change(&p)
			text := askedCommand(p)
			golden(t, "command-"+name, text)
			noControls(t, text)
			noneWide(t, text)
		})
	}
}

// noneWide checks that a view that does not wrap shows every line of a text whole.
func noneWide(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := columns(strings.TrimSuffix(line, "\n")); n > 190 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
}

func TestRenderCommandChangesWithWhatIsDoneAndNothingElse(t *testing.T) {
	p := testCommand(writ.ApprovalsReview)
	a := approval.RequestCommand(p, hold(writ.Need{Grants: 2}), start, ttl)
	text := approval.RenderCommand(a, p.Request, p.Workspace, read(p.Request.Command))

	// What may change between reading and voting.
	later := a
	held := *a.Call
	held.Process = "proc-1"
	later.Call = &held
	for _, who := range []writ.Principal{alice, bob} {
		if err := grant(&later, who, start.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(text, approval.RenderCommand(later, p.Request, p.Workspace, read(p.Request.Command))); diff != "" {
		t.Errorf("the text depends on what may change:\n%s", diff)
	}

	for name, tt := range commandChanges {
		p := testCommand(writ.ApprovalsReview)
		tt.change(&p)
		b := approval.RequestCommand(p, hold(writ.Need{Grants: 2}), start, ttl)
		b.ID = a.ID
		got := approval.RenderCommand(b, p.Request, p.Workspace, read(p.Request.Command))
		if got == text {
			t.Errorf("another %s shows the same text", name)
		}
		if strings.Contains(got, notThis) {
			t.Errorf("%s: its own text says that it is not its own", name)
		}
	}
}

const notThis = "CAUTION      what is shown here is not what this approval is for: do not grant it\n"

// What is not bound by the approval is not to be granted.
func TestPA07_RenderCommandSaysWhatIsNotOfTheApproval(t *testing.T) {
	p := testCommand(writ.ApprovalsReview)
	a := approval.RequestCommand(p, hold(writ.Need{}), start, ttl)
	show := func(a writ.Approval, p approval.CommandOrder) string {
		return approval.RenderCommand(a, p.Request, p.Workspace, read(p.Request.Command))
	}
	if got := show(a, p); strings.Contains(got, "CAUTION") {
		t.Errorf("its own:\n%s", got)
	}
	for name, tt := range commandChanges {
		switch name {
		case "requester", "kind", "identity":
			continue // those the text takes from the approval
		}
		other := testCommand(writ.ApprovalsReview)
		tt.change(&other)
		if !strings.Contains(show(a, other), notThis) {
			t.Errorf("another %s is shown as what the approval is for", name)
		}
	}
	if !strings.Contains(show(pending(writ.Need{}), p), notThis) {
		t.Error("a run's approval is taken for this")
	}
	b := a
	b.Action = writ.ActionPatch
	if !strings.Contains(show(b, p), notThis) {
		t.Error("a patch's approval is taken for this")
	}
}

// What a wrapper hides is listed, and what cannot be known of it is said at the top.
func TestPA03_RenderCommandListsWhatStandsInIt(t *testing.T) {
	p := testCommand(writ.ApprovalsReview)
	p.Request.Command = []string{"env", "A=1", "timeout", "5", "sh", "-c", "git log; /usr/bin/sudo id; $X"}
	got := unfolded(askedCommand(p))
	head, _, _ := strings.Cut(got, "\nprogram ")
	if want := "\nCAUTION      1 thing(s) cannot be known of what it runs, and are listed below; the first is computed: $X"; !strings.HasSuffix(head, want) {
		t.Errorf("%q is not at the end of the top:\n%s", want, head)
	}
	for _, want := range []string{" | git log\n", " | /usr/bin/sudo id\n", "\n--- what cannot be known of them: 1\n     1 | computed: $X\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the text:\n%s", want, got)
		}
	}
	if got := approval.RenderCommand(writ.Approval{}, p.Request, p.Workspace, approval.Reading{}); !strings.Contains(got, "CAUTION      which commands stand in it was not read\n") {
		t.Errorf("nothing was read of it, and that is not said:\n%s", got)
	}
}

// Every element can be read out of the text, also of the largest argv, and none can make
// a line that is not its own.
func TestPOL09_RenderCommandShowsEverythingAndForgesNothing(t *testing.T) {
	const evil = "; os.system(cmd)"
	for name, fill := range map[string]string{
		"tabs": strings.Repeat("\t", 100), "wide letters": strings.Repeat("漢", 300), "spaces": strings.Repeat(" ", 500),
		"written out": strings.Repeat("\u3000", 100), "lines": strings.Repeat("\nprogram      \"x\"", 10), "large": strings.Repeat("x", writ.MaxCommandBytes),
	} {
		p := testCommand(writ.ApprovalsReview)
		p.Request.Command = []string{"python3", "-c", "print('ok') #" + fill + evil, "\nCAUTION      none"}
		got := askedCommand(p)
		noControls(t, got)
		noneWide(t, got)
		if n := strings.Count(unfolded(got), evil); n < 2 { // as an element and on the line of a shell
			t.Errorf("%s: the end of the code is %d times in the text", name, n)
		}
		programs := 0
		for line := range strings.Lines(got) {
			if strings.HasPrefix(line, "program ") {
				programs++
			}
			if line == "CAUTION      none\n" {
				t.Errorf("%s: a line was forged", name)
			}
		}
		if programs != 1 {
			t.Errorf("%s: %d lines name the program, want 1", name, programs)
		}
	}
}

// Whatever is sent, the text is one that shows, of lines that begin as they may.
func FuzzRenderCommand(f *testing.F) {
	f.Add("bash", "-c", "a | b\n$c", "sub", true)
	f.Add("\u202e\x00", "⟦U+0000⟧", "\xff", "\n", false)
	f.Add("if", "", "A='", "--- commands in it: 0", true)
	begins := []string{"approval ", "tenant ", "identity ", "requester ", "workspace ", "root ", "held because ", "rule ", "policy ", "needs ", "asked ", "expires ", "binds ",
		"does ", "approvals ", "request ", "folder ", "terminal ", "input ", "profile ", "environment ", "network ", "never reads ", "elements ", "commands ", "CAUTION ",
		"program ", "argument 1 ", "argument 2 ", "       ! ", "       > ", "as a line ", "--- program, line by line: ", "--- argument 1, line by line: ", "--- argument 2, line by line: ",
		"--- commands in it: ", "--- what cannot be known of them: "}
	f.Fuzz(func(t *testing.T, program, first, second, dir string, tty bool) {
		p := testCommand(writ.ApprovalsReview)
		p.Request.Command, p.Request.Dir, p.Request.TTY = []string{program, first, second}, dir, tty
		got := askedCommand(p)
		if !utf8.ValidString(got) {
			t.Error("the text is not UTF-8")
		}
		noControls(t, got)
		quoted := 0
		for line := range strings.Lines(got) {
			ok := line == "\n" || len(line) > 9 && strings.Trim(line[:6], " 0123456789") == "" && line[6:9] == " | "
			for _, b := range begins {
				ok = ok || strings.HasPrefix(line, b)
			}
			if !ok {
				t.Errorf("a line begins as none may: %q", line)
			}
			if strings.HasPrefix(line, "program ") || strings.HasPrefix(line, "argument ") {
				quoted++
			}
		}
		if quoted != 3 {
			t.Errorf("%d lines begin as an element, want 3:\n%s", quoted, got)
		}
	})
}
