package interpreter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
)

func exit(n int) *int { return &n }

func out(s string) writ.Output { return writ.NewOutput([]byte(s), int64(len(s))) }

// cutAt is the output of a run that wrote more than the n bytes that are kept.
func cutAt(s string, n int) writ.Output { return writ.NewOutput([]byte(s[:n]), int64(len(s))) }

func TestOutcomesInTheContractsWords(t *testing.T) {
	const units = 10
	for name, tt := range map[string]struct {
		result writ.Result
		want   Reply
	}{
		"exit 0": {
			writ.Result{Outcome: writ.Succeeded, ExitCode: exit(0), Stdout: out("hi\n"), WallMS: 7},
			Reply{Code: exit(0), Stdout: "hi\n", WallMS: 7},
		},
		"exit 3": {
			writ.Result{Outcome: writ.Failed, ExitCode: exit(3), Stdout: out("o"), Stderr: out("e")},
			Reply{Code: exit(3), Stdout: "o", Stderr: "e"},
		},
		"killed itself": {
			writ.Result{Outcome: writ.Failed, Signal: "SIGSEGV"},
			Reply{Code: exit(139), Signal: "SIGSEGV"},
		},
		"a shell tells of a signal": {
			writ.Result{Outcome: writ.Failed, ExitCode: exit(130)},
			Reply{Code: exit(130), Signal: "SIGINT"},
		},
		"an exit code beyond all signals": {
			writ.Result{Outcome: writ.Failed, ExitCode: exit(255)},
			Reply{Code: exit(255)},
		},
		"time": {
			writ.Result{Outcome: writ.TimedOut, Signal: "SIGKILL", Stdout: out("start\n"), Stderr: out("x")},
			Reply{Code: exit(137), Signal: "SIGKILL", Status: "TO", Message: "Time limit exceeded", Stdout: "start\n", Stderr: "x\n[sandbox] Time limit exceeded\n"},
		},
		"memory": {
			writ.Result{Outcome: writ.OutOfMemory, Signal: "SIGKILL"},
			Reply{Code: exit(137), Signal: "SIGKILL", Status: "SG", Message: "Out of memory", Stderr: "\n[sandbox] Out of memory\n"},
		},
		"stdout exactly at the limit": {
			writ.Result{Outcome: writ.Succeeded, ExitCode: exit(0), Stdout: out("0123456789")},
			Reply{Code: exit(0), Stdout: "0123456789"},
		},
		"stdout one over the limit, although it ended": {
			writ.Result{Outcome: writ.Succeeded, ExitCode: exit(0), Stdout: out("0123456789a")},
			Reply{Code: exit(137), Signal: "SIGKILL", Status: "OL", Message: "stdout length exceeded", Stdout: "0123456789", Stderr: "\n[sandbox] stdout length exceeded\n"},
		},
		"stdout over what is kept": {
			writ.Result{Outcome: writ.Killed, Signal: "SIGKILL", Stdout: cutAt(strings.Repeat("a", 31), 30)},
			Reply{Code: exit(137), Signal: "SIGKILL", Status: "OL", Message: "stdout length exceeded", Stdout: "aaaaaaaaaa", Stderr: "\n[sandbox] stdout length exceeded\n"},
		},
		"stderr over the limit is not fatal": {
			writ.Result{Outcome: writ.Succeeded, ExitCode: exit(0), Stdout: out("DONE"), Stderr: out("eeeeeeeeeeee")},
			Reply{Code: exit(0), Stdout: "DONE", Message: "stderr truncated at 10 bytes", Stderr: "eeeeeeeeee\n[sandbox] stderr truncated at 10 bytes\n"},
		},
		"time and a long stderr": {
			writ.Result{Outcome: writ.TimedOut, Stderr: out("eeeeeeeeeeee")},
			Reply{Code: exit(137), Signal: "SIGKILL", Status: "TO", Message: "Time limit exceeded", Stderr: "eeeeeeeeee\n[sandbox] Time limit exceeded\n"},
		},
		"another limit": {
			writ.Result{Outcome: writ.Killed, Reason: "limit of files reached"},
			Reply{Code: exit(137), Signal: "SIGKILL", Message: "limit of files reached", Stderr: "\n[sandbox] limit of files reached\n"},
		},
		"each byte that is no text, and NUL": {
			writ.Result{Outcome: writ.Succeeded, ExitCode: exit(0), Stdout: out("a\xff\xfeb\x00")},
			Reply{Code: exit(0), Stdout: "a\ufffd\ufffdb\x00"},
		},
		"characters of two units": {
			writ.Result{Outcome: writ.Succeeded, ExitCode: exit(0), Stdout: out("😀😀😀😀😀")},
			Reply{Code: exit(0), Stdout: "😀😀😀😀😀"},
		},
		"a character that is cut by the limit goes whole": {
			writ.Result{Outcome: writ.Succeeded, ExitCode: exit(0), Stdout: out("123456789😀")},
			Reply{Code: exit(137), Signal: "SIGKILL", Status: "OL", Message: "stdout length exceeded", Stdout: "123456789", Stderr: "\n[sandbox] stdout length exceeded\n"},
		},
	} {
		if diff := cmp.Diff(tt.want, outcome(tt.result, units)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTasksWithoutAnOutcomeAreErrors(t *testing.T) {
	started, not := &writ.Result{Started: true}, &writ.Result{Reason: "not started: no box"}
	for _, state := range writ.TaskStates {
		for _, r := range []*writ.Result{nil, started, not} {
			err := unanswerable(writ.Task{State: state, Result: r, Reason: "no rule allows it"})
			answers := r == started && state != writ.TaskDenied && state != writ.TaskExpired && state != writ.TaskInterrupted
			if (err == nil) != answers {
				t.Errorf("%s with result %v: %v", state, r, err)
			}
		}
	}
	err := unanswerable(writ.Task{State: writ.TaskDenied, Reason: "no rule allows it"})
	if writ.KindOf(err) != writ.Denied || writ.Message(err) != "no rule allows it" {
		t.Errorf("a denied one: %v", err)
	}
	if err := unanswerable(writ.Task{State: writ.TaskFailed, Result: not}); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("one that was not started: %v", err)
	}
}
