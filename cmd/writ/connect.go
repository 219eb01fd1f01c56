package main

import (
	"context"
	"errors"
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
// on that folder; done ends the use of it. asOperator uses the first operator's key
// when the folder has it and no other key is given.
func connect(ctx context.Context, c *cli, e env, asOperator bool) (cl *client.Client, done func(), err error) {
	return connectTo(ctx, c, e, asOperator, []string{socketName, onceSocketName})
}

// connectToRun is connect for a command that has something run and waits for it:
// another command's own server would end under it.
func connectToRun(ctx context.Context, c *cli, e env) (cl *client.Client, done func(), err error) {
	return connectTo(ctx, c, e, false, []string{socketName})
}

// connectTo takes the first of the folder's sockets on which a server answers.
func connectTo(ctx context.Context, c *cli, e env, asOperator bool, sockets []string) (cl *client.Client, done func(), err error) {
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
	socket, finish, err := reach(ctx, c, e, sockets, folderPatience)
	if err != nil {
		return nil, nil, err
	}
	if key == "" && asOperator {
		if key, err = readKey(filepath.Join(c.Data, operatorKeyName)); err != nil && !os.IsNotExist(err) {
			finish()
			return nil, nil, err
		}
	}
	cl = client.Unix(filepath.Join(c.Data, socket))
	if key != "" {
		cl = cl.WithKey(key)
	}
	return cl, func() { cl.Close(); finish() }, nil
}

const (
	folderPatience = 30 * time.Second // for another command to be done with the data folder
	folderQuiet    = time.Second      // of it without a word
	folderPoll     = 20 * time.Millisecond
)

// reach finds a server that answers on one of the data folder's sockets, or makes
// this process one, which finish ends. While another process holds the folder and
// serves none of them it waits: a server may be about to answer, a command to end.
func reach(ctx context.Context, c *cli, e env, sockets []string, patience time.Duration) (socket string, finish func(), err error) {
	begun, said := time.Now(), false
	for {
		for _, name := range sockets {
			if answers(filepath.Join(c.Data, name)) {
				return name, func() {}, nil
			}
		}
		s, err := openOwn(ctx, c, e)
		if err == nil {
			return onceSocketName, func() { s.finish(ctx, e.stderr) }, nil
		}
		waited := time.Since(begun)
		if !errors.Is(err, errFolderInUse) || waited >= patience {
			return "", nil, err
		}
		if !said && waited >= folderQuiet {
			said = true
			fmt.Fprintf(e.stderr, "writ: waiting: %s (a server, writ serve, runs any number at one time)\n", writ.Message(err))
		}
		select {
		case <-ctx.Done():
			return "", nil, err
		case <-time.After(folderPoll):
		}
	}
}

// openOwn starts all parts for one command. It logs warnings only: the command
// says the rest.
func openOwn(ctx context.Context, c *cli, e env) (*system, error) {
	folder, err := openFolder(c.Data, e.stderr)
	if err != nil {
		return nil, err
	}
	cfg, err := loadConfig(c)
	if err != nil {
		folder.release()
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return openSystem(ctx, e, folder, cfg, onceSocketName, log)
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
