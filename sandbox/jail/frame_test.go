package jail

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be a jail, to see it refuse.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Arg {
		Main()
	}
	os.Exit(m.Run())
}

func commands() []Command {
	return []Command{
		{Argv: []string{"/bin/true"}},
		{Argv: []string{"/bin/sh", "", "\xff\x00"}, Env: []string{"A=b", "=", ""}, Dir: "/workspace",
			Files:  []File{{Path: "/run/writ/a", Mode: 0o755, Size: 1 << 40}, {Path: "/x"}, {Path: "/d", Mode: 0o700, Kind: Folder}, {Path: "/l", Size: unix.PathMax - 1, Kind: Link}},
			Limits: []Limit{{Resource: 7, Soft: 1, Hard: 1<<64 - 1}, {}}},
		{Argv: []string{"sh"}, Rows: 24, Cols: 1<<16 - 1},
	}
}

func TestHeaderGoesBothWays(t *testing.T) {
	for _, c := range commands() {
		b := c.AppendHeader(nil)
		got, err := ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, got, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
		for n := range b {
			if _, err := ParseHeader(b[:n]); err == nil {
				t.Errorf("a header of %d bytes, cut to %d, was taken", len(b), n)
			}
		}
		if _, err := ParseHeader(append(b, 0)); err == nil {
			t.Error("a header with a byte too many was taken")
		}
	}
	if _, err := ParseHeader(Command{}.AppendHeader(nil)); err == nil {
		t.Error("a command without a program was taken")
	}
	if _, err := ParseHeader(Command{Argv: []string{"x"}, Rows: 1}.AppendHeader(nil)); err == nil {
		t.Error("a terminal without columns was taken")
	}
	for name, f := range map[string]File{
		"a file of negative size": {Size: -1}, "a folder with content": {Size: 1, Kind: Folder},
		"a symlink to nothing": {Kind: Link}, "a symlink that leads too far": {Size: unix.PathMax, Kind: Link},
	} {
		if _, err := ParseHeader(Command{Argv: []string{"x"}, Files: []File{f}}.AppendHeader(nil)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	// The kind is before the number of limits.
	b := Command{Argv: []string{"x"}, Files: []File{{}}}.AppendHeader(nil)
	b[len(b)-8] = byte(Link) + 1
	if _, err := ParseHeader(b); err == nil {
		t.Error("something of an unknown kind was taken")
	}
}

func walls() Walls {
	return Walls{Root: "/w", ReadOnly: []string{"/dev/null", ""}, CoverFile: "/f", CoverFolder: "/d",
		Holds: []Hold{{Pin, "a"}, {Hide, "a/\xff"}, {Protect, ""}}, Filter: make([]byte, 16)}
}

func TestWallsGoBothWays(t *testing.T) {
	b := walls().Append(nil)
	got, err := ParseWalls(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(walls(), got); diff != "" {
		t.Error(diff)
	}
	for n := range b {
		if _, err := ParseWalls(b[:n]); err == nil {
			t.Errorf("walls of %d bytes, cut to %d, were taken", len(b), n)
		}
	}
	for name, change := range map[string]func(*Walls){
		"no filter":      func(w *Walls) { w.Filter = nil },
		"half a filter":  func(w *Walls) { w.Filter = w.Filter[:12] },
		"an unknown way": func(w *Walls) { w.Holds[1].Kind = 4 },
	} {
		w := walls()
		change(&w)
		if _, err := ParseWalls(w.Append(nil)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := ParseWalls(append(b, 0)); err == nil {
		t.Error("walls with a byte too many were taken")
	}
}

func TestSignalMessages(t *testing.T) {
	b := SignalMessage(15)
	if n, ok := parseSignalMessage(b); n != 15 || !ok {
		t.Errorf("%d, %v", n, ok)
	}
	for _, b := range [][]byte{nil, b[:11], append(b, 0), CommandMessage(1)[:12]} {
		if _, ok := parseSignalMessage(b); ok {
			t.Errorf("%x was taken", b)
		}
	}
}

func FuzzWalls(f *testing.F) {
	f.Add(walls().Append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := ParseWalls(b)
		if err != nil {
			return
		}
		if again := w.Append(nil); string(again) != string(b) {
			t.Errorf("%x was taken and encodes as %x", b, again)
		}
	})
}

func FuzzHeader(f *testing.F) {
	for _, c := range commands() {
		f.Add(c.AppendHeader(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseHeader(b)
		if err != nil {
			return
		}
		if again := c.AppendHeader(nil); string(again) != string(b) {
			t.Errorf("%x was taken and encodes as %x", b, again)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add(Record{Kind: Exited, Status: 0x300, Values: [8]uint64{1, 2, 3}}.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRecord(b)
		if err != nil {
			return
		}
		if len(b) != RecordBytes || r.Kind < Ready || r.Kind > Exited {
			t.Errorf("%x was taken as %+v", b, r)
		}
		if again, err := ParseRecord(r.encode()); err != nil || again != r {
			t.Errorf("%+v became %+v: %v", r, again, err)
		}
	})
}

func TestRecordGoesBothWays(t *testing.T) {
	want := Record{Kind: Failed, Step: StepExec, Errno: syscall.ENOENT, Index: 7}
	got, err := ParseRecord(want.encode())
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range [][]byte{nil, make([]byte, RecordBytes), make([]byte, RecordBytes+1), want.encode()[1:]} {
		if r, err := ParseRecord(bad); err == nil {
			t.Errorf("%x was taken as %+v", bad, r)
		}
	}
}

func TestCommandMessage(t *testing.T) {
	if n, err := parseCommandMessage(CommandMessage(77)); n != 77 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	for _, bad := range [][]byte{nil, []byte("writ"), make([]byte, commandBytes), CommandMessage(MaxHeaderBytes + 1), append(CommandMessage(1), 0)} {
		if _, err := parseCommandMessage(bad); err == nil {
			t.Errorf("%x was taken", bad)
		}
	}
}

// Outside of a box a jail is nothing: it says so and ends.
func TestNoJailOutsideABox(t *testing.T) {
	out, err := exec.Command("/proc/self/exe", Arg).CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != exitSetup || !strings.Contains(string(out), "not the first process of a box") {
		t.Errorf("got %v: %s", err, out)
	}
}
