package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"writ"
	"writ/runner"
)

func (s suite) stdoutLimit(t *testing.T) {
	const units = 3000
	r := s.start(t, runner.Options{})
	for _, tt := range []struct {
		name, code string
		over       bool
	}{
		{"endless", "echo x > x.txt; yes", true},
		{"the most", "echo x > x.txt; head -c 3000 /dev/zero | tr '\\0' a", false},
		{"one more", "echo x > x.txt; head -c 3001 /dev/zero | tr '\\0' a", true},
		{"the most of three bytes", `echo x > x.txt; printf '\u20ac%.0s' {1..3000}`, false},
		{"one more of three bytes", `echo x > x.txt; printf '\u20ac%.0s' {1..3001}`, true},
		{"the most of two units", `echo x > x.txt; printf '\U1F600%.0s' {1..1500}`, false},
		{"one more of two units", `echo x > x.txt; printf '\U1F600%.0s' {1..1501}`, true},
		{"the most that is no text", `echo x > x.txt; head -c 3000 /dev/zero | tr '\0' '\377'`, false},
		{"much on stderr", `echo x > x.txt; head -c 300000 /dev/zero >&2`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			d := Depot{Emit: func(c writ.Chunk) {
				if c.Stream == writ.Stdout {
					out.Write(c.Data)
				}
			}}
			spec := Interpret("bash", tt.code)
			spec.Limits.OutputBytes = writ.MaxUnitBytes * units
			res := MustInterpret(t, r, spec, &d)
			killed := res.Outcome == writ.Killed && res.Reason == writ.ReasonStdout && res.ExitCode == nil && res.Signal == "SIGKILL"
			if killed != tt.over || !tt.over && res.Outcome != writ.Succeeded {
				t.Errorf("it ended %s (%s) with exit code %v", res.Outcome, res.Reason, res.ExitCode)
			}
			if res.Stdout.Kept > spec.Limits.OutputBytes || res.Stderr.Kept > spec.Limits.OutputBytes || !strings.HasPrefix(out.String(), string(res.Stdout.Data())) || int64(out.Len()) > spec.Limits.OutputBytes {
				t.Errorf("stdout has %d bytes, its chunks %d, stderr %d", res.Stdout.Kept, out.Len(), res.Stderr.Kept)
			}
			if got := FilesOf(res); got != "new x.txt" {
				t.Errorf("files %s", got)
			}
		})
	}
}

func (s suite) wrongInputs(t *testing.T) {
	r := s.start(t, runner.Options{InterpreterWarm: 1, Interpreter: InterpreterLimits})
	var d Depot
	good := d.Put("a.txt", []byte("good"))
	id := writ.NewID("run")
	for name, b := range map[string][]byte{"other bytes": []byte("evil"), "fewer": []byte("goo"), "more": []byte("good!"), "none": {}, "missing": nil} {
		spec := Interpret("bash", "echo ran", good)
		x := &writ.Exchange{
			Emit: func(writ.Chunk) { t.Errorf("%s: it ran", name) },
			Open: func(ctx context.Context, digest writ.Digest) (io.ReadCloser, error) {
				if b == nil {
					return nil, &writ.Error{Kind: writ.NotFound, Msg: "no such blob in /secret/place"}
				}
				return io.NopCloser(bytes.NewReader(b)), nil
			},
		}
		res, err := r.Run(t.Context(), id, spec, spec.Digest(), x)
		if err == nil || writ.CodeOf(err) != writ.CodeInputUnavailable || strings.Contains(writ.Message(err), "secret") {
			t.Errorf("%s: %+v, %v with code %q", name, res, err, writ.CodeOf(err))
		}
	}
	broken := &writ.Exchange{Open: func(context.Context, writ.Digest) (io.ReadCloser, error) {
		return nil, errors.New("input/output error on /secret/place")
	}}
	spec := Interpret("bash", "echo ran", good)
	if _, err := r.Run(t.Context(), id, spec, spec.Digest(), broken); writ.CodeOf(err) != writ.CodeInputSource || writ.KindOf(err) != writ.Unavailable || strings.Contains(writ.Message(err), "secret") {
		t.Errorf("a source that is broken: %v with code %q", err, writ.CodeOf(err))
	}
	if _, err := r.Run(t.Context(), id, spec, spec.Digest(), &writ.Exchange{}); writ.CodeOf(err) != writ.CodeInputUnavailable {
		t.Errorf("with nobody who gives files: %v", err)
	}
	if res, err := r.Run(t.Context(), id, spec, spec.Digest(), d.Exchange()); err != nil || res.Stdout.Text != "ran\n" {
		t.Errorf("an id that ran nothing is not good any more: %+v, %v", res, err)
	}

	large := Interpret("bash", "echo ran", writ.FileInput{Path: "a", Digest: good.Digest, Size: InterpreterLimits.WorkspaceBytes})
	many := Interpret("bash", "echo ran") // each takes a page
	for i := range InterpreterLimits.WorkspaceBytes/4096 + 1 {
		many.Files = append(many.Files, d.Put(fmt.Sprint(i), []byte("x")))
	}
	for name, spec := range map[string]writ.RunSpec{"too many bytes": large, "too many files": many} {
		if _, err := r.Run(t.Context(), "r", spec, spec.Digest(), d.Exchange()); writ.KindOf(err) != writ.Invalid || writ.CodeOf(err) != writ.CodeInputTooLarge {
			t.Errorf("%s: %v with code %q", name, err, writ.CodeOf(err))
		}
	}
}

func (s suite) cancelPlacing(t *testing.T) {
	r := s.start(t, runner.Options{})
	var d Depot
	spec := Interpret("bash", "echo ran", d.Put("a.txt", []byte("good")))
	ctx, cancel := context.WithCancel(t.Context())
	x := d.Exchange()
	x.Open = func(ctx context.Context, _ writ.Digest) (io.ReadCloser, error) {
		cancel()
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	res, err := r.Run(ctx, writ.NewID("run"), spec, spec.Digest(), x)
	if err != nil || res.Started || res.Outcome != writ.Killed || res.Files != nil {
		t.Errorf("Run = %+v, %v; want killed before it started", res, err)
	}
}

func (s suite) cancelInterpreted(t *testing.T) {
	r := s.start(t, runner.Options{})
	up := NewFlag("ready")
	d := Depot{Emit: up.Emit}
	spec := Interpret("bash", "echo x > x.txt; echo ready; sleep 600; :")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan writ.Result, 1)
	go func() {
		res, err := r.Run(ctx, writ.NewID("run"), spec, spec.Digest(), d.Exchange())
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	up.Wait(t)
	cancel()
	if res := Receive(t, "the result", done); res.Outcome != writ.Killed || !res.Started || len(res.Files) != 0 || len(d.Kept()) != 0 {
		t.Errorf("result %+v", res)
	}
}

func (s suite) cancelCollecting(t *testing.T) {
	r := s.start(t, runner.Options{})
	var d Depot
	ctx, cancel := context.WithCancel(t.Context())
	x := d.Exchange()
	keep := x.Keep
	x.Keep = func(ctx context.Context, f writ.OutputFile, body io.Reader) error {
		if f.Path == "b.txt" {
			cancel()
			<-ctx.Done()
		}
		return keep(ctx, f, body)
	}
	spec := Interpret("bash", "for f in a b c; do echo $f > $f.txt; done")
	done := make(chan writ.Result, 1)
	go func() {
		res, err := r.Run(ctx, writ.NewID("run"), spec, spec.Digest(), x)
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	// The one that is kept at this moment may be kept, or not: no other is.
	if res := Receive(t, "the result", done); !res.Started || FilesOf(res) != "new a.txt" && FilesOf(res) != "new a.txt, new b.txt" {
		t.Errorf("result %+v", res)
	}
}

func (s suite) compileStep(t *testing.T) {
	r := s.start(t, runner.Options{})
	NeedInterpreter(t, r, "c")
	var d Depot
	header := d.Put("data.h", []byte("#define ANSWER 42\n"))
	spec := Interpret("c", `
#include <stdio.h>
#include "data.h"
int main(int argc, char **argv) {
	printf("%s %d\n", argv[0], ANSWER);
	fclose(fopen("out.txt", "w"));
	return argc - 1;
}`, header)
	spec.Args = []string{"a"}
	res := MustInterpret(t, r, spec, &d)
	if res.ExitCode == nil || *res.ExitCode != 1 || res.Compiled || res.Stdout.Text != "main 42\n" || FilesOf(res) != "new out.txt, same data.h" || len(res.Dropped) != 0 {
		t.Errorf("result %+v", res)
	}

	var out strings.Builder
	d.Emit = func(c writ.Chunk) {
		if c.Stream == writ.Stderr {
			out.Write(c.Data)
		}
	}
	res = MustInterpret(t, r, Interpret("c", "int main() { return x; }", header), &d)
	if res.Outcome != writ.Failed || !res.Compiled || !strings.Contains(res.Stderr.Text, "main.c:1") || out.String() != res.Stderr.Text || FilesOf(res) != "same data.h" {
		t.Errorf("result %+v\nchunks %q", res, out.String())
	}
}
