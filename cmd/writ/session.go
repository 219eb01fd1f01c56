package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"writ"
	"writ/config"
	"writ/workspace"
)

// A session is one client of the workspace tools on two streams. It begins with an
// order: what it is for. A command that runs all parts itself makes its own; a command
// that passes its client's messages on to a server on the same data folder (sessions.go)
// sends it first, as one line of JSON, and the server answers one line, a sessionAnswer.
// When that has no error, what follows in both directions is MCP as on stdio, until
// either end closes its side. Else the server hangs up.

// sessionVersion is the form of the two lines.
const sessionVersion = 1

const (
	maxOrderBytes  = 8 << 20 // more than a registry file becomes
	maxAnswerBytes = 1 << 20
	orderTime      = 10 * time.Second // to send it, and to answer it
)

// sessionOrder says in which workspaces a client works.
type sessionOrder struct {
	Version int    `json:"version"`
	Folder  string `json:"folder"` // that the client works in, absolute
	Home    string `json:"home"`   // its user's home folder, empty when there is none
	// Approvals and ReadOnly change the workspace of a folder that nobody registered.
	Approvals writ.ApprovalMode `json:"approvals,omitempty"`
	ReadOnly  bool              `json:"read_only,omitempty"`
	// Workspaces are those of a registry file, which are then the only ones. Nil means
	// that there is no such file.
	Workspaces []writ.Workspace `json:"workspaces,omitzero"`
}

// sessionAnswer is empty, or says why there is no session.
type sessionAnswer struct {
	Kind  string `json:"kind,omitempty"`
	Error string `json:"error,omitempty"`
}

// answerOf is what the client is told about err, which may be nil.
func answerOf(err error) sessionAnswer {
	if err == nil {
		return sessionAnswer{}
	}
	return sessionAnswer{Kind: writ.KindOf(err).String(), Error: writ.Message(err)}
}

// err is the error that the server meant.
func (a sessionAnswer) err() error {
	if a.Error == "" {
		return nil
	}
	e := &writ.Error{Op: "open session", Msg: a.Error, Kind: writ.Invalid}
	for _, k := range writ.Kinds {
		if k.String() == a.Kind {
			e.Kind = k
		}
	}
	return e
}

func invalidOrder(format string, args ...any) error {
	return &writ.Error{Kind: writ.Invalid, Op: "open session", Msg: fmt.Sprintf(format, args...)}
}

// readOrder reads the first line of a session, which must be exactly an order of this
// version. What comes after it stays in r.
func readOrder(r *bufio.Reader) (sessionOrder, error) {
	var o sessionOrder
	line, err := readLine(r, maxOrderBytes)
	if err != nil {
		return o, invalidOrder("the first line of the session: %v", err)
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return o, invalidOrder("the first line of the session is not an order: %v", err)
	}
	if v.Version != sessionVersion {
		return o, invalidOrder("the command speaks version %d of sessions and the server version %d: they are of two releases of writ, start the server again", v.Version, sessionVersion)
	}
	if err := json.Unmarshal(line, &o, json.RejectUnknownMembers(true)); err != nil {
		return o, invalidOrder("the first line of the session: %v", err)
	}
	return o, o.validate()
}

// validate is what the command line was asked for, too: a server need not believe it.
func (o sessionOrder) validate() error {
	changed := o.Approvals != "" || o.ReadOnly
	switch {
	case !filepath.IsAbs(o.Folder):
		return invalidOrder("the folder %q is not absolute", o.Folder)
	case o.Home != "" && !filepath.IsAbs(o.Home):
		return invalidOrder("the home folder %q is not absolute", o.Home)
	case o.Workspaces != nil && changed:
		return invalidOrder("--approvals and --read-only are for a folder that nobody registered: with a registry file, set approvals and profile there")
	}
	switch o.Approvals {
	case "", writ.ApprovalsOff, writ.ApprovalsConfirm, writ.ApprovalsReview:
		return nil
	}
	return invalidOrder("approvals %q: want off, confirm or review", o.Approvals)
}

// readLine is the next line, without its end, of at most max bytes.
func readLine(r *bufio.Reader, max int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > max:
			return nil, fmt.Errorf("it has more than %d bytes", max)
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("the other end hung up before its end")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// places are the folders of a server: those that are registered, and its own, which no
// workspace may overlap since a tool could read its keys and change its rules.
type places struct {
	registry *workspace.Registry
	private  []string
}

// placesOf is what cfg registers. Its error names every fault.
func placesOf(cfg config.Config, data string) (places, error) {
	p := places{private: []string{data, cfg.PolicyDir(data), cfg.BlobsDir(data)}}
	if file, ok := strings.CutPrefix(cfg.DatabaseURL(data).Reveal(), "sqlite:"); ok {
		p.private = append(p.private, file)
	}
	for i, folder := range p.private {
		abs, err := filepath.Abs(folder)
		if err != nil {
			return p, fmt.Errorf("find the server's own folders: %w", err)
		}
		p.private[i] = abs
	}
	var err error
	p.registry, err = workspace.NewRegistry(cfg.Registered(), p.private...)
	return p, err
}

// offer is the workspaces of a session: those of its registry file, else all that are
// registered when one of them overlaps the client's folder, else that folder.
func (p places) offer(o sessionOrder) (*workspace.Registry, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Workspaces != nil {
		return workspace.NewRegistry(o.Workspaces, p.private...)
	}
	if over := p.registry.Overlapping(o.Folder); len(over) > 0 {
		if o.Approvals != "" || o.ReadOnly {
			return nil, invalidOrder("--approvals and --read-only are for a folder that nobody registered: %s overlaps workspace %s at %s, whose approvals and profile stand in the configuration", o.Folder, over[0].ID, over[0].Root)
		}
		return p.registry, nil
	}
	folder, err := workspace.Folder(o.Folder, o.Home, p.private...)
	if err != nil {
		return nil, err
	}
	folder.Approvals = cmp.Or(o.Approvals, folder.Approvals)
	if o.ReadOnly {
		folder.Profile = writ.ReadOnly
	}
	return workspace.NewRegistry([]writ.Workspace{folder}, p.private...)
}

// homeFolder is the user's, empty when it is not known.
func homeFolder() string {
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return ""
	}
	return home
}
