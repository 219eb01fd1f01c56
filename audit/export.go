package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"writ"
)

// The formats of Export: one JSON value a line.
const (
	// JSONLines is the records, byte for byte: line n is what leaf n hashes, so that
	// a full export can be verified again.
	JSONLines = "jsonl"
	// CloudEvents is CloudEvents 1.0 in its JSON format: source is "writ:audit/" and
	// the log's origin, id the event's Seq, type "writ." and the event's, subject the
	// task; data is the record, byte for byte. Tenant is an extension.
	CloudEvents = "cloudevents"
)

// View calls fn with one snapshot of the log, which is over when fn returns, and
// answers fn's error or why there is no snapshot.
type View func(ctx context.Context, fn func(Source) error) error

// Export writes the events that f selects to w in the order of the log, in flat
// memory. f.Limit 0 means all of them, and f.After is as in EventFilter: -1 for the
// whole log. It verifies nothing. The error is of kind Invalid for an unknown
// format, else what view or w returned; lines may have been written by then.
//
// Every page has a snapshot of its own, and none is held while w takes its time: a
// reader that is slow on purpose must not keep the store from tidying up. Records
// never change, so the pages agree; what is appended meanwhile is exported too.
func Export(ctx context.Context, view View, w io.Writer, format string, f writ.EventFilter) error {
	const op = "export the audit log"
	if format != JSONLines && format != CloudEvents {
		return &writ.Error{Kind: writ.Invalid, Op: op, Msg: fmt.Sprintf("format %q: want %s or %s", format, JSONLines, CloudEvents)}
	}
	origin := ""
	x := export{w: bufio.NewWriter(w), filter: f}
	for after, more := max(f.After, -1), true; more; {
		var page []writ.Record
		err := view(ctx, func(src Source) (err error) {
			if format == CloudEvents && origin == "" {
				if origin, err = originOf(ctx, src); err != nil {
					return err
				}
			}
			page, err = src.Records(ctx, after, pageRecords)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		if more = len(page) == pageRecords; more {
			after = page[len(page)-1].Seq
		}
		done, err := x.write(page, origin)
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		more = more && !done
	}
	return x.w.Flush()
}

// originOf is the log's name by its head. A damaged head must not keep the events
// from anybody.
func originOf(ctx context.Context, src Source) (string, error) {
	_, signed, err := src.LogHead(ctx)
	if err != nil && writ.KindOf(err) != writ.NotFound {
		return "", err
	}
	head, err := unverified(signed)
	if err != nil {
		return "unknown", nil
	}
	return head.origin, nil
}

// export is one Export under way.
type export struct {
	w       *bufio.Writer
	filter  writ.EventFilter
	written int
}

// write writes what the filter selects of page, as CloudEvents of origin unless that
// is empty. done says that no more are wanted.
func (x *export) write(page []writ.Record, origin string) (done bool, err error) {
	f := x.filter
	for _, r := range page {
		if f.Tenant != "" && r.Tenant != f.Tenant || f.Task != "" && r.Task != f.Task ||
			len(f.Types) > 0 && !slices.Contains(f.Types, r.Type) {
			continue
		}
		line := r.Data
		if origin != "" {
			if line, err = cloudEvent(origin, r); err != nil {
				return false, fmt.Errorf("event %d: %w", r.Seq, err)
			}
		}
		_, _ = x.w.Write(line) // the first failure stays with the writer
		if err := x.w.WriteByte('\n'); err != nil {
			return false, err
		}
		if x.written++; x.written == f.Limit {
			return true, nil
		}
	}
	return false, nil
}

// cloudEvent is one record in an envelope of CloudEvents 1.0.
func cloudEvent(origin string, r writ.Record) ([]byte, error) {
	e, err := decode(r.Data)
	if err != nil {
		return nil, err
	}
	head, err := json.Marshal(struct {
		SpecVersion string      `json:"specversion"`
		ID          string      `json:"id"`
		Source      string      `json:"source"`
		Type        string      `json:"type"`
		Subject     writ.TaskID `json:"subject,omitempty"`
		Time        string      `json:"time"`
		Tenant      writ.Tenant `json:"tenant,omitempty"`
		ContentType string      `json:"datacontenttype"`
	}{
		"1.0", fmt.Sprint(r.Seq), "writ:audit/" + url.PathEscape(origin), "writ." + string(e.Type), e.Task,
		e.Time.UTC().Format(time.RFC3339Nano), e.Tenant, "application/json",
	})
	if err != nil {
		return nil, err
	}
	// Put together by hand: a JSON encoder would rewrite the escapes of the record.
	line := append(head[:len(head)-1], `,"data":`...)
	return append(append(line, r.Data...), '}'), nil
}
