package testkit

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"writ"
	"writ/lang"
	"writ/runner"
)

// background runs spec in a goroutine. The result comes on the channel; a refusal
// fails t.
func background(ctx context.Context, t *testing.T, r AnyRunner, spec writ.RunSpec, emit func(writ.Chunk)) <-chan writ.Result {
	c := make(chan writ.Result, 1)
	go func() { // ends with the run
		res, err := r.Run(ctx, writ.NewID("run"), spec, spec.Digest(), &writ.Exchange{Emit: emit})
		if err != nil {
			t.Errorf("run: %v", err)
		}
		c <- res
	}()
	return c
}

// occupy takes one slot of r until free is called, which waits for it.
func occupy(t *testing.T, r AnyRunner) (free func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	up := NewFlag("ready")
	done := background(ctx, t, r, Spec("sh", "echo ready; exec sleep 600"), up.Emit)
	up.Wait(t)
	free = sync.OnceFunc(func() {
		cancel()
		if res := Receive(t, "the end of the run that held a slot", done); res.Outcome != writ.Killed {
			t.Errorf("the run that held a slot ended %+v", res)
		}
	})
	t.Cleanup(free)
	return free
}

func (s suite) chunks(t *testing.T) {
	r := s.start(t, runner.Options{})
	spec := Spec("bash", `for i in $(seq 300); do echo "out $i"; echo "err $i" >&2; done; printf '\xff\xfe\0\xe2\x82'; head -c 100000 /dev/zero >&2`)
	var mu sync.Mutex
	over := false
	got := map[writ.Stream]*bytes.Buffer{writ.Stdout: {}, writ.Stderr: {}}
	res, err := r.Run(t.Context(), writ.NewID("run"), spec, spec.Digest(), &writ.Exchange{Emit: func(c writ.Chunk) {
		if !mu.TryLock() {
			t.Error("emit was called while it was running")
			mu.Lock()
		}
		defer mu.Unlock()
		if over {
			t.Error("emit was called after Run returned")
		}
		if len(c.Data) == 0 || len(c.Data) > 32<<10 {
			t.Errorf("a chunk of %d bytes", len(c.Data))
		}
		got[c.Stream].Write(c.Data)
	}})
	mu.Lock()
	over = true
	mu.Unlock()
	if err != nil || res.Outcome != writ.Succeeded {
		t.Fatalf("run: %+v, %v", res, err)
	}
	for stream, out := range map[writ.Stream]writ.Output{writ.Stdout: res.Stdout, writ.Stderr: res.Stderr} {
		if b := got[stream].Bytes(); !bytes.Equal(b, out.Data()) || out.SHA256 != writ.DigestOf(b) || out.Truncated || out.Bytes != int64(len(b)) {
			t.Errorf("%s: %d bytes in chunks; the result has %d, kept %d, truncated %v", stream, len(b), out.Bytes, out.Kept, out.Truncated)
		}
	}
	if !bytes.HasSuffix(res.Stdout.Data(), []byte("out 300\n\xff\xfe\x00\xe2\x82")) {
		t.Error("stdout is not the bytes that were written")
	}
}

func (s suite) outputCut(t *testing.T) {
	r := s.start(t, runner.Options{})
	spec := Spec("sh", "yes 0123456789 | head -c 100000000")
	spec.Limits.OutputBytes = 1000
	total := 0
	res, err := r.Run(t.Context(), writ.NewID("run"), spec, spec.Digest(), &writ.Exchange{Emit: func(c writ.Chunk) { total += len(c.Data) }})
	if err != nil || !res.Stdout.Truncated || res.Stdout.Kept != 1000 || res.Stdout.Bytes != 100_000_000 || total != 1000 {
		t.Errorf("kept %d of %d, truncated %v, %d in chunks, %v", res.Stdout.Kept, res.Stdout.Bytes, res.Stdout.Truncated, total, err)
	}
}

func (s suite) cancelRunning(t *testing.T) {
	r := s.start(t, runner.Options{})
	mark := writ.NewID("mark")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	up := NewFlag("ready")
	done := background(ctx, t, r, Sleeper(mark), up.Emit)
	up.Wait(t)
	if len(Alive(t, mark)) == 0 {
		t.Error("the run is not seen on this host, so the check below shows nothing")
	}
	cancel()
	res := Receive(t, "the result of the cancelled run", done)
	if res.Outcome != writ.Killed || !res.Started || res.Reason == "" || res.Stdout.Text != "ready\n" {
		t.Errorf("result %+v, want killed, with the output until then", res)
	}
	if pids := Alive(t, mark); pids != nil {
		t.Errorf("processes %v are alive", pids)
	}
}

func (s suite) cancelQueued(t *testing.T) {
	r := s.start(t, runner.Options{Slots: 1, Queue: 1})
	free := occupy(t, r)
	// Of two runs one has the only place in the queue when the other was refused.
	type answer struct {
		res writ.Result
		err error
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answers := make(chan answer, 2)
	for range 2 {
		go func() { // ends with the run
			spec := Spec("sh", "echo never")
			res, err := r.Run(ctx, writ.NewID("run"), spec, spec.Digest(), nil)
			answers <- answer{res, err}
		}()
	}
	if a := Receive(t, "the refusal of one run", answers); writ.KindOf(a.err) != writ.Exhausted {
		t.Fatalf("one of two runs for one place: %+v, %v; want exhausted", a.res, a.err)
	}
	cancel()
	if a := Receive(t, "the result of the queued run", answers); a.err != nil || a.res.Outcome != writ.Killed || a.res.Started || a.res.Reason == "" {
		t.Errorf("queued and cancelled: %+v, %v; want killed and not started", a.res, a.err)
	}
	next := background(t.Context(), t, r, Spec("sh", "echo next"), nil) // the place is free
	free()
	if res := Receive(t, "the next run", next); res.Outcome != writ.Succeeded || res.Stdout.Text != "next\n" {
		t.Errorf("the next run ended %+v", res)
	}

	spec := Spec("sh", "echo never")
	if res, err := r.Run(ctx, writ.NewID("run"), spec, spec.Digest(), nil); err != nil || res.Outcome != writ.Killed || res.Started {
		t.Errorf("run that was cancelled before: %+v, %v; want killed and not started", res, err)
	}
}

func (s suite) exhausted(t *testing.T) {
	r := s.start(t, runner.Options{Slots: 2, Queue: -1})
	freeOne, freeTwo := occupy(t, r), occupy(t, r)
	spec := Spec("sh", "echo ran")
	id := writ.NewID("run")
	_, err := r.Run(t.Context(), id, spec, spec.Digest(), nil)
	if writ.KindOf(err) != writ.Exhausted || !strings.Contains(writ.Message(err), "try again") {
		t.Errorf("third run on two slots: %v, want exhausted", err)
	}
	freeOne()
	// A slot is free when its box is gone, which is a little after the answer.
	var res writ.Result
	Eventually(t, "there is room", func() bool {
		res, err = r.Run(t.Context(), id, spec, spec.Digest(), nil)
		return writ.KindOf(err) != writ.Exhausted
	})
	if err != nil || res.Stdout.Text != "ran\n" {
		t.Errorf("the same run when there is room: %+v, %v", res, err)
	}
	freeTwo()
}

func (s suite) manyAtOnce(t *testing.T) {
	r := s.start(t, runner.Options{Slots: 4, Warm: 4})
	var done []<-chan writ.Result
	for i := range 20 {
		done = append(done, background(t.Context(), t, r, Spec("sh", fmt.Sprintf("echo %d; cat file", i), "x"), nil))
	}
	for i, c := range done {
		if res := Receive(t, "a run", c); res.Stdout.Text != fmt.Sprintf("%d\n", i) || res.Outcome != writ.Failed {
			t.Errorf("run %d: %+v", i, res)
		}
	}
}

func (s suite) sameID(t *testing.T) {
	r := s.start(t, runner.Options{})
	spec := Spec("sh", "echo ran")
	id := writ.NewID("run")
	if res, err := r.Run(t.Context(), id, spec, spec.Digest(), nil); err != nil || res.Outcome != writ.Succeeded {
		t.Fatalf("run: %+v, %v", res, err)
	}
	called := false
	_, err := r.Run(t.Context(), id, spec, spec.Digest(), &writ.Exchange{Emit: func(writ.Chunk) { called = true }})
	if writ.KindOf(err) != writ.Conflict || !strings.Contains(writ.Message(err), id) || called {
		t.Errorf("second run of one id: %v, want conflict", err)
	}
}

func (s suite) otherDigest(t *testing.T) {
	r := s.start(t, runner.Options{})
	approved, sent := Spec("sh", "echo approved"), Spec("sh", "echo other")
	called := false
	_, err := r.Run(t.Context(), writ.NewID("run"), sent, approved.Digest(), &writ.Exchange{Emit: func(writ.Chunk) { called = true }})
	if writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), "approved") || called {
		t.Errorf("run of another spec than the approved one: %v, want invalid", err)
	}
}

func (s suite) faulty(t *testing.T) {
	r := s.start(t, runner.Options{})
	for name, spec := range map[string]writ.RunSpec{
		"empty":       Spec("sh", ""),
		"11 MB":       Spec("sh", strings.Repeat("x", 11<<20)),
		"not UTF-8":   Spec("sh", "echo \xff"),
		"NUL":         Spec("sh", "echo \x00"),
		"language":    Spec("Python ", "print(1)"),
		"cobol":       Spec("cobol", "DISPLAY 1"),
		"no language": Spec("", "print(1)"),
		"no limits":   {Language: "sh", Code: "echo"},
	} {
		_, err := r.Run(t.Context(), writ.NewID("run"), spec, spec.Digest(), nil)
		if writ.KindOf(err) != writ.Invalid || writ.Message(err) == "" {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}

func (s suite) interpreterMissing(t *testing.T) {
	r := s.start(t, runner.Options{Languages: lang.Table{{
		Name: "absent", Scope: "absent", File: "main", Candidates: []string{"/usr/bin/no-such-interpreter"}, Package: "no-such-package",
	}}})
	spec := Spec("absent", "x")
	_, err := r.Run(t.Context(), writ.NewID("run"), spec, spec.Digest(), nil)
	if writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), "apt-get install no-such-package") {
		t.Errorf("run without an interpreter: %v, want unavailable with the package", err)
	}
}
