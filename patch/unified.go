package patch

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Unified renders changes as a unified diff for people, in git's dialect: what was
// removed and added, moves, modes of files that come and go, and a final newline that
// came or went. A move is shown once, against the file that moved; a file that was
// lost under it is shown as lost. Binary files are named and not shown.
//
// Contents stand in it as they are: whoever displays it makes hidden characters
// visible.
func Unified(changes []Change) string {
	at := map[string]Change{}
	for _, c := range changes {
		at[c.Path] = c
	}
	whole := func(c Change) bool { // a move from a path that is empty now to one that was
		return c.Kind == Move && c.Before == nil && at[c.From].Kind == Delete
	}
	shownWithTarget := map[string]bool{}
	for _, c := range changes {
		if whole(c) {
			shownWithTarget[c.From] = true
		}
	}
	var b strings.Builder
	for _, c := range changes {
		switch {
		case c.Kind == Delete && shownWithTarget[c.Path]:
		case whole(c):
			fmt.Fprintf(&b, "diff --git a/%s b/%s\nrename from %s\nrename to %s\n", c.From, c.Path, c.From, c.Path)
			writeDiff(&b, c.From, c.Path, at[c.From].Before, c.After)
		default:
			fmt.Fprintf(&b, "diff --git a/%s b/%s\n", c.Path, c.Path)
			writeDiff(&b, c.Path, c.Path, c.Before, c.After)
		}
	}
	return b.String()
}

func writeDiff(b *strings.Builder, from, to string, before, after *File) {
	from, to = "a/"+from, "b/"+to
	var old, new []byte
	switch {
	case before == nil:
		from, new = "/dev/null", after.Content
		fmt.Fprintf(b, "new file mode %s\n", gitMode(after.Mode))
	case after == nil:
		to, old = "/dev/null", before.Content
		fmt.Fprintf(b, "deleted file mode %s\n", gitMode(before.Mode))
	default:
		old, new = before.Content, after.Content
		if before.Mode != after.Mode {
			fmt.Fprintf(b, "old mode %s\nnew mode %s\n", gitMode(before.Mode), gitMode(after.Mode))
		}
	}
	if bytes.Equal(old, new) {
		return
	}
	if bytes.IndexByte(old, 0) < 0 && bytes.IndexByte(new, 0) < 0 {
		was := string(old)
		text, err := udiff.ToUnified(from, to, was, udiff.Lines(was, string(new)), udiff.DefaultContextLines)
		if err == nil {
			b.WriteString(text)
			return
		}
	}
	fmt.Fprintf(b, "Binary files %s (%d bytes) and %s (%d bytes) differ\n", from, len(old), to, len(new))
}

func gitMode(m fs.FileMode) string { return fmt.Sprintf("100%03o", m.Perm()) }
