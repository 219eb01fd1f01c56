package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"writ"
	"writ/gateway"
	"writ/mcp"
)

// toolsSocketName is the unix socket of the data folder on which the workspace tools are
// served to commands that pass them on. Only processes that last have it: writ serve, and
// a writ mcp that runs all parts itself.
const toolsSocketName = "mcp.sock"

// acceptRest is the time between two tries of an accept that fails.
const acceptRest = 100 * time.Millisecond

// maxSessions bounds the sessions that are open at one time.
const maxSessions = 256

// sessions are the clients of the workspace tools that came by the socket.
type sessions struct {
	ctx  context.Context // ends when what is under way is to be cut off
	stop context.CancelFunc
	work sync.WaitGroup // the listener, and every session

	mu     sync.Mutex
	ln     net.Listener               // guarded by mu; nil while there is none
	open   map[*net.UnixConn]struct{} // guarded by mu
	ending bool                       // guarded by mu; nothing is added to open once it is set
	idle   chan struct{}              // guarded by mu; closed and replaced whenever open becomes empty
}

func newSessions() *sessions {
	s := &sessions{open: map[*net.UnixConn]struct{}{}, idle: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// serveSessions lets commands of the folder's owner in.
func (s *system) serveSessions() error {
	ln, err := s.listenSocket(toolsSocketName)
	if err != nil {
		return err
	}
	m := s.sessions
	m.mu.Lock()
	m.ln = ln
	m.mu.Unlock()
	m.work.Go(func() {
		for {
			conn, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // too many open files, say: what is open goes on
				s.slog.Error("accept a session of workspace tools", "err", err)
				time.Sleep(acceptRest)
				continue
			}
			c, ok := conn.(*net.UnixConn)
			if !ok || !m.add(c) {
				_ = conn.SetDeadline(time.Now().Add(orderTime))
				_ = answer(conn, &writ.Error{Kind: writ.Exhausted, Msg: fmt.Sprintf("%d sessions of workspace tools are open, or the server is stopping: try again later", maxSessions)})
				_ = conn.Close()
				continue
			}
			m.work.Go(func() {
				defer m.remove(c)
				s.serveConn(c)
			})
		}
	})
	return nil
}

// add counts a session, if there may be one more.
func (m *sessions) add(c *net.UnixConn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending || len(m.open) >= maxSessions {
		return false
	}
	m.open[c] = struct{}{}
	return true
}

func (m *sessions) remove(c *net.UnixConn) {
	_ = c.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, c)
	if len(m.open) == 0 {
		close(m.idle)
		m.idle = make(chan struct{})
	}
}

func (m *sessions) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.open)
}

// wait returns when no session is open, or ctx ends.
func (m *sessions) wait(ctx context.Context) {
	m.mu.Lock()
	idle, n := m.idle, len(m.open)
	m.mu.Unlock()
	if n == 0 {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// end lets nobody in any more, takes no more messages, and returns when what is under
// way was answered, or ctx ends and it was cut off.
func (m *sessions) end(ctx context.Context) {
	m.mu.Lock()
	m.ending = true
	if m.ln != nil {
		_ = m.ln.Close()
	}
	for c := range m.open {
		_ = c.CloseRead()
	}
	m.mu.Unlock()
	defer context.AfterFunc(ctx, m.cut)()
	m.work.Wait()
	m.stop()
}

// cut ends what does not end by itself.
func (m *sessions) cut() {
	m.stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.open {
		_ = c.Close()
	}
}

// serveConn serves one command: its order, and then its client's messages.
func (s *system) serveConn(c *net.UnixConn) {
	in := bufio.NewReaderSize(c, 64<<10)
	_ = c.SetDeadline(time.Now().Add(orderTime))
	who, err := localPeer(c)
	var order sessionOrder
	if err == nil {
		order, err = readOrder(in)
	}
	var session *mcp.Server
	if err == nil {
		session, err = s.newSession(order)
	}
	if gone := answer(c, err); err != nil || gone != nil {
		s.slog.Info("session of workspace tools refused", "kind", writ.KindOf(err).String())
		return
	}
	defer session.Close()
	_ = c.SetDeadline(time.Time{})
	s.slog.Info("session of workspace tools begins", "by", who.Ref().String())
	err = session.Stdio(s.sessions.ctx, connInput{in, c}, c, who)
	if err != nil && s.sessions.ctx.Err() == nil {
		s.slog.Warn("session of workspace tools failed", "by", who.Ref().String(), "err", err)
		return
	}
	s.slog.Info("session of workspace tools is over", "by", who.Ref().String())
}

// answer writes the one line that answers an order. It fails when nobody reads it.
func answer(w io.Writer, err error) error {
	line, encoding := json.Marshal(answerOf(err))
	if encoding != nil {
		return fmt.Errorf("encode the answer to an order: %w", encoding)
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// newSession offers the workspaces of an order. The caller must close it.
func (s *system) newSession(o sessionOrder) (*mcp.Server, error) {
	registry, err := s.places.offer(o)
	if err != nil {
		return nil, err
	}
	return mcp.New(s.slog, s.services(s.workspaces.With(registry)), s.toolOptions()), nil
}

// services are the parts behind tools in these workspaces.
func (s *system) services(w *gateway.Workspaces) mcp.Services {
	return mcp.Services{Workspaces: w, Processes: w, Sandbox: s.runner.Client(), Works: s.works.With(w)}
}

// toolOptions are those of every server of tools.
func (s *system) toolOptions() mcp.Options {
	_, apart := s.runner.(apart)
	return mcp.Options{Version: version, Commands: mcp.Commands{Dir: s.cfg.Processes.Cwd, Apart: apart}}
}

// connInput is the messages that come on a connection. Closing it ends a read that
// waits; answers can still be sent.
type connInput struct {
	io.Reader
	conn *net.UnixConn
}

func (i connInput) Close() error { return i.conn.CloseRead() }
