package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/mcp"
)

// TestMCP15_LargeResults: whatever a file holds, a result stays within the cap with
// its text and its structured form together, and what was cut can be fetched.
func TestMCP15_LargeResults(t *testing.T) {
	for name, unit := range map[string]string{
		"plain": "x", "lines": "ab\n", "quotes": `"\`, "control": "\x00\x01", "html": "<&>", "bad": "\xff", "letters": "ğ", "wide": "\u2028日本",
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(writ.ApprovalsOff)
			d.files["big"] = strings.Repeat(unit, 2<<20/len(unit))
			p := newPipe(t, newServer(t, d))
			p.initialize()
			var got strings.Builder
			for offset, rounds := int64(0), 0; ; rounds++ {
				if rounds > 40 {
					t.Fatal("reading does not come to an end")
				}
				p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"main","path":"big","offset":%d}}}`, offset))
				line := testkit.Receive(t, "the answer", p.lines)
				if len(line) > mcp.MaxResultBytes {
					t.Fatalf("a message of %d bytes, the cap is %d", len(line), mcp.MaxResultBytes)
				}
				var w struct {
					Content   string `json:"content"`
					Truncated bool   `json:"truncated"`
					Bytes     int64  `json:"byte_count"`
					Next      int64  `json:"next_offset"`
				}
				if err := json.Unmarshal(parse(t, []byte(line)).Result.Structured, &w); err != nil {
					t.Fatal(err)
				}
				got.WriteString(w.Content)
				if w.Truncated != (w.Next > 0) || w.Truncated && w.Next != offset+w.Bytes {
					t.Fatalf("window at %d: %d bytes, next %d, truncated %v", offset, w.Bytes, w.Next, w.Truncated)
				}
				if offset = w.Next; offset == 0 {
					break
				}
			}
			want := d.files["big"]
			switch name {
			case "bad":
				want = strings.Repeat("\ufffd", len(want))
			case "letters", "wide":
				return // the window of 1 MiB may end within a letter, as the contract says
			}
			if got.String() != want {
				t.Errorf("%d bytes came, want %d", got.Len(), len(want))
			}
		})
	}
}

// TestMCP15_LargeListings: pages are cut, and the next begins where the cut was.
func TestMCP15_LargeListings(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	for i := range 5000 {
		d.paths = append(d.paths, fmt.Sprintf("%05d/%s", i, strings.Repeat("d/", 600)))
	}
	client := connections[1].client(t, newServer(t, d), nil)
	var all []string
	for offset := 0; ; {
		var page struct {
			Paths     []string `json:"paths"`
			Next      int      `json:"next_offset"`
			Truncated bool     `json:"truncated"`
		}
		callTool(t, client, "find", fmt.Sprintf(`{"workspace_id":"main","offset":%d,"content":"x"}`, offset), &page)
		text, _ := json.Marshal(page)
		if 2*len(text) > mcp.MaxResultBytes || len(page.Paths) == 0 {
			t.Fatalf("a page of %d paths in %d bytes", len(page.Paths), 2*len(text))
		}
		all = append(all, page.Paths...)
		if !page.Truncated {
			break
		}
		offset = page.Next
	}
	if diff := cmp.Diff(d.paths, all); diff != "" {
		t.Errorf("the pages together are not the list: %d of %d", len(all), len(d.paths))
	}
}

// TestMCP15_LargePatch: an operation over very many files says that it was cut.
func TestMCP15_LargePatch(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	d.changes = 2000 // of paths of 2000 letters
	client := connections[1].client(t, newServer(t, d), nil)
	var out struct {
		Status    string   `json:"status"`
		Files     []string `json:"files"`
		Changes   []any    `json:"changes"`
		Truncated bool     `json:"truncated"`
	}
	callTool(t, client, "apply_patch", `{"workspace_id":"main","patch":"p"}`, &out)
	text, _ := json.Marshal(out)
	if out.Status != "applied" || !out.Truncated || len(out.Files) == 0 || len(out.Files) != len(out.Changes) || 2*len(text) > mcp.MaxResultBytes {
		t.Errorf("%s, truncated %v, %d files, %d bytes", out.Status, out.Truncated, len(out.Files), 2*len(text))
	}
}
