package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"writ"
	"writ/config"
)

// The first line of a session is an order and nothing else, whoever sends it.
func TestOrdersAreStrict(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"good", `{"version":1,"folder":"/srv/a","home":""}`, ""},
		{"all of it", `{"version":1,"folder":"/srv/a","home":"/root","approvals":"review","read_only":true}`, ""},
		{"an empty registry", `{"version":1,"folder":"/srv/a","home":"","workspaces":[]}`, ""},
		{"another version", `{"version":2,"folder":"/srv/a","home":"","more":1}`, "version 2 of sessions and the server version 1"},
		{"no version", `{"folder":"/srv/a","home":""}`, "version 0"},
		{"unknown member", `{"version":1,"folder":"/srv/a","home":"","root":"/"}`, "root"},
		{"twice", `{"version":1,"folder":"/srv/a","folder":"/","home":""}`, "not an order"},
		{"another case", `{"version":1,"Folder":"/srv/a","home":""}`, "Folder"},
		{"MCP at once", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, "version 0"},
		{"HTTP", "GET / HTTP/1.1\r", "not an order"},
		{"trailing text", `{"version":1,"folder":"/srv/a","home":""} {}`, "not an order"},
		{"relative folder", `{"version":1,"folder":"a","home":""}`, "not absolute"},
		{"relative home", `{"version":1,"folder":"/a","home":"x"}`, "not absolute"},
		{"unknown approvals", `{"version":1,"folder":"/a","home":"","approvals":"none"}`, "want off, confirm or review"},
		{"flags beside a registry", `{"version":1,"folder":"/a","home":"","read_only":true,"workspaces":[]}`, "set approvals and profile there"},
		{"too long", `{"version":1,"folder":"/` + strings.Repeat("a", maxOrderBytes) + `"}`, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := bufio.NewReader(strings.NewReader(c.line + "\nthe rest"))
			_, err := readOrder(in)
			if c.want == "" {
				if rest, _ := io.ReadAll(in); err != nil || string(rest) != "the rest" {
					t.Errorf("error %v, and %q is left for the client", err, rest)
				}
				return
			}
			if writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), c.want) {
				t.Errorf("got %v (kind %v), want Invalid with %q", err, writ.KindOf(err), c.want)
			}
		})
	}
	if _, err := readOrder(bufio.NewReader(strings.NewReader(`{"version":1`))); writ.KindOf(err) != writ.Invalid {
		t.Errorf("half a line is %v", err)
	}
}

func FuzzReadOrder(f *testing.F) {
	f.Add([]byte(`{"version":1,"folder":"/srv/a","home":"/root","approvals":"review","read_only":true,"workspaces":[]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		o, err := readOrder(bufio.NewReader(strings.NewReader(string(line) + "\n")))
		if err != nil {
			if writ.KindOf(err) != writ.Invalid || writ.Message(err) == "" {
				t.Fatalf("got %v of kind %v", err, writ.KindOf(err))
			}
			return
		}
		if err := o.validate(); err != nil || o.Version != sessionVersion {
			t.Fatalf("%+v is let through: %v", o, err)
		}
	})
}

// A refusal comes through with its kind and its message.
func TestRefusalsOfSessionsKeepTheirKind(t *testing.T) {
	for _, k := range writ.Kinds {
		err := answerOf(&writ.Error{Kind: k, Msg: "change to another folder"}).err()
		want := "change to another folder"
		if k == writ.Internal {
			want = "internal error"
		}
		if e, ok := errors.AsType[*writ.Error](err); !ok || e.Kind != k || e.Msg != want {
			t.Errorf("kind %v comes through as %#v", k, err)
		}
	}
	if err := answerOf(nil).err(); err != nil {
		t.Errorf("no error comes through as %v", err)
	}
}

// What a session offers, by where its client works.
func TestOffer(t *testing.T) {
	top := t.TempDir()
	dir := func(name string) string {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data, site, play := dir("data"), dir("work/site"), dir("play")
	cfg := config.Default()
	cfg.Database = writ.Secret("sqlite:" + filepath.Join(dir("db"), "writ.db"))
	cfg.Interpreter.Blobs = dir("files/blobs")
	cfg.Workspaces = []config.Workspace{{
		ID: "site", Tenant: "acme", Root: site, Profile: writ.ReadOnly, Environment: "local",
		Network: writ.NetworkRestricted, Approvals: writ.ApprovalsOff,
	}, {
		ID: "default", Tenant: "acme", Root: dir("else"), Profile: writ.ReadOnly, Environment: "local",
		Network: writ.NetworkRestricted, Approvals: writ.ApprovalsOff,
	}}
	p, err := placesOf(cfg, data)
	if err != nil {
		t.Fatal(err)
	}
	registry := []writ.Workspace{{
		ID: "own", Tenant: "default", Root: play, Profile: writ.ReadOnly, Environment: "local", EnvironmentKind: writ.EnvironmentHost,
		Network: writ.NetworkRestricted, Approvals: writ.ApprovalsOff,
	}}
	private := slices.Clone(registry)
	private[0].Root = filepath.Join(data, "runner")
	for _, c := range []struct {
		name string
		o    sessionOrder
		ids  string
		fail string
	}{
		{"registered", sessionOrder{Folder: site}, "default site", ""},
		{"over a registered one", sessionOrder{Folder: dir("work")}, "default site", ""},
		{"beneath a registered one", sessionOrder{Folder: dir("work/site/src")}, "default site", ""},
		{"registered, with flags", sessionOrder{Folder: site, ReadOnly: true}, "", "overlaps workspace site"},
		{"nobody's", sessionOrder{Folder: play}, "default", ""},
		{"a registry file", sessionOrder{Folder: site, Workspaces: registry}, "own", ""},
		{"an empty registry file", sessionOrder{Folder: site, Workspaces: []writ.Workspace{}}, "", ""},
		{"the data folder", sessionOrder{Folder: dir("data/x")}, "", "the server's own folder"},
		{"over the data folder", sessionOrder{Folder: top}, "default site", ""}, // it is over a registered one, which is all that it offers
		{"the database", sessionOrder{Folder: dir("db")}, "", "the server's own folder"},
		{"the files of users", sessionOrder{Folder: dir("files/blobs/blobs")}, "", "the server's own folder"},
		{"over the files of users", sessionOrder{Folder: dir("files")}, "", "the server's own folder"},
		{"a registry file with the server's own", sessionOrder{Folder: play, Workspaces: private}, "", "the server's own folder"},
		{"a home", sessionOrder{Folder: play, Home: dir("play/me")}, "", "home folder"},
		{"nothing there", sessionOrder{Folder: top + "/none"}, "", "there is no folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := p.offer(c.o)
			if c.fail != "" {
				if err == nil || !strings.Contains(writ.Message(err), c.fail) {
					t.Errorf("got %v, want %q", err, c.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, w := range r.List(localAs("test")) {
				ids = append(ids, string(w.ID))
			}
			if got := strings.Join(ids, " "); got != c.ids {
				t.Errorf("it offers %q, want %q", got, c.ids)
			}
		})
	}
	r, err := p.offer(sessionOrder{Folder: play, Approvals: writ.ApprovalsReview, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if w, err := r.Get(localAs("test"), "default"); err != nil || w.Root != play || w.Approvals != writ.ApprovalsReview || w.Profile != writ.ReadOnly {
		t.Errorf("the flags make %+v, %v", w, err)
	}
	cfg.Workspaces[0].Root = data
	if _, err := placesOf(cfg, data); writ.KindOf(err) != writ.Invalid {
		t.Errorf("a workspace at the data folder is %v", err)
	}
}

// Sessions are counted and bounded, and the end of all is the end of each.
func TestSessionsAreBounded(t *testing.T) {
	m := newSessions()
	first, other := pair(t)
	if !m.add(first) || m.count() != 1 {
		t.Fatalf("%d sessions", m.count())
	}
	for range maxSessions - 1 {
		c, _ := pair(t)
		m.add(c)
	}
	late, _ := pair(t)
	if m.add(late) {
		t.Errorf("there are %d sessions", m.count())
	}
	m.work.Go(func() { // one that does not end by itself
		<-m.ctx.Done()
		m.remove(first)
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.end(ctx)
	if _, err := other.Read(make([]byte, 1)); err == nil {
		t.Error("the connection of a session that was cut off is open")
	}
	if m.add(late) {
		t.Error("a session begins after the end")
	}
}

// One session too many is told so.
func TestASessionTooManyIsRefused(t *testing.T) {
	data := t.TempDir()
	s := &system{folder: &dataFolder{path: data}, slog: slog.New(slog.DiscardHandler), sessions: newSessions()}
	for range maxSessions {
		c, _ := pair(t)
		s.sessions.add(c)
	}
	if err := s.serveSessions(); err != nil {
		t.Fatal(err)
	}
	conn := dialTools(t.Context(), data)
	if conn == nil {
		t.Fatal("nobody listens")
	}
	defer conn.Close()
	err := sendOrder(conn, bufio.NewReader(conn), sessionOrder{Version: sessionVersion, Folder: data})
	if writ.KindOf(err) != writ.Exhausted || !strings.Contains(writ.Message(err), "try again later") {
		t.Errorf("got %v (kind %v)", err, writ.KindOf(err))
	}
	within(0, s.sessions.end)
}

// Who waits for sessions is told when the last is over, and not before.
func TestWaitingForSessions(t *testing.T) {
	c, _ := pair(t)
	synctest.Test(t, func(t *testing.T) {
		m := newSessions()
		m.wait(t.Context()) // there is none
		m.add(c)
		over := make(chan struct{})
		go func() { m.wait(t.Context()); close(over) }()
		synctest.Wait()
		select {
		case <-over:
			t.Fatal("over, with a session open")
		default:
		}
		m.remove(c)
		<-over
		m.stop()
	})
}

// pair is the two ends of a connection.
func pair(t *testing.T) (*net.UnixConn, *net.UnixConn) {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := net.DialTimeout("unix", ln.Addr().String(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a.(*net.UnixConn), b.(*net.UnixConn)
}
