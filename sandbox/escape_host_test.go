package sandbox

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"writ"
)

// hostSide is the part of an attempt that is outside of the box: what the program
// is told of the host, in its environment, and what must hold of the host when the
// program is gone.
func hostSide(t *testing.T, name string) (env []string, after func(writ.Result)) {
	t.Helper()
	mark := "writ-mark-" + rand.Text()
	id, _, _ := strings.Cut(name, "_")
	switch id {
	case "FS-01":
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		// Anybody may read it: nothing keeps a program from it but the view.
		canary := filepath.Join(t.TempDir(), mark)
		if err := os.WriteFile(canary, []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		return []string{"CANARY=" + canary, "HOST_HOME=" + home}, func(writ.Result) {}
	case "FS-05":
		return nil, unchanged(t, "/proc/self/exe")
	case "FS-06":
		return nil, unchanged(t, "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/shmmax", "/proc/sys/kernel/pid_max", "/proc/sys/fs/mqueue/msg_max", "/proc/sys/vm/overcommit_memory",
			"/proc/sys/fs/file-max", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces", "/proc/self/oom_score_adj")
	case "FS-17":
		same := unchanged(t, "/usr/bin/env", "/usr/bin/python3", "/etc/passwd", "/etc/hosts", "/etc/ld.so.cache")
		return nil, func(r writ.Result) {
			same(r)
			absent(t, ".probe", "/", "/usr", "/usr/bin", "/usr/local", "/usr/lib", "/etc", "/home", "/var", "/run", "/dev")
		}
	case "PR-12":
		return hostSockets(t, mark)
	case "NET-01":
		return hostPort(t)
	case "PR-22":
		return []string{"MARK=" + mark}, func(writ.Result) {
			if left := processesWith(t, mark); len(left) > 0 {
				t.Errorf("still alive: %q", left)
			}
		}
	case "RS-07":
		// spec/01 §5 scenario 16: within the limit plus one second.
		return nil, func(r writ.Result) {
			if r.WallMS < 600 || r.WallMS > 1600 {
				t.Errorf("it ran for %d ms under a limit of 600", r.WallMS)
			}
		}
	case "RS-08":
		return nil, func(r writ.Result) {
			exact(t, "stdout", r.Stdout, 'o', 3000+20<<20+1)
			exact(t, "stderr", r.Stderr, 'e', 3000+20*4099)
		}
	case "RS-04", "RS-05":
		return nil, func(writ.Result) {
			absent(t, "fill", "/", "/run", "/var", "/home", "/etc", "/dev")
			absent(t, "big", "/tmp", "/dev/shm")
		}
	case "SEC-01":
		t.Setenv("WRIT_ESCAPE_CANARY", "writ-escape-secret")
		var names []string
		for _, e := range boxEnv() {
			k, _, _ := strings.Cut(e, "=")
			names = append(names, k)
		}
		return []string{"NAMES=" + strings.Join(append(names, "NAMES"), ",")}, func(writ.Result) {}
	case "BW-20":
		return []string{"MARK=" + mark}, func(writ.Result) {
			absent(t, ".probe-"+mark, "/etc", "/usr", "/usr/local", "/home", "/opt", "/var", "/var/tmp", "/root", "/srv", "/boot", "/run", "/dev", "/mnt", "/", "/tmp")
		}
	}
	return nil, func(writ.Result) {}
}

// unchanged reads files and returns a check that they still read the same. Files
// that this user cannot read, or that this host has not, are left out, but not all
// of them.
func unchanged(t *testing.T, files ...string) func(writ.Result) {
	t.Helper()
	before := map[string]writ.Digest{}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			before[f] = writ.DigestOf(b)
		}
	}
	if len(before) == 0 {
		t.Fatalf("none of %q can be read", files)
	}
	return func(writ.Result) {
		for f, want := range before {
			if b, err := os.ReadFile(f); err != nil || writ.DigestOf(b) != want {
				t.Errorf("%s changed on the host: %v", f, err)
			}
		}
	}
}

func absent(t *testing.T, name string, dirs ...string) {
	t.Helper()
	for _, d := range dirs {
		if p := filepath.Join(d, name); exists(p) {
			t.Errorf("%s is on the host", p)
		}
	}
}

func exact(t *testing.T, what string, o writ.Output, letter byte, total int64) {
	t.Helper()
	const limit = 64 << 10
	kept := min(total, limit)
	if o.Bytes != total || o.Kept != kept || o.Truncated != (total > limit) || !bytes.Equal(o.Data(), bytes.Repeat([]byte{letter}, int(kept))) {
		t.Errorf("%s: %d of %d bytes kept, truncated %v; want %d of %d", what, o.Kept, o.Bytes, o.Truncated, kept, total)
	}
}

// callers accepts on l and returns a function that says how many came. It calls
// itself to be sure: whoever came earlier is ahead of it in the queue.
func callers(t *testing.T, l net.Listener) func() int {
	t.Helper()
	came := make(chan struct{}, 1000)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				came <- struct{}{}
				_, _ = c.Write([]byte("hello")) // to ourselves: read below
				_ = c.Close()
			}
		}
	}()
	return func() int {
		c, err := net.Dial(l.Addr().Network(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Read(make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		return len(came) - 1
	}
}

// listen is callers on a local socket.
func listen(t *testing.T, name string) func() int {
	t.Helper()
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	return callers(t, l)
}

func hostSockets(t *testing.T, mark string) (env []string, after func(writ.Result)) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	named := filepath.Join(dir, "named")
	var counts []func() int
	for _, name := range []string{"@" + mark, named} {
		counts = append(counts, listen(t, name))
	}
	return []string{"ABSTRACT=" + mark, "NAMED=" + named}, func(writ.Result) {
		for i, count := range counts {
			if n := count(); n != 0 {
				t.Errorf("socket %d of the host was reached %d times", i, n)
			}
		}
	}
}

func hostPort(t *testing.T) (env []string, after func(writ.Result)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	count := callers(t, l)
	// An address of the host's own, if it has one beside the loopback.
	address := "127.0.0.1"
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.To4() != nil && !n.IP.IsLoopback()
	}); i >= 0 {
		address = addrs[i].(*net.IPNet).IP.String()
	}
	return []string{fmt.Sprintf("PORT=%d", l.Addr().(*net.TCPAddr).Port), "HOST_ADDRESS=" + address}, func(writ.Result) {
		if n := count(); n != 0 {
			t.Errorf("the server's port was reached %d times", n)
		}
	}
}
