package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"writ"
	"writ/client"
	"writ/session"
)

// keptFiles is what the code interpreter keeps, as rest.Files; nil files keep nothing.
type keptFiles struct{ files *session.Service }

// Usage implements rest.Files.
func (k keptFiles) Usage(ctx context.Context, who writ.Principal) (writ.FileUsage, error) {
	if err := ownerAlone("read usage of files", who); err != nil || k.files == nil {
		return writ.FileUsage{}, err
	}
	return k.files.Usage(ctx)
}

// Remove implements rest.Files.
func (k keptFiles) Remove(ctx context.Context, who writ.Principal, req writ.FileRemovalRequest) (writ.FileRemoval, error) {
	if err := ownerAlone("remove files", who); err != nil || k.files == nil {
		return writ.FileRemoval{}, err
	}
	return k.files.Retain(ctx, who.Ref(), req.DryRun)
}

func ownerAlone(op string, who writ.Principal) error {
	if who.Kind != writ.KindLocal {
		return &writ.Error{Op: op, Kind: writ.Denied, Msg: "the files of the code interpreter are those of all tenants: this is for the owner of the data folder, on its socket"}
	}
	return nil
}

// Sessions implements rest.Files.
func (k keptFiles) Sessions(ctx context.Context, who writ.Principal, f writ.SessionFilter) ([]writ.Session, string, error) {
	if err := k.kept("list sessions"); err != nil {
		return nil, "", err
	}
	return k.files.Sessions(ctx, who, f)
}

// Contents implements rest.Files.
func (k keptFiles) Contents(ctx context.Context, who writ.Principal, id writ.SessionID) (writ.SessionContents, error) {
	if err := k.kept("show session"); err != nil {
		return writ.SessionContents{}, err
	}
	return k.files.Contents(ctx, who, id)
}

// RemoveSession implements rest.Files.
func (k keptFiles) RemoveSession(ctx context.Context, who writ.Principal, id writ.SessionID) (writ.FileRemoval, error) {
	if err := k.kept("remove session"); err != nil {
		return writ.FileRemoval{}, err
	}
	return k.files.Remove(ctx, who, id)
}

func (k keptFiles) kept(op string) error {
	if k.files == nil {
		return &writ.Error{Op: op, Kind: writ.NotFound, Msg: "this server never had a code interpreter: there are no sessions"}
	}
	return nil
}

type sessionsCmd struct {
	List  sessionsListCmd  `cmd:"" help:"List storage sessions, newest first."`
	Show  sessionsShowCmd  `cmd:"" help:"Show one session and the files in it."`
	Rm    sessionsRmCmd    `cmd:"" help:"Remove one session with the files in it, whoever uses it; that is recorded."`
	Usage sessionsUsageCmd `cmd:"" help:"Say what is kept, of all tenants together."`
	Prune sessionsPruneCmd `cmd:"" help:"Remove now what the server would remove next: what is over by interpreter.retention."`
}

type sessionsListCmd struct {
	Tenant writ.Tenant `help:"Only sessions of this tenant; an operator sees its own alone."`
	Limit  int         `help:"How many." default:"50"`
	Cursor string      `help:"Where an earlier list ended."`
	JSON   bool        `name:"json" help:"One JSON object a line."`
}

func (l *sessionsListCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		all, next, err := cl.Sessions(ctx, writ.SessionFilter{Tenant: l.Tenant, Page: writ.Page{Limit: l.Limit, Cursor: l.Cursor}})
		if err != nil {
			return err
		}
		if next != "" {
			defer fmt.Fprintf(e.stderr, "more with --cursor %s\n", next)
		}
		return list(e.stdout, l.JSON, all, "SESSION TENANT BY KIND FILES BYTES CREATED EXPIRES", func(s writ.Session) []string {
			return []string{
				string(s.ID), string(s.Tenant), s.By.String(), string(s.Kind), fmt.Sprint(s.Objects), fmt.Sprint(s.Bytes), when(s.Created), when(s.Expires),
			}
		})
	})
}

type sessionArg struct {
	ID writ.SessionID `arg:"" name:"session" help:"Id of the session; one that begins with - after --."`
}

// Validate is as that of taskArg.
func (a sessionArg) Validate() error {
	if !a.ID.Valid() {
		return fmt.Errorf("%q is not the id of a session: want 21 of A-Z a-z 0-9 _ -", string(a.ID))
	}
	return nil
}

type sessionsShowCmd struct {
	sessionArg
	JSON bool `name:"json" help:"As JSON."`
}

func (s *sessionsShowCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		is, err := cl.Session(ctx, s.ID)
		if err != nil {
			return err
		}
		if s.JSON {
			return document(e.stdout, is)
		}
		err = fields(e.stdout, "session", string(is.ID), "tenant", string(is.Tenant), "by", is.By.String(), "kind", string(is.Kind), "key", string(is.Key),
			"bytes", fmt.Sprint(is.Bytes), "created", when(is.Created), "expires", when(is.Expires))
		if err != nil {
			return err
		}
		return list(e.stdout, false, is.Files, "FILE NAME BYTES TYPE CREATED SHA256", func(o writ.Object) []string {
			return []string{string(o.ID), o.Name, fmt.Sprint(o.Size), o.Type, when(o.Created), string(o.SHA256)}
		})
	})
}

type sessionsRmCmd struct {
	sessionArg
	JSON bool `name:"json" help:"As JSON."`
}

func (*sessionsRmCmd) Help() string {
	return `Its bytes go at once, but for those that another session has too, and those that came within the last hour, which somebody may be
about to name: they go with the first pass after that.`
}

func (r *sessionsRmCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		removed, err := cl.RemoveSession(ctx, r.ID)
		if err != nil {
			return err
		}
		return printRemoval(e, removed, r.JSON)
	})
}

type sessionsUsageCmd struct {
	JSON bool `name:"json" help:"As JSON."`
}

func (u *sessionsUsageCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		usage, err := cl.FileUsage(ctx)
		if err != nil {
			return err
		}
		if u.JSON {
			return document(e.stdout, usage)
		}
		return columns(e.stdout, []column{
			{"sessions", usage.Sessions, ""}, {"objects", usage.Objects, bytesOf(usage.Bytes)},
			{"runtime sessions", usage.Runtimes, bytesOf(usage.RuntimeBytes)},
			{"blobs removed", usage.Removed.Blobs, bytesOf(usage.Removed.BlobBytes) + " since the server was started"},
		})
	})
}

type sessionsPruneCmd struct {
	DryRun bool `help:"Say what would be removed, and remove nothing."`
	JSON   bool `name:"json" help:"As JSON."`
}

func (p *sessionsPruneCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		r, err := cl.RemoveFiles(ctx, writ.FileRemovalRequest{DryRun: p.DryRun})
		if err != nil {
			return err
		}
		return printRemoval(e, r, p.JSON)
	})
}

func printRemoval(e env, r writ.FileRemoval, asJSON bool) error {
	if asJSON {
		return document(e.stdout, r)
	}
	return columns(e.stdout, []column{
		{"sessions", r.Sessions, ""}, {"objects", r.Objects, bytesOf(r.Bytes)}, {"runtime sessions", r.Runtimes, bytesOf(r.RuntimeBytes)},
		{"bodies of tasks", r.Bodies, ""}, {"blobs", r.Blobs, bytesOf(r.BlobBytes)},
	})
}

// column is one number, with what else there is to say of it.
type column struct {
	name string
	n    int64
	more string
}

func columns(w io.Writer, cs []column) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range cs {
		fmt.Fprintf(t, "%s:\t%d\t%s\n", c.name, c.n, c.more)
	}
	return t.Flush()
}

func bytesOf(n int64) string { return fmt.Sprintf("%d bytes", n) }
