package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the report for a person: a line for each check, and beneath it
// how to mend what is not right.
func (r Report) WriteText(w io.Writer) error {
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
	}
	var b strings.Builder
	failed := 0
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", c.Status, width, c.Name, c.Found)
		if c.Mend != "" {
			fmt.Fprintf(&b, "      %-*s  mend: %s\n", width, "", c.Mend)
		}
		if c.Status == Fail {
			failed++
		}
	}
	if r.OK {
		b.WriteString("\nRuns can be sandboxed here.\n")
	} else {
		fmt.Fprintf(&b, "\nNothing can run here: mend what fails above (%d). The commands are for root.\n", failed)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes the report as one JSON value.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
