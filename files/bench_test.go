package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func BenchmarkRead(b *testing.B) {
	content := strings.Repeat("0123456789abcde\n", 1<<17) // 2 MiB
	for _, size := range []int64{64 << 10, 1 << 20} {
		tree := newTree(b, layout{"f": content})
		name := filepath.Join(tree.Root(), "f")
		b.Run(fmt.Sprintf("%dKiB/first", size>>10), func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				tree.versions = newVersions()
				read(b, tree, "f", 4096, size)
			}
		})
		b.Run(fmt.Sprintf("%dKiB/remembered", size>>10), func(b *testing.B) {
			var st unix.Stat_t
			must(b, unix.Stat(name, &st))
			tree.versions.put(&st, "sha256:x", time.Now().Add(time.Hour))
			b.SetBytes(size)
			for b.Loop() {
				read(b, tree, "f", 4096, size)
			}
		})
		b.Run(fmt.Sprintf("%dKiB/bare", size>>10), func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
				must(b, err)
				_, err = readAt(fd, make([]byte, size), 4096)
				must(b, err)
				closeAll(fd)
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	tree := newTree(b, nil)
	for i := range 500 {
		dir := filepath.Join(tree.Root(), fmt.Sprintf("dir%02d/sub%d", i/10, i%10))
		must(b, os.MkdirAll(dir, 0o755))
		for j := range 98 { // with the folders just below the cap of entries
			must(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%02d.go", j)), nil, 0o644))
		}
	}
	for _, glob := range []string{"", "*.go", "**/sub7/file*5.go"} {
		b.Run("49000/"+glob, func(b *testing.B) {
			for b.Loop() {
				find(b, tree, Query{Glob: glob})
			}
		})
	}
}

func BenchmarkPatchOfFiveFiles(b *testing.B) {
	for _, where := range []string{"disk", "memory"} {
		b.Run(where, func(b *testing.B) {
			dir := b.TempDir()
			if where == "memory" {
				dir = memoryDir(b)
			}
			ws := filepath.Join(dir, "ws")
			l, lines := layout{}, []string{}
			for i := range 5 {
				name := fmt.Sprintf("d%d/f.go", i)
				l[name] = strings.Repeat("line\n", 200) + "old\n" + strings.Repeat("line\n", 200)
				lines = append(lines, "*** Update File: "+name, "-old", "+new")
			}
			put(b, ws, l)
			tree := openTree(b, ws)
			j, err := OpenJournals(filepath.Join(dir, "journals"), keepSome)
			must(b, err)
			defer func() { must(b, j.Close()) }()
			p := plan(b, tree, lines...)
			back := reversed(p)
			b.Run("plan", func(b *testing.B) {
				for b.Loop() {
					plan(b, tree, lines...)
				}
			})
			// What five files cost at least: written beside, flushed, renamed, one by one.
			b.Run("bare", func(b *testing.B) {
				content := []byte(l["d0/f.go"])
				for b.Loop() {
					for name := range l {
						full := filepath.Join(ws, name)
						f, err := os.Create(full + ".new")
						must(b, err)
						_, err = f.Write(content)
						must(b, err)
						must(b, f.Sync())
						must(b, f.Close())
						must(b, os.Rename(full+".new", full))
					}
				}
			})
			b.Run("apply", func(b *testing.B) {
				for b.Loop() {
					o, err := tree.Apply(b.Context(), p, j, "op-1")
					must(b, err)
					if o.Status != Applied {
						b.Fatal(o)
					}
					must(b, j.Forget("op-1"))
					p, back = back, p
				}
			})
		})
	}
}
