package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"writ"
	"writ/auth"
)

// The API's unix sockets in the data folder: that of a server, and that of a command
// that runs all parts itself, for as long as it lasts. Commands that are over in a
// moment use either; `writ run` would be cut off at the end of the latter.
const (
	socketName     = "writ.sock"
	onceSocketName = "writ-once.sock"
)

// serveSocket serves the API on a socket of the data folder, to the folder's owner.
// Nobody else can enter the folder, whatever the socket's mode is between the two
// calls that make it and set it.
func (s *system) serveSocket(name string) error {
	// The folder's lock is ours: sockets that are there are those of the dead.
	for _, dead := range []string{socketName, onceSocketName} {
		if err := os.Remove(filepath.Join(s.folder.path, dead)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	path := filepath.Join(s.folder.path, name)
	ln, err := net.Listen("unix", path)
	if err != nil {
		return &writ.Error{Kind: writ.Unavailable, Op: "listen", Err: err, Msg: fmt.Sprintf("cannot listen on %s: %v", path, err)}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(err, ln.Close())
	}
	s.serveOn(ln, s.api.Unix(localPeer))
	return nil
}

// serveTCP serves the API on the configured address and answers the real one.
func (s *system) serveTCP() (net.Addr, error) {
	ln, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return nil, &writ.Error{Kind: writ.Unavailable, Op: "listen", Err: err, Msg: fmt.Sprintf("cannot listen on %s: %v (choose another with --listen)", s.cfg.Listen, err)}
	}
	host, _, _ := net.SplitHostPort(s.cfg.Listen)
	s.serveOn(ln, s.api.TCP(append([]string{host}, s.cfg.Hosts...)...))
	return ln.Addr(), nil
}

// exposed reports whether other machines can reach a TCP address.
func exposed(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || !tcp.IP.IsLoopback()
}

func (s *system) serveOn(ln net.Listener, srv *http.Server) {
	s.servers = append(s.servers, srv)
	s.work.Go(func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serve %s: %w", ln.Addr(), err))
		}
	})
}

// stopServing lets nothing new in, ends event streams and waits, and then lets the
// requests under way end; those that have not when ctx ends are cut off.
func (s *system) stopServing(ctx context.Context) {
	var all sync.WaitGroup
	for _, srv := range s.servers {
		all.Go(func() {
			if srv.Shutdown(ctx) != nil {
				_ = srv.Close()
			}
		})
	}
	all.Wait()
}

// localPeer makes the principal of a connection to the socket: the owner of the
// server's process, or root.
func localPeer(c net.Conn) (writ.Principal, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return writ.Principal{}, fmt.Errorf("connection of type %T has no credentials", c)
	}
	uid, _, err := auth.PeerUID(sc)
	if err != nil {
		return writ.Principal{}, err
	}
	if uid != uint32(os.Geteuid()) && uid != 0 {
		return writ.Principal{}, &writ.Error{Kind: writ.Unauthenticated, Op: "authenticate", Msg: "this socket is for the server's own user: send an API key"}
	}
	return auth.Local(uid, strconv.FormatUint(uint64(uid), 10)), nil
}
