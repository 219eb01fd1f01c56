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
	"slices"
	"strings"
	"time"

	"writ"
	"writ/client"
)

// connect is a client of the server that c means: the one at --server, else the
// one that runs on the data folder, else one that this command starts for itself
// on that folder, which must be there; done ends the use of it. asOperator uses the
// first operator's key when the folder has it and no other key is given.
func connect(ctx context.Context, c *cli, e env, asOperator bool) (cl *client.Client, done func(), err error) {
	return connectTo(ctx, c, e, asOperator, findFolder, []string{socketName, onceSocketName})
}

// connectToAdd is connect for a command that adds something, also to a new data folder.
func connectToAdd(ctx context.Context, c *cli, e env) (cl *client.Client, done func(), err error) {
	return connectTo(ctx, c, e, false, anyFolder, []string{socketName, onceSocketName})
}

// connectToRun is connectToAdd for a command that has something run and waits for it:
// another command's own server would end under it.
func connectToRun(ctx context.Context, c *cli, e env) (cl *client.Client, done func(), err error) {
	return connectTo(ctx, c, e, false, anyFolder, []string{socketName})
}

// anyFolder is for commands that make the data folder when it is not there.
func anyFolder(string) error { return nil }

// connectTo takes the first of the folder's sockets on which a server answers. Where none
// does, fits says whether the folder may be opened.
func connectTo(ctx context.Context, c *cli, e env, asOperator bool, fits func(data string) error, sockets []string) (cl *client.Client, done func(), err error) {
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
	var socket string
	own, err := reach(ctx, e, folderPatience,
		func() bool {
			i := slices.IndexFunc(sockets, func(name string) bool { return answers(filepath.Join(c.Data, name)) })
			if i >= 0 {
				socket = sockets[i]
			}
			return i >= 0
		},
		func() (*system, error) {
			if err := fits(c.Data); err != nil {
				return nil, err
			}
			return openOwn(ctx, c, e, onceSocketName, func(places) error { return nil })
		})
	if err != nil {
		return nil, nil, err
	}
	finish := func() {}
	if own != nil {
		socket, finish = onceSocketName, func() { own.finish(ctx, e.stderr) }
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

// reach finds a server on the data folder, which joined reports, or makes this process
// one, by own. While another process holds the folder and joined does not find it, it
// waits: a server may be about to answer, a command to end. It answers nil when joined.
func reach(ctx context.Context, e env, patience time.Duration, joined func() bool, own func() (*system, error)) (*system, error) {
	begun, said := time.Now(), false
	for {
		if joined() {
			return nil, nil
		}
		s, err := own()
		if err == nil {
			return s, nil
		}
		waited := time.Since(begun)
		if !errors.Is(err, errFolderInUse) || waited >= patience {
			return nil, err
		}
		if !said && waited >= folderQuiet {
			said = true
			fmt.Fprintf(e.stderr, "writ: waiting: %s (a server, writ serve, runs any number at one time)\n", writ.Message(err))
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(folderPoll):
		}
	}
}

// openOwn starts all parts for one command, unless check refuses what it is for, and
// serves the API on the socket of that name. It logs warnings only: the command says the
// rest.
func openOwn(ctx context.Context, c *cli, e env, socket string, check func(places) error) (*system, error) {
	folder, err := openFolder(c.Data, e.stderr)
	if err != nil {
		return nil, err
	}
	cfg, err := loadConfig(c)
	cfg.Interpreter.Warm = 0 // its API is for writ serve
	var p places
	if err == nil {
		p, err = placesOf(cfg, c.Data)
	}
	if err == nil {
		err = check(p)
	}
	if err != nil {
		folder.release()
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return openSystem(ctx, e, folder, cfg, socket, log)
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
