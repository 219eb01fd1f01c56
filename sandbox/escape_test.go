package sandbox

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"writ"
)

// attempt is one file of testdata/escape: a program that tries to get out of its
// box or to harm it, and what must come of it. The file's comment says what is
// tried. Its members:
//
//	attempt.py, attempt.sh  the program; Python ones have testdata/escape/attack.py
//	neighbour.py            runs in a box of its own meanwhile, once it prints "ready"
//	expect                  lines, each optionally after "with LAYER:" or "without LAYER:":
//	    outcome O           the run's outcome
//	    reason RE           matches the run's reason
//	    refused N           the program says that N attempts were refused
//	    limits NAME=N ...   what the box has
//	    neighbour alive     after the run
//	    machine GOARCH      elsewhere it is skipped
type attempt struct {
	name      string // of the file: the ids of its attacks, then words
	program   txtar.File
	neighbour []byte
	expect    []string
}

func readAttempt(t *testing.T, file string) attempt {
	t.Helper()
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := attempt{name: strings.TrimSuffix(filepath.Base(file), ".txtar")}
	for _, f := range ar.Files {
		switch f.Name {
		case "attempt.py", "attempt.sh":
			a.program = f
		case "neighbour.py":
			a.neighbour = f.Data
		case "expect":
			a.expect = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		default:
			t.Fatalf("member %s is unknown", f.Name)
		}
	}
	if a.program.Name == "" || len(a.expect) == 0 {
		t.Fatal("want an attempt and what to expect")
	}
	return a
}

// expectation is what holds of expect on a host with the layers active.
func (a attempt) expectation(t *testing.T, active []string) map[string]string {
	t.Helper()
	want := map[string]string{}
	for _, line := range a.expect {
		if cond, rest, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(cond, "with") {
			word, layer, _ := strings.Cut(cond, " ")
			if slices.Contains(active, layer) != (word == "with") {
				continue
			}
			line = rest
		}
		key, value, ok := strings.Cut(line, " ")
		if !ok || !slices.Contains([]string{"outcome", "reason", "refused", "limits", "neighbour", "machine"}, key) {
			t.Fatalf("expect has a line %q", line)
		}
		want[key] = value
	}
	return want
}

// escapeLimits are small, so that whatever gets through does little.
func escapeLimits(t *testing.T, changes string) writ.Limits {
	t.Helper()
	l := writ.DefaultLimits
	l.WallMS, l.CPUMS, l.MemoryBytes, l.Processes = 30_000, 30_000, 256<<20, 32
	l.WorkspaceBytes, l.TmpBytes, l.OutputBytes = 32<<20, 16<<20, 256<<10
	for change := range strings.FieldsSeq(changes) {
		name, value, _ := strings.Cut(change, "=")
		i := slices.IndexFunc(l.Fields(), func(f writ.LimitField) bool { return f.Name == name })
		n, err := strconv.ParseInt(value, 10, 64)
		if i < 0 || err != nil {
			t.Fatalf("limits: %q", change)
		}
		*l.Fields()[i].Value = n
	}
	return l
}

// command is the program, placed in dir.
func (a attempt) command(t *testing.T, dir string, l writ.Limits, env []string) Command {
	t.Helper()
	path := dir + "/" + a.program.Name
	cmd := program("/bin/bash", path)
	if strings.HasSuffix(path, ".py") {
		need(t, "python", "/usr/bin/python3")
		cmd = program("/usr/bin/python3", path)
		lib, err := os.ReadFile("testdata/escape/attack.py")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Files = append(cmd.Files, File{Path: dir + "/attack.py", Content: lib, Mode: 0o644})
	}
	cmd.Files = append(cmd.Files, File{Path: path, Content: a.program.Data, Mode: 0o644})
	cmd.Env = append(cmd.Env, env...)
	cmd.Limits = l
	return cmd
}

// TestEscape makes every attempt of testdata/escape, each in a new box, and looks
// at the host afterwards. It runs as root and as an ordinary user.
func TestEscape(t *testing.T) {
	files, err := filepath.Glob("testdata/escape/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	b := newProvider(t, Options{})
	host, err := b.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		a := readAttempt(t, file)
		t.Run(a.name, func(t *testing.T) {
			want := a.expectation(t, host.Active)
			if m := want["machine"]; m != "" && m != runtime.GOARCH {
				t.Skipf("its machine code is that of %s", m)
			}
			limits := escapeLimits(t, want["limits"])
			env, after := hostSide(t, a.name)
			if want["neighbour"] != "" || a.neighbour != nil {
				defer a.besideNeighbour(t, b)()
			}
			r := runIn(t, b, a.command(t, "/workspace", limits, env))
			for try := 1; try < 5 && r.Outcome == writ.TimedOut && r.WallMS > limits.WallMS+1000; try++ {
				r = runIn(t, b, a.command(t, "/workspace", limits, env)) // the machine stood still
			}
			a.check(t, want, r)
			after(r)
		})
	}
}

func (a attempt) check(t *testing.T, want map[string]string, r writ.Result) {
	t.Helper()
	bad := false
	fault := func(format string, args ...any) {
		bad = true
		t.Errorf(format, args...)
	}
	if !r.Started {
		fault("it says that nothing was executed")
	}
	if strings.Contains(r.Stdout.Text, "BREACH") {
		fault("something was not refused")
	}
	if string(r.Outcome) != want["outcome"] {
		fault("outcome %s, want %s", r.Outcome, want["outcome"])
	}
	if re := want["reason"]; re != "" && !regexp.MustCompile(re).MatchString(r.Reason) {
		fault("reason %q does not match %q", r.Reason, re)
	}
	// The last line: a program that stopped early has not made its attempts.
	if n := want["refused"]; n != "" && !strings.HasSuffix("\n"+r.Stdout.Text, "\nrefused "+n+"\n") {
		fault("want %s attempts refused", n)
	}
	if bad {
		t.Log(show(r))
	}
}

// besideNeighbour starts the neighbour and waits for it. What it returns checks
// that the neighbour still lives, and ends it.
func (a attempt) besideNeighbour(t *testing.T, b *Bubblewrap) (done func()) {
	t.Helper()
	need(t, "python", "/usr/bin/python3")
	ctx, cancel := context.WithCancel(t.Context())
	ready := &signalling{want: []byte("ready\n"), seen: make(chan struct{})}
	cmd := python(t, string(a.neighbour))
	cmd.Stdout, cmd.Limits = ready, escapeLimits(t, "")
	run, _ := start(t, b, ctx, cmd)
	ended := make(chan writ.Result, 1)
	go func() { ended <- run.Wait() }()
	select {
	case <-ready.seen:
	case r := <-ended:
		cancel()
		t.Fatalf("the neighbour: %s", show(r))
	}
	return func() {
		cancel()
		// Only what was still running can be ended by its context.
		if r := <-ended; r.Outcome != writ.Killed {
			t.Errorf("the neighbour did not live on: %s", show(r))
		}
	}
}

// signalling is a writer that says when it has seen something.
type signalling struct {
	want, got []byte
	seen      chan struct{}
}

func (s *signalling) Write(p []byte) (int, error) {
	before := bytes.Contains(s.got, s.want)
	s.got = append(s.got, p...)
	if !before && bytes.Contains(s.got, s.want) {
		close(s.seen)
	}
	return len(p), nil
}

// FS-04: a working folder behind a descriptor of whoever starts the program
// (CVE-2024-21626). The box's own folders are all that could be found there.
func TestFS04_WorkingFolderBehindDescriptor(t *testing.T) {
	b := newProvider(t, Options{})
	for fd := 3; fd < 12; fd++ {
		cmd := shell("pwd -P; ls -a ../../../..")
		cmd.Dir = "/proc/self/fd/" + strconv.Itoa(fd)
		box := prepareBox(t, b, cmd.Limits)
		run, err := box.Start(t.Context(), cmd)
		if err != nil {
			continue // refused
		}
		r := run.Wait()
		where, listing, _ := strings.Cut(r.Stdout.Text, "\n")
		if !slices.Contains([]string{"/workspace", "/tmp", "/dev/shm", "/home/agent"}, where) || strings.Contains(listing, "root\n") {
			t.Errorf("descriptor %d: %s", fd, show(r))
		}
	}
}
