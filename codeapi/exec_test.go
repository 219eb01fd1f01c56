package codeapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/interpreter"
)

// TestExecBody: what of a body becomes a run (spec/03 §6.1), and what does not.
func TestExecBody(t *testing.T) {
	const unsupported = `{"error":"Unsupported language: %s"}`
	const badArgs = `{"error":"bad_request","message":"args must be an array of strings if provided"}`
	const noCode = `{"error":"bad_request","message":"files[0] must contain exactly one of non-empty id or string content"}`
	d := newDesk(t, deskOptions{})
	run := func(code string, args ...string) interpreter.Request {
		return interpreter.Request{Language: "bash", Code: code, Args: args}
	}
	for name, tt := range map[string]struct {
		body string
		want string // of a refusal
		run  interpreter.Request
	}{
		"hello":                        {body: hiBody, run: run("echo hi")},
		"LC-28 alias in capitals":      {body: `{"lang":"PY","code":"x"}`, run: interpreter.Request{Language: "PY", Code: "x"}},
		"LC-28 cobol":                  {body: `{"lang":"cobol","code":"x"}`, want: fmt.Sprintf(unsupported, "cobol")},
		"LC-28 empty":                  {body: `{"lang":"","code":"x"}`, want: fmt.Sprintf(unsupported, "")},
		"LC-28 missing":                {body: `{"code":"x"}`, want: `{"error":"lang is required: name the language of the code in a JSON body, such as \"python\""}`},
		"LC-28 number":                 {body: `{"lang":1,"code":"x"}`, want: `{"error":"lang must be a string"}`},
		"LC-28 null":                   {body: `{"lang":null,"code":"x"}`, want: `{"error":"lang must be a string"}`},
		"LC-28 object":                 {body: `{"lang":{"a":[1]},"code":"x"}`, want: `{"error":"lang must be a string"}`},
		"a language without end":       {body: `{"lang":"` + strings.Repeat("l", 5000) + `","code":"x"}`, want: fmt.Sprintf(unsupported, strings.Repeat("l", 64)+"…")},
		"members in capitals are none": {body: `{"LANG":"bash","code":"x"}`, want: `{"error":"lang is required: name the language of the code in a JSON body, such as \"python\""}`},
		"code empty":                   {body: `{"lang":"bash","code":""}`, run: run("")},
		"code missing":                 {body: `{"lang":"python"}`, want: noCode},
		"code a number":                {body: `{"lang":"bash","code":7}`, want: noCode},
		"args":                         {body: `{"lang":"bash","code":"x","args":["a","b c",""]}`, run: run("x", "a", "b c", "")},
		"args not strings":             {body: `{"lang":"bash","code":"x","args":["a",1]}`, want: badArgs},
		"args null":                    {body: `{"lang":"bash","code":"x","args":null}`, run: run("x")},
		"args a string":                {body: `{"lang":"bash","code":"x","args":"a"}`, want: badArgs},
		"language before files":        {body: `{"lang":"cobol","code":"x","files":"x"}`, want: fmt.Sprintf(unsupported, "cobol")},
		"files before args":            {body: `{"lang":"bash","files":"x","args":1}`, want: `{"error":"files must be an array"}`},
		"no hint in stateless mode":    {body: `{"lang":"bash","code":"x","runtime_session_hint":{"a":"b c"}}`, run: run("x")},
		"CP-07 limits are not asked for": {
			body: `{"lang":"bash","code":"x","stdin":"no","memory":1e308,"run_memory_limit":-1,"run_timeout":99999999999999999999,"cpu":null,"limits":{"wall_ms":1e9},"max_file_size":1,"baseUrl":"http://x","session_id":"s","entity_id":"e","intent":"i","apiKey":"hush"}`,
			run:  run("x"),
		},
		"a lone half of a character":  {body: `{"lang":"bash","code":"a\ud800b"}`, run: run("a\ufffdb")},
		"bytes that are no character": {body: "{\"lang\":\"bash\",\"code\":\"a\xff\xfeb\"}", run: run("a\ufffd\ufffdb")},
		"NUL and all of Unicode":      {body: `{"lang":"bash","code":"\u0000é日😀\ud83d\ude00</script>"}`, run: run("\x00é日😀😀</script>")},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := d.runs.all()
			got := d.exec(t, tt.body)
			asked, _ := d.runs.all()
			asked = asked[len(before):]
			if tt.want != "" {
				want(t, got, 400, tt.want)
				if len(asked) > 0 {
					t.Errorf("it ran: %+v", asked)
				}
				return
			}
			want(t, got, 200, hiReply)
			if diff := cmp.Diff([]interpreter.Request{tt.run}, asked); diff != "" {
				t.Errorf("run (want -, got +):\n%s", diff)
			}
		})
	}
}

// TestRequestBeforeFiles: whatever can be said of a request alone is said before it is
// asked whose its files are, so that a client learns nothing of others by faults of its own.
func TestRequestBeforeFiles(t *testing.T) {
	tasks := &taskRecord{}
	d := newDepot(t, depotOptions{tasks: tasks})
	up := d.mustUpload(t, ada, "/upload", field("kind", "user"), file("a.txt", "a"))
	for more, want := range map[string]answer{
		`"code":""`:                    {status: 403, body: `{"error":"Unauthorized file reference"}`},
		`"x":1`:                        {status: 400, body: `{"error":"bad_request","message":"files[0] must contain exactly one of non-empty id or string content"}`},
		`"code":"","args":7`:           {status: 400, body: `{"error":"bad_request","message":"args must be an array of strings if provided"}`},
		`"code":"","files":[{}]`:       {status: 400, body: `{"error":"JSON Parse error: /files is given twice"}`},
		`"code":"","lang":"python3.9"`: {status: 400, body: `{"error":"JSON Parse error: /lang is given twice"}`},
	} {
		body := fmt.Sprintf(`{"lang":"python","files":[{"id":%q,"storage_session_id":%q,"resource_id":"r","name":"a.txt","kind":"user"}],%s}`, up.Files[0].ID, up.Session, more)
		if got := d.ask(t, bob, "POST", "/exec", strings.NewReader(body), "Content-Type", "application/json"); !got.is(want.status, want.body) {
			t.Errorf("%s: %d %s, want %d %s", more, got.status, got.body, want.status, want.body)
		}
	}
	if len(tasks.files) > 0 {
		t.Errorf("%d runs began", len(tasks.files))
	}
}

// TestLC29_Timeout: a run may ask for less time than there is; what is no time is none.
func TestLC29_Timeout(t *testing.T) {
	d := newDesk(t, deskOptions{})
	for timeout, want := range map[string]int64{
		"2000": 2000, "15000.9": 15000, "0.2": 1, "1e3": 1000, "0": 0, "-5": 0, "-1e400": 0, "null": 0, `"2000"`: 0, "true": 0, "{}": 0,
		"1e18": math.MaxInt32, "1e400": math.MaxInt32, "99999999999999999999": math.MaxInt32,
	} {
		before, _ := d.runs.all()
		got := d.exec(t, `{"lang":"bash","code":"sleep 20","timeout":`+timeout+`}`)
		asked, _ := d.runs.all()
		if asked = asked[len(before):]; got.status != 200 || len(asked) != 1 || asked[0].WallMS != want {
			t.Errorf("timeout %s: %d %s, runs %+v, want one of %d ms", timeout, got.status, got.body, asked, want)
		}
	}
}

// TestExecReplies: the answers of spec/03 §6.2 and §13, byte for byte.
func TestExecReplies(t *testing.T) {
	d := newDesk(t, deskOptions{})
	n := func(n int) *int { return &n }
	const at, s = `"session_id":"aaaaaaaaaaaaaaaaaaaaa"`, writ.SessionID("aaaaaaaaaaaaaaaaaaaaa")
	input := writ.ObjectRef{ID: anID, Session: anotherID}
	dropped := make([]writ.DroppedFile, 0, 25)
	for i := range 25 {
		dropped = append(dropped, writ.DroppedFile{Path: fmt.Sprintf("f%02d.txt", i), Why: "there are too many", Class: writ.DropFiles})
	}
	for name, tt := range map[string]struct {
		reply interpreter.Reply
		want  string
	}{
		"timeout": {
			interpreter.Reply{Session: s, Stdout: "start\n", Stderr: "\n[sandbox] Time limit exceeded\n", Code: n(137), Signal: "SIGKILL", Status: "TO", Message: "Time limit exceeded", WallMS: 17364},
			`{` + at + `,"files":[],"stdout":"start\n","stderr":"\n[sandbox] Time limit exceeded\n","code":137,"signal":"SIGKILL","message":"Time limit exceeded","status":"TO","wall_time":17364}`,
		},
		"no code": {
			interpreter.Reply{Session: s},
			`{` + at + `,"files":[],"stdout":"","stderr":"","code":null,"signal":null,"message":null,"status":null,"wall_time":0}`,
		},
		"files": {
			interpreter.Reply{Session: s, Code: n(0), Files: []interpreter.File{
				{Object: writ.ObjectRef{ID: "ddddddddddddddddddddd", Session: s}, Name: "d/new é.txt"},
				{Object: writ.ObjectRef{ID: "eeeeeeeeeeeeeeeeeeeee", Session: s}, Name: "b.txt", ModifiedFrom: &input},
				{Object: input, Name: "in.csv", Inherited: true},
			}},
			`{` + at + `,"files":[{"id":"ddddddddddddddddddddd","name":"d/new é.txt","storage_session_id":"aaaaaaaaaaaaaaaaaaaaa"},` +
				`{"id":"eeeeeeeeeeeeeeeeeeeee","name":"b.txt","storage_session_id":"aaaaaaaaaaaaaaaaaaaaa","modified_from":{"id":"bbbbbbbbbbbbbbbbbbbbb","storage_session_id":"ccccccccccccccccccccc"}},` +
				`{"id":"bbbbbbbbbbbbbbbbbbbbb","name":"in.csv","storage_session_id":"ccccccccccccccccccccc","inherited":true}],"stdout":"","stderr":"","code":0,"signal":null,"message":null,"status":null,"wall_time":0}`,
		},
		"text as it is": {
			interpreter.Reply{Session: s, Code: n(0), Stdout: "a<b>&\"\\\x00\x1b[2J\ufffd日😀\u2028"},
			`{` + at + `,"files":[],"stdout":"a<b>&\"\\\u0000\u001b[2J` + "\ufffd" + `日😀\u2028","stderr":"","code":0,"signal":null,"message":null,"status":null,"wall_time":0}`,
		},
		"runtime session": {
			interpreter.Reply{Session: s, Code: n(0), Runtime: "rt_0123", RuntimeStatus: "new", Deleted: []string{"old.csv"}},
			`{` + at + `,"files":[],"stdout":"","stderr":"","code":0,"signal":null,"message":null,"status":null,"wall_time":0,"runtime_session_id":"rt_0123","runtime_status":"new","deleted_files":["old.csv"]}`,
		},
		"files that are missed": {
			interpreter.Reply{Session: s, Code: n(0), DroppedFiles: 3, Dropped: []writ.DroppedFile{
				{Path: "big.csv", Why: "it is too large", Class: writ.DropSize}, {Path: "m.mp4", Why: "files of its kind are not kept", Class: writ.DropKind},
				{Path: "x", Why: "nobody says"},
			}},
			`{` + at + `,"files":[],"stdout":"","stderr":"","code":0,"signal":null,"message":null,"status":null,"wall_time":0,"artifact_truncation":{"code":"artifact_truncated","reasons":{"size":1},"skipped":["big.csv"],"skipped_count":1}}`,
		},
		"files that nobody misses": {
			interpreter.Reply{Session: s, Code: n(0), DroppedFiles: 1, Dropped: []writ.DroppedFile{{Path: "m.mp4", Class: writ.DropKind}}},
			`{` + at + `,"files":[],"stdout":"","stderr":"","code":0,"signal":null,"message":null,"status":null,"wall_time":0}`,
		},
		"more than are named": {
			interpreter.Reply{Session: s, Code: n(0), DroppedFiles: 25, Dropped: dropped},
			`{` + at + `,"files":[],"stdout":"","stderr":"","code":0,"signal":null,"message":null,"status":null,"wall_time":0,"artifact_truncation":{"code":"artifact_truncated","reasons":{"max_files":25},"skipped":[` +
				`"f00.txt","f01.txt","f02.txt","f03.txt","f04.txt","f05.txt","f06.txt","f07.txt","f08.txt","f09.txt","f10.txt","f11.txt","f12.txt","f13.txt","f14.txt","f15.txt","f16.txt","f17.txt","f18.txt","f19.txt"],"skipped_count":25}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d.runs.exec = func(context.Context, writ.Principal, interpreter.Request) (interpreter.Reply, error) {
				return tt.reply, nil
			}
			got := d.exec(t, hiBody)
			want(t, got, 200, tt.want)
			if got.header.Get("ETag") != weakTag([]byte(tt.want)) || got.header.Get("Content-Type") != "application/json; charset=utf-8" {
				t.Errorf("headers are %v", got.header)
			}
		})
	}
}

// TestExecErrors: the answers of spec/03 §6.3; of what is for the operator nothing leaves.
func TestExecErrors(t *testing.T) {
	d := newDesk(t, deskOptions{})
	hush := errors.New("hush: /var/lib/writ/runner.sock")
	fault := func(k writ.Kind, code, msg string) error {
		return &writ.Error{Kind: k, Code: code, Msg: msg, Op: "run code", Err: hush}
	}
	for name, tt := range map[string]struct {
		err    error
		status int
		want   string
	}{
		"foreign file":     {fault(writ.Denied, "", "Unauthorized file reference"), 403, `{"error":"Unauthorized file reference"}`},
		"policy":           {fault(writ.Denied, "denied", "no rule allows it"), 403, `{"error":"denied","message":"no rule allows it"}`},
		"duplicate":        {fault(writ.Invalid, "bad_request", `files contains duplicate destination "b.txt"`), 400, `{"error":"bad_request","message":"files contains duplicate destination \"b.txt\""}`},
		"busy":             {fault(writ.Conflict, "runtime_session_busy", "Runtime session is busy"), 409, `{"error":"runtime_session_busy","message":"Runtime session is busy"}`},
		"too large":        {fault(writ.Invalid, "session_input_too_large", "Input files exceed the delivery limit"), 413, `{"error":"session_input_too_large","message":"Input files exceed the delivery limit"}`},
		"gone":             {fault(writ.NotFound, "session_input_unavailable", "One or more input files are unavailable"), 422, `{"error":"session_input_unavailable","message":"One or more input files are unavailable"}`},
		"too much":         {fault(writ.Exhausted, "", "too much runs: try again in a moment"), 429, `{"error":"rate_limited","message":"too much runs: try again in a moment","retry_after_seconds":5}`},
		"broken":           {fault(writ.Internal, "", "hush"), 500, `{"error":"Internal server error"}`},
		"broken, no word":  {fault(writ.Invalid, "", ""), 500, `{"error":"Internal server error"}`},
		"broken, bare":     {hush, 500, `{"error":"Internal server error"}`},
		"broken, coded":    {fault(writ.Internal, "SOMETHING", "hush"), 500, `{"error":"Internal server error"}`},
		"interrupted":      {fault(writ.Internal, "sandbox_execution_failed", "Sandbox execution failed"), 502, `{"error":"sandbox_execution_failed","message":"Sandbox execution failed"}`},
		"no runner":        {fault(writ.Unavailable, "sandbox_setup_failed", "nothing can run now"), 503, `{"error":"sandbox_setup_failed","message":"nothing can run now"}`},
		"deadline":         {fmt.Errorf("hush: %w", context.DeadlineExceeded), 504, `{"error":"execution_timeout","message":"Execution timed out"}`},
		"deadline, joined": {errors.Join(context.DeadlineExceeded, fault(writ.Internal, "", "hush")), 504, `{"error":"execution_timeout","message":"Execution timed out"}`},
		"aborted":          {fault(writ.Unavailable, "session_input_aborted", "Input files were aborted"), 504, `{"error":"session_input_aborted","message":"Input files were aborted"}`},
		"a long message":   {fault(writ.Invalid, "", strings.Repeat("é", 5000)), 400, `{"error":"` + strings.Repeat("é", 498) + `…"}`},
	} {
		t.Run(name, func(t *testing.T) {
			d.runs.exec = func(context.Context, writ.Principal, interpreter.Request) (interpreter.Reply, error) {
				return interpreter.Reply{Stdout: "hush"}, tt.err
			}
			before := len(d.log.String())
			got := d.exec(t, hiBody)
			want(t, got, tt.status, tt.want)
			if retry := got.header.Get("Retry-After"); (retry == "5") != (tt.status == 429) {
				t.Errorf("Retry-After is %q", retry)
			}
			if strings.Contains(fmt.Sprint(got.header), "hush") {
				t.Errorf("headers tell: %v", got.header)
			}
			if logged := strings.Contains(d.log.String()[before:], "hush"); logged != (tt.status >= 500) {
				t.Errorf("the operator's part in the log is %v:\n%s", logged, d.log)
			}
		})
	}
}

// TestKinds: every kind of error has a status, and its words leave unless it is Internal.
func TestKinds(t *testing.T) {
	seen := map[int]writ.Kind{}
	for _, k := range writ.Kinds {
		status, body := answerOf(&writ.Error{Kind: k, Msg: "m"})
		if other, twice := seen[status]; twice {
			t.Errorf("%v and %v are both %d", k, other, status)
		}
		seen[status] = k
		wantBody := envelope{Error: "m"}
		if k == writ.Internal {
			wantBody.Error = "Internal server error"
		}
		if body != wantBody || http.StatusText(status) == "" || status < 400 {
			t.Errorf("%v is %d %+v", k, status, body)
		}
	}
	if status, body := answerOf(&writ.Error{Kind: writ.Internal, Code: writ.CodeMisconfigured, Msg: "CodeAPI JWT auth is misconfigured"}); status != 500 || body != (envelope{Error: "CodeAPI JWT auth is misconfigured"}) {
		t.Errorf("a misconfigured server answers %d %+v", status, body)
	}
}

// TestExecEndsWithItsClient: a client that goes away ends its run.
func TestExecEndsWithItsClient(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	d := newDesk(t, deskOptions{runs: &scriptedRuns{exec: func(ctx context.Context, _ writ.Principal, _ interpreter.Request) (interpreter.Reply, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return interpreter.Reply{}, ctx.Err()
	}}})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "POST", d.url+"/v1/exec", strings.NewReader(hiBody))
	if err != nil {
		t.Fatal(err)
	}
	bearer := d.bearer("ada")
	req.Header.Set(bearer[0], bearer[1])
	req.Header.Set(asJSON[0], asJSON[1])
	go func() {
		<-began
		leave()
	}()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Fatalf("the client got %d", resp.StatusCode)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the run ended with %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the run goes on without its client")
	}
}
