package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"writ"
)

// patience bounds every wait of a script. It is long since other work may share
// the machine; nothing waits it out but a failure.
const patience = 60 * time.Second

// scriptCommands are the commands of scripts beside testscript's own.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exits":   exits,
	"ready":   ready,
	"waitfor": waitFor,
	"capture": capture,
	"events":  events,
	"running": func(ts *testscript.TestScript, neg bool, args []string) { processes(ts, neg, args, true) },
	"gone":    func(ts *testscript.TestScript, neg bool, args []string) { processes(ts, neg, args, false) },
	"http":    request,
	"host":    host,
	"tamper":  tamper,
	"spoil":   spoil,
	"agent":   agentCommand,
	"tool":    remoteTool,
	"post":    post,
}

func usage(ts *testscript.TestScript, ok bool, text string) {
	if !ok {
		ts.Fatalf("usage: %s", text)
	}
}

// eventually polls cond and fails the script when it does not hold in time.
func eventually(ts *testscript.TestScript, what string, cond func() bool) {
	deadline := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("not in %v: %s", patience, what)
		}
	}
}

// exits CODE PROGRAM ARGS... is exec with the exit code that the program must have.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) > 1, "exits CODE PROGRAM ARGS...")
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = fmt.Sprint(e.ExitCode())
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// ready waits until a server answers on the data folder's socket.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 0, "ready")
	socket := filepath.Join(ts.Getenv("WRIT_DATA"), socketName)
	eventually(ts, "a server answers", func() bool { return answers(socket) })
}

// waitfor REGEXP PROGRAM ARGS... repeats a program until its stdout matches.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) > 1, "waitfor REGEXP PROGRAM ARGS...")
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	eventually(ts, "stdout matches "+args[0], func() bool {
		return ts.Exec(args[1], args[2:]...) == nil && want.MatchString(ts.ReadFile("stdout"))
	})
}

// capture NAME FILE REGEXP sets a variable to the first group's match in a file,
// or in stdout or stderr of the last command.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 3, "capture NAME FILE REGEXP")
	re, err := regexp.Compile("(?m)" + args[2])
	ts.Check(err)
	m := re.FindStringSubmatch(ts.ReadFile(args[1]))
	if len(m) != 2 {
		ts.Fatalf("%s does not match %s with one group", args[1], args[2])
	}
	ts.Setenv(args[0], m[1])
}

// events TASK TYPE... checks that the log has exactly these events of a task, in
// this order.
func events(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) > 1, "events TASK TYPE...")
	ts.Check(ts.Exec("writ", "audit", "list", "--json", "--limit", "500", "--task", args[0]))
	var got []string
	for dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout"))); ; {
		var e writ.Event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			ts.Fatalf("%v", err)
		}
		if e.Task != writ.TaskID(args[0]) {
			ts.Fatalf("event %d is of task %q", e.Seq, e.Task)
		}
		got = append(got, string(e.Type))
	}
	if !slices.Equal(got, args[1:]) {
		ts.Fatalf("events of %s:\n got %s\nwant %s", args[0], strings.Join(got, " "), strings.Join(args[1:], " "))
	}
}

// running MARK and gone MARK wait until a process of this machine, in a box or
// not, has MARK as one of its arguments, or none has. `! running` does not wait.
func processes(ts *testscript.TestScript, neg bool, args []string, want bool) {
	usage(ts, len(args) == 1 && (want || !neg), "[!] running MARK, gone MARK")
	if neg {
		if hasProcess(args[0]) {
			ts.Fatalf("a process with the argument %s is running", args[0])
		}
		return
	}
	eventually(ts, fmt.Sprintf("a process with the argument %s: %t", args[0], want), func() bool {
		return hasProcess(args[0]) == want
	})
}

func hasProcess(mark string) bool {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return false
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && slices.Contains(strings.Split(string(b), "\x00"), mark) {
			return true
		}
	}
	return false
}

// http STATUS METHOD PATH [FILE] sends a request to the server on the data
// folder's socket, with a file as its JSON body, and prints what it answers.
func request(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && (len(args) == 3 || len(args) == 4), "http STATUS METHOD PATH [FILE]")
	var body []byte
	if len(args) == 4 {
		body = []byte(ts.ReadFile(args[3]))
	}
	socket := filepath.Join(ts.Getenv("WRIT_DATA"), socketName)
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequest(args[1], "http://localhost"+args[2], bytes.NewReader(body))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: tr, Timeout: patience}).Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
	if got := fmt.Sprint(resp.StatusCode); got != args[0] {
		ts.Fatalf("%s %s: status %s, want %s", args[1], args[2], got, args[0])
	}
}

// host STATUS NAME URL asks a server over TCP under that name, as a proxy would, and
// prints what it answers.
func host(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 3, "host STATUS NAME URL")
	req, err := http.NewRequest(http.MethodGet, args[2], nil)
	ts.Check(err)
	req.Host, req.Close = args[1], true
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
	if got := fmt.Sprint(resp.StatusCode); got != args[0] {
		ts.Fatalf("%s as %s: status %s, want %s", args[2], args[1], got, args[0])
	}
}

// tamper SQL... does to the database of the data folder, which no server may have
// open, what its owner could: it takes the triggers away first.
func tamper(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) > 0, "tamper SQL...")
	db, err := sql.Open("sqlite", "file:"+filepath.Join(ts.Getenv("WRIT_DATA"), "writ.db"))
	ts.Check(err)
	defer db.Close()
	rows, err := db.Query(`SELECT name FROM sqlite_master WHERE type = 'trigger'`)
	ts.Check(err)
	var stmts []string
	for rows.Next() {
		var name string
		ts.Check(rows.Scan(&name))
		stmts = append(stmts, "DROP TRIGGER "+name)
	}
	ts.Check(errors.Join(rows.Err(), rows.Close()))
	for _, s := range append(stmts, args...) {
		_, err := db.Exec(s)
		ts.Check(err)
	}
}

// spoil TABLE writes nonsense over a table of the database of the data folder, which no
// server may have open, as a disk that fails would.
func spoil(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "spoil TABLE")
	file := filepath.Join(ts.Getenv("WRIT_DATA"), "writ.db")
	db, err := sql.Open("sqlite", "file:"+file)
	ts.Check(err)
	var page, size int64
	err = db.QueryRow(`SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name = ?`, args[0]).Scan(&page, &size)
	ts.Check(errors.Join(err, db.Close()))
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteAt(bytes.Repeat([]byte("nonsense"), int(size/8)), (page-1)*size)
	ts.Check(errors.Join(err, f.Close()))
}
