package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mattn/go-isatty"

	"writ/approval"
)

// Rules of the user interface:
//
//   - What was asked for goes to stdout, all else to stderr; a pipe gets only the
//     former.
//   - Every list has --json: one JSON object a line, the API's own shape.
//   - Notes about work under way go to stderr and only when that is a terminal,
//     except what a person must act on: a held task says so always.
//   - An error is one line "writ: …" that says what was wrong, where, and what to do.
//   - Text that an agent wrote is shown through approval.Visible, so that it cannot
//     move the cursor or hide; --json has it as it is, and so has a pipe what a task
//     wrote. The output of `writ run` goes to whoever asked for the program, as it comes.

// list prints rows as a table, or items as JSON lines.
func list[T any](w io.Writer, asJSON bool, items []T, head string, row func(T) []string) error {
	if asJSON {
		enc := json.NewEncoder(w)
		for _, it := range items {
			if err := enc.Encode(it); err != nil {
				return err
			}
		}
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, strings.ReplaceAll(head, " ", "\t"))
	for _, it := range items {
		cells := row(it)
		for i, c := range cells {
			cells[i] = oneLine(c)
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	return tw.Flush()
}

// oneLine is s as a cell: visible, without breaks, "-" when empty.
func oneLine(s string) string {
	if s == "" {
		return "-"
	}
	s = approval.Visible(s)
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(s)
}

// document prints v as indented JSON.
func document(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// fields prints name and value pairs, leaving out empty values.
func fields(w io.Writer, pairs ...string) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(tw, "%s:\t%s\n", pairs[i], oneLine(pairs[i+1]))
		}
	}
	return tw.Flush()
}

func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// untrusted prints text that is not ours, as it is; on a terminal as what it is.
func untrusted(w io.Writer, text string) error {
	if onTerminal(w) {
		text = approval.Visible(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// onTerminal reports whether a stream of env is a terminal.
func onTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
