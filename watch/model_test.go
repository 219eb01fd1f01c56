package watch

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// picture is the names beneath a root, as one knows them who lists the folder when he is
// told to and believes the events from there on.
type picture map[string]bool

func (p picture) apply(e Event, root string) {
	switch e.Kind {
	case Create:
		p[e.Path] = true
	case Remove:
		p.remove(e.Path)
	case Rename:
		moved := map[string]bool{e.To: true}
		for name := range p {
			if below, ok := strings.CutPrefix(name, e.From+"/"); ok {
				moved[e.To+"/"+below] = true
			}
		}
		p.remove(e.From)
		maps.Copy(p, moved)
	case ResyncRequired:
		clear(p)
		maps.Copy(p, names(root))
	}
}

func (p picture) remove(path string) {
	delete(p, path)
	for name := range p {
		if strings.HasPrefix(name, path+"/") {
			delete(p, name)
		}
	}
}

// follow applies events until each folder that is there shows that it is watched: a new
// name in it is told.
func (p picture) follow(t *testing.T, root string, sub *Subscription) (all []Event) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const probe = "probe"
	for dir := range names(root) {
		if info, err := os.Lstat(filepath.Join(root, dir)); err == nil && info.IsDir() {
			must(t, os.WriteFile(filepath.Join(root, dir, probe), nil, 0o644))
		}
	}
	must(t, os.WriteFile(filepath.Join(root, probe), nil, 0o644))
	for !maps.Equal(p, names(root)) {
		e, err := sub.Next(ctx)
		if err != nil {
			return all
		}
		all = append(all, e)
		p.apply(e, root)
	}
	return all
}

// step is one change of what is beneath base/root or base/outside. Many fail, since names
// are few.
func step(base string, kind int, a, b string) {
	a, b = filepath.Join(base, a), filepath.Join(base, b)
	switch kind {
	case 0, 1:
		_ = os.MkdirAll(a, 0o755)
	case 2, 3:
		_ = os.WriteFile(a, []byte("x"), 0o644)
	case 4, 5, 6:
		_ = os.Rename(a, b)
	case 7, 8:
		_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	case 9:
		if strings.Count(a, "/") > strings.Count(base, "/")+1 { // not root and outside themselves
			_ = os.RemoveAll(a)
		}
	case 10:
		_ = os.Symlink(b, a)
	}
}

// Who follows the events knows in the end what is there, whatever was made, moved, swapped
// and removed, by two at a time, in the root, out of it and into it.
func TestEventsGiveTheWholePicture(t *testing.T) {
	base := memoryDir(t)
	runs, resyncs, events := 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		dir := filepath.Join(base, fmt.Sprint(runs))
		root := filepath.Join(dir, "root")
		must(t, os.MkdirAll(filepath.Join(dir, "outside"), 0o755))
		must(t, os.MkdirAll(root, 0o755))
		path := rapid.Custom(func(r *rapid.T) string {
			top := rapid.SampledFrom([]string{"root", "root", "root", "outside"}).Draw(r, "top")
			return top + "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 4).Draw(r, "names"), "/")
		})
		type change struct {
			kind int
			a, b string
		}
		changes := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) change {
			return change{rapid.IntRange(0, 10).Draw(r, "kind"), path.Draw(r, "a"), path.Draw(r, "b")}
		}), 1, 60)
		before, one, two := changes.Draw(r, "before"), changes.Draw(r, "one"), changes.Draw(r, "two")
		for _, c := range before {
			step(dir, c.kind, c.a, c.b)
		}
		w, err := Open(t.Context(), root, Options{})
		must(t, err)
		defer w.Close()
		sub := w.Subscribe()
		defer sub.Close()
		known := picture(names(root))
		var wg sync.WaitGroup
		for _, list := range [][]change{one, two} {
			wg.Go(func() {
				for _, c := range list {
					step(dir, c.kind, c.a, c.b)
				}
			})
		}
		wg.Wait()
		all := known.follow(t, root, sub)
		events += len(all)
		for _, e := range all {
			if e.Kind == ResyncRequired {
				resyncs++
			}
		}
		if diff := cmp.Diff(names(root), map[string]bool(known)); diff != "" {
			var told []string
			for _, e := range all {
				told = append(told, short(e))
			}
			r.Fatalf("what is there (-) and what is known (+):\n%s\nafter\n%s", diff, strings.Join(told, "\n"))
		}
	})
	t.Logf("%d runs, %d events, %d resyncs", runs, events, resyncs)
}
