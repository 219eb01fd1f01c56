package librechat

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/internal/testkit"
)

// TestCases are cases of which the whole program must make something.
func TestCases(t *testing.T) {
	s := serve(t, setup{mode: signed})
	for name, test := range map[string]func(tester){
		"LC01_AFileOfOneRunIsInTheNext":     nextRun,
		"LC04_SeveralInputsStay":            severalInputs,
		"LC05_TwoFilesOfOneName":            oneName,
		"LC19_AnEditedInputHasLineage":      editedInput,
		"LC21_UnchangedInputsAreInherited":  unchangedInputs,
		"LC21_InputsBesideTooManyOutputs":   crowd,
		"LC23_AnOutputOverwrittenLater":     overwritten,
		"LC24_EmptyFilesAndFolders":         empty,
		"LC26_CachesAreNoFiles":             caches,
		"LC28_Languages":                    languages,
		"LC29_TheFieldTimeout":              timeoutField,
		"LC31_Plots":                        plots,
		"CP08_TwoRunsOfOneSessionAtOnce":    twoRuns,
		"CP08_ADeletionDuringARun":          deletedMeanwhile,
		"AClientThatGoesAway":               goneAway,
		"ACancelledRun":                     cancelled,
		"IO11_AForeignFileIsAsOneThatIsNot": foreign,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(s.user("user of " + name).in(t))
		})
	}
}

func nextRun(c tester) {
	first := c.ran("bash", "echo 41 > n.txt")
	f := first.file("n.txt")
	if f.ID == "" || f.Session != first.Session || f.Inherited {
		c.t.Fatalf("the file of the first run: %+v", first)
	}
	if r := c.ran("py", "print(int(open('/mnt/data/n.txt').read())+1)", f.ref()); r.Stdout != "42\n" {
		c.t.Errorf("the second run: %+v", r)
	}
}

func severalInputs(c tester) {
	refs := c.upload(upload{"a.csv", "1"}, upload{"b.csv", "2"}, upload{"c.csv", "3"})
	first := c.ran("bash", "cat a.csv", refs...)
	for _, r := range refs {
		if f := first.file(r.Name); !f.Inherited || f.ID != r.ID || f.Session != r.Session {
			c.t.Errorf("%s after the first run: %+v", r.Name, f)
		}
	}
	if r := c.ran("bash", "ls /mnt/data/*.csv | tr '\\n' ' '", first.refs()...); r.Stdout != "/mnt/data/a.csv /mnt/data/b.csv /mnt/data/c.csv " {
		c.t.Errorf("the second run finds %q", r.Stdout)
	}
}

func oneName(c tester) {
	one, two := c.upload(upload{"t.csv", "1"})[0], c.upload(upload{"t.csv", "2"})[0]
	const show = "cd /mnt/data; for f in *.csv; do echo $f $(cat $f); done"
	for range 3 { // the winner is the same each time
		if r := c.ran("bash", show, one, two); r.Stdout != "t.csv 2\n" {
			c.t.Errorf("of two under one name the run finds %q, want the last", r.Stdout)
		}
	}
	one.Name = "t-old.csv"
	if r := c.ran("bash", show, one, two); r.Stdout != "t-old.csv 1\nt.csv 2\n" {
		c.t.Errorf("of two under two names the run finds %q", r.Stdout)
	}
}

func editedInput(c tester) {
	in := c.upload(upload{"d.csv", "a"})[0]
	f := c.ran("bash", "printf b >> /mnt/data/d.csv", in).file("d.csv")
	if f.ID == "" || f.ID == in.ID || f.Inherited || f.ModifiedFrom == nil || *f.ModifiedFrom != (at{in.ID, in.Session}) {
		c.t.Fatalf("the edited input: %+v of %+v", f, in)
	}
	if was, is := c.text(in.Session, in.ID), c.text(f.Session, f.ID); was != "a" || is != "ab" {
		c.t.Errorf("the old one has %q, the new one %q", was, is)
	}
}

func unchangedInputs(c tester) {
	in := c.upload(upload{"in.txt", "x\n"})[0]
	r := c.ran("bash", "cat in.txt; echo x > out.txt", in)
	if diff := cmp.Diff([]made{
		{ID: r.file("out.txt").ID, Name: "out.txt", Session: r.Session},
		{ID: in.ID, Name: "in.txt", Session: in.Session, Inherited: true},
	}, r.Files); diff != "" {
		c.t.Errorf("the files (-want +got):\n%s", diff)
	}
}

// crowd: a client loses what an answer does not name, so inputs are named however many files
// are new, and whatever their kind.
func crowd(c tester) {
	var all []upload
	for i := range 60 {
		all = append(all, upload{fmt.Sprintf("in/%02d.xsd", i), fmt.Sprint(i)})
	}
	in := c.upload(all...)
	r := c.ran("bash", "for i in {01..52}; do echo $i > $i.txt; done", in...)
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprintf("%02d.txt", i+1))
	}
	for _, f := range in {
		want = append(want, f.Name)
	}
	if diff := cmp.Diff(want, r.names()); diff != "" {
		c.t.Errorf("the files (-want +got):\n%s", diff)
	}
	for i, f := range r.Files {
		if f.Inherited != (i >= 50) || f.Inherited && (f.ID != in[i-50].ID || f.Session != in[i-50].Session) {
			c.t.Errorf("%+v", f)
		}
	}
}

func overwritten(c tester) {
	red := c.ran("bash", "echo red > plot.png")
	blue := c.ran("bash", "cat plot.png; echo blue > plot.png", red.refs()...)
	if blue.Stdout != "red\n" || len(blue.Files) != 1 {
		c.t.Fatalf("the second run: %+v", blue)
	}
	was, is := red.file("plot.png"), blue.file("plot.png")
	if was.ID == is.ID || c.text(was.Session, was.ID) != "red\n" || c.text(is.Session, is.ID) != "blue\n" {
		c.t.Errorf("first %+v, then %+v", was, is)
	}
	for _, f := range []made{was, is} {
		if l := c.list(f.Session); len(l) != 1 || l[0].ID != f.ID || l[0].Name != "plot.png" {
			c.t.Errorf("the session of %+v lists %+v", f, l)
		}
	}
}

func empty(c tester) {
	first := c.ran("bash", ": > zero.txt; mkdir -p keep/me")
	f := first.file("zero.txt")
	a := c.want(http.StatusOK, http.MethodGet, downloadPath(f.Session, f.ID), nil)
	if len(a.body) != 0 || a.header.Get("Content-Length") != "0" {
		c.t.Errorf("the empty file: %s, Content-Length %q", a, a.header.Get("Content-Length"))
	}
	second := c.ran("bash", "stat -c %s zero.txt; test -d keep/me && echo yes; rm -r keep/me/.dirkeep 2>/dev/null; ls -A keep/me", first.refs()...)
	if second.Stdout != "0\nyes\n" {
		c.t.Errorf("the second run finds %q", second.Stdout)
	}
	for _, f := range second.Files {
		if !f.Inherited {
			c.t.Errorf("what was there before is shown as new: %+v", f)
		}
	}
}

func caches(c tester) {
	in := c.upload(upload{".config/app.toml", "a = 1\n"})[0]
	r := c.ran("py", `
import os, subprocess, sys
os.makedirs("/mnt/data/.cache/fonts"); open("/mnt/data/.cache/fonts/list.json", "w").write("{}")
os.makedirs("/mnt/data/pkg"); open("/mnt/data/pkg/m.py", "w").write("x = 1\n")
subprocess.run([sys.executable, "-c", "import pkg.m"], check=True, env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"})
open("/mnt/data/c.png", "w").write("png")
`, in)
	if diff := cmp.Diff([]string{"c.png", "pkg/m.py", ".config/app.toml"}, r.names()); diff != "" {
		c.t.Errorf("the files (-want +got):\n%s", diff)
	}
	if !r.file(".config/app.toml").Inherited {
		c.t.Errorf("the input in a hidden folder: %+v", r.Files)
	}
}

func languages(c tester) {
	for _, body := range []map[string]any{{"lang": "cobol", "code": "x"}, {"lang": "", "code": "x"}, {"code": "x"}, {"lang": 1, "code": "x"}, {"lang": nil, "code": "x"}} {
		a, err := c.sendJSON(c.t.Context(), "/exec", body)
		c.took(http.StatusBadRequest, fmt.Sprint(body), a, err, nil)
		if body["lang"] == "cobol" && string(a.body) != `{"error":"Unsupported language: cobol"}` {
			c.t.Errorf("cobol: %s", a)
		}
	}
	for lang, code := range map[string]string{
		"py": "print('ok')", "python": "print('ok')", "PY": "print('ok')", "bash": "echo ok", "sh": "echo ok",
		"js": "console.log('ok')", "node": "console.log('ok')", "ts": "const s: string = 'ok'; console.log(s)",
	} {
		if r := c.ran(lang, code); r.Stdout != "ok\n" {
			c.t.Errorf("%s: %+v", lang, r)
		}
	}
}

// timeoutField: a caller may ask for less time than there is, and not for more; what is no
// time has no meaning.
func timeoutField(c tester) {
	exec := func(timeout any, code string) (r run) {
		a, err := c.sendJSON(c.t.Context(), "/exec", map[string]any{"lang": "bash", "code": code, "timeout": timeout})
		c.took(http.StatusOK, "exec", a, err, &r)
		return r
	}
	// Without the field the run would have come to its end.
	if r := exec(3000, "echo start; sleep 20; echo end"); r.Stdout != "start\n" || r.Status == nil || *r.Status != "TO" {
		c.t.Errorf("a run of 20 seconds with 3: %+v", r)
	}
	for _, timeout := range []any{300_000, 1e300, -1, 0, "soon", nil, []int{1}} {
		if r := exec(timeout, "sleep 0.1; echo done"); r.Stdout != "done\n" || r.Status != nil {
			c.t.Errorf("timeout %v: %+v", timeout, r)
		}
	}
}

func plots(c tester) {
	const line = "2026-11-30 12:00:00,000 - INFO - said by the program\n"
	probe := c.exec("py", "import matplotlib, sys; sys.stderr.write("+strconv.Quote(line)+")")
	if probe.Code == nil || *probe.Code != 0 {
		testkit.Missing(c.t, "python3-matplotlib", probe.Stderr)
	}
	if probe.Stderr != line {
		c.t.Errorf("stderr is %q", probe.Stderr)
	}
	r := c.ran("py", "import matplotlib.pyplot as plt; plt.plot([1,2]); plt.savefig('a.png'); plt.show()")
	for _, name := range []string{"a.png", "plot_1.png"} {
		f := r.file(name)
		if f.ID == "" {
			c.t.Errorf("no %s: %+v", name, r)
			continue
		}
		a := c.want(http.StatusOK, http.MethodGet, downloadPath(f.Session, f.ID), nil)
		if a.header.Get("Content-Type") != "image/png" || !strings.HasPrefix(string(a.body), "\x89PNG\r\n") {
			c.t.Errorf("%s is %q, %d bytes", name, a.header.Get("Content-Type"), len(a.body))
		}
	}
}

// twoRuns: storage sessions are only read by runs, so that nothing is to be told apart but
// by the answers.
func twoRuns(c tester) {
	in := c.upload(upload{"n.txt", "0"})[0]
	runs := make([]run, 4)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			a, err := c.sendJSON(c.t.Context(), "/exec", map[string]any{"lang": "bash", "code": fmt.Sprintf("sleep 0.3; printf %d > n.txt; cat n.txt", i+1), "files": []ref{in}})
			if err != nil || a.status != http.StatusOK {
				c.t.Errorf("run %d: %v %s", i, err, a)
				return
			}
			c.took(http.StatusOK, "exec", a, err, &runs[i])
		})
	}
	all.Wait()
	if c.t.Failed() {
		return
	}
	var sessions []string
	for i, r := range runs {
		f, want := r.file("n.txt"), fmt.Sprint(i+1)
		if r.Stdout != want || f.ModifiedFrom == nil || f.ModifiedFrom.ID != in.ID || c.text(f.Session, f.ID) != want {
			c.t.Errorf("run %d: %+v", i, r)
		}
		sessions = append(sessions, r.Session)
	}
	slices.Sort(sessions)
	if n := len(slices.Compact(sessions)); n != len(runs) {
		c.t.Errorf("%d sessions of %d runs", n, len(runs))
	}
	if got := c.text(in.Session, in.ID); got != "0" {
		c.t.Errorf("the input has %q afterwards", got)
	}
}

// deletedMeanwhile: a run keeps what it was given.
func deletedMeanwhile(c tester) {
	in := c.upload(upload{"in.txt", "here"})[0]
	var r run
	var over sync.WaitGroup
	over.Go(func() {
		a, err := c.sendJSON(c.t.Context(), "/exec", map[string]any{"lang": "bash", "code": "sleep " + seconds(10) + "; cat in.txt", "files": []ref{in}})
		if err == nil && a.status == http.StatusOK {
			c.took(http.StatusOK, "exec", a, err, &r)
		} else {
			c.t.Errorf("the run: %v %s", err, a)
		}
	})
	running(c.t, seconds(10))
	c.want(http.StatusOK, http.MethodDelete, "/files/"+in.Session+"/"+in.ID+of, nil)
	over.Wait()
	if r.Stdout != "here" {
		c.t.Errorf("the run of a file that was deleted meanwhile: %+v", r)
	}
	c.want(http.StatusNotFound, http.MethodGet, downloadPath(in.Session, in.ID), nil)
	a, err := c.sendJSON(c.t.Context(), "/exec", map[string]any{"lang": "bash", "code": "cat in.txt", "files": []ref{in}})
	c.took(http.StatusForbidden, "exec with a file that was deleted", a, err, nil)
}

// goneAway: nobody waits for what the run would say.
func goneAway(c tester) {
	ctx, leave := context.WithCancel(c.t.Context())
	var over sync.WaitGroup
	over.Go(func() {
		if a, err := c.sendJSON(ctx, "/exec", map[string]any{"lang": "bash", "code": "sleep " + seconds(301)}); err == nil {
			c.t.Errorf("a client that went away was answered: %s", a)
		}
	})
	running(c.t, seconds(301))
	leave()
	over.Wait()
	ended(c.t, seconds(301))
}

// cancelled: a client that still has its connection ends a run by the id that it gave it
// (spec/03 §13); of others' runs it ends none.
func cancelled(c tester) {
	const id = "0b8f0d0e-6d0c-4a56-9d0b-d2b5a1c0ffee"
	var over sync.WaitGroup
	over.Go(func() {
		body := strings.NewReader(`{"lang":"bash","code":"sleep ` + seconds(302) + `"}`)
		r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.s.url+"/exec", body)
		if err != nil {
			c.t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+c.token())
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-LibreChat-Code-Request-ID", id)
		resp, err := c.s.http.Do(r)
		if err != nil {
			c.t.Error(err)
			return
		}
		defer resp.Body.Close()
		if resp.StatusCode < 400 {
			c.t.Errorf("a cancelled run is answered with %s", resp.Status)
		}
	})
	running(c.t, seconds(302))
	cancel := func(who user) answer {
		a, err := who.sendJSON(c.t.Context(), "/exec/programmatic/cancel", map[string]string{"request_id": id})
		if err != nil {
			c.t.Fatal(err)
		}
		return a
	}
	if a := cancel(c.s.user("another")); a.status != http.StatusOK || !strings.Contains(string(a.body), "already_completed") {
		c.t.Errorf("another user's cancel: %s", a)
	}
	running(c.t, seconds(302))
	if a := cancel(c.user); a.status != http.StatusAccepted || !strings.Contains(string(a.body), "cancellation_requested") {
		c.t.Errorf("cancel: %s", a)
	}
	over.Wait()
	ended(c.t, seconds(302))
}

// foreign: ids of others tell nothing.
func foreign(c tester) {
	other := tester{user{c.s, "another", c.tenant}, c.t}
	away := tester{user{c.s, c.name, "another tenant"}, c.t}
	real := other.upload(upload{"secret.txt", "secret"})[0]
	madeUp := ref{ID: "zzzzzzzzzzzzzzzzzzzzz", Resource: "me", Session: real.Session, Name: "secret.txt", Kind: "user"}
	nowhere := madeUp
	nowhere.Session = "yyyyyyyyyyyyyyyyyyyyy"
	ask := func(u tester, r ref) string {
		a, err := u.sendJSON(c.t.Context(), "/exec", map[string]any{"lang": "bash", "code": "cat secret.txt", "files": []ref{r}})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, h := range []string{"Date", "Ratelimit-Remaining", "Ratelimit-Reset"} {
			a.header.Del(h)
		}
		return fmt.Sprintf("%d %v %s", a.status, a.header, a.body)
	}
	want := ask(c, nowhere)
	if !strings.HasPrefix(want, "403 ") || !strings.HasSuffix(want, `{"error":"Unauthorized file reference"}`) {
		c.t.Errorf("a file that is not: %s", want)
	}
	for what, got := range map[string]string{
		"another user's": ask(c, real), "one that is not in another user's session": ask(c, madeUp),
		"another tenant's": ask(away, real), "none in another tenant": ask(away, nowhere),
	} {
		if got != want {
			c.t.Errorf("%s is answered otherwise than one that is not:\n%s\n%s", what, got, want)
		}
	}
	if r := other.ran("bash", "cat secret.txt", real); r.Stdout != "secret" {
		c.t.Errorf("its owner: %+v", r)
	}
}
