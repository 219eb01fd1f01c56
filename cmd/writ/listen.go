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
	"writ/mcp"
)

// The API's unix sockets in the data folder: that of a server, and that of a command
// that runs all parts itself, for as long as it lasts. Commands that are over in a
// moment use either; `writ run` would be cut off at the end of the latter.
const (
	socketName     = "writ.sock"
	onceSocketName = "writ-once.sock"
)

// serveSocket serves the API on a socket of the data folder, to the folder's owner.
func (s *system) serveSocket(name string) error {
	// The folder's lock is ours: sockets that are there are those of the dead.
	for _, dead := range []string{socketName, onceSocketName, toolsSocketName} {
		if err := os.Remove(filepath.Join(s.folder.path, dead)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	ln, err := s.listenSocket(name)
	if err != nil {
		return err
	}
	s.serveOn(ln, s.api.Unix(localPeer))
	return nil
}

// listenSocket makes a socket of the data folder. Nobody else than the folder's owner
// can enter it, whatever the socket's mode is between the two calls that make it and
// set it.
func (s *system) listenSocket(name string) (net.Listener, error) {
	path := filepath.Join(s.folder.path, name)
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, &writ.Error{Kind: writ.Unavailable, Op: "listen", Err: err, Msg: fmt.Sprintf("cannot listen on %s: %v", path, err)}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// serveTCP serves the API and the workspace tools on the configured address and answers
// the real one.
func (s *system) serveTCP() (net.Addr, error) {
	ln, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return nil, &writ.Error{Kind: writ.Unavailable, Op: "listen", Err: err, Msg: fmt.Sprintf("cannot listen on %s: %v (choose another with --listen)", s.cfg.Listen, err)}
	}
	host, _, _ := net.SplitHostPort(s.cfg.Listen)
	hosts := append([]string{host}, s.cfg.Hosts...)
	s.tools = mcp.New(s.slog, s.services(s.workspaces), s.toolOptions())
	s.endpoint = s.tools.HTTP(s.door, mcp.HTTPOptions{
		Hosts: hosts, Origins: s.cfg.MCP.Origins, Issuer: s.cfg.MCP.Issuer, Resource: s.cfg.MCP.Resource,
	})
	srv := s.api.TCP(hosts...)
	srv.Handler = s.withTools(srv.Handler)
	s.serveOn(ln, srv)
	return ln.Addr(), nil
}

// protectedResource is where RFC 9728 has the metadata of what keys are for.
const protectedResource = "/.well-known/oauth-protected-resource"

// withTools is the API with the endpoint of the workspace tools beside it. Each checks
// Host, Origin and key of its own requests.
func (s *system) withTools(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		metadata := s.cfg.MCP.Issuer != "" && (r.URL.Path == protectedResource || r.URL.Path == protectedResource+mcp.Path)
		if r.URL.Path == mcp.Path || metadata {
			s.endpoint.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// exposed reports whether other machines can reach a TCP address.
func exposed(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || !tcp.IP.IsLoopback()
}

// serveOn serves until stopServing.
func (s *system) serveOn(ln net.Listener, srv *http.Server) {
	s.servers = append(s.servers, srv)
	s.serve(ln, srv)
}

// serve serves until somebody shuts srv down. That it ends otherwise ends the system.
func (s *system) serve(ln net.Listener, srv *http.Server) {
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
