package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// outputBytes is what a command writes whose output is measured: text, in lines.
const outputBytes = 100_000_000

// bareIn is the plainest use of bwrap with a folder of the host.
func bareIn(ctx context.Context, root string, argv ...string) *exec.Cmd {
	args := bareArgs(argv)
	cut := len(args) - len(argv) - 1 // before the --
	args = append(args[:cut:cut], append([]string{"--bind", root, root, "--chdir", root, "--"}, argv...)...)
	return exec.CommandContext(ctx, "bwrap", args...)
}

// commands measures the commands of workspaces through writ mcp, n times, beside the same
// in bare bwrap.
func commands(ctx context.Context, exe, dir string, n int) ([]*table, error) {
	root, data := filepath.Join(dir, "commands"), filepath.Join(dir, "commands-data")
	for _, d := range []string{root, data} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	config := "runner: {uid_base: 874000}\nprocesses: {limits: {wall_ms: 1h}}\nlog: {level: warn}\n"
	if err := os.WriteFile(filepath.Join(data, "config.yaml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	s, err := startTools(ctx, "writ mcp", filepath.Join(dir, "commands.log"), exe, "--data", data, "mcp", root)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	var tables []*table
	for _, measure := range []func() (*table, error){
		func() (*table, error) { return exits(ctx, s, root, n) },
		func() (*table, error) { return outputs(ctx, s, root, max(n/10, 1)) },
		func() (*table, error) { return typing(ctx, s, root, 10*n) },
	} {
		t, err := measure()
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// beside is a table of two rows that are taken in turns, n times.
func beside(name string, n int, bare, writ func() (time.Duration, error)) (*table, error) {
	t := &table{name: name, bases: []string{"bwrap"}, rows: []*series{{id: "bwrap", name: "bare bwrap"}, {id: "writ", name: "writ mcp"}}}
	for range n {
		if err := errors.Join(t.row("bwrap").measure(bare), t.row("writ").measure(writ)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return t, nil
}

// exits starts a command that does nothing, until its end is seen.
func exits(ctx context.Context, s *tools, root string, n int) (*table, error) {
	return beside("true, until its exit is seen", n,
		timed(func() error { return bareIn(ctx, root, "true").Run() }),
		timed(func() error {
			id, err := s.start(false, "true")
			if err == nil {
				_, err = s.follow(id)
			}
			return err
		}))
}

// outputs reads along with a command that writes as much as it can. Of what writ keeps
// the oldest is dropped, as its reader falls behind.
func outputs(ctx context.Context, s *tools, root string, n int) (*table, error) {
	argv := []string{"sh", "-c", fmt.Sprintf("yes 'a line of text, as programs write' | head -c %d", outputBytes)}
	return beside(fmt.Sprintf("%d MB of output", outputBytes/1_000_000), n,
		timed(func() error {
			cmd := bareIn(ctx, root, argv...)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				return err
			}
			got, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{out}, make([]byte, 64<<10))
			return wanted(errors.Join(err, cmd.Wait()), got == outputBytes)
		}),
		timed(func() error {
			id, err := s.start(false, argv...)
			if err != nil {
				return err
			}
			got, err := s.follow(id)
			return wanted(err, got == outputBytes)
		}))
}

// typing types a letter at a terminal, until it comes back.
func typing(ctx context.Context, s *tools, root string, n int) (*table, error) {
	argv := []string{"sh", "-c", "stty raw -echo; echo up; exec cat"}
	bare, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := bareIn(bare, root, argv...)
	terminal, err := startOnTerminal(cmd)
	if err != nil {
		return nil, err
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
		_ = terminal.Close()
	}()
	letter := make([]byte, 64)
	for got := ""; got != "up\n"; {
		n, err := terminal.Read(letter)
		if err != nil {
			return nil, err
		}
		got += string(letter[:n])
	}
	id, err := s.start(true, argv...)
	if err != nil {
		return nil, err
	}
	cursor := int64(0)
	for cursor < int64(len("up\n")) {
		out, err := s.output(id, cursor)
		if err != nil {
			return nil, err
		}
		cursor = out.Cursor
	}
	t, err := beside("a letter typed, until it is back", n,
		timed(func() error {
			if _, err := terminal.Write([]byte("x")); err != nil {
				return err
			}
			n, err := terminal.Read(letter)
			return wanted(err, n == 1)
		}),
		timed(func() error {
			if _, _, err := s.call("write_stdin", map[string]any{"process_id": id, "data": "x"}); err != nil {
				return err
			}
			out, err := s.output(id, cursor)
			cursor = out.Cursor
			return wanted(err, out.Chunk == "x")
		}))
	if err == nil {
		_, _, err = s.call("terminate_process", map[string]any{"process_id": id})
	}
	return t, err
}

// said is what the tools of processes answer, each some of it.
type said struct {
	Process string `json:"process_id"`
	Chunk   string `json:"chunk"`
	Cursor  int64  `json:"cursor"`
	EOF     bool   `json:"eof"`
}

func (s *tools) process(tool string, args map[string]any) (said, error) {
	var a struct {
		Structured said `json:"structuredContent"`
	}
	raw, _, err := s.call(tool, args)
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	return a.Structured, err
}

// start starts a command in the workspace.
func (s *tools) start(tty bool, argv ...string) (id string, err error) {
	a, err := s.process("exec_command", map[string]any{"workspace_id": "default", "command": argv, "tty": tty})
	return a.Process, err
}

// output is what a process wrote from a cursor on, once there is something.
func (s *tools) output(id string, cursor int64) (said, error) {
	return s.process("read_process", map[string]any{"process_id": id, "cursor": cursor, "wait_ms": 20_000})
}

// follow reads along until a process writes no more, and answers how much it wrote.
func (s *tools) follow(id string) (total int64, err error) {
	for {
		out, err := s.output(id, total)
		if err != nil {
			return total, err
		}
		if total = out.Cursor; out.EOF {
			return total, nil
		}
	}
}
