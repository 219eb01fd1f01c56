package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every command that has no use for a new data folder says so where there is none, and
// leaves nothing behind.
func TestCommandsThatMakeNoDataFolder(t *testing.T) {
	data := filepath.Join(t.TempDir(), "typo")
	for line := range strings.Lines(`
tasks list
tasks show x
tasks output x
tasks code x
tasks wait x
tasks cancel x
tasks forget x
approvals list
approvals show x
approvals grant x --unseen
approvals deny x
approvals resume x
workspaces
operations list
operations show x
operations undo x
works
works show x
inbox list x
inbox add x -q text
inbox edit x text --revision 1
inbox queue x --revision 1
inbox cancel x
inbox reorder x y
inbox stop x
sessions list
sessions show AAAAAAAAAAAAAAAAAAAAA
sessions rm AAAAAAAAAAAAAAAAAAAAA
sessions usage
sessions prune
sessions prune --dry-run
audit list
audit show 1
audit verify
audit checkpoint
audit prove 1
audit export
policy explain -l python -
keys list
keys revoke x
operators list
operators disable x
`) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		var out, said strings.Builder
		code := run(context.Background(), append([]string{"--data", data}, strings.Fields(line)...), env{strings.NewReader("1"), &out, &said, "none"})
		if want := "writ: there is no data folder at " + data + ": "; code != exitFailed || !strings.HasPrefix(said.String(), want) {
			t.Errorf("writ %s: exit code %d, %q; want %d and %q", line, code, said.String(), exitFailed, want)
		}
		if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("writ %s: made the folder (%v)", line, err)
		}
	}
}
