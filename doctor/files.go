package doctor

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxFile bounds what is read of any one file.
const maxFile = 1 << 20

// path is where a path of the examined host is found.
func (e *exam) path(p string) string { return filepath.Join(e.host.Root, p) }

// read is the text of a file of the host, without space around it; "" when it
// cannot be read, which for settings of the kernel means that it has no such.
func (e *exam) read(p string) string {
	f, err := os.Open(e.path(p))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (e *exam) exists(p string) bool {
	_, err := os.Lstat(e.path(p))
	return err == nil
}

// executable reports whether p is a file that somebody may execute.
func (e *exam) executable(p string) bool {
	info, err := os.Stat(e.path(p))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// folder reports whether there is a folder of the host at p.
func (e *exam) folder(p string) bool {
	info, err := os.Stat(e.path(p))
	return err == nil && info.IsDir()
}

// writable reports whether this process may open a file of the host for writing.
// It opens it and writes nothing.
func (e *exam) writable(p string) bool {
	f, err := os.OpenFile(e.path(p), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// real is p with its links followed, as a path of the host.
func (e *exam) real(p string) string {
	full, err := filepath.EvalSymlinks(e.path(p))
	if err != nil {
		return p
	}
	root, err := filepath.EvalSymlinks(e.host.Root)
	if err != nil {
		return p
	}
	rel, err := filepath.Rel(root, full)
	if err != nil {
		return p
	}
	return "/" + rel
}

// mount is one line of mountinfo, as far as it is used here.
type mount struct {
	point, kind string
	options     []string // of the mount and of its file system
}

// mounts are the mounts that this process sees (proc_pid_mountinfo(5)).
func (e *exam) mounts() []mount {
	var out []mount
	for line := range strings.Lines(e.read("/proc/self/mountinfo")) {
		before, after, ok := strings.Cut(line, " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(rest) < 3 {
			continue
		}
		out = append(out, mount{
			point:   fields[4],
			kind:    rest[0],
			options: append(strings.Split(fields[5], ","), strings.Split(rest[2], ",")...),
		})
	}
	return out
}
