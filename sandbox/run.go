package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"writ"
	"writ/sandbox/jail"
)

const (
	// pollEvery is how often the limits are looked at that nothing else holds.
	pollEvery = 20 * time.Millisecond
	// pollSeldom is the same for programs in a workspace, which may be servers that run
	// for days.
	pollSeldom = 100 * time.Millisecond
	// killGrace is how long the kernel may take to end a killed box before its
	// processes are killed one by one.
	killGrace = 500 * time.Millisecond
	// drainGrace is how long output may come after everything in the box is gone.
	drainGrace = time.Second
)

// run is a Run of Bubblewrap. supervise owns it until finished is closed.
type run struct {
	box            *bubblewrapBox
	limits         writ.Limits
	began          time.Time     // when the command was sent
	cpuBefore      time.Duration // used by the box's group before that
	oomBefore      int64         // counted by it before that
	stdout, stderr *drain        // without a drain until there is a terminal, where there shall be one
	input          *input
	memory         memoryWatch // follow's

	stopped  atomic.Pointer[end] // set once, by whoever ends the run first
	finished chan struct{}
	result   writ.Result // written before finished is closed
}

// awaitStart waits for the jail to say that the program was executed or not. An
// error means that it cannot be known.
func (r *run) awaitStart(cmd Command) (jail.Record, error) {
	if err := r.box.process.conn.SetReadDeadline(time.Now().Add(patience(cmd))); err != nil {
		return jail.Record{}, err
	}
	rec, terminal, err := r.receive()
	switch {
	case err != nil:
		return jail.Record{}, err
	case rec.Kind != jail.Started && rec.Kind != jail.Failed:
		err = fmt.Errorf("the box sent record %d instead of started", rec.Kind)
	case (terminal != nil) != (cmd.Terminal != nil && rec.Kind == jail.Started):
		err = errors.New("the box sent a terminal where none was asked for, or none where one was")
	}
	if err != nil {
		if terminal != nil {
			_ = terminal.Close()
		}
		return jail.Record{}, err
	}
	if terminal != nil {
		r.stdout, r.input = newDrain(terminal, cmd.Stdout, cmd.Limits.OutputBytes), newInput(terminal, true)
	}
	return rec, nil
}

// receive takes one record, and the terminal that comes with it, or nil.
func (r *run) receive() (rec jail.Record, terminal *os.File, err error) {
	b := make([]byte, jail.RecordBytes+1)
	oob := make([]byte, unix.CmsgSpace(unix.SizeofUcred)+unix.CmsgSpace(4)) // room for one descriptor: the kernel drops what else comes
	n, oobn, _, _, err := r.box.process.conn.ReadMsgUnix(b, oob)
	if errors.Is(err, unix.ECONNRESET) {
		// It ended before it read a signal of ours: the kernel says so first, once, and
		// then gives what the jail had said before.
		n, oobn, _, _, err = r.box.process.conn.ReadMsgUnix(b, oob)
	}
	if err != nil {
		return jail.Record{}, nil, fmt.Errorf("reading from the box: %w", err)
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return jail.Record{}, nil, fmt.Errorf("control message of the box: %w", err)
	}
	for _, m := range msgs {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue // the credentials
		}
		for _, fd := range fds {
			if terminal == nil && isTerminal(fd) {
				terminal = os.NewFile(uintptr(fd), "terminal")
			} else {
				_ = unix.Close(fd)
			}
		}
	}
	if rec, err = jail.ParseRecord(b[:n]); err != nil && terminal != nil {
		_ = terminal.Close()
		terminal = nil
	}
	return rec, terminal, err
}

// isTerminal reports whether fd is our end of a terminal, which does not block.
func isTerminal(fd int) bool {
	if _, err := unix.IoctlGetInt(fd, unix.TIOCGPTN); err != nil {
		return false
	}
	return unix.SetNonblock(fd, true) == nil
}

// abandon closes what belongs to a run that never was.
func (r *run) abandon() error {
	return errors.Join(r.stdout.abandon(), r.stderr.abandon(), r.input.close())
}

// stop ends the run, for the first reason that is given.
func (r *run) stop(e end) {
	if r.stopped.CompareAndSwap(nil, &e) {
		r.box.process.kill()
	}
}

// supervise follows the run to its end. lost is set when contact was lost before
// the jail said whether the program was executed.
func (r *run) supervise(ctx context.Context, lost error) {
	defer close(r.finished)
	go r.stdout.run()
	go r.stderr.run()
	p := r.box.process
	var exited *jail.Record
	if lost == nil {
		exited = r.follow(ctx)
	} else {
		p.kill()
	}
	wall := time.Since(r.began)
	if exited == nil {
		p.awaitGone(killGrace)
	} // else the jail is alone; what it and its namespaces take to go is Close's wait
	deadline := time.Now().Add(drainGrace)
	r.stdout.endBy(deadline)
	r.stderr.endBy(deadline)
	_ = r.input.close() // nobody is left to read it

	e := evidence{exited: exited, limits: r.limits, ownEnd: r.box.workspace != nil, diagnosis: p.stderr.String()}
	if s := r.stopped.Load(); s != nil {
		e.end = *s
	}
	r.result = writ.Result{Started: true, WallMS: wall.Milliseconds(), Sandbox: r.box.sandbox}
	r.account(&e)
	e.judge(&r.result)
	r.result.Stdout, r.result.Stderr = r.stdout.output(), r.stderr.output()
}

// follow waits for the jail's report, and ends the run when it is cancelled or over
// a limit. It returns the report, or nil when none came.
func (r *run) follow(ctx context.Context) *jail.Record {
	p := r.box.process
	reports := make(chan *jail.Record, 1)
	_ = p.conn.SetReadDeadline(time.Time{}) // the socket is open: it cannot fail
	go func() {
		// Ends with the jail, whose end of the socket nobody else has.
		rec, terminal, err := r.receive()
		if terminal != nil {
			_ = terminal.Close()
			err = errors.New("a second terminal")
		}
		if err != nil || rec.Kind != jail.Exited {
			p.kill() // whatever it is that speaks, it is not our jail
			reports <- nil
			return
		}
		reports <- &rec
	}()
	wall := time.NewTimer(time.Until(r.began.Add(span(r.limits.WallMS))))
	defer wall.Stop()
	every := pollEvery
	if r.box.workspace != nil {
		every = pollSeldom
	}
	poll := time.NewTicker(every)
	defer poll.Stop()
	cancelled := ctx.Done()
	for {
		select {
		case rec := <-reports:
			return rec
		case <-cancelled:
			cancelled = nil
			r.stop(end{cause: causeCancelled, reason: "cancelled"})
		case <-wall.C:
			r.stop(end{cause: causeTime, reason: fmt.Sprintf("wall time limit of %v reached", span(r.limits.WallMS))})
		case <-poll.C:
			if e, over := r.overLimit(); over {
				r.stop(e)
			}
		}
	}
}

// account fills in what the run used: as the control group counted it, else as the
// jail did, else as the kernel told us when bwrap was gone.
func (r *run) account(e *evidence) {
	var cpu time.Duration
	var peak int64
	if e.exited != nil {
		cpu, peak = e.exited.TotalCPU(), e.exited.MaxRSS()
	} else {
		state := r.box.process.cmd.ProcessState // of a process that is gone
		cpu, peak = state.UserTime()+state.SystemTime(), maxRSS(state)
	}
	if r.box.group != nil {
		gotCPU, gotPeak, oomKills, err := r.box.group.usage()
		e.oomKills = oomKills - r.oomBefore
		if err == nil && gotCPU > 0 {
			cpu = gotCPU - r.cpuBefore
		}
		if err == nil && gotPeak > 0 {
			peak = gotPeak
		}
	}
	r.result.CPUMS, r.result.PeakBytes = cpu.Milliseconds(), peak
}

// Wait implements Run.
func (r *run) Wait() writ.Result {
	<-r.finished
	return r.result
}

// Input implements Run.
func (r *run) Input(ctx context.Context, b []byte) (int, error) { return r.input.write(ctx, b) }

// CloseInput implements Run.
func (r *run) CloseInput() error { return r.input.end() }

// Resize implements Run.
func (r *run) Resize(s Size) error { return r.input.resize(s) }

// Signal implements Run.
func (r *run) Signal(s Signal) error {
	e := &writ.Error{Kind: writ.Conflict, Op: "signal", Msg: "the program has ended"}
	if s < 1 || s > maxSignal {
		e.Kind, e.Msg = writ.Invalid, fmt.Sprintf("%d is no signal: want one of 1 to %d", int(s), maxSignal)
		return e
	}
	select {
	case <-r.finished:
		return e
	default:
	}
	// Through the jail: it alone knows whether the number of the group is still the
	// program's. It is there as long as the program is.
	if _, _, err := r.box.process.conn.WriteMsgUnix(jail.SignalMessage(int(s)), nil, nil); err != nil {
		e.Err = err
		return e
	}
	return nil
}
