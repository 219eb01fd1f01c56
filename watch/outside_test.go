package watch

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// inotifyInfo calls f with each line that the kernel has on each instance of this process.
func inotifyInfo(t *testing.T, f func(fd, line string)) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range all {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err != nil || target != "anon_inode:inotify" {
			continue
		}
		info, err := os.Open("/proc/self/fdinfo/" + e.Name())
		if err != nil {
			continue // closed meanwhile
		}
		lines := bufio.NewScanner(info)
		for lines.Scan() {
			f(e.Name(), lines.Text())
		}
		info.Close()
	}
}

// watchedInodes is how many watches each inode has.
func watchedInodes(t *testing.T) map[uint64]int {
	t.Helper()
	all := map[uint64]int{}
	inotifyInfo(t, func(_, line string) {
		var wd int
		var ino uint64
		if n, _ := fmt.Sscanf(line, "inotify wd:%x ino:%x", &wd, &ino); n == 2 {
			all[ino]++
		}
	})
	return all
}

// instances is how many inotify instances this process has.
func instances(t *testing.T) int {
	t.Helper()
	all := map[string]bool{}
	inotifyInfo(t, func(fd, _ string) { all[fd] = true })
	return len(all)
}

func TestScenario80_BoundaryRenames(t *testing.T) {
	l := listen(t, Options{}, "d/sub")
	out := filepath.Join(filepath.Dir(l.root), "outside")
	l.write("f")
	l.write("d/sub/f")
	l.until("modify d/sub/f")
	l.flush()

	must(t, os.Rename(l.in("f"), filepath.Join(out, "f")))
	wantOnly(t, "file out", l.flush(), "remove f")
	must(t, os.Rename(filepath.Join(out, "f"), l.in("g")))
	wantOnly(t, "file in", l.flush(), "create g")
	must(t, os.Rename(l.in("d"), filepath.Join(out, "d")))
	wantOnly(t, "folder out", l.flush(), "remove d")
	must(t, os.WriteFile(filepath.Join(out, "d/sub/secret"), nil, 0o644))
	must(t, os.Mkdir(filepath.Join(out, "d/sub/more"), 0o755))
	wantOnly(t, "changes outside", l.flush())
	if n := len(watchedInodes(t)); n != 1 {
		t.Errorf("%d folders are watched, want the root alone", n)
	}
	must(t, os.Rename(filepath.Join(out, "d"), l.in("back")))
	created := map[string]bool{}
	for _, e := range l.flush() {
		created[short(e)] = true
	}
	for _, want := range []string{"create back", "create back/sub", "create back/sub/f", "create back/sub/secret", "create back/sub/more"} {
		if !created[want] {
			t.Errorf("folder in: %q was not told: %v", want, created)
		}
	}
	must(t, os.WriteFile(l.in("back/sub/more/x"), nil, 0o644))
	l.until("create back/sub/more/x")
}

func TestScenario80_LinksAndPipesAreNamesAndNotFollowed(t *testing.T) {
	l := listen(t, Options{})
	out := filepath.Join(filepath.Dir(l.root), "outside")
	must(t, os.Symlink(out, l.in("link")))
	must(t, os.Symlink("/nowhere", l.in("dangling")))
	must(t, unix.Mkfifo(l.in("pipe"), 0o600))
	wantOnly(t, "links and pipes", l.flush(), "create link", "create dangling", "create pipe")
	must(t, os.WriteFile(filepath.Join(out, "f"), nil, 0o644))
	must(t, os.WriteFile(l.in("link/g"), nil, 0o644)) // through the link
	wantOnly(t, "changes outside", l.flush())
	must(t, os.Rename(l.in("link"), l.in("link2")))
	must(t, os.Remove(l.in("pipe")))
	wantOnly(t, "links and pipes", l.flush(), "rename link -> link2", "remove pipe")
	// Those that are there at the start are not followed either.
	must(t, l.Restart())
	l.until("resync")
	must(t, os.WriteFile(filepath.Join(out, "h"), nil, 0o644))
	wantOnly(t, "changes outside", l.flush())
	if n := len(watchedInodes(t)); n != 1 {
		t.Errorf("%d folders are watched, want the root alone", n)
	}
}

// Scenario 80: while a folder and a link to a folder outside change places all the time,
// no folder outside is watched, and no name of there is told.
func TestScenario80_SwappingAFolderForALink(t *testing.T) {
	rounds := 10_000
	if testing.Short() {
		rounds /= 20
	}
	l := listen(t, Options{}, "d/in")
	out := filepath.Join(filepath.Dir(l.root), "outside")
	must(t, os.MkdirAll(filepath.Join(out, "in"), 0o755))
	must(t, os.Symlink("../outside", l.in("link")))
	inode := func(path string) uint64 {
		var st unix.Stat_t
		must(t, unix.Stat(path, &st))
		return st.Ino
	}
	outer, inner := inode(out), inode(filepath.Join(out, "in"))
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			for _, name := range []string{"only-outside", "in/only-outside"} {
				if os.WriteFile(filepath.Join(out, name), nil, 0o644) != nil || os.Remove(filepath.Join(out, name)) != nil {
					t.Error("the folder outside cannot be written")
					return
				}
			}
		}
	})
	listened := make(chan struct{})
	events, resyncs := 0, 0
	go func() {
		defer close(listened)
		for {
			e, err := l.sub.Next(t.Context())
			if err != nil {
				return
			}
			events++
			if e.Kind == ResyncRequired {
				resyncs++
			}
			for _, p := range []string{e.Path, e.From, e.To} {
				if strings.Contains(p, "only-outside") || strings.Contains(p, "..") {
					t.Errorf("told %+v", e)
				}
			}
		}
	}()
	for i := range rounds {
		l.exchange("d", "link")
		// The folder must be looked at while it changes places, also as a new one.
		if i%4 == 0 {
			l.rename("link", "new") // is the folder now, and "d" the link
			l.rename("new", "link")
		}
		if i%2 == 1 {
			_ = os.Mkdir(l.in(filepath.Join("d/in", fmt.Sprint(i))), 0o755)
		}
		if i%100 == 0 {
			if got := watchedInodes(t); got[outer]+got[inner] > 0 {
				t.Fatalf("round %d: the folder outside is watched", i)
			}
		}
		if i%2 == 0 {
			l.exchange("d", "link")
		}
	}
	close(done)
	wg.Wait()
	if got := watchedInodes(t); got[outer]+got[inner] > 0 {
		t.Error("the folder outside is watched")
	}
	l.Watcher.Close()
	<-listened
	t.Logf("%d events, %d of them resyncs", events, resyncs)
	if events < rounds/100 {
		t.Errorf("%d events of %d rounds: the race did not happen", events, rounds)
	}
}
