package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"writ"
	"writ/auth"
	"writ/workspace"
)

type mcpCmd struct {
	Dir       string            `arg:"" optional:"" help:"The folder to work in; by default the current one." type:"existingdir"`
	Config    string            `help:"A registry file (JSON): its workspaces, and no others." env:"WRIT_MCP_CONFIG" placeholder:"FILE"`
	Approvals writ.ApprovalMode `help:"Of a folder that nobody registered: off, confirm (the client asks its user) or review (an operator decides)." enum:"off,confirm,review," default:"" placeholder:"off"`
	ReadOnly  bool              `help:"A folder that nobody registered: for reading only."`
}

func (*mcpCmd) Help() string {
	return `Offers the workspace tools to one client on standard input and output, as coding agents start it.

Which workspaces: those of --config; else those of the configuration when one of them is, contains or is in the folder; else the
folder itself, as the workspace "default". A server that runs on the data folder (writ serve) does the work; without one this command
runs all parts itself, also for others that come meanwhile.`
}

// Run serves the client until it hangs up, or this process is told to end.
func (m *mcpCmd) Run(ctx context.Context, c *cli, e env) error {
	order, err := m.order(c)
	if err != nil {
		return err
	}
	var conn *net.UnixConn
	own, err := reach(ctx, e, folderPatience,
		func() bool {
			conn = dialTools(ctx, c.Data)
			return conn != nil
		},
		func() (*system, error) {
			return openOwn(ctx, c, e, socketName, func(p places) error {
				_, err := p.offer(order) // before anything is started that a refusal would end again
				return err
			})
		})
	switch {
	case err != nil:
		return err
	case own == nil:
		defer conn.Close()
		return relay(ctx, conn, order, e)
	}
	return own.serveClient(ctx, order, e)
}

// order is what the command line asks for.
func (m *mcpCmd) order(c *cli) (sessionOrder, error) {
	if c.Server != "" {
		return sessionOrder{}, &writ.Error{Kind: writ.Invalid, Op: "mcp", Msg: fmt.Sprintf(
			"writ mcp works on this machine: for the server at %s, point the client at %s/mcp and give it a bearer key", c.Server, c.Server)}
	}
	o := sessionOrder{Version: sessionVersion, Folder: m.Dir, Home: homeFolder(), Approvals: m.Approvals, ReadOnly: m.ReadOnly}
	var err error
	if o.Folder == "" {
		o.Folder = "."
	}
	if o.Folder, err = filepath.Abs(o.Folder); err != nil {
		return o, fmt.Errorf("find the folder to work in: %w", err)
	}
	if m.Config != "" {
		if o.Workspaces, err = workspace.LoadFile(m.Config); err != nil {
			return o, err
		}
		if o.Workspaces == nil {
			o.Workspaces = []writ.Workspace{} // a file that has none
		}
	}
	return o, o.validate()
}

// dialTools is a connection to the server that serves the tools on the data folder, nil
// when there is none.
func dialTools(ctx context.Context, data string) *net.UnixConn {
	d := net.Dialer{Timeout: 2 * time.Second}
	conn, err := d.DialContext(ctx, "unix", filepath.Join(data, toolsSocketName))
	if err != nil {
		return nil
	}
	return conn.(*net.UnixConn)
}

// serveClient serves the client of this command, then others that came to it until they
// are done, and closes the system.
func (s *system) serveClient(ctx context.Context, o sessionOrder, e env) error {
	defer s.finish(ctx, e.stderr)
	session, err := s.newSession(o)
	if err == nil {
		defer session.Close()
		err = s.serveSessions()
	}
	if err != nil {
		return err
	}
	serving, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.work.Go(func() {
		select {
		case err := <-s.failed:
			cancel(err)
		case <-serving.Done():
		}
	})
	uid := os.Geteuid()
	err = session.Stdio(serving, e.stdin, e.stdout, auth.Local(uint32(uid), strconv.Itoa(uid)))
	switch {
	case ctx.Err() != nil:
		return nil // told to end
	case serving.Err() != nil:
		return context.Cause(serving)
	}
	return err
}

// relay passes messages between this command's client and a server. It returns nil after
// the client hung up, or this process was told to end, and the server answered what was
// under way; when it was told to end, whether or not the client reads the answers.
func relay(ctx context.Context, conn *net.UnixConn, o sessionOrder, e env) error {
	in := bufio.NewReaderSize(conn, 64<<10)
	if err := sendOrder(conn, in, o); err != nil {
		return err
	}
	hungUp := make(chan struct{})
	go func() { // ends with the client's input, or is left behind with this process
		_, err := io.Copy(conn, e.stdin)
		if err == nil {
			close(hungUp)
		}
		_ = conn.CloseWrite()
	}()
	left := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		_ = conn.CloseWrite()
		time.AfterFunc(requestsEnd, func() { _ = conn.Close(); close(left) })
	})()
	answered := make(chan error, 1)
	go func() { // ends with the server's answers, or is left behind when nobody reads them
		_, err := io.Copy(e.stdout, in)
		answered <- err
	}()
	var err error
	select {
	case err = <-answered:
	case <-left:
	}
	if ctx.Err() != nil {
		return nil
	}
	select {
	case <-hungUp:
		return nil
	default:
	}
	return &writ.Error{Kind: writ.Unavailable, Op: "pass on messages", Err: err,
		Msg: "the writ that did the work has ended: have the client start its server again (writ serve runs for any number of clients)"}
}

// sendOrder opens the session.
func sendOrder(conn *net.UnixConn, in *bufio.Reader, o sessionOrder) error {
	fail := func(err error) error {
		return &writ.Error{Kind: writ.Unavailable, Op: "open session", Msg: "the server on the data folder does not answer: " + err.Error(), Err: err}
	}
	line, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode the order of the session: %w", err)
	}
	if len(line) > maxOrderBytes {
		return invalidOrder("the registry file has too many workspaces for a server: their list takes %d bytes, the most is %d", len(line), maxOrderBytes)
	}
	_ = conn.SetDeadline(time.Now().Add(orderTime))
	_, unsent := conn.Write(append(line, '\n'))
	// A server may refuse before it has read the order, and say why.
	line, err = readLine(in, maxAnswerBytes)
	if err != nil {
		return fail(cmp.Or(unsent, err))
	}
	var a sessionAnswer
	if err := json.Unmarshal(line, &a); err != nil {
		return fail(errors.New("its answer is not one of writ"))
	}
	_ = conn.SetDeadline(time.Time{})
	return a.err()
}
