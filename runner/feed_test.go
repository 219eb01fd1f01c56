package runner

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"writ"
)

func TestFeedKeepsOrderAndBounds(t *testing.T) {
	var got collect
	f := newFeed(got.emit)
	out, errs := f.stream(writ.Stdout), f.stream(writ.Stderr)
	var want bytes.Buffer
	for i := range 2000 {
		b := bytes.Repeat([]byte{byte(i)}, i%1000)
		want.Write(b)
		if _, err := out.Write(b); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			_, _ = errs.Write([]byte("e"))
		}
	}
	big := []byte(strings.Repeat("x", 3*writ.MaxChunkBytes+1))
	_, _ = out.Write(big)
	want.Write(big)
	f.close()
	n := len(got.chunks)
	_, _ = out.Write([]byte("late"))
	if len(got.chunks) != n {
		t.Error("emit was called after close")
	}
	for i, c := range got.chunks {
		if len(c.Data) == 0 || len(c.Data) > writ.MaxChunkBytes {
			t.Errorf("chunk %d has %d bytes", i, len(c.Data))
		}
	}
	if got.text(writ.Stdout) != want.String() || got.text(writ.Stderr) != strings.Repeat("e", 20) {
		t.Error("the output is not what was written")
	}
}

func TestSlowEmitDoesNotBlockTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var got collect
		f := newFeed(func(c writ.Chunk) {
			<-release
			got.emit(c)
		})
		w := f.stream(writ.Stdout)
		for range 1000 {
			_, _ = w.Write([]byte("abc"))
			synctest.Wait() // emit holds the first chunk; writing goes on
		}
		close(release)
		f.close()
		if got.text(writ.Stdout) != strings.Repeat("abc", 1000) {
			t.Error("output was lost")
		}
	})
}

func TestFeedWithoutEmitDiscards(t *testing.T) {
	f := newFeed(nil)
	if n, err := f.stream(writ.Stderr).Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	f.close()
}
