package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"writ"
)

const (
	maxEvent  = maxReply    // of one line of a stream
	quiet     = time.Minute // without even a heartbeat: the connection is dead
	firstRest = 100 * time.Millisecond
	longRest  = 3 * time.Second
	maxTries  = 8 // in a row that brought nothing
)

// Watch calls emit with the task as it stands, then with each change and with
// output as it comes, and returns nil once the terminal state was emitted. An error
// of emit ends it and is returned.
//
// When the connection breaks it asks again, about ten seconds long, before it gives
// up with an error of kind Unavailable. After such a break the state may be emitted
// a second time, and output that was written meanwhile is missing: the Result of
// the terminal state has all of it.
func (c *Client) Watch(ctx context.Context, id writ.TaskID, emit func(writ.TaskEvent) error) error {
	rest, tries := firstRest, 0
	for {
		w := watch{client: c, emit: emit}
		err := w.once(ctx, at("/v1/tasks/", id, "/events"))
		switch {
		case w.over || w.refused != nil:
			return w.refused
		case ctx.Err() != nil:
			return fmt.Errorf("watch %s: %w", id, context.Cause(ctx))
		case w.events > 0:
			rest, tries = firstRest, 0
		}
		if tries++; writ.KindOf(err) != writ.Unavailable || tries == maxTries {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
		rest = min(2*rest, longRest)
	}
}

// watch is one connection of Watch.
type watch struct {
	client  *Client
	emit    func(writ.TaskEvent) error
	events  int   // seen
	over    bool  // the terminal state was emitted
	refused error // by emit
}

// once reads one stream to its end, which is an error unless w.over.
func (w *watch) once(ctx context.Context, path string) error {
	open, cancel := context.WithCancel(ctx)
	defer cancel()
	alive := time.AfterFunc(quiet, cancel)
	defer alive.Stop()
	resp, err := w.client.do(open, http.MethodGet, path, nil, nil)
	if err != nil {
		return w.client.lost(ctx, path, err)
	}
	defer resp.Body.Close()
	var name string
	var data []byte
	for r := bufio.NewReaderSize(resp.Body, 64<<10); ; {
		line, err := readLine(r, maxEvent-len(data))
		if err != nil {
			return w.client.lost(ctx, path, err)
		}
		alive.Reset(quiet)
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if err := w.take(name, data); err != nil || w.over {
				return err
			}
			name, data = "", nil
		case string(field) == "event":
			name = string(value)
		case string(field) == "data":
			data = append(data, value...)
		}
	}
}

// lost is why a stream ended, as an error of kind Unavailable unless the server
// said otherwise or ctx ended.
func (c *Client) lost(ctx context.Context, path string, err error) error {
	if e, ok := errors.AsType[*writ.Error](err); ok {
		return e
	}
	return c.broken(ctx, "GET "+path, err)
}

// take handles one event.
func (w *watch) take(name string, data []byte) error {
	switch name {
	case "error":
		e := &writ.Error{Op: "watch task", Msg: "the server ended the stream"}
		var p problem
		if json.Unmarshal(data, &p) == nil {
			p.fill(e)
		}
		return e
	case "task", "output":
	default:
		return nil // an event of a later version, or the end of a comment
	}
	var e writ.TaskEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("decode a task event: %w", err)
	}
	w.events++
	if w.refused = w.emit(e); w.refused != nil {
		return w.refused
	}
	w.over = e.Task != nil && e.Task.State.Terminal()
	return nil
}

// readLine is the next line of at most max bytes, without its end.
func readLine(r *bufio.Reader, max int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > max:
			return nil, fmt.Errorf("an event is larger than %d bytes", max)
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
