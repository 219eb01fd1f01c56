package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"writ"
	"writ/client"
)

// connect is a client of the server that c means: the one at --server, else the
// one that runs on the data folder, else one that this command starts for itself
// on that folder and stops with done. asOperator uses the first operator's key when
// the folder has it and no other key is given.
func connect(ctx context.Context, c *cli, e env, asOperator bool) (cl *client.Client, done func(), err error) {
	key, err := givenKey(c)
	if err != nil {
		return nil, nil, err
	}
	if c.Server != "" {
		cl, err := client.New(c.Server, key)
		if err != nil {
			return nil, nil, err
		}
		return cl, cl.Close, nil
	}
	if key == "" && asOperator {
		if key, err = readKey(filepath.Join(c.Data, operatorKeyName)); os.IsNotExist(err) {
			err = nil
		} else if err != nil {
			return nil, nil, err
		}
	}
	socket := filepath.Join(c.Data, socketName)
	stop := func() {}
	if !answers(socket) {
		s, err := openOwn(ctx, c, e)
		if err != nil {
			return nil, nil, err
		}
		stop = s.close
		if asOperator && key == "" { // a first start has just made it
			if key, err = readKey(filepath.Join(c.Data, operatorKeyName)); err != nil && !os.IsNotExist(err) {
				stop()
				return nil, nil, err
			}
		}
	}
	cl = client.Unix(socket)
	if key != "" {
		cl = cl.WithKey(key)
	}
	return cl, func() { cl.Close(); stop() }, nil
}

// openOwn starts all parts for one command. It logs warnings only: the command
// says the rest.
func openOwn(ctx context.Context, c *cli, e env) (*system, error) {
	if err := makeData(c.Data, e.stderr); err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return openSystem(ctx, c, e, log)
}

// answers reports whether a server listens on the socket.
func answers(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, 2*time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// givenKey is the key that the user names, "" for none.
func givenKey(c *cli) (writ.Secret, error) {
	if k := os.Getenv("WRIT_KEY"); k != "" {
		return writ.Secret(k), nil
	}
	if c.Key == "" {
		return "", nil
	}
	return readKey(c.Key)
}

func readKey(path string) (writ.Secret, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return "", fmt.Errorf("read key %s: %w", path, err)
	}
	return writ.Secret(strings.TrimSpace(string(b))), nil
}
