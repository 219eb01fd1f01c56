package runner

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"writ"
	"writ/sandbox"
)

// process is one command behind a handle. Its fields above mu are set before ready is
// closed.
type process struct {
	id      writ.ProcessID
	tty     bool
	started time.Time
	run     sandbox.Run
	kill    context.CancelCauseFunc // ends its box, for the first cause that is given
	failed  error                   // why it was not started
	ready   chan struct{}           // closed when it was started, or failed to

	mu sync.Mutex
	// What it wrote: both streams as they came, and each of the two. Of a terminal there
	// is but one, which is in both alone. Guarded by mu.
	both, stdout, stderr ring
	torn                 [2][]byte           // guarded by mu; of each stream the beginning of a character that is not in both yet
	changed              chan struct{}       // guarded by mu; closed when there is more, or the end; nil while nobody waits
	asked                bool                // guarded by mu; it got a signal that is to end it
	deadline             time.Time           // guarded by mu; when it is killed if that did not help
	killer               *time.Timer         // guarded by mu; which does it
	ended                *writ.ProcessStatus // guarded by mu; how it ended, without the output; nil while it runs
}

func newProcess(o writ.ProcessOrder, output int) *process {
	output = int(min(int64(output), o.Limits.OutputBytes))
	return &process{
		id: o.ID, tty: o.TTY, started: time.Now(), ready: make(chan struct{}),
		both: ring{max: output}, stdout: ring{max: output}, stderr: ring{max: output},
	}
}

// command is what the box runs (spec/02 §7.1). The environment is UTF-8, where the
// contract has a locale in which not all text can be printed, and no program of git's
// waits for keys that nobody types (a command can set its variables itself).
func (p *process) command(o writ.ProcessOrder, root string, env []string) sandbox.Command {
	cmd := sandbox.Command{
		Argv: o.Command,
		Env: []string{
			"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
			"HOME=" + root, "TMPDIR=/tmp", "LANG=C.UTF-8",
			"PAGER=cat", "GIT_PAGER=cat", "GIT_EDITOR=false",
		},
		Dir:    path.Join(root, o.Dir),
		Stdout: stream{p, writ.Stdout},
		Stderr: stream{p, writ.Stderr},
		Limits: o.Limits,
	}
	cmd.Limits.OutputBytes = sandbox.Unlimited // what is kept is the last of it, not the first
	if o.TTY {
		cmd.Terminal = &sandbox.Size{Rows: writ.FirstTerminalSize.Rows, Cols: writ.FirstTerminalSize.Cols}
		cmd.Env = append(cmd.Env, "TERM=xterm")
	} else {
		cmd.Input = true
	}
	for _, v := range env {
		cmd.Env = setenv(cmd.Env, v)
	}
	return cmd
}

// setenv is env with the variable that v, "NAME=value", sets.
func setenv(env []string, v string) []string {
	name, _, _ := strings.Cut(v, "=")
	env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	return append(env, v)
}

// settle says that the process was started, or why not.
func (p *process) settle(failed error) {
	p.failed = failed
	close(p.ready)
}

// awaitStart waits for that. err is of ctx.
func (p *process) awaitStart(ctx context.Context) (failed, err error) {
	select {
	case <-p.ready:
		return p.failed, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stream is a writer of a process's output that never fails.
type stream struct {
	p    *process
	name writ.Stream
}

var _ io.Writer = stream{}

func (s stream) Write(b []byte) (int, error) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	own, i := &p.stdout, 0
	if s.name == writ.Stderr {
		own, i = &p.stderr, 1
	}
	if p.tty {
		p.both.write(b)
	} else {
		own.write(b)
		p.merge(i, b)
	}
	p.notify()
	return len(b), nil
}

// merge writes what one stream got into both. A character that is not whole yet waits,
// so that nothing of the other stream comes between. mu is held.
func (p *process) merge(i int, b []byte) {
	if len(p.torn[i]) > 0 {
		b = append(p.torn[i], b...)
		p.torn[i] = nil
	}
	whole := writ.CutRune(b)
	p.both.write(whole)
	if rest := b[len(whole):]; len(rest) > 0 {
		p.torn[i] = append([]byte(nil), rest...)
	}
}

// notify wakes who waits for output. mu is held.
func (p *process) notify() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// next is closed when there is more. mu is held.
func (p *process) next() <-chan struct{} {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// read is the output that is there from a cursor on. mu is held.
func (p *process) read(q writ.OutputQuery) writ.ProcessOutput {
	r := &p.both
	switch {
	case q.Stream == writ.Stderr:
		r = &p.stderr // of a terminal nothing, ever
	case q.Stream == writ.Stdout && !p.tty:
		r = &p.stdout
	}
	out := writ.ProcessOutput{Retained: r.from(), Total: r.total, State: writ.ProcessRunning}
	out.Lost = out.Retained > 0
	out.Cursor = max(q.Cursor, out.Retained)
	if n := r.total - out.Cursor; n > 0 {
		if q.Limit > 0 {
			n = min(n, int64(max(q.Limit, utf8.UTFMax)))
		}
		out.Chunk = r.copy(out.Cursor, int(n))
		if p.ended == nil || out.Cursor+n < r.total {
			out.Chunk = writ.CutRune(out.Chunk)
		}
		out.Cursor += int64(len(out.Chunk))
	}
	if p.ended != nil {
		out.State, out.Termination = p.ended.State, p.ended.Termination
		out.EOF = out.Cursor >= r.total
	}
	return out
}

// status is where the process stands.
func (p *process) status() writ.ProcessStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := writ.ProcessStatus{ID: p.id, State: writ.ProcessRunning, Started: p.started}
	if p.ended != nil {
		s = *p.ended
	}
	s.Total, s.Retained = p.both.total, p.both.from()
	return s
}

func (p *process) endedAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.ended.Ended
}

// errTerminated is why a process was ended by Terminate.
var errTerminated = errors.New("ended by terminate_process")

// end records how the process ended: all its output is there.
func (p *process) end(res writ.Result, killed error, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, rest := range p.torn {
		p.both.write(rest)
		p.torn[i] = nil
	}
	s := ending(res, p.asked, killed)
	s.ID, s.State, s.Started, s.EOF, s.Ended = p.id, writ.ProcessExited, p.started, true, &now
	p.ended = &s
	if p.killer != nil {
		p.killer.Stop()
	}
	p.notify()
}

// ending says how a process ended, from the evidence of its box (spec/02 §7.2). asked
// says that it got a signal that was to end it, killed why its box was ended, if we did.
// An exit code or a signal is what the program did, even if it was to be killed at the
// same moment.
func ending(res writ.Result, asked bool, killed error) writ.ProcessStatus {
	s := writ.ProcessStatus{Reason: res.Reason}
	number := sandbox.SignalNumber(res.Signal)
	switch {
	case asked:
		s.Termination, s.Reason = writ.TerminationTerminated, errTerminated.Error()
	case res.ExitCode != nil:
		s.Termination, s.ExitCode = writ.TerminationExited, res.ExitCode
	case (res.Outcome == writ.Failed || res.Outcome == writ.OutOfMemory) && number > 0:
		s.Termination, s.Signal = writ.TerminationSignaled, &writ.Signal{Number: number}
		if len(res.Signal) > 3 && (res.Signal[3] < '0' || res.Signal[3] > '9') {
			s.Signal.Name = res.Signal
		}
	case res.Outcome == writ.TimedOut:
		s.Termination = writ.TerminationTimeout
	case killed != nil && (res.Outcome == writ.Killed || res.Outcome == writ.Interrupted):
		s.Termination, s.Reason = writ.TerminationTerminated, killed.Error()
	case res.Outcome == writ.Killed:
		s.Termination = writ.TerminationTerminated
	default:
		s.Termination = writ.TerminationUnknown
	}
	return s
}
