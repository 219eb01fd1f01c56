package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"writ"
)

// TestWireIsAsSpecified pins doc.go, "The wire".
func TestWireIsAsSpecified(t *testing.T) {
	spec, d := specOf("echo '<&>'")
	spec.Inputs = []writ.Input{{Path: "f", Content: []byte{0}}}
	for _, tt := range []struct {
		msg  any
		want string
	}{
		{&request{Run: &order{ID: "r1", Digest: "d", Spec: writ.RunSpec{Language: "sh", Code: "a<b", Inputs: spec.Inputs}}},
			`{"run":{"id":"r1","digest":"d","spec":{"language":"sh","code":"a<b","inputs":[{"path":"f","content":"AA=="}]}}}`},
		{&request{Run: &order{ID: "r1", Opens: true, Keeps: true}}, `{"run":{"id":"r1","digest":"","spec":{"language":"","code":""},"opens":true,"keeps":true}}`},
		{&request{Cancel: true}, `{"cancel":true}`},
		{&request{End: &verdict{}}, `{"end":{}}`},
		{&request{Kept: verdictOf(&writ.Error{Kind: writ.Exhausted, Code: "FULL", Msg: "no room", Err: errors.New("not told")})},
			`{"kept":{"error":{"kind":"exhausted","code":"FULL","message":"no room"}}}`},
		{&request{Kept: verdictOf(errors.New("not told"))}, `{"kept":{"error":{"kind":"internal","message":"internal error"}}}`},
		{&reply{Open: "d"}, `{"open":"d"}`},
		{&reply{More: true}, `{"more":true}`},
		{&request{More: true}, `{"more":true}`},
		{&reply{Close: true}, `{"close":true}`},
		{&reply{Keep: &writ.OutputFile{Path: "f", Size: 3, State: writ.OutputNew}}, `{"keep":{"path":"f","digest":"","size":3,"state":"new"}}`},
		{bytesOf(2), "\x00\x00\x00"},
		{&reply{Chunk: &writ.Chunk{Stream: writ.Stderr, Data: []byte{255}}}, `{"chunk":{"stream":"stderr","data":"/w=="}}`},
		{&empty{}, `{}`},
		{&writ.FileWindow{Path: "a<b", Version: "v", Offset: 1, Content: []byte("x\n\x00\xff"), Next: 5},
			`{"path":"a<b","version":"v","offset":1,"content":null,"next":5}` + "\nx\n\x00\xff"},
	} {
		b, err := encoded(tt.msg)
		if got := strings.TrimSpace(string(b)); err != nil || got != tt.want {
			t.Errorf("message %s, %v\nwant    %s", got, err, tt.want)
		}
	}
	b, err := encoded(&request{Run: &order{ID: "r", Digest: d, Spec: spec}})
	if err != nil {
		t.Fatal(err)
	}
	var back request
	if err := decoded(b, &back); err != nil || back.Run.Spec.Digest() != spec.Digest() {
		t.Errorf("a spec changed on the wire: %v", err)
	}
}

// TestWindowsCrossAsTheyAre: whatever a file holds and is called.
func TestWindowsCrossAsTheyAre(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, w := range []writ.FileWindow{
		{Path: "a\nb\"c", Version: "v", Content: all},
		{Path: "empty", Content: []byte{}},
		{Content: []byte("\n{}\n"), Offset: 1 << 40, Next: 1<<40 + 4},
	} {
		b, err := encoded(&w)
		var back writ.FileWindow
		if err == nil {
			err = decoded(b, &back)
		}
		if diff := cmp.Diff(w, back); err != nil || diff != "" {
			t.Errorf("%q: %v %s", w.Path, err, diff)
		}
	}
	for _, bad := range []string{"", `{"path":"a"}`, "\nx", "{]\nx", `{"offset":"1"}` + "\nx"} {
		var w writ.FileWindow
		if err := decoded([]byte(bad), &w); err == nil {
			t.Errorf("%q is taken for a window: %+v", bad, w)
		}
	}
}

// TestLargestMessagesFit: what Validate lets through crosses. The messages are 1/32
// of the largest, in each of their parts, so that the test is quick.
func TestLargestMessagesFit(t *testing.T) {
	const part = 32
	worst := func(n int) string { return strings.Repeat("\x01", n) }
	spec := writ.RunSpec{Language: "sh", Code: worst(writ.MaxCodeBytes / part), Stdin: worst(writ.MaxStdinBytes / part),
		Args: []string{worst(writ.MaxArgBytes / part)}, Env: map[string]string{"A": worst(writ.MaxArgBytes/part - 1)}, Limits: writ.MaxLimits}
	dir := strings.Repeat(worst(writ.MaxNameBytes)+"/", writ.MaxInputsDepth-1)
	for i := range writ.MaxInputs / part {
		name := worst(writ.MaxNameBytes-2) + string(rune('a'+i/26)) + string(rune('a'+i%26))
		spec.Inputs = append(spec.Inputs, writ.Input{Path: dir + name, Content: make([]byte, writ.MaxInputBytes/writ.MaxInputs)})
	}
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	var kept []writ.OutputFile
	digest := writ.DigestOf(nil)
	spec.Kind = writ.RunInterpreter
	for i := range writ.MaxFiles / part {
		path := fmt.Sprintf("%06d", i) + worst(writ.MaxFilePaths/writ.MaxFiles-6)
		spec.Files = append(spec.Files, writ.FileInput{Path: path, Digest: digest, Size: writ.MaxLimits.WorkspaceBytes, ReadOnly: true, Exec: true})
		kept = append(kept, writ.OutputFile{Path: path, Digest: digest, Size: writ.MaxLimits.WorkspaceBytes, State: writ.OutputChanged, Exec: true})
	}
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	text, raw := []byte(worst(int(writ.MaxLimits.OutputBytes/part))), make([]byte, writ.MaxLimits.OutputBytes/part)
	for i := range raw {
		raw[i] = 0xff - byte(i)&0x7f // none of it is UTF-8
	}
	for name, msg := range map[string]any{
		"spec":   &request{Run: &order{ID: "r", Digest: spec.Digest(), Spec: spec}},
		"text":   &reply{Result: &writ.Result{Files: kept, Stdout: writ.NewOutput(text, int64(len(text))), Stderr: writ.NewOutput(text, int64(len(text)))}},
		"binary": &reply{Result: &writ.Result{Files: kept, Stdout: writ.NewOutput(raw, int64(len(raw))), Stderr: writ.NewOutput(raw, int64(len(raw)))}},
	} {
		b, err := encoded(msg)
		if err != nil || len(b) > MaxMessage/part {
			t.Errorf("%s: %d bytes of %d, %v", name, len(b)*part, MaxMessage, err)
		}
	}
}

func TestBigSpecAndResultCross(t *testing.T) {
	spec := writ.RunSpec{Language: "sh", Code: strings.Repeat("x", 1<<20), Stdin: strings.Repeat("\u2192", 2<<20),
		Inputs: []writ.Input{{Path: "f", Content: make([]byte, 8<<20)}}, Limits: writ.MaxLimits}
	c, _ := serve(t, fake{run: func(_ context.Context, _ string, s writ.RunSpec, d writ.Digest, _ *writ.Exchange) (writ.Result, error) {
		if s.Digest() != d {
			return writ.Result{}, errors.New("the spec changed")
		}
		out := []byte(s.Stdin)
		return writ.Result{Outcome: writ.Succeeded, Stdout: writ.NewOutput(out, int64(len(out)))}, nil
	}}, ownUID())
	res, err := c.Run(t.Context(), "r", spec, spec.Digest(), nil)
	if err != nil || res.Outcome != writ.Succeeded || res.Stdout.Text != spec.Stdin {
		t.Errorf("Run = %s (%s), %v", res.Outcome, res.Reason, err)
	}
}

func TestCodesAreOneToOne(t *testing.T) {
	seen := map[codes.Code]writ.Kind{}
	for _, k := range writ.Kinds {
		c := codeOf(k)
		if other, dup := seen[c]; dup {
			t.Errorf("%v and %v have one code", k, other)
		}
		seen[c] = k
		if got := kindOf(c); got != k {
			t.Errorf("%v crosses as %v", k, got)
		}
	}
	for c := range codes.Code(17) {
		if _, ours := seen[c]; !ours && kindOf(c) != writ.Internal {
			t.Errorf("code %v is taken for %v", c, kindOf(c))
		}
	}
}

func TestErrorsCrossAsKindAndMessage(t *testing.T) {
	for _, k := range writ.Kinds {
		given := &writ.Error{Kind: k, Op: "op", Msg: "what \u2192 was wrong: " + k.String(), Err: errors.New("detail")}
		c, _ := serve(t, fake{
			run: func(context.Context, string, writ.RunSpec, writ.Digest, *writ.Exchange) (writ.Result, error) {
				return writ.Result{}, given
			},
			probe: func(context.Context) (writ.Enforcement, error) { return writ.Enforcement{}, given },
		}, ownUID())
		spec, d := specOf("x")
		_, runErr := c.Run(t.Context(), "r", spec, d, nil)
		_, probeErr := c.Probe(t.Context())
		for _, err := range []error{runErr, probeErr} {
			if writ.KindOf(err) != k || writ.Message(err) != writ.Message(given) || strings.Contains(err.Error(), "detail") {
				t.Errorf("%v with %q crossed as %v with %q (%v)", k, writ.Message(given), writ.KindOf(err), writ.Message(err), err)
			}
			if k == writ.Internal && !strings.Contains(err.Error(), given.Msg) {
				t.Errorf("the operator sees only %q", err)
			}
		}
	}
}

func TestErrorTextIsBounded(t *testing.T) {
	c, _ := serve(t, fake{probe: func(context.Context) (writ.Enforcement, error) {
		return writ.Enforcement{}, &writ.Error{Kind: writ.Invalid, Msg: strings.Repeat("\u2192", 1<<20)}
	}}, ownUID())
	_, err := c.Probe(t.Context())
	if writ.KindOf(err) != writ.Invalid || len(writ.Message(err)) > maxMessageBytes+3 {
		t.Errorf("error of kind %v with %d bytes", writ.KindOf(err), len(writ.Message(err)))
	}
}

func TestProbeAndLanguagesCross(t *testing.T) {
	e := writ.Enforcement{Provider: "p 1", Active: []string{"a", "b"}, Missing: []string{"c"}}
	ls := []writ.LanguageStatus{{Name: "sh", Aliases: []writ.Language{"x"}, Scope: "shell", Interpreter: "/bin/sh", Package: "dash"}, {Name: "none"}}
	c, _ := serve(t, fake{probe: func(context.Context) (writ.Enforcement, error) { return e, nil }, languages: ls}, ownUID())
	got, err := c.Probe(t.Context())
	if diff := cmp.Diff(e, got); diff != "" || err != nil {
		t.Errorf("Probe: %v (-want +got):\n%s", err, diff)
	}
	all, err := c.Languages(t.Context())
	if diff := cmp.Diff(ls, all); diff != "" || err != nil {
		t.Errorf("Languages: %v (-want +got):\n%s", err, diff)
	}
}

// TestTransportErrorIsNoAnswer: a status of the same code that the runner did not
// give says nothing about the run.
func TestTransportErrorIsNoAnswer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stream grpc.StreamHandler
	}{
		{"status without the trailer", func(_ any, s grpc.ServerStream) error { return status.Error(codes.ResourceExhausted, "made up") }},
		{"end without a result", func(any, grpc.ServerStream) error { return nil }},
		{"empty message", func(_ any, s grpc.ServerStream) error { return s.SendMsg(&reply{}) }},
		{"unknown outcome", func(_ any, s grpc.ServerStream) error {
			return s.SendMsg(&reply{Result: &writ.Result{Outcome: "fine"}})
		}},
		{"unknown stream", func(_ any, s grpc.ServerStream) error {
			return s.SendMsg(&reply{Chunk: &writ.Chunk{Stream: "stdlog"}})
		}},
		{"not the protocol", func(_ any, s grpc.ServerStream) error { return s.SendMsg([]int{1}) }},
	} {
		socket := filepath.Join(socketDir(t), "s")
		ln, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		srv := grpc.NewServer(grpc.ForceServerCodecV2(codec{}))
		srv.RegisterService(&grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil),
			Streams: []grpc.StreamDesc{{StreamName: methodRun, Handler: tt.stream, ServerStreams: true, ClientStreams: true}}}, nil)
		served := make(chan error, 1)
		go func() { served <- srv.Serve(ln) }()
		c, err := dial(socket)
		if err != nil {
			t.Fatal(err)
		}
		spec, d := specOf("x")
		res, err := c.Run(t.Context(), "r", spec, d, &writ.Exchange{Emit: func(writ.Chunk) { t.Errorf("%s: a chunk was passed on", tt.name) }})
		if err != nil || res.Outcome != writ.Interrupted || !res.Started || res.Reason == "" {
			t.Errorf("%s: Run = %+v, %v; want interrupted", tt.name, res, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		srv.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

func TestServerRefusesAnotherFirstMessage(t *testing.T) {
	c, _ := serve(t, fake{}, ownUID()) // its run would panic
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, first := range []any{&request{Cancel: true}, &empty{}, []int{1}} {
		s, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+service+"/"+methodRun)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SendMsg(first); err != nil {
			t.Fatal(err)
		}
		var m reply
		if err := s.RecvMsg(&m); err == nil || len(s.Trailer().Get(answerTrailer)) != 0 {
			t.Errorf("%v was answered by %+v, %v", first, m, err)
		}
	}
}

// FuzzRequest: whatever is decoded is what it says, before and after one more
// crossing.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"run":{"id":"r","digest":"d","spec":{"language":"sh","code":"x","inputs":[{"path":"f","content":"AA=="}]}}}`))
	f.Add([]byte(`{"cancel":true}`))
	f.Add([]byte(`{"run":{"spec":{"env":{"A":"\ud800"},"stdin":"\u0000"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var one, two request
		if decoded(b, &one) != nil {
			return
		}
		again, err := encoded(&one)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &two); err != nil {
			t.Fatal(err)
		}
		if (one.Run == nil) != (two.Run == nil) || one.Cancel != two.Cancel {
			t.Fatalf("%+v became %+v", one, two)
		}
		if one.Run != nil && (one.Run.Spec.Digest() != two.Run.Spec.Digest() || one.Run.ID != two.Run.ID) {
			t.Fatalf("%+v became %+v", one.Run, two.Run)
		}
	})
}

// FuzzRunMessages: whatever comes is bytes of a file, or JSON, or refused.
func FuzzRunMessages(f *testing.F) {
	for _, s := range []string{"", "\x00", "\x00{}", `{"open":"d"}`, `{"keep":{"path":"f","size":1}}`, `{"end":{"error":{"kind":"x","message":"m"}}}`, `{"kept":{}}`} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		cut = min(max(cut, 0), len(b))
		var q request
		var p reply
		parts := mem.BufferSlice{mem.SliceBuffer(b[:cut]), mem.SliceBuffer(b[cut:])}
		one, two := codec{}.Unmarshal(parts, &q), codec{}.Unmarshal(parts, &p)
		if len(b) == 0 && (one == nil || two == nil) {
			t.Fatal("nothing is a message")
		}
		if len(b) > 0 && b[0] == frameMark {
			if one != nil || two != nil || !bytes.Equal(q.Data.Materialize(), b[1:]) || !bytes.Equal(p.Data.Materialize(), b[1:]) {
				t.Fatalf("%q became %v %v, %v %v", b, q.Data, p.Data, one, two)
			}
		} else if q.Data != nil || p.Data != nil {
			t.Fatalf("%q became bytes", b)
		}
		for _, v := range []*verdict{q.End, q.Kept, p.End} {
			if v != nil && v.err("op") != nil && len(v.err("op").Error()) > maxMessageBytes+10 {
				t.Fatalf("an error of %d bytes", len(v.err("op").Error()))
			}
		}
	})
}
