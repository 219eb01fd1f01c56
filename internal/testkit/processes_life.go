package testkit

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/runner"
)

func (s processSuite) echo(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	b := Begin(t, m, Order(w, "echo", "hello", "two words"))
	if got := b.ExitsWith(0); got != "hello two words\n" {
		t.Errorf("it wrote %q", got)
	}
	out, err := m.Output(t.Context(), b.ID, writ.OutputQuery{})
	want := writ.ProcessOutput{Chunk: []byte("hello two words\n"), Cursor: 16, EOF: true, Total: 16, State: writ.ProcessExited, Termination: writ.TerminationExited}
	if d := cmp.Diff(want, out); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if s := b.Status(); s.Total != 16 || s.Retained != 0 || s.Ended.Before(s.Started) {
		t.Errorf("%+v", s)
	}
}

func (s processSuite) timeLimit(t *testing.T) {
	m := s.processes(t)
	for _, tty := range []bool{false, true} {
		LongEnough(t, 700, func(ms int64) bool {
			o := script(tree(t, nil), "echo begun; sleep 600")
			o.TTY, o.Limits.WallMS = tty, ms
			b := Begin(t, m, o)
			if st := b.Ends(); st.Termination != writ.TerminationTimeout || st.Reason == "" {
				t.Errorf("tty %v: %+v", tty, st)
			}
			return strings.HasPrefix(b.Text(), "begun")
		})
	}
}

func (s processSuite) readOnly(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	for _, tt := range []struct {
		change func(*writ.Workspace)
		kind   writ.Kind
		code   string
	}{
		{func(w *writ.Workspace) { w.Profile = writ.ReadOnly }, writ.Denied, "UNAUTHORIZED"},
		{func(w *writ.Workspace) { w.EnvironmentKind = writ.EnvironmentContainer }, writ.Denied, "UNAUTHORIZED"},
		{func(w *writ.Workspace) { w.Network = writ.NetworkEnabled }, writ.Unavailable, "PROCESS_SPAWN_FAILED"}, // scenario 148
		{func(w *writ.Workspace) { w.Rules.Write = []string{"src/**"} }, writ.Denied, "PROCESS_SPAWN_FAILED"},
		{func(w *writ.Workspace) { w.Root = filepath.Join(w.Root, "gone") }, writ.NotFound, "PROCESS_SPAWN_FAILED"},
		{func(w *writ.Workspace) { w.Root = "/usr" }, writ.Invalid, "PROCESS_SPAWN_FAILED"},
	} {
		other := w
		tt.change(&other)
		o := Order(other, "touch", filepath.Join(w.Root, "made"))
		wantFault(t, fmt.Sprintf("in %+v", other), m.Start(t.Context(), o), tt.kind, tt.code)
		_, err := m.Status(t.Context(), o.ID)
		wantFault(t, "its status", err, writ.NotFound, "PROCESS_NOT_FOUND")
	}
	if left := FilesBeneath(t, w.Root); len(left) != 0 {
		t.Errorf("something was executed: %v", left)
	}
}

func (s processSuite) faulty(t *testing.T) {
	m, _ := s.start(t, runner.ProcessesOptions{Live: 1})
	w := tree(t, nil)
	good := Order(w, "true")
	for what, change := range map[string]func(*writ.ProcessOrder){
		"no command":        func(o *writ.ProcessOrder) { o.Command = nil },
		"an empty program":  func(o *writ.ProcessOrder) { o.Command = []string{"", "x"} },
		"a NUL":             func(o *writ.ProcessOrder) { o.Command = []string{"echo", "a\x00b"} },
		"not UTF-8":         func(o *writ.ProcessOrder) { o.Command = []string{"echo", "\xff"} },
		"too long":          func(o *writ.ProcessOrder) { o.Command = []string{"echo", strings.Repeat("x", writ.MaxCommandBytes)} },
		"no id":             func(o *writ.ProcessOrder) { o.ID = "" },
		"no limits":         func(o *writ.ProcessOrder) { o.Limits = writ.Limits{} },
		"a faulty root":     func(o *writ.ProcessOrder) { o.Workspace.Root = "here" },
		"no such workspace": func(o *writ.ProcessOrder) { o.Workspace = writ.Workspace{} },
	} {
		o := good
		change(&o)
		wantFault(t, what, m.Start(t.Context(), o), writ.Invalid, "INVALID_COMMAND")
	}
	freeSlot(t, m, w)
}

func (s processSuite) missing(t *testing.T) {
	m, _ := s.start(t, runner.ProcessesOptions{Live: 1})
	w := tree(t, map[string]string{"file": "", "script": "#!/no/such\n"})
	for _, tty := range []bool{false, true} {
		for what, o := range map[string]writ.ProcessOrder{
			"no-such-program": Order(w, "no-such-program"),
			"/no/such":        Order(w, "/no/such"),
			"./file":          Order(w, "./file"),
			"no/such":         {ID: writ.NewProcessID(), Workspace: w, Command: []string{"touch", "made"}, Dir: "no/such", Limits: writ.DefaultLimits},
			"file":            {ID: writ.NewProcessID(), Workspace: w, Command: []string{"touch", "made"}, Dir: "file", Limits: writ.DefaultLimits},
		} {
			o.TTY = tty
			err := m.Start(t.Context(), o)
			wantFault(t, what, err, writ.Invalid, "PROCESS_SPAWN_FAILED")
			if !strings.Contains(writ.Message(err), what) {
				t.Errorf("%s is not named: %v", what, err)
			}
			// The id is still good.
			o.Command, o.Dir = []string{"echo", "again"}, ""
			if got := Begin(t, m, o).ExitsWith(0); !strings.HasPrefix(got, "again") {
				t.Errorf("the next one wrote %q", got)
			}
		}
	}
	if left := FilesBeneath(t, w.Root); len(left) != 2 {
		t.Errorf("something was executed: %v", slices.Sorted(maps.Keys(left)))
	}
}

func (s processSuite) evicted(t *testing.T) {
	m, _ := s.start(t, runner.ProcessesOptions{Kept: 2})
	w := tree(t, nil)
	alive := Begin(t, m, Order(w, "sleep", "600"))
	var ids []writ.ProcessID
	for i := range 4 {
		b := Begin(t, m, Order(w, "echo", fmt.Sprint(i)))
		b.Ends()
		ids = append(ids, b.ID)
	}
	for i, id := range ids {
		_, err := m.Status(t.Context(), id)
		if i >= 2 {
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			continue
		}
		wantFault(t, "an evicted one", err, writ.NotFound, "PROCESS_NOT_FOUND")
	}
	all, err := m.Processes(t.Context())
	if err != nil || len(all) != 3 || all[0].ID != alive.ID || all[1].ID != ids[2] || all[2].ID != ids[3] {
		t.Errorf("the list is %+v, %v", all, err)
	}
	// Its id is no new one for that.
	o := Order(w, "touch", "again")
	o.ID = ids[0]
	if err := m.Start(t.Context(), o); writ.KindOf(err) != writ.Conflict {
		t.Errorf("an evicted one was started again: %v", err)
	}
}

func (s processSuite) ninth(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	var all []Begun
	for range 8 {
		all = append(all, Begin(t, m, Order(w, "sleep", "600")))
	}
	o := Order(w, "touch", "marker")
	wantFault(t, "the ninth", m.Start(t.Context(), o), writ.Exhausted, "WORKSPACE_BUSY")
	if err := m.Terminate(t.Context(), all[3].ID, writ.Kill{}); err != nil {
		t.Fatal(err)
	}
	all[3].Ends()
	if left := FilesBeneath(t, w.Root); len(left) != 0 {
		t.Errorf("the ninth was executed: %v", left)
	}
	Begin(t, m, o).ExitsWith(0) // a slot, and the id
}

func (s processSuite) manyAtOnce(t *testing.T) {
	m, _ := s.start(t, runner.ProcessesOptions{Live: 3})
	w := tree(t, nil)
	var wg sync.WaitGroup
	orders, errs := make([]writ.ProcessOrder, 12), make([]error, 12)
	for i := range orders {
		orders[i] = script(w, fmt.Sprintf("touch marker%d; exec sleep 600", i))
		wg.Go(func() { errs[i] = m.Start(t.Context(), orders[i]) })
	}
	wg.Wait()
	started := 0
	for i, err := range errs {
		if err == nil {
			started++
			Eventually(t, "the marker", func() bool { _, err := os.Stat(filepath.Join(w.Root, fmt.Sprint("marker", i))); return err == nil })
			continue
		}
		wantFault(t, "one too many", err, writ.Exhausted, "WORKSPACE_BUSY")
	}
	if left := FilesBeneath(t, w.Root); started != 3 || len(left) != 3 {
		t.Errorf("%d were started, %d were executed", started, len(left))
	}
	for _, o := range orders {
		_ = m.Terminate(t.Context(), o.ID, writ.Kill{}) // most were refused
	}
}

func (s processSuite) shutdown(t *testing.T) {
	m, stop := s.start(t, runner.ProcessesOptions{})
	mark := writ.NewID("mark")
	told := make(chan writ.ProcessStatus, 2)
	over := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with stop
		over <- m.Exits(ctx, func(s writ.ProcessStatus) error { told <- s; return nil })
	}()
	o := Order(tree(t, nil), "bash", "-c", `trap "" TERM HUP INT; echo up; sleep 600 & wait`, mark)
	b := Begin(t, m, o)
	b.Sees("up")
	if len(Alive(t, mark)) == 0 {
		t.Error("the process is not seen on this host, so no check of its end shows anything")
	}
	stop()
	if pids := Alive(t, mark); len(pids) != 0 {
		t.Errorf("processes %v are alive", pids)
	}
	if st := Receive(t, "its end", told); st.ID != o.ID || st.Termination != writ.TerminationTerminated || st.Reason == "" {
		t.Errorf("it ended as %+v", st)
	}
	if err := Receive(t, "the end of the ends", over); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("the ends ended with %v", err)
	}
	if err := m.Start(t.Context(), Order(o.Workspace, "true")); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("one was started after that: %v", err)
	}
}

func (s processSuite) foreignSignal(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	for _, tty := range []bool{false, true} {
		for _, want := range []writ.Signal{{Number: 9, Name: "SIGKILL"}, {Number: 11, Name: "SIGSEGV"}, {Number: 15, Name: "SIGTERM"}, {Number: 40}} {
			o := script(w, fmt.Sprintf("kill -%d $$; sleep 9", want.Number))
			o.TTY = tty
			st := Begin(t, m, o).Ends()
			if st.Termination != writ.TerminationSignaled || st.Signal == nil || *st.Signal != want {
				t.Errorf("tty %v: %+v %+v, want signal %+v", tty, st, st.Signal, want)
			}
		}
		// A child's death is its parent's business.
		o := script(w, "bash -c 'kill -9 $$'; exit 7")
		o.TTY = tty
		Begin(t, m, o).ExitsWith(7)
	}
}

func (s processSuite) terminateTwice(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	b := Begin(t, m, Order(w, "sleep", "600"))
	for range 2 {
		if err := m.Terminate(t.Context(), b.ID, writ.Kill{}); err != nil {
			t.Error(err)
		}
	}
	if st := b.Ends(); st.Termination != writ.TerminationTerminated {
		t.Errorf("%+v", st)
	}
	for _, k := range []writ.Kill{{}, {Signal: "TERM"}} {
		if err := m.Terminate(t.Context(), b.ID, k); err != nil {
			t.Errorf("after its end: %v", err)
		}
	}
	// What ended by itself stays what it was.
	b = Begin(t, m, script(w, "exit 3"))
	b.ExitsWith(3)
	if err := m.Terminate(t.Context(), b.ID, writ.Kill{}); err != nil {
		t.Error(err)
	}
	b.ExitsWith(3)
	for _, k := range []writ.Kill{{Signal: "STOP"}, {Signal: "term"}, {Signal: "SIG"}, {Signal: "9"}, {Grace: -1}, {Grace: writ.MaxGrace + 1}} {
		wantFault(t, fmt.Sprintf("%+v", k), m.Terminate(t.Context(), b.ID, k), writ.Invalid, "INVALID_COMMAND")
	}
}

func (s processSuite) termThenKill(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	polite := Begin(t, m, script(w, `trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.05; done`))
	deaf := Begin(t, m, script(w, `trap "" TERM; echo up; while :; do sleep 0.05; done`))
	interrupted := Begin(t, m, inTerminal(Order(w, "python3", "-c", "import time\ntry:\n  print('up', flush=True)\n  time.sleep(600)\nexcept KeyboardInterrupt: print('bye')")))
	for _, b := range []Begun{polite, deaf, interrupted} {
		b.Sees("up")
	}
	for b, k := range map[Begun]writ.Kill{polite: {Signal: "TERM", Grace: writ.MaxGrace}, deaf: {Signal: "SIGTERM", Grace: 200 * time.Millisecond}, interrupted: {Signal: "INT", Grace: writ.MaxGrace}} {
		if err := m.Terminate(t.Context(), b.ID, k); err != nil {
			t.Fatal(err)
		}
		if st := b.Ends(); st.Termination != writ.TerminationTerminated {
			t.Errorf("%+v: %+v", k, st)
		}
	}
	for b, want := range map[Begun]bool{polite: true, deaf: false, interrupted: true} {
		if got := b.Text(); strings.Contains(got, "bye") != want {
			t.Errorf("%q, want a last word: %v", got, want)
		}
	}
	// Who asks again may shorten the grace.
	b := Begin(t, m, script(w, `trap "" TERM; echo up; while :; do sleep 0.05; done`))
	b.Sees("up")
	for _, grace := range []time.Duration{writ.MaxGrace, 100 * time.Millisecond, writ.MaxGrace} {
		if err := m.Terminate(t.Context(), b.ID, writ.Kill{Signal: "TERM", Grace: grace}); err != nil {
			t.Fatal(err)
		}
	}
	b.Ends()
}

func (s processSuite) invented(t *testing.T) {
	m := s.processes(t)
	for _, id := range []writ.ProcessID{writ.NewProcessID(), "", "proc-1", "1", "../x", writ.ProcessID(strings.Repeat("p", 1000))} {
		_, status := m.Status(t.Context(), id)
		_, output := m.Output(t.Context(), id, writ.OutputQuery{Wait: time.Hour})
		_, input := m.Input(t.Context(), id, []byte("x"))
		for what, err := range map[string]error{
			"status": status, "output": output, "input": input, "close": m.CloseInput(t.Context(), id),
			"resize": m.Resize(t.Context(), id, writ.FirstTerminalSize), "terminate": m.Terminate(t.Context(), id, writ.Kill{}),
		} {
			wantFault(t, fmt.Sprintf("%s of %.20q", what, id), err, writ.NotFound, "PROCESS_NOT_FOUND")
		}
	}
}

func (s processSuite) sameID(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	o := script(w, `echo x >> count; echo up; exec sleep 600`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := m.Start(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b := Begin(t, m, o)
	b.Sees("up")
	if got := FilesBeneath(t, w.Root)["count"]; got != "x\n" {
		t.Errorf("it was started as often as %q", got)
	}
}

func (s processSuite) backgroundChild(t *testing.T) {
	m := s.processes(t)
	mark := sleepMark()
	for _, tty := range []bool{false, true} {
		o := Order(tree(t, nil), "sh", "-c", "sleep "+mark+" & setsid sleep "+mark+" & echo started")
		o.TTY = tty
		if got := Begin(t, m, o).ExitsWith(0); strings.TrimSpace(got) != "started" {
			t.Errorf("it wrote %q", got)
		}
		NoneAlive(t, mark)
	}
}

func (s processSuite) wholeTree(t *testing.T) {
	m := s.processes(t)
	LongEnough(t, 1000, func(ms int64) (seen bool) {
		mark := sleepMark()
		o := Order(tree(t, nil), "sh", "-c", `trap "" TERM; echo begun; (trap "" TERM; setsid sleep `+mark+`) & (trap "" TERM; exec sleep `+mark+`) & wait`)
		o.Limits.WallMS = ms
		b := Begin(t, m, o)
		Eventually(t, "its children run, or all is over", func() bool {
			seen = len(Alive(t, mark)) >= 2
			return seen || b.Status().State == writ.ProcessExited
		})
		if st := b.Ends(); st.Termination != writ.TerminationTimeout {
			t.Errorf("%+v", st)
		}
		NoneAlive(t, mark)
		if got := b.Text(); seen && got != "begun\n" {
			t.Errorf("it wrote %q", got)
		}
		return seen
	})
}

// sleepMark is a time for sleep that no other process of this host has.
func sleepMark() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("600.%d", binary.NativeEndian.Uint64(b))
}

func (s processSuite) forkBomb(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	mark := sleepMark()
	o := script(w, "for i in $(seq 20000); do sleep "+mark+" & done; echo made; wait")
	o.Limits.Processes, o.Limits.WallMS = 32, 20_000
	a := Begin(t, m, o)
	freeSlot(t, m, w)
	if err := m.Terminate(t.Context(), a.ID, writ.Kill{}); err != nil {
		t.Fatal(err)
	}
	a.Ends()
	NoneAlive(t, mark)
}

func (s processSuite) exits(t *testing.T) {
	m, _ := s.start(t, runner.ProcessesOptions{Kept: 3})
	w := tree(t, nil)
	follow := func() (<-chan writ.ProcessStatus, func() error) {
		told, over := make(chan writ.ProcessStatus, 100), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // ends with cancel
			over <- m.Exits(ctx, func(s writ.ProcessStatus) error { told <- s; return nil })
		}()
		return told, func() error { cancel(); return Receive(t, "the end of the ends", over) }
	}
	early, endEarly := follow()
	first := Begin(t, m, Order(w, "true")) // whose end says that it is there
	if st := Receive(t, "who is there from the start", early); st.ID != first.ID {
		t.Errorf("the first end is %+v", st)
	}
	var ids []writ.ProcessID
	for i := range 5 {
		b := Begin(t, m, script(w, fmt.Sprintf("echo out; exit %d", i)))
		b.Ends()
		ids = append(ids, b.ID)
	}
	late, endLate := follow()
	check := func(who string, told <-chan writ.ProcessStatus, from int) {
		for i := from; i < len(ids); i++ {
			st := Receive(t, who, told)
			checkStatus(t, st)
			if st.ID != ids[i] || st.ExitCode == nil || *st.ExitCode != i || st.Total != 4 {
				t.Errorf("%s: end %d is %+v", who, i, st)
			}
		}
	}
	check("who was there from the start", early, 0)
	check("who came later", late, 2)
	b := Begin(t, m, Order(w, "true"))
	for who, told := range map[string]<-chan writ.ProcessStatus{"early": early, "late": late} {
		if st := Receive(t, who, told); st.ID != b.ID {
			t.Errorf("%s was told of %+v", who, st)
		}
	}
	for _, end := range []func() error{endEarly, endLate} {
		if err := end(); err == nil || writ.KindOf(err) != writ.Internal {
			t.Errorf("cancelled, the ends ended with %v", err)
		}
	}
	// A follower that fails is told so.
	wrong := fmt.Errorf("no more")
	if err := m.Exits(t.Context(), func(writ.ProcessStatus) error { return wrong }); err != wrong {
		t.Errorf("it failed with %v", err)
	}
}
