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

// Export writes the events that f selects to w in the order of the log, in flat
// memory. f.Limit 0 means all of them, and f.After is as in EventFilter: -1 for the
// whole log. It verifies nothing. The error is of kind Invalid for an unknown
// format, else what src or w returned; lines may have been written by then.
func Export(ctx context.Context, src Source, w io.Writer, format string, f writ.EventFilter) error {
	const op = "export the audit log"
	if format != JSONLines && format != CloudEvents {
		return &writ.Error{Kind: writ.Invalid, Op: op, Msg: fmt.Sprintf("format %q: want %s or %s", format, JSONLines, CloudEvents)}
	}
	_, signed, err := src.LogHead(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	head, err := unverified(signed)
	if err != nil {
		head.origin = "unknown" // a damaged head must not keep the events from anybody
	}
	out := bufio.NewWriter(w)
	written := 0
	for after := max(f.After, -1); ; {
		page, err := src.Records(ctx, after, pageRecords)
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		for _, r := range page {
			after = r.Seq
			if f.Tenant != "" && r.Tenant != f.Tenant || f.Task != "" && r.Task != f.Task ||
				len(f.Types) > 0 && !slices.Contains(f.Types, r.Type) {
				continue
			}
			line := r.Data
			if format == CloudEvents {
				if line, err = cloudEvent(head.origin, r); err != nil {
					return fmt.Errorf("%s: event %d: %w", op, r.Seq, err)
				}
			}
			_, _ = out.Write(line) // the first failure stays with out, for Flush
			if err := out.WriteByte('\n'); err != nil {
				return fmt.Errorf("%s: %w", op, err)
			}
			if written++; written == f.Limit {
				return out.Flush()
			}
		}
		if len(page) < pageRecords {
			return out.Flush()
		}
	}
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
