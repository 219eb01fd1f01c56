package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"writ"
	"writ/client"
)

// everything lets the server's one identity run at once whatever it asks for.
const everything = "@id(\"all\")\npermit (principal is Identity, action == Action::\"run\", resource);\n"

const configuration = `
listen: 127.0.0.1:0
identities:
  - {id: bot, scopes: [python, shell]}
runner: {uid_base: 872000}
log: {level: warn}
`

// server is a writ serve on a folder of its own, and a client of it as an agent
// has: by TCP, with a key.
type server struct {
	cmd *exec.Cmd
	c   *client.Client
}

func startServer(ctx context.Context, exe, data string) (*server, error) {
	for name, text := range map[string]string{"config.yaml": configuration, "policy/all.cedar": everything} {
		path := filepath.Join(data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	log, err := os.Create(filepath.Join(data, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &server{cmd: exec.CommandContext(ctx, exe, "--data", data, "serve")}
	s.cmd.Stderr = log
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if err := s.connect(ctx, data); err != nil {
		s.stop()
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("start the server: %w\n%s", err, said)
	}
	return s, nil
}

var address = regexp.MustCompile(`(?m)^API: +(http://\S+)`)

// connect waits until the server serves, and gets a key from it.
func (s *server) connect(ctx context.Context, data string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	local := client.Unix(filepath.Join(data, "writ.sock"))
	defer local.Close()
	for {
		said, err := os.ReadFile(filepath.Join(data, "log"))
		if at := address.FindSubmatch(said); err == nil && at != nil {
			key, err := local.CreateKey(ctx, writ.KeyRequest{Kind: writ.KindAgent, Subject: "bot"})
			if err != nil {
				return err
			}
			s.c, err = client.New(string(at[1]), writ.Secret(key.Token))
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// run is one task from the request to its result.
func (s *server) run(ctx context.Context, spec writ.RunSpec) error {
	task, _, err := s.c.Submit(ctx, writ.TaskRequest{Spec: &spec})
	if err == nil {
		task, err = s.c.Wait(ctx, task.ID, time.Minute)
	}
	if err == nil && task.State != writ.TaskSucceeded {
		err = fmt.Errorf("task is %s: %s", task.State, task.Reason)
	}
	return err
}

func (s *server) stop() {
	if s.c != nil {
		s.c.Close()
	}
	_ = s.cmd.Process.Signal(os.Interrupt) // it may be gone
	_ = s.cmd.Wait()
}
