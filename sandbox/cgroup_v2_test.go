package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
)

// plant makes a folder laid out like a control group, which has no kernel behind
// it: files keep what is written to them.
func plant(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func contents(t *testing.T, dir string, names ...string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		got[n] = string(b)
	}
	return got
}

func TestCgroupV2WritesLimits(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "box")
	files := map[string]string{"memory.max": "", "memory.swap.max": "", "memory.oom.group": "", "pids.max": "", "cgroup.kill": ""}
	plant(t, dir, files)
	v := &cgroupV2{parent: parent, controllers: []string{"memory", "pids"}}
	if err := v.limit("box", writ.Limits{MemoryBytes: 1 << 26, Processes: 8}); err != nil {
		t.Fatal(err)
	}
	if err := v.kill("box"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"memory.max": "67108864", "memory.swap.max": "0", "memory.oom.group": "0", "pids.max": "24", "cgroup.kill": "1"}
	if diff := cmp.Diff(want, contents(t, dir, "memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cgroup.kill")); diff != "" {
		t.Error(diff)
	}
	// What a controller is missing for is an error, not a limit that is not there.
	if err := v.limit("gone", writ.DefaultLimits); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("limits of a group that is not there: %v", err)
	}
}

func TestCgroupV2ReadsUsage(t *testing.T) {
	parent := t.TempDir()
	v := &cgroupV2{parent: parent, controllers: []string{"memory", "pids"}}
	plant(t, filepath.Join(parent, "box"), map[string]string{
		"cpu.stat":      "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n",
		"memory.peak":   "4096000\n",
		"memory.events": "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n",
	})
	cpu, peak, kills, err := v.usage("box")
	if err != nil || cpu != 1500*time.Millisecond || peak != 4096000 || kills != 2 {
		t.Errorf("cpu %v peak %d kills %d, %v", cpu, peak, kills, err)
	}
	plant(t, filepath.Join(parent, "old"), map[string]string{
		"cpu.stat": "usage_usec 1\n", "memory.current": "8192\n", "memory.events": "oom 0\n",
	})
	if _, peak, kills, err := v.usage("old"); err != nil || peak != 8192 || kills != 0 {
		t.Errorf("on an old kernel: peak %d kills %d, %v", peak, kills, err)
	}
	plant(t, filepath.Join(parent, "bad"), map[string]string{
		"cpu.stat": "usage_usec many\n", "memory.peak": "max\n", "memory.events": "",
	})
	if _, _, _, err := v.usage("bad"); err == nil {
		t.Error("numbers that are none were read")
	}
}

func TestCgroupV2Parent(t *testing.T) {
	all := map[string]string{"cgroup.controllers": "cpuset cpu io memory pids\n", "cgroup.subtree_control": "", "cgroup.procs": ""}
	with := func(m map[string]string, k, v string) map[string]string {
		out := map[string]string{k: v}
		for n, c := range m {
			if n != k {
				out[n] = c
			}
		}
		return out
	}
	group := with(all, "cgroup.events", "populated 1\n")
	for _, tc := range []struct {
		name   string
		top    map[string]string
		own    string // below the top; empty means the top
		files  map[string]string
		mark   bool   // by systemd, as delegated
		parent string // want, below the top; "none" for none
		write  string // want in its subtree_control: the last that was written
	}{
		{name: "top of a host", top: all, parent: "", write: "+cpu"},
		{name: "top of a container", top: with(group, "cgroup.procs", "1\n12\n"), parent: "", write: "+cpu"},
		{name: "given already", top: with(all, "cgroup.subtree_control", "cpu memory pids\n"), parent: "", write: "cpu memory pids\n"},
		{name: "delegated", top: all, own: "svc", files: with(group, "cgroup.procs", "7\n"), mark: true, parent: "svc", write: "+cpu"},
		{name: "a session of root's is not ours to divide", top: all, own: "session", files: group, parent: "", write: "+cpu"},
		{name: "controllers elsewhere", top: with(all, "cgroup.controllers", "hugetlb\n"), parent: "none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			top := t.TempDir()
			plant(t, top, tc.top)
			own := filepath.Join(top, tc.own)
			if tc.own != "" {
				plant(t, own, tc.files)
			}
			if tc.mark {
				if err := syscall.Setxattr(own, "user.delegate", []byte("1"), 0); err != nil {
					t.Skip("the temporary folder keeps no attributes: ", err)
				}
			}
			moves := tc.parent != "none" && (tc.mark || tc.top["cgroup.events"] != "")
			if moves { // the kernel makes the files of a new group
				plant(t, filepath.Join(own, selfLeaf), map[string]string{"cgroup.procs": ""})
			}
			got := openV2([]cgroupMount{{version: 2, point: top, dir: own}})
			if tc.parent == "none" {
				if got != nil {
					t.Fatalf("found %v", got)
				}
				return
			}
			if got == nil || got.parent != filepath.Join(top, tc.parent) {
				t.Fatalf("parent %v, want %q", got, tc.parent)
			}
			if diff := cmp.Diff(map[string]string{"cgroup.subtree_control": tc.write}, contents(t, got.parent, "cgroup.subtree_control")); diff != "" {
				t.Error(diff)
			}
			if moves {
				if b := contents(t, filepath.Join(got.parent, selfLeaf), "cgroup.procs")["cgroup.procs"]; b == "" {
					t.Error("nobody was moved out of the way")
				}
			}
			// Who looks again from inside the leaf finds the same parent.
			again := openV2([]cgroupMount{{version: 2, point: top, dir: filepath.Join(got.parent, selfLeaf)}})
			if again == nil || again.parent != got.parent {
				t.Errorf("from the leaf: %v", again)
			}
		})
	}
}

// Version 2 of this host, where it is mounted at all: a group can be made, a
// process is born in it, its time is counted, it is killed, and it goes.
func TestCgroupV2Live(t *testing.T) {
	const point = "/sys/fs/cgroup/unified"
	parent := point
	if !exists(filepath.Join(parent, "cgroup.procs")) {
		parent = "/sys/fs/cgroup"
	}
	if !exists(filepath.Join(parent, "cgroup.controllers")) || !writable(parent) || os.Geteuid() != 0 {
		t.Skip("no version 2 tree here that this user may write")
	}
	c := &cgroups{tree: &cgroupV2{parent: parent}, prefix: "writ-test-"}
	g, err := c.make("live", writ.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	cmd := inGroup(t, g, "/bin/sh", "-c", "i=0; while :; do i=$((i+1)); done")
	eventually(t, "its time is counted", func() bool {
		cpu, _, _, err := g.usage()
		return err == nil && cpu > 10*time.Millisecond
	})
	if got := len(groupPids(t, g)); got != 1 {
		t.Errorf("%d processes in it, want 1", got)
	}
	if err := g.kill(); err != nil {
		t.Error(err)
	}
	if sig := signalOf(cmd.Wait()); sig != syscall.SIGKILL {
		t.Errorf("signal %v, want SIGKILL", sig)
	}
	moved := exec.Command("/bin/sleep", "600")
	if err := moved.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.add(moved.Process.Pid); err != nil {
		t.Error(err)
	}
	if err := g.kill(); err != nil {
		t.Error(err)
	}
	if sig := signalOf(moved.Wait()); sig != syscall.SIGKILL {
		t.Errorf("the added process ended with %v, want SIGKILL", sig)
	}
	if err := g.remove(); err != nil {
		t.Error(err)
	}
}

func TestCgroupMounts(t *testing.T) {
	for _, tc := range []struct {
		name, mounts, self string
		want               []cgroupMount
	}{
		{
			"version 2 alone",
			"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			"0::/system.slice/writ.service\n",
			[]cgroupMount{{version: 2, point: "/sys/fs/cgroup", dir: "/sys/fs/cgroup/system.slice/writ.service"}},
		},
		{
			"version 1 with two controllers in one tree, and hybrid",
			"31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"32 25 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"33 25 0:29 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n",
			"4:memory:/a/b\n2:cpu,cpuacct:/\n0::/\n",
			[]cgroupMount{
				{version: 1, controllers: []string{"cpu", "cpuacct"}, point: "/sys/fs/cgroup/cpu,cpuacct", dir: "/sys/fs/cgroup/cpu,cpuacct"},
				{version: 1, controllers: []string{"memory"}, point: "/sys/fs/cgroup/memory", dir: "/sys/fs/cgroup/memory/a/b"},
				{version: 2, point: "/sys/fs/cgroup/unified", dir: "/sys/fs/cgroup/unified"},
			},
		},
		{
			"a container that sees its own part only",
			"32 25 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" +
				"33 25 0:29 /docker/other /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n",
			"4:memory:/docker/abc\n8:pids:/docker/abc\n",
			[]cgroupMount{{version: 1, controllers: []string{"memory"}, point: "/sys/fs/cgroup/memory", dir: "/sys/fs/cgroup/memory"}},
		},
		{"escapes", `1 2 0:3 / /a\040b rw - cgroup2 none rw`, "0::/\n", []cgroupMount{{version: 2, point: "/a b", dir: "/a b"}}},
		{"nonsense", "x\n1 2 3\n - \n1 2 0:3 / /c rw - cgroup\n", "::\nx\n", nil},
	} {
		t.Run(strings.ReplaceAll(tc.name, " ", "_"), func(t *testing.T) {
			got := cgroupMounts([]byte(tc.mounts), []byte(tc.self))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(cgroupMount{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
