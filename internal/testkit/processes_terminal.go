package testkit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"writ"
)

func (s processSuite) isTerminal(t *testing.T) {
	m := s.processes(t)
	o := script(tree(t, nil), `for i in 0 1 2; do test -t $i && echo yes || echo no; done; echo "TERM=$TERM"`)
	writes(t, m, o, "no\nno\nno\nTERM=dumb\n")
	o.ID = writ.NewProcessID()
	writes(t, m, inTerminal(o), "yes\r\nyes\r\nyes\r\nTERM=xterm\r\n")
}

func (s processSuite) resize(t *testing.T) {
	m := s.processes(t)
	b := Begin(t, m, inTerminal(script(tree(t, nil), `stty size; trap "stty size" WINCH; echo up; while ! read -t 1 x; do :; done; echo end`)))
	b.Sees("24 80")
	b.Sees("up")
	if err := m.Resize(t.Context(), b.ID, writ.TerminalSize{Rows: 40, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	b.Sees("40 120")
	b.Types("\n")
	b.ExitsWith(0)
}

func (s processSuite) resizeErrors(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	pipe, over := Begin(t, m, Order(w, "sleep", "600")), Begin(t, m, Order(w, "true"))
	terminal := Begin(t, m, inTerminal(Order(w, "true")))
	over.ExitsWith(0)
	terminal.ExitsWith(0)
	size := writ.TerminalSize{Rows: 1, Cols: 1}
	for _, tt := range []struct {
		what string
		id   writ.ProcessID
		size writ.TerminalSize
		kind writ.Kind
		code string
	}{
		{"zero rows of nobody", "proc-x", writ.TerminalSize{Cols: 1}, writ.Invalid, "INVALID_COMMAND"},
		{"zero columns of a pipe", pipe.ID, writ.TerminalSize{Rows: 1}, writ.Invalid, "INVALID_COMMAND"},
		{"nobody", "proc-x", size, writ.NotFound, "PROCESS_NOT_FOUND"},
		{"a pipe", pipe.ID, size, writ.Conflict, "PROCESS_NOT_TTY"},
		{"a pipe that is over", over.ID, size, writ.Conflict, "PROCESS_NOT_RUNNING"},
		{"a terminal that is over", terminal.ID, size, writ.Conflict, "PROCESS_NOT_RUNNING"},
	} {
		wantFault(t, tt.what, m.Resize(t.Context(), tt.id, tt.size), tt.kind, tt.code)
	}
}

func (s processSuite) noTerminal(t *testing.T) {
	m := s.processes(t)
	b := Begin(t, m, script(tree(t, nil), "head -n1 </dev/tty; echo rc=$?"))
	if got := b.ExitsWith(0); !strings.Contains(got, "rc=1") || !strings.Contains(got, "No such device or address") {
		t.Errorf("it wrote %q", got)
	}
}

func (s processSuite) lastOutput(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	for range 3 {
		if got := Begin(t, m, inTerminal(script(w, "printf 'last line'; exit 3"))).ExitsWith(3); got != "last line" {
			t.Errorf("it wrote %q", got)
		}
	}
	if got := Begin(t, m, inTerminal(script(w, "seq 200000"))).ExitsWith(0); !strings.HasSuffix(got, "\r\n199999\r\n200000\r\n") || len(got) < 262_140 {
		t.Errorf("%d bytes, the last of which are %q", len(got), got[max(0, len(got)-30):])
	}
}

func (s processSuite) terminal(t *testing.T) {
	m := s.processes(t)
	b := Begin(t, m, inTerminal(script(tree(t, nil), `test -c "$(tty)" && echo named; echo direct > /dev/tty; read -s -p 'password: ' p < /dev/tty; echo; echo "<$p>"; printf '\033[1;31mred\033[0m\n'`)))
	b.Sees("named\r\n")
	b.Sees("direct\r\n")
	b.Sees("password: ")
	b.Types("secret\n")
	if got := b.ExitsWith(0); !strings.Contains(got, "<secret>") || strings.Count(got, "secret") != 1 || !strings.Contains(got, "\x1b[1;31mred\x1b[0m\r\n") {
		t.Errorf("it wrote %q", got)
	}
}

func (s processSuite) jobControl(t *testing.T) {
	m := s.processes(t)
	o := inTerminal(Order(tree(t, nil), "bash", "--norc", "--noprofile", "-i"))
	b := Begin(t, m, o)
	b.Types("PS1='> '; bind 'set enable-bracketed-paste off'\n")
	b.Sees("\r> ")
	if got := b.Text(); strings.Contains(got, "job control") || strings.Contains(got, "ioctl") {
		t.Errorf("the shell has no terminal of its own: %q", got)
	}
	mark := sleepMark()
	runs := func() bool { return len(Alive(t, mark)) == 1 }
	b.Types("sleep " + mark + "\n")
	Eventually(t, "the job runs", runs)
	b.Types("\x03") // Ctrl-C ends the job, not the shell
	NoneAlive(t, mark)
	b.Types("echo code=$?\n")
	b.Sees("code=130")
	b.Types("sleep " + mark + "\n")
	Eventually(t, "the job runs again", runs)
	b.Types("\x1a") // Ctrl-Z stops it
	b.Sees("Stopped")
	b.Types("echo still''here\n")
	b.Sees("stillhere")
	b.Types("fg\n")
	Eventually(t, "it goes on in the foreground", func() bool {
		pids := Alive(t, mark)
		if len(pids) != 1 {
			return false
		}
		stat, err := os.ReadFile(filepath.Join("/proc", pidText(pids[0]), "stat"))
		return err == nil && !strings.Contains(string(stat), ") T ")
	})
	b.Types("\x03")
	NoneAlive(t, mark)
	b.Types("exit 5\n")
	b.ExitsWith(5)
}

func (s processSuite) terminalPrograms(t *testing.T) {
	m := s.processes(t)
	w := tree(t, map[string]string{"text": "first\nsecond\n"})
	t.Run("python", func(t *testing.T) {
		needTool(t, "python3")
		b := Begin(t, m, inTerminal(Order(w, "python3", "-q")))
		b.Sees(">>> ")
		b.Types("6 * 7\n")
		b.Sees("42\r\n")
		// It is out of its line editor, and in the loop, when it has written 96.
		b.Types("exec('print(12 * 8, flush=True)\\nwhile True: pass')\n")
		b.Sees("96\r\n")
		b.Types("\x03")
		b.Sees("KeyboardInterrupt")
		b.Types("import os; os.get_terminal_size()\n")
		b.Prompts("columns=80, lines=24", ">>> ")
		b.Types("\x04")
		b.ExitsWith(0)
	})
	t.Run("vi", func(t *testing.T) {
		needTool(t, "vi")
		b := Begin(t, m, inTerminal(Order(w, "vi", "-u", "NONE", "text")))
		b.Sees("second")
		if err := m.Resize(t.Context(), b.ID, writ.TerminalSize{Rows: 10, Cols: 40}); err != nil {
			t.Error(err)
		}
		b.Types("ddihello \x1b:wq\r")
		b.ExitsWith(0)
		if got := FilesBeneath(t, w.Root)["text"]; got != "hello second\n" {
			t.Errorf("the file is %q", got)
		}
	})
}

func (s processSuite) progressBar(t *testing.T) {
	m := s.processes(t)
	b := Begin(t, m, inTerminal(script(tree(t, nil), `for i in 10 50 100; do printf '\r[%-10s] %3d%%' "$(head -c $((i/10)) /dev/zero | tr '\0' '#')" $i; sleep 0.02; done; echo`)))
	if got, want := b.ExitsWith(0), "\r[#         ]  10%\r[#####     ]  50%\r[##########] 100%\r\n"; got != want {
		t.Errorf("it wrote %q, want %q", got, want)
	}
}

func (s processSuite) noPagers(t *testing.T) {
	needTool(t, "git")
	m := s.processes(t)
	w := tree(t, map[string]string{"f": "one\n"})
	made := Begin(t, m, script(w, `set -e; git init -q .; git config user.email a@example.com; git config user.name a
		for i in $(seq 60); do git commit -q --allow-empty -m "commit $i"; done; git add f; echo made`))
	if got := made.ExitsWith(0); !strings.HasSuffix(got, "made\n") {
		t.Fatalf("it wrote %q", got)
	}
	log := Begin(t, m, inTerminal(Order(w, "git", "log"))).ExitsWith(0)
	if strings.Count(log, "commit ") != 120 {
		t.Errorf("the log has %d lines", strings.Count(log, "\n"))
	}
	for _, command := range [][]string{{"git", "commit"}, {"git", "rebase", "-i", "HEAD~2"}} {
		if st := Begin(t, m, inTerminal(Order(w, command...))).Ends(); st.ExitCode == nil {
			t.Errorf("%q: %+v", command, st)
		}
	}
	// An editor of one's own is taken.
	got := Begin(t, m, inTerminal(script(w, `GIT_EDITOR="printf 'said\n' >" git commit -q && git log -1 --format=%s`))).ExitsWith(0)
	if !strings.HasSuffix(got, "said\r\n") {
		t.Errorf("it wrote %q", got)
	}
	// EX-24: git takes the folder, whoever owns it.
	if got := Begin(t, m, script(w, "mkdir sub; cd sub; git status --short; git log -1 --format=%s")).ExitsWith(0); !slices.Contains(strings.Split(got, "\n"), "said") {
		t.Errorf("it wrote %q", got)
	}
}
