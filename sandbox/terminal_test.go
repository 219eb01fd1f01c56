package sandbox

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"writ"
	"writ/sandbox/jail"
)

// inTerminal is a command that runs a script with bash in a terminal of 30 x 100.
func inTerminal(script string) Command {
	cmd := shell(script)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.Terminal = &Size{30, 100}
	return cmd
}

// EX-16: the size is there from the start and follows, and the program hears of it.
func TestScenario92_93_EX16_SizeAndResize(t *testing.T) {
	l := begin(t, newProvider(t, Options{}), newWorkspace(t, nil), inTerminal(`stty size; trap "stty size" WINCH; echo up; while read -t 20 x; do :; done; echo end`))
	l.sees("30 100")
	l.sees("up")
	wantKind(t, l.Resize(Size{0, 100}), writ.Invalid)
	if err := l.Resize(Size{40, 120}); err != nil {
		t.Fatal(err)
	}
	// bash runs the trap when the read is over.
	l.types("\n")
	l.sees("40 120")
	if err := l.CloseInput(); err != nil {
		t.Fatal(err)
	}
	l.sees("end")
	wantExit(t, l.Wait(), 0)
	wantKind(t, l.Resize(Size{40, 120}), writ.Conflict)
	_, err := l.Input(t.Context(), []byte("x"))
	wantKind(t, err, writ.Conflict)
	wantKind(t, l.CloseInput(), writ.Conflict)
}

// EX-14: what was written last is there, and the end of the terminal is no error.
func TestEX14_LastOutputOfATerminal(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, nil)
	for range 10 {
		l := begin(t, b, w, inTerminal("printf 'last line'; exit 3"))
		r := l.Wait()
		wantExit(t, r, 3)
		if got := l.out.String(); got != "last line" {
			t.Fatalf("got %q: %s", got, show(r))
		}
	}
	// More than a terminal buffers, read by somebody slower than it is written.
	l := begin(t, b, w, inTerminal("seq 200000; exit 4"))
	wantExit(t, l.Wait(), 4)
	if got := l.out.String(); !strings.HasPrefix(got, "1\r\n2\r\n") || !strings.HasSuffix(got, "\r\n200000\r\n") || strings.Count(got, "\n") != 200000 {
		t.Errorf("%d bytes, ends in %q", len(got), got[max(0, len(got)-20):])
	}
}

// A terminal is one: named, controlling, with job control and an interrupt character.
func TestScenario91_147_TerminalIsReal(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, nil)
	l := begin(t, b, w, inTerminal(`tty; test -c "$(tty)" && stat -c %u "$(tty)"; for i in 0 1 2; do test -t $i || echo "no $i"; done
		echo by name > /dev/tty; echo /dev/pts/*; ps -o tty=,pgid=,tpgid= -p $$ 2> /dev/null; exec < /dev/null > /dev/null 2>&1; echo again > /dev/tty`))
	wantExit(t, l.Wait(), 0)
	for _, want := range []string{"/dev/pts/0\r\n1000\r\nby name\r\n/dev/pts/0 /dev/pts/ptmx\r\n", "again\r\n"} {
		if !strings.Contains(l.out.String(), want) {
			t.Errorf("%q is not in %q", want, l.out)
		}
	}

	// An interactive shell with jobs, as a person would use it.
	cmd := inTerminal("")
	cmd.Argv = []string{"bash", "--norc", "-i"}
	cmd.Env = append(cmd.Env, "PS1=> ")
	l = begin(t, b, w, cmd)
	l.sees("> ")
	if got := l.out.String(); strings.Contains(got, "job control") || strings.Contains(got, "ioctl") {
		t.Errorf("the shell has no terminal of its own: %q", got)
	}
	l.types("sleep " + asleep(4804) + "; echo code=$?\n")
	eventually(t, "the job runs", func() bool { return len(sleeping(t, asleep(4804))) == 1 })
	l.types("\x03")
	eventually(t, "the job is gone", func() bool { return len(sleeping(t, asleep(4804))) == 0 })
	l.types("sleep " + asleep(4805) + "\n")
	eventually(t, "the next job runs", func() bool { return len(sleeping(t, asleep(4805))) == 1 })
	l.types("\x1a")
	l.sees("Stopped")
	// Until the shell has noticed that it is gone: it does not end while a job is stopped.
	l.types("jobs; kill %1; while kill -0 %1 2> /dev/null; do sleep 0.01; done; echo do''ne\n")
	l.prompts("done\r\n", "> ")
	l.types("\x04")
	l.sees("exit")
	if r := l.Wait(); r.ExitCode == nil || r.Signal != "" {
		t.Errorf("got %s", show(r))
	}
}

// EX-13: without a terminal there is none, whoever started the server from one.
func TestEX13_NoTerminalUnlessAskedFor(t *testing.T) {
	r := runInWorkspace(t, newProvider(t, Options{}), newWorkspace(t, nil), shell("head -n1 < /dev/tty; echo rc=$?; tty; ls /dev/pts"))
	wantExit(t, r, 0)
	if r.Stdout.Text != "rc=1\nnot a tty\nptmx\n" || !strings.Contains(r.Stderr.Text, "No such device or address") {
		t.Errorf("got %s", show(r))
	}
}

// EX-17: a pager, an editor and a prompt of Python's, with a person who types.
func TestEX17_ProgramsForTerminals(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, map[string]string{"text": "first\nsecond\n"})
	t.Run("python", func(t *testing.T) {
		need(t, "python", "/usr/bin/python3")
		cmd := inTerminal("")
		cmd.Argv = []string{"python3", "-q"}
		l := begin(t, b, w, cmd)
		l.sees(">>> ")
		l.types("6 * 7\n")
		l.sees("42\r\n")
		l.types("import os; os.get_terminal_size()\n")
		l.prompts("columns=100, lines=30", ">>> ")
		if err := l.CloseInput(); err != nil {
			t.Error(err)
		}
		wantExit(t, l.Wait(), 0)
	})
	t.Run("vi", func(t *testing.T) {
		need(t, "vi", "/usr/bin/vi")
		cmd := inTerminal("")
		cmd.Argv = []string{"vi", "-u", "NONE", "text"}
		l := begin(t, b, w, cmd)
		l.sees("second")
		l.types("ddihello \x1b:wq\n")
		wantExit(t, l.Wait(), 0)
		r := runInWorkspace(t, b, w, shell("cat text"))
		if r.Stdout.Text != "hello second\n" {
			t.Errorf("got %q", r.Stdout.Text)
		}
	})
}

// BW-18 and PR-11: nobody types into a terminal but who holds its other end.
func TestBW18_NobodyTypesIntoATerminal(t *testing.T) {
	cmd := python(t, `
import ctypes, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
x = ctypes.create_string_buffer(b"x")
for fd in (0, 1, 2, os.open("/dev/tty", os.O_RDWR)):
    for request in (0x5412, 1 << 32 | 0x5412, 0x541C, 1 << 32 | 0x541C, 0x5423):
        r = libc.ioctl(fd, ctypes.c_ulong(request), x)
        print("refused" if r == -1 and ctypes.get_errno() == 1 else "BREACH")
`)
	cmd.Terminal = &Size{24, 80}
	l := begin(t, newProvider(t, Options{}), newWorkspace(t, nil), cmd)
	wantExit(t, l.Wait(), 0)
	if got := l.out.String(); got != strings.Repeat("refused\r\n", 20) {
		t.Errorf("got %q", got)
	}
}

// A terminal that nobody reads from takes no more than it has room for.
func TestTerminalInputIsBounded(t *testing.T) {
	l := begin(t, newProvider(t, Options{}), newWorkspace(t, nil), inTerminal("stty raw -echo; echo up; exec sleep 4806"))
	l.sees("up")
	n, err := 0, error(nil)
	for total := 0; err == nil && total < 64<<20; total += n {
		n, err = l.Input(within50ms(t), make([]byte, 64<<10))
	}
	wantKind(t, err, writ.Exhausted)
	if err := l.Signal(SIGKILL); err != nil {
		t.Error(err)
	}
	if r := l.Wait(); r.Signal != "SIGKILL" {
		t.Errorf("got %s", show(r))
	}
}

// Runs in memory have terminals and an open input as well.
func TestTerminalWithoutAWorkspace(t *testing.T) {
	b := newProvider(t, Options{})
	cmd := shell("stty size")
	cmd.Terminal = &Size{7, 9}
	r := runIn(t, b, cmd)
	wantExit(t, r, 0)
	if r.Stdout.Text != "7 9\r\n" || r.Stderr.Bytes != 0 {
		t.Errorf("got %s", show(r))
	}
}

// A jail takes a command for a terminal without streams, and no other.
func TestStreamsAndTerminalExcludeEachOther(t *testing.T) {
	b := newProvider(t, Options{})
	header := jail.Command{Argv: []string{"/bin/true"}, Dir: "/", Rows: 1, Cols: 1}.AppendHeader(nil)
	f, err := sealedBytes("command", header)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if rec := tell(t, b, f, len(header)); rec.Kind != jail.Failed || rec.Step != jail.StepCommand {
		t.Errorf("got %+v", rec)
	}
}

// openPair is a terminal of the host, by our end, which does not block, and the program's.
func openPair(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		missing(t, "ptmx", err)
	}
	ours = os.NewFile(uintptr(fd), "terminal")
	t.Cleanup(func() { _ = ours.Close() }) // a test may have closed it
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		t.Fatal(errno)
	}
	theirs = os.NewFile(peer, "the program's end")
	t.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}

// Where there is room for the end of the input it is typed, however long it took to come
// to it; where there is none, or somebody else types, that is told.
func TestEndOfATerminalsInputIsTypedHoweverLate(t *testing.T) {
	ours, theirs := openPair(t)
	in := newInput(ours, true)
	if err := in.typeNow('D'&0x1f, 0); err != nil {
		t.Fatal(err)
	}
	if n, _ := theirs.Read(make([]byte, 10)); n != 0 { // it would wait if nothing had come
		t.Errorf("%d bytes came", n)
	}
	<-in.turn
	wantKind(t, in.typeNow('D'&0x1f, 0), writ.Exhausted)
	in.turn <- struct{}{}
	_ = theirs.Close()
	_ = ours.Close()
	wantKind(t, in.typeNow('D'&0x1f, 0), writ.Conflict)
}
