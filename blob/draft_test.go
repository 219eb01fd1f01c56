package blob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"writ"
)

func draft(t testing.TB, f *Folder, text string) writ.Draft {
	t.Helper()
	d, err := f.Draft(context.Background(), strings.NewReader(text), int64(len(text)))
	if err != nil || d.Size != int64(len(text)) || d.Digest != writ.DigestOf([]byte(text)) {
		t.Fatalf("draft of %d bytes: %+v, %v", len(text), d, err)
	}
	return d
}

// TestPublish: drafts have no names until they are published, all of them; then they are
// blobs as if each had been put, more than are synced at a time, and equal ones are one.
func TestPublish(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	old := put(t, f, "3")
	var all []writ.Draft
	want := map[writ.Digest]string{}
	for i := range 3*syncsAtOnce + 1 {
		text := fmt.Sprint(i / 2)
		d := draft(t, f, text)
		all = append(all, d)
		want[d.Digest] = text
	}
	if got := names(t, dir, blobs); !slices.Equal(got, []string{string(old)}) {
		t.Errorf("before, blobs are %v", got)
	}
	if err := f.Publish(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	for d, text := range want {
		if got, err := read(f, d, 0, -1); err != nil || got != text {
			t.Errorf("%s is %q, %v", text, got, err)
		}
	}
	if got := names(t, dir, blobs); len(got) != len(want) {
		t.Errorf("%d blobs, want %d", len(got), len(want))
	}
	if got := names(t, dir, drafts); len(got) != 0 {
		t.Errorf("drafts are left: %v", got)
	}
	if err := f.Publish(t.Context()); err != nil {
		t.Errorf("none: %v", err)
	}
}

// TestPublishFailsWhole: after an error no draft is left, whichever of them was at fault,
// and what was there before stands.
func TestPublishFailsWhole(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	old := put(t, f, "old")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	three := func() []writ.Draft {
		return []writ.Draft{draft(t, f, "a"), draft(t, f, "old"), draft(t, f, "b")}
	}
	swept := func() []writ.Draft {
		all := three()
		if err := f.Drop(all[1]); err != nil {
			t.Fatal(err)
		}
		return all
	}
	for name, publish := range map[string]func() error{
		"the caller is gone":  func() error { return f.Publish(ctx, three()...) },
		"a draft was removed": func() error { return f.Publish(t.Context(), swept()...) },
	} {
		if err := publish(); err == nil {
			t.Errorf("%s: published", name)
		}
		if got := names(t, dir, drafts); len(got) != 0 {
			t.Errorf("%s: drafts are left: %v", name, got)
		}
		if got := names(t, dir, blobs); !slices.Equal(got, []string{string(old)}) {
			t.Errorf("%s: blobs are %v", name, got)
		}
		if got, err := read(f, old, 0, -1); err != nil || got != "old" {
			t.Errorf("%s: what was there is %q, %v", name, got, err)
		}
	}
	if err := f.Drop(writ.Draft{Name: "none"}); err != nil {
		t.Errorf("drafts that are gone cannot be dropped: %v", err)
	}
	if err := f.Publish(ctx, three()...); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// BenchmarkPut is 50 small blobs, one after the other and together.
func BenchmarkPut(b *testing.B) {
	const files = 50
	text := func(i, n int) string { return fmt.Sprintf("%d of round %d", i, n) }
	b.Run("each", func(b *testing.B) {
		f := open(b, b.TempDir())
		for n := 0; b.Loop(); n++ {
			for i := range files {
				put(b, f, text(i, n))
			}
		}
	})
	b.Run("together", func(b *testing.B) {
		f := open(b, b.TempDir())
		for n := 0; b.Loop(); n++ {
			var all []writ.Draft
			for i := range files {
				all = append(all, draft(b, f, text(i, n)))
			}
			if err := f.Publish(b.Context(), all...); err != nil {
				b.Fatal(err)
			}
		}
	})
}
