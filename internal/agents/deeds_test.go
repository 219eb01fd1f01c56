package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"writ"
)

// errBusy is that somebody else has the workspace, or that enough runs already.
var errBusy = errors.New("busy")

// mark is an argument that no other process of the machine has, but those of the soak.
func (h *host) mark() string { return h.dir + "/soak" }

// call calls a tool. The error is errBusy where others are in the way.
func (s *soaker) call(ctx context.Context, tool string, args map[string]any) (answer, error) {
	out, err := s.a.try(ctx, tool, args)
	switch {
	case err != nil:
		return out, fmt.Errorf("%s: %w", tool, err)
	case out.Code == "WORKSPACE_BUSY" || out.Code == "RESOURCE_QUEUE_FULL":
		return out, errBusy
	case out.failed:
		return out, fmt.Errorf("%s: %s %s", tool, out.Code, out.Message)
	}
	return out, nil
}

// start starts a shell.
func (s *soaker) start(ctx context.Context, tty bool, script string) (writ.ProcessID, error) {
	p, err := s.call(ctx, "exec_command", map[string]any{
		"workspace_id": s.site, "tty": tty, "command": []string{"sh", "-c", script, s.h.mark()},
	})
	if err == nil && p.Dispatch != "confirmed" {
		err = fmt.Errorf("started: %+v", p)
	}
	return p.Process, err
}

// output is what a process wrote, read until it ends in text, or for all of it if text is
// empty.
func (s *soaker) output(ctx context.Context, id writ.ProcessID, text string) (all string, err error) {
	for cursor := int64(0); ; {
		out, err := s.call(ctx, "read_process", map[string]any{"process_id": id, "cursor": cursor, "wait_ms": 5000})
		if err != nil {
			return all, err
		}
		all += out.Chunk
		cursor = out.Cursor
		switch {
		case text != "" && strings.HasSuffix(all, text):
			return all, nil
		case out.EOF && text == "":
			return all, nil
		case out.EOF:
			return all, fmt.Errorf("output %.200q ends before %q", all, text)
		}
	}
}

// ends waits for the end of a process, which must be of this kind, and with that exit
// code if it has one.
func (s *soaker) ends(ctx context.Context, id writ.ProcessID, how writ.Termination, code int) error {
	for over := time.Now().Add(patience); ; pause(ctx, 10*time.Millisecond) {
		out, err := s.call(ctx, "process_status", map[string]any{"process_id": id})
		switch {
		case err != nil:
			return err
		case out.State == "exited" && (out.Termination != how || how == writ.TerminationExited && (out.ExitCode == nil || *out.ExitCode != code)):
			return fmt.Errorf("it ended %s (%v), want %s (%d)", out.Termination, out.ExitCode, how, code)
		case out.State == "exited":
			return nil
		case time.Now().After(over):
			return fmt.Errorf("process %s does not end", id)
		}
	}
}

// exec runs a command with some output to its end.
func (s *soaker) exec(ctx context.Context) error {
	lines, code := s.dice.Below(5000), s.dice.Below(4)
	id, err := s.start(ctx, false, fmt.Sprintf("seq 1 %d; echo end; exit %d", lines, code))
	if err != nil {
		return err
	}
	all, err := s.output(ctx, id, "")
	if err != nil {
		return err
	}
	if n := strings.Count(all, "\n"); n != lines+1 || !strings.HasSuffix(all, "end\n") {
		return fmt.Errorf("%d lines, want %d, that end in %.20q", n, lines+1, all[max(0, len(all)-20):])
	}
	return s.ends(ctx, id, writ.TerminationExited, code)
}

// terminal resizes a terminal and types into it.
func (s *soaker) terminal(ctx context.Context) error {
	id, err := s.start(ctx, true, `stty -echo; echo up; read x; stty size; echo "got $x"; exit 2`)
	if err != nil {
		return err
	}
	if _, err := s.output(ctx, id, "up\r\n"); err != nil {
		return err
	}
	rows, cols := 1+s.dice.Below(100), 1+s.dice.Below(200)
	if _, err := s.call(ctx, "process_resize", map[string]any{"process_id": id, "rows": rows, "cols": cols}); err != nil {
		return err
	}
	if _, err := s.call(ctx, "write_stdin", map[string]any{"process_id": id, "data": "some text\r"}); err != nil {
		return err
	}
	all, err := s.output(ctx, id, "")
	if want := fmt.Sprintf("up\r\n%d %d\r\ngot some text\r\n", rows, cols); err != nil || all != want {
		return fmt.Errorf("it wrote %q, want %q: %w", all, want, err)
	}
	return s.ends(ctx, id, writ.TerminationExited, 2)
}

// file is the name of the agent's own file.
func (s *soaker) file() string { return fmt.Sprintf("count-%d.txt", s.n) }

// read finds the agent's file and reads it.
func (s *soaker) read(ctx context.Context) error {
	found, err := s.call(ctx, "find", map[string]any{"workspace_id": s.site, "glob": s.file()})
	if err == nil && (len(found.Paths) != 1 || found.Paths[0] != s.file()) {
		err = fmt.Errorf("found %q", found.Paths)
	}
	if err != nil {
		return err
	}
	read, err := s.call(ctx, "read", map[string]any{"workspace_id": s.site, "path": s.file()})
	if want := fmt.Sprintf("%d\n", s.count); err == nil && read.Content != want {
		err = fmt.Errorf("the file has %q, want %q", read.Content, want)
	}
	return err
}

// patch counts one on in the agent's file.
func (s *soaker) patch(ctx context.Context) error {
	out, err := s.call(ctx, "apply_patch", map[string]any{
		"workspace_id": s.site,
		"patch":        fmt.Sprintf("*** Begin Patch\n*** Update File: %s\n@@\n-%d\n+%d\n*** End Patch\n", s.file(), s.count, s.count+1),
	})
	if err == nil && out.Status != writ.PatchApplied {
		err = fmt.Errorf("the patch is %s", out.Status)
	}
	if err == nil {
		s.count++
	}
	return err
}

// kill ends a process that would go on, with a child that has left its session.
func (s *soaker) kill(ctx context.Context) error {
	id, err := s.start(ctx, s.dice.OneIn(2), `setsid sh -c 'echo up; sleep 600; :' "$0" & trap '' TERM; wait; sleep 600`)
	if err != nil {
		return err
	}
	if s.dice.OneIn(2) {
		if _, err := s.output(ctx, id, "\n"); err != nil {
			return err
		}
	}
	args := map[string]any{"process_id": id}
	if s.dice.OneIn(3) {
		args["signal"], args["grace_ms"] = "TERM", 50
	}
	if _, err := s.call(ctx, "terminate_process", args); err != nil {
		return err
	}
	return s.ends(ctx, id, writ.TerminationTerminated, 0)
}

// vanish leaves a process alone and finds it again in another session.
func (s *soaker) vanish(ctx context.Context) error {
	id, err := s.start(ctx, false, "read x; echo got $x")
	if err != nil {
		return err
	}
	s.leave()
	if err := s.connect(ctx); err != nil {
		return err
	}
	if _, err := s.call(ctx, "write_stdin", map[string]any{"process_id": id, "data": "it\n"}); err != nil {
		return err
	}
	if all, err := s.output(ctx, id, ""); err != nil || all != "got it\n" {
		return fmt.Errorf("it wrote %q, %w", all, err)
	}
	return s.ends(ctx, id, writ.TerminationExited, 0)
}

// abandon gives a call up in its middle, and ends what may have come of it.
func (s *soaker) abandon(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, s.dice.UpTo(40*time.Millisecond))
	p, err := s.start(short, s.dice.OneIn(2), "sleep 600")
	cancel()
	if errors.Is(err, errBusy) {
		return err
	}
	if err != nil && short.Err() == nil {
		return fmt.Errorf("%w (%s)", err, p)
	}
	s.leave()
	if err := s.connect(ctx); err != nil {
		return err
	}
	// What was started is listed once the call, which goes on for a moment, is through.
	for over := time.Now().Add(patience); ; pause(ctx, 20*time.Millisecond) {
		list, err := s.call(ctx, "process_list", map[string]any{"workspace_id": s.site})
		if err != nil {
			return err
		}
		live := 0
		for _, p := range list.Processes {
			if p.State != "exited" {
				live++
				if _, err := s.call(ctx, "terminate_process", map[string]any{"process_id": p.Process}); err != nil {
					return err
				}
			}
		}
		if live == 0 {
			return nil
		}
		if time.Now().After(over) {
			return fmt.Errorf("%d processes do not end", live)
		}
	}
}
