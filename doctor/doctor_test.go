package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/lang"
)

var update = flag.Bool("update", false, "rewrite golden files")

// goodBwrap answers as bubblewrap 0.9.0 of Ubuntu 24.04 does.
const goodBwrap = `#!/bin/sh
case $1 in
--version) echo 'bubblewrap 0.9.0' ;;
--help) echo '--args FD --size BYTES --perms OCTAL --seccomp FD --as-pid-1 --disable-userns --assert-userns-disabled --ro-bind-fd FD DEST' ;;
*) exit 1 ;;
esac
`

const plainMounts = `22 27 0:21 / /proc rw,relatime - proc proc rw
23 27 0:22 / /sys rw,relatime - sysfs sysfs rw
30 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
40 22 0:35 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw
`

// goodHost is a fresh Debian with everything in place.
func goodHost() map[string]string {
	return map[string]string{
		"/usr/bin/bwrap":                     goodBwrap,
		"/usr/bin/python3.11":                "#!",
		"/usr/bin/python3":                   "-> python3.11",
		"/usr/bin/bash":                      "#!",
		"/usr/bin/dash":                      "#!",
		"/usr/bin/sh":                        "-> dash",
		"/bin":                               "-> usr/bin",
		"/usr/bin/node":                      "#!",
		"/proc/self/ns/user":                 "",
		"/proc/self/mountinfo":               plainMounts,
		"/proc/self/cgroup":                  "0::/writ.service\n",
		"/proc/1/cgroup":                     "0::/init.scope\n",
		"/proc/sys/user/max_user_namespaces": "15000\n",
		"/proc/sys/kernel/unprivileged_userns_clone":         "1\n",
		"/proc/sys/kernel/osrelease":                         "6.1.0-40-amd64\n",
		"/proc/sys/kernel/seccomp/actions_avail":             "kill_process trap errno trace log allow\n",
		"/sys/fs/cgroup/writ.service/cgroup.procs":           "",
		"/sys/fs/cgroup/writ.service/cgroup.subtree_control": "",
		"/sys/fs/cgroup/writ.service/cgroup.controllers":     "cpu memory pids\n",
	}
}

var good = writ.Enforcement{Provider: "bubblewrap 0.9.0", Active: []string{"user-namespace", "seccomp", "memory-cgroup"}}

// host builds a machine of files in a folder: text, "-> target" for a link, "#!"
// for a program. Only the probe and what the kernel is asked are given.
func host(t *testing.T, files map[string]string, probe error) Host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, link := strings.CutPrefix(text, "-> "); link {
			err = os.Symlink(target, path)
		} else if strings.HasPrefix(text, "#!") {
			err = os.WriteFile(path, []byte(text), 0o755)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	return Host{
		Root: root, UID: 1000, Path: "/usr/local/bin:/usr/bin", Data: data, Languages: lang.All(),
		Probe:  func(context.Context) (writ.Enforcement, error) { return good, probe },
		Output: output,
		Free:   func(string) (int64, error) { return 5 << 30, nil },
		Synced: func() (bool, error) { return true, nil },
		Now:    func() time.Time { return time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC) },
	}
}

// with is base with other files; "" removes one.
func with(base map[string]string, changes map[string]string) map[string]string {
	for name, text := range changes {
		if text == "" {
			delete(base, name)
		} else {
			base[name] = text
		}
	}
	return base
}

func find(t *testing.T, r Report, name string) Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check is called %q in %+v", name, r.Checks)
	}
	return r.Checks[i]
}

// sound holds for every report.
func sound(t *testing.T, r Report) {
	t.Helper()
	names := map[string]bool{}
	failed := false
	for _, c := range r.Checks {
		if c.Found == "" || (c.Mend == "") != (c.Status == OK) || names[c.Name] {
			t.Errorf("%+v: want what was found, a mend exactly when it is not ok, and a name of its own", c)
		}
		names[c.Name] = true
		failed = failed || c.Status == Fail
	}
	if r.OK == failed || r.OK && r.Sandbox == nil {
		t.Errorf("report says OK=%v, sandbox %v, a failed check %v", r.OK, r.Sandbox, failed)
	}
}

func TestGoodHost(t *testing.T) {
	r := Examine(t.Context(), host(t, goodHost(), nil))
	sound(t, r)
	for _, c := range r.Checks {
		if c.Status != OK {
			t.Errorf("%+v, want ok", c)
		}
	}
	if !r.OK {
		t.Error("a good host is not OK")
	}
}

var errUIDMap = &writ.Error{Kind: writ.Unavailable, Msg: "bwrap: setting up uid map: Permission denied"}

func TestBW01_UbuntuAppArmor(t *testing.T) {
	files := with(goodHost(), map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"})
	r := Examine(t.Context(), host(t, files, errUIDMap))
	sound(t, r)
	if c := find(t, r, "AppArmor"); r.OK || c.Status != Fail || !strings.Contains(c.Mend, "profile bwrap /usr/bin/bwrap") || strings.Contains(c.Mend, "sysctl") {
		t.Errorf("got %+v, want a failure with a profile for bubblewrap alone", c)
	}
	if c := find(t, r, "sandbox"); c.Status != Fail || !strings.Contains(c.Found, "setting up uid map") {
		t.Errorf("got %+v, want what bubblewrap said", c)
	}

	// The same machine once the profile is there.
	r = Examine(t.Context(), host(t, files, nil))
	sound(t, r)
	if c := find(t, r, "AppArmor"); !r.OK || c.Status != OK {
		t.Errorf("got %+v, want ok: the sandbox works", c)
	}
}

func TestBW03_ContainerMasksProc(t *testing.T) {
	files := with(goodHost(), map[string]string{
		"/.dockerenv": "x",
		"/proc/self/mountinfo": plainMounts + `50 22 0:40 / /proc/kcore rw,nosuid - tmpfs tmpfs rw
51 22 0:41 / /proc/acpi ro,relatime - tmpfs tmpfs ro
52 22 0:21 /sys /proc/sys ro,relatime - proc proc rw
`,
	})
	r := Examine(t.Context(), host(t, files, errors.New("bwrap: Can't mount proc on /newroot/proc: Operation not permitted")))
	sound(t, r)
	c := find(t, r, "container")
	if r.OK || c.Status != Fail || !strings.Contains(c.Found, "Docker masks /proc/acpi, /proc/kcore, /proc/sys") || !strings.Contains(c.Mend, "systempaths=unconfined") {
		t.Errorf("got %+v, want a failure that names masks and how to lift them", c)
	}
}

func TestCauses(t *testing.T) {
	for _, tt := range []struct {
		name, check string
		change      map[string]string
		found, mend string
	}{
		{"no bwrap", "bubblewrap", map[string]string{"/usr/bin/bwrap": ""}, "no bwrap on PATH", "apt-get install bubblewrap"},
		{"not executable", "bubblewrap", map[string]string{"/usr/bin/bwrap": "text"}, "not executable", "chmod 755 /usr/bin/bwrap"},
		{"too old", "bubblewrap", map[string]string{"/usr/bin/bwrap": strings.Replace(goodBwrap, "--disable-userns ", "", 1)}, "lacks --disable-userns", "apt-get install"},
		{"broken", "bubblewrap", map[string]string{"/usr/bin/bwrap": "#!/bin/sh\necho no such library >&2; exit 127\n"}, "no such library", "reinstall"},
		{"none in the kernel", "user namespaces", map[string]string{"/proc/self/ns/user": ""}, "CONFIG_USER_NS", "kernel"},
		{"limit of none", "user namespaces", map[string]string{"/proc/sys/user/max_user_namespaces": "0\n"}, "is 0", "user.max_user_namespaces="},
		{"Debian's switch", "user namespaces", map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0\n"}, "is 0", "unprivileged_userns_clone=1"},
		{"no seccomp", "seccomp", map[string]string{"/proc/sys/kernel/seccomp/actions_avail": ""}, "no seccomp", "kernel"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := with(goodHost(), tt.change)
			for _, probe := range []error{nil, errUIDMap} {
				r := Examine(t.Context(), host(t, files, probe))
				sound(t, r)
				c := find(t, r, tt.check)
				want := Fail
				if probe == nil {
					want = Warn // what was tried and works outweighs what is known
				}
				if c.Status != want || !strings.Contains(c.Found, tt.found) || !strings.Contains(c.Mend, tt.mend) {
					t.Errorf("with probe %v: got %+v, want %s with %q and %q", probe, c, want, tt.found, tt.mend)
				}
				if r.OK != (probe == nil) {
					t.Errorf("with probe %v the report says OK=%v", probe, r.OK)
				}
			}
		})
	}
}

func TestBW06_MissingLayersAreNamed(t *testing.T) {
	h := host(t, goodHost(), nil)
	h.Probe = func(context.Context) (writ.Enforcement, error) {
		return writ.Enforcement{Active: []string{"seccomp"}, Missing: []string{"separate-uid", "memory-cgroup", "pids-cgroup"}}, nil
	}
	r := Examine(t.Context(), h)
	sound(t, r)
	c := find(t, r, "sandbox")
	if !r.OK || c.Status != Warn || !strings.Contains(c.Found, "separate-uid, memory-cgroup, pids-cgroup") || strings.Count(c.Mend, "cgroups below") != 1 {
		t.Errorf("got %+v, want a warning that names the layers, each mend once", c)
	}
}

func TestCgroups(t *testing.T) {
	const v1 = `31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`
	v1Files := map[string]string{
		"/proc/self/mountinfo": v1, "/proc/self/cgroup": "9:memory:/a\n8:pids:/\n2:cpu,cpuacct:/b\n0::/\n",
		"/sys/fs/cgroup/memory/a/cgroup.procs": "1", "/sys/fs/cgroup/pids/cgroup.procs": "1", "/sys/fs/cgroup/cpu,cpuacct/b/cgroup.procs": "1",
	}
	for _, tt := range []struct {
		name   string
		change map[string]string
		status Status
		found  string
	}{
		{"version 2, delegated", nil, OK, "version 2"},
		{"version 2, controllers kept back", map[string]string{"/sys/fs/cgroup/writ.service/cgroup.controllers": "pids\n"}, Warn, "has no memory, cpu"},
		{"version 2, another user's", map[string]string{"/sys/fs/cgroup/writ.service/cgroup.subtree_control": ""}, Warn, "not delegated"},
		{"none", map[string]string{"/proc/self/mountinfo": "22 27 0:21 / /proc rw - proc proc rw\n"}, Warn, "none are mounted"},
		{"version 1", v1Files, OK, "version 1: memory"},
		{"version 1, read only", with(map[string]string{"/proc/self/mountinfo": v1}, map[string]string{"/proc/self/cgroup": v1Files["/proc/self/cgroup"], "/sys/fs/cgroup/pids/cgroup.procs": "1"}), Warn, "no groups can be made for memory, cpuacct"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Examine(t.Context(), host(t, with(goodHost(), tt.change), nil))
			sound(t, r)
			if c := find(t, r, "cgroups"); c.Status != tt.status || !strings.Contains(c.Found, tt.found) {
				t.Errorf("got %+v, want %s with %q", c, tt.status, tt.found)
			}
		})
	}
}

func TestHostChecks(t *testing.T) {
	for _, tt := range []struct {
		name, check string
		change      map[string]string
		alter       func(*Host)
		status      Status
		found       string
	}{
		{"old kernel", "kernel", map[string]string{"/proc/sys/kernel/osrelease": "5.10.0-8-amd64\n"}, nil, Warn, "5.10.0"},
		{"odd kernel", "kernel", map[string]string{"/proc/sys/kernel/osrelease": "plan9\n"}, nil, Warn, "not understood"},
		{"kernel 10", "kernel", map[string]string{"/proc/sys/kernel/osrelease": "10.0-rc1\n"}, nil, OK, "10.0-rc1"},
		{"no node", "language node", map[string]string{"/usr/bin/node": ""}, nil, Warn, "no interpreter at /usr/bin/node"},
		{"node in /opt", "language node", map[string]string{"/usr/bin/node": "-> ../../opt/node", "/opt/node": "#!"}, nil, Warn, "leads to /opt/node"},
		{"configuration", "configuration", nil, func(h *Host) { h.Config = &writ.Error{Kind: writ.Invalid, Msg: "config.yaml:3:1: unknown key"} }, Fail, "config.yaml:3:1: unknown key"},
		{"low disk", "data folder", nil, func(h *Host) { h.Free = func(string) (int64, error) { return 500 << 20, nil } }, Warn, "500.0 MiB free"},
		{"full disk", "data folder", nil, func(h *Host) { h.Free = func(string) (int64, error) { return 1 << 20, nil } }, Fail, "1.0 MiB free"},
		{"folder to be made", "data folder", nil, func(h *Host) { h.Data = filepath.Join(h.Data, "a", "b") }, OK, "will be made"},
		{"a file", "data folder", nil, func(h *Host) { h.Data = filepath.Join(h.Root, "proc/self/cgroup") }, Fail, "not a folder"},
		{"open folder", "data folder", nil, func(h *Host) { h.Data = h.Root }, Warn, "open to other users"},
		{"clock at zero", "clock", nil, func(h *Host) { h.Now = func() time.Time { return time.Unix(0, 0) } }, Warn, "1970"},
		{"clock adrift", "clock", nil, func(h *Host) { h.Synced = func() (bool, error) { return false, nil } }, Warn, "nothing keeps it right"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := host(t, with(goodHost(), tt.change), nil)
			if tt.alter != nil {
				tt.alter(&h)
			}
			r := Examine(t.Context(), h)
			sound(t, r)
			if c := find(t, r, tt.check); c.Status != tt.status || !strings.Contains(c.Found, tt.found) {
				t.Errorf("got %+v, want %s with %q", c, tt.status, tt.found)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	files := with(goodHost(), map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "/usr/bin/node": ""})
	h := host(t, files, errUIDMap)
	r := Examine(t.Context(), h)
	var text, machine strings.Builder
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&machine)); err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(text.String(), h.Data, "/var/lib/writ")
	golden := filepath.Join("testdata", "ubuntu.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var back Report
	if err := json.Unmarshal([]byte(machine.String()), &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, back); d != "" {
		t.Errorf("JSON does not say the same (-report +JSON):\n%s", d)
	}
}

// The machine of the test itself, with bubblewrap's smallest box as the probe.
func TestLocal(t *testing.T) {
	bwrap := ""
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if p := filepath.Join(dir, "bwrap"); bwrap == "" {
			if _, err := os.Stat(p); err == nil {
				bwrap = p
			}
		}
	}
	if bwrap == "" {
		testkit.Missing(t, "bwrap", "bwrap is not on PATH")
	}
	h := Local("", t.TempDir(), func(ctx context.Context) (writ.Enforcement, error) {
		_, err := output(ctx, bwrap, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "/bin/true")
		if err != nil {
			return writ.Enforcement{}, fmt.Errorf("smallest box: %w", err)
		}
		return writ.Enforcement{Provider: "bubblewrap"}, nil
	})
	r := Examine(t.Context(), h)
	sound(t, r)
	if c := find(t, r, "bubblewrap"); !strings.Contains(c.Found, "bubblewrap ") || !strings.Contains(c.Found, bwrap) {
		t.Errorf("got %+v, want version and %s", c, bwrap)
	}
	for _, name := range []string{"kernel", "seccomp", "user namespaces", "language sh"} {
		if c := find(t, r, name); r.OK && c.Status != OK {
			t.Errorf("runs can be sandboxed, yet: %+v", c)
		}
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	t.Logf("this host:\n%s", text.String())
}
