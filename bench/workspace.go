package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The workspace that tools are measured in.
const (
	spreadFolders  = 500
	filesPerFolder = 100 // spreadFolders of them make the 50,000 files that are searched
	foundPerFolder = 1   // end in .go
	patched        = 5   // files that a patch changes
	patchedLines   = 400 // in each of them
)

// desks are servers of workspace tools on the same folder.
type desks struct {
	root     string
	writ     *tools
	official *tools
}

// workspaces measures the tools of workspaces through writ mcp, n times, beside the
// filesystem server of the protocol's makers and beside plain system calls.
func workspaces(ctx context.Context, exe, clients, dir string, n int) (tables []*table, err error) {
	d := desks{root: filepath.Join(dir, "workspace")}
	if err := d.fill(); err != nil {
		return nil, fmt.Errorf("fill the workspace: %w", err)
	}
	data := filepath.Join(dir, "mcp")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(data, "config.yaml"), []byte("runner: {uid_base: 873000}\nlog: {level: warn}\n"), 0o600); err != nil {
		return nil, err
	}
	if d.writ, err = startTools(ctx, "writ mcp", filepath.Join(dir, "mcp.log"), exe, "--data", data, "mcp", d.root); err != nil {
		return nil, err
	}
	defer d.writ.stop()
	if d.official, err = startTools(ctx, "server-filesystem", filepath.Join(dir, "official.log"),
		filepath.Join(clients, "node"), filepath.Join(clients, "mcp-server-filesystem"), d.root); err != nil {
		return nil, err
	}
	defer d.official.stop()

	for _, size := range []int{64 << 10, 1 << 20} {
		t, err := d.reading(size, n)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	found, err := d.finding(max(n/4, 1))
	if err != nil {
		return nil, err
	}
	changed, err := d.patching(n)
	if err != nil {
		return nil, err
	}
	return append(tables, found, changed), nil
}

// measured is a table of rows that are taken in turns, n times.
func measured(name string, n int, ways map[string]func() (time.Duration, error), rows ...*series) (*table, error) {
	t := &table{name: name, rows: rows, bases: []string{"official", "bare"}}
	for range n {
		for _, s := range rows {
			if err := s.measure(ways[s.id]); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return t, nil
}

// reading reads a file of so many bytes. A file that was changed is hashed anew for its
// version; the other server has no versions.
func (d desks) reading(size, n int) (*table, error) {
	name := fmt.Sprintf("read-%d.txt", size)
	path := filepath.Join(d.root, name)
	line := "A line of sixty-four bytes, as text of programs and of people is\n"
	text := strings.Repeat(line, size/len(line)+1)[:size]
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, err
	}
	read := func() (time.Duration, error) {
		raw, took, err := d.writ.call("read", map[string]any{"workspace_id": "default", "path": name})
		return took, wanted(err, len(raw) > size)
	}
	return measured(fmt.Sprintf("read %d KiB", size>>10), n, map[string]func() (time.Duration, error){
		"bare": timed(func() error {
			b, err := os.ReadFile(path)
			return wanted(err, len(b) == size)
		}),
		"official": func() (time.Duration, error) {
			raw, took, err := d.official.call("read_text_file", map[string]any{"path": path})
			return took, wanted(err, len(raw) > size)
		},
		"writ": read, // no change since: the hash is remembered
		"changed": func() (time.Duration, error) {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				return 0, err
			}
			return read()
		},
	},
		&series{id: "bare", name: "open, read, close"},
		&series{id: "official", name: "server-filesystem: read_text_file"},
		&series{id: "writ", name: "writ mcp: read"},
		&series{id: "changed", name: "writ mcp: read, after the file changed"},
	)
}

// finding looks for one file in a hundred.
func (d desks) finding(n int) (*table, error) {
	const want = spreadFolders * foundPerFolder
	return measured(fmt.Sprintf("find %d of %d files", want, spreadFolders*filesPerFolder), n, map[string]func() (time.Duration, error){
		"bare": timed(func() error {
			found := 0
			err := filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
				if err == nil && e.Type().IsRegular() && strings.HasSuffix(path, ".go") {
					found++
				}
				return err
			})
			return wanted(err, found == want)
		}),
		"official": func() (time.Duration, error) {
			raw, took, err := d.official.call("search_files", map[string]any{"path": d.root, "pattern": "**/*.go"})
			return took, wanted(err, bytes.Count(raw, []byte(".go")) >= want)
		},
		"writ": func() (time.Duration, error) {
			raw, took, err := d.writ.call("find", map[string]any{"workspace_id": "default", "glob": "*.go"})
			return took, wanted(err, bytes.Count(raw, []byte(".go")) >= want)
		},
	},
		&series{id: "bare", name: "readdir of every folder"},
		&series{id: "official", name: "server-filesystem: search_files"},
		&series{id: "writ", name: "writ mcp: find"},
	)
}

// patching changes a line in each of some files. The other server does it with a call for
// each file; it writes them anew and leaves it to the kernel when they are on the disk.
func (d desks) patching(n int) (*table, error) {
	round := 0
	// lines are what stands in the middle of each file, and what comes to stand there.
	lines := func() (was, next string) {
		round++
		return middle(round - 1), middle(round)
	}
	rewrite := func(sync bool) func() (time.Duration, error) {
		return timed(func() error {
			was, next := lines()
			for i := range patched {
				if err := rewriteFile(filepath.Join(d.root, patchedName(i)), was, next, sync); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return measured(fmt.Sprintf("change %d files of %d lines", patched, patchedLines), n, map[string]func() (time.Duration, error){
		"bare":   rewrite(false),
		"synced": rewrite(true),
		"official": func() (total time.Duration, err error) {
			was, next := lines()
			for i := range patched {
				_, took, err := d.official.call("edit_file", map[string]any{
					"path":  filepath.Join(d.root, patchedName(i)),
					"edits": []any{map[string]string{"oldText": was, "newText": next}},
				})
				if err != nil {
					return 0, err
				}
				total += took
			}
			return total, nil
		},
		"writ": func() (time.Duration, error) {
			was, next := lines()
			var p strings.Builder
			p.WriteString("*** Begin Patch\n")
			for i := range patched {
				fmt.Fprintf(&p, "*** Update File: %s\n@@\n-%s\n+%s\n", patchedName(i), was, next)
			}
			p.WriteString("*** End Patch\n")
			_, took, err := d.writ.call("apply_patch", map[string]any{"workspace_id": "default", "patch": p.String()})
			return took, err
		},
	},
		&series{id: "bare", name: "read, write beside, rename"},
		&series{id: "synced", name: "the same, with a sync of each file and its folder"},
		&series{id: "official", name: "server-filesystem: edit_file for each"},
		&series{id: "writ", name: "writ mcp: apply_patch"},
	)
}

func patchedName(i int) string { return fmt.Sprintf("patched-%d.txt", i) }

func middle(round int) string { return fmt.Sprintf("the line of round %d", round) }

// rewriteFile replaces a line of a file by another, all at once.
func rewriteFile(path, was, next string, sync bool) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(was)) {
		return fmt.Errorf("%s does not have %q", path, was)
	}
	beside, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	defer beside.Close()
	if _, err = beside.Write(bytes.Replace(text, []byte(was), []byte(next), 1)); err != nil {
		return err
	}
	if sync {
		if err := beside.Sync(); err != nil {
			return err
		}
	}
	if err := os.Rename(path+".new", path); err != nil || !sync {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// fill makes the files that are searched and those that are patched.
func (d desks) fill() error {
	for i := range spreadFolders {
		dir := filepath.Join(d.root, fmt.Sprintf("part-%d", i/25), fmt.Sprintf("folder-%d", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for j := range filesPerFolder {
			ending := ".txt"
			if j < foundPerFolder {
				ending = ".go"
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%d%s", j, ending)), nil, 0o644); err != nil {
				return err
			}
		}
	}
	for i := range patched {
		lines := slices.Repeat([]string{"a line that stays as it is"}, patchedLines)
		lines[patchedLines/2] = middle(0)
		if err := os.WriteFile(filepath.Join(d.root, patchedName(i)), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// wanted is err, or an error when the answer is not what was wanted.
func wanted(err error, ok bool) error {
	if err == nil && !ok {
		err = fmt.Errorf("the answer is not what was wanted")
	}
	return err
}
