package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// tools is an MCP server on two pipes, as coding agents start it, and the client of it.
// It is for one goroutine.
type tools struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	log  string // what it says beside its messages
	id   int
}

// startTools starts argv and opens a session.
func startTools(ctx context.Context, name, log string, argv ...string) (*tools, error) {
	s := &tools{name: name, cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), log: log}
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReaderSize(out, 64<<10)
	said, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer said.Close()
	s.cmd.Stderr = said
	s.cmd.WaitDelay = 10 * time.Second
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if _, _, err := s.ask("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": struct{}{}, "clientInfo": map[string]string{"name": "bench", "version": "1"},
	}); err != nil {
		s.stop()
		return nil, fmt.Errorf("start: %w", err)
	}
	if err := s.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		s.stop()
		return nil, s.fault(err)
	}
	return s, nil
}

// stop ends the session, and with it the server.
func (s *tools) stop() {
	_ = s.in.Close()
	_ = s.cmd.Wait()
}

// call calls a tool, which must not answer with an error, and answers the bytes of its
// answer and the time from the request to the end of that. What it costs to read the
// answer as JSON is no part of it.
func (s *tools) call(tool string, args map[string]any) (json.RawMessage, time.Duration, error) {
	raw, took, err := s.ask("tools/call", map[string]any{"name": tool, "arguments": args})
	if err != nil {
		return nil, 0, err
	}
	var result struct {
		IsError bool `json:"isError"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, 0, s.fault(err)
	}
	if result.IsError {
		return nil, 0, fmt.Errorf("%s: %s answers %.500s", s.name, tool, raw)
	}
	return raw, took, nil
}

func (s *tools) ask(method string, params any) (result json.RawMessage, took time.Duration, err error) {
	s.id++
	began := time.Now()
	if err := s.send(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params}); err != nil {
		return nil, 0, s.fault(err)
	}
	for {
		line, err := s.out.ReadBytes('\n')
		took := time.Since(began)
		if err != nil {
			return nil, 0, s.fault(err)
		}
		var m struct {
			ID     int             `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, 0, s.fault(err)
		}
		switch {
		case m.Method != "": // it asks or tells something of its own
		case m.ID != s.id:
			return nil, 0, s.fault(errors.New("it answers another request"))
		case m.Error != nil:
			return nil, 0, s.fault(fmt.Errorf("%s: %s", method, m.Error))
		default:
			return m.Result, took, nil
		}
	}
}

func (s *tools) send(message map[string]any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = s.in.Write(append(line, '\n'))
	return err
}

// fault is err with what the server said.
func (s *tools) fault(err error) error {
	said, _ := os.ReadFile(s.log)
	return fmt.Errorf("%s: %w\n%s", s.name, err, said)
}
