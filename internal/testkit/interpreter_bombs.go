package testkit

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"testing"

	"writ"
	"writ/runner"
)

// bombs has archives unpacked that are more than a box may hold: in bytes, also nested ones,
// and in entries. The server keeps files as they are and unpacks none; it is the box that
// they fill, and the next run finds nothing of it.
func (s suite) bombs(t *testing.T) {
	r := s.start(t, runner.Options{})
	var d Depot
	zeros := squeezed(t, bytes.Repeat(squeezed(t, make([]byte, 16<<20)), 16)) // 256 MiB, squeezed twice
	nested := d.Put("nested.gz", zeros)
	entries := d.Put("entries.tgz", squeezed(t, emptyFiles(t, 25_000)))
	for _, c := range []struct {
		name, code string
		limit      func(writ.Result) bool // what ended it, or was told to it
	}{
		{"into the folder", "zcat nested.gz | zcat > a.csv && echo whole", func(r writ.Result) bool { return r.Stdout.Text == "" }},
		{"file by file", "for i in 1 2 3 4 5; do zcat nested.gz | zcat | head -c 60M > $i.csv || exit 7; done; echo whole", func(r writ.Result) bool { return r.Stdout.Text == "" }},
		{"into memory", "zcat nested.gz | zcat | python3 -c 'import sys; sys.stdin.buffer.read() * 4; print(\"whole\")'", func(r writ.Result) bool { return r.Stdout.Text == "" }},
		{"into output", "zcat nested.gz | zcat", func(r writ.Result) bool { return r.Stdout.Truncated || r.Reason == writ.ReasonStdout }},
		{"by entries", "tar xzf entries.tgz && sleep 30 && echo whole", func(r writ.Result) bool { return r.Outcome == writ.Killed && r.Stdout.Text == "" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := Interpret("bash", c.code, nested, entries)
			res := MustInterpret(t, r, spec, &d)
			if !c.limit(res) {
				t.Errorf("it ended %s (%s) with %d bytes of output, truncated %v", res.Outcome, res.Reason, len(res.Stdout.Text), res.Stdout.Truncated)
			}
			kept := int64(0)
			for _, f := range res.Files {
				if f.Path != nested.Path && f.Path != entries.Path {
					kept += f.Size
				}
			}
			if kept > spec.Collect.TotalBytes || len(res.Files) > int(spec.Collect.Files)+2 {
				t.Errorf("%d files, %d bytes, were kept", len(res.Files), kept)
			}
			after := MustInterpret(t, r, Interpret("bash", "ls -A"), &d)
			wantText(t, after.Stdout, "script.sh\n")
		})
	}
}

// squeezed is b as gzip has it.
func squeezed(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// emptyFiles is an archive of n files without a byte.
func emptyFiles(t *testing.T, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := range n {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("many/%d", i), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
