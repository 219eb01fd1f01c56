package doctor

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"writ"
)

// probe is the verdict itself.
func (e *exam) probe(found writ.Enforcement, err error) {
	if err != nil {
		msg := writ.Message(err)
		if writ.KindOf(err) == writ.Internal {
			msg = err.Error() // for the operator, who is the one that reads this
		}
		e.fail("sandbox", "cannot be made: "+msg, "see what fails below; the smallest box by hand: bwrap --unshare-all --ro-bind / / --proc /proc /bin/true")
		return
	}
	if len(found.Missing) > 0 {
		e.warn("sandbox", fmt.Sprintf("works; not in force: %s", strings.Join(found.Missing, ", ")), mendLayers(found.Missing))
		return
	}
	e.ok("sandbox", fmt.Sprintf("works; in force: %s", strings.Join(found.Active, ", ")))
}

func mendLayers(missing []string) string {
	var mends []string
	for _, layer := range missing {
		mend := ""
		switch {
		case layer == "separate-uid":
			mend = "start writ as root, so that each box is a user of its own"
		case strings.HasSuffix(layer, "-cgroup"):
			mend = "see cgroups below"
		default:
			mend = "see the checks below for " + layer
		}
		if !slices.Contains(mends, mend) {
			mends = append(mends, mend)
		}
	}
	return strings.Join(mends, "; ") + "; runner.strict refuses to run without"
}

// bwrapOptions are what a box needs of bubblewrap, newest first: 0.10 or a
// distribution's security update of an older one has them all.
var bwrapOptions = []string{"--ro-bind-fd", "--disable-userns", "--assert-userns-disabled", "--size", "--perms", "--as-pid-1", "--seccomp", "--args"}

// bwrapPath is where bubblewrap is said to be; "" for nowhere.
func (e *exam) bwrapPath() string {
	if e.host.Bwrap != "" {
		return e.host.Bwrap
	}
	for _, dir := range filepath.SplitList(e.host.Path) {
		if p := filepath.Join(dir, "bwrap"); e.exists(p) {
			return p
		}
	}
	return ""
}

const installBwrap = "apt-get install --only-upgrade bubblewrap || apt-get install bubblewrap"

func (e *exam) bubblewrap(ctx context.Context) {
	const name = "bubblewrap"
	path := e.bwrapPath()
	switch {
	case path == "":
		e.cause(name, "there is no bwrap on PATH", "apt-get install bubblewrap")
		return
	case !e.exists(path):
		e.cause(name, path+" does not exist", "apt-get install bubblewrap, or correct runner.bwrap in the configuration")
		return
	case !e.executable(path):
		e.cause(name, path+" is not executable", "chmod 755 "+path)
		return
	}
	version, err := e.host.Output(ctx, e.path(path), "--version")
	if err != nil {
		e.cause(name, fmt.Sprintf("%s --version failed: %v", path, err), "apt-get install --reinstall bubblewrap")
		return
	}
	found := strings.TrimSpace(version) + " at " + path
	help, err := e.host.Output(ctx, e.path(path), "--help")
	if err != nil {
		e.cause(name, fmt.Sprintf("%s --help failed: %v", path, err), "apt-get install --reinstall bubblewrap")
		return
	}
	words := strings.Fields(help)
	var lacks []string
	for _, option := range bwrapOptions {
		if !slices.Contains(words, option) {
			lacks = append(lacks, option)
		}
	}
	if len(lacks) > 0 {
		e.cause(name, fmt.Sprintf("%s is too old: it lacks %s", found, strings.Join(lacks, ", ")), installBwrap)
		return
	}
	e.ok(name, found)
}

// namespaces are the settings that switch user namespaces off. They hold for
// root as well: as root, writ runs bubblewrap under an ordinary user's id.
func (e *exam) namespaces() {
	const name = "user namespaces"
	switch {
	case !e.exists("/proc/self/ns/user"):
		e.cause(name, "this kernel is built without them (CONFIG_USER_NS)", "boot a kernel of your distribution")
	case e.read("/proc/sys/user/max_user_namespaces") == "0":
		e.cause(name, "user.max_user_namespaces is 0", persist("user.max_user_namespaces=28633"))
	case e.read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		e.cause(name, "kernel.unprivileged_userns_clone is 0", persist("kernel.unprivileged_userns_clone=1"))
	default:
		e.ok(name, "allowed")
	}
}

// persist is the command that makes a setting of the kernel, now and at boot.
func persist(setting string) string {
	return fmt.Sprintf("echo %s > /etc/sysctl.d/60-writ.conf && sysctl --system", setting)
}

// allowBwrap gives bubblewrap alone the right that AppArmor takes from all
// programs: narrower than switching the restriction off.
func allowBwrap(path string) string {
	return fmt.Sprintf(`printf '%%s\n' 'abi <abi/4.0>,' 'include <tunables/global>' 'profile bwrap %s flags=(unconfined) {' '  userns,' '}' > /etc/apparmor.d/bwrap && apparmor_parser -r /etc/apparmor.d/bwrap`, path)
}

// apparmor is the rule of Ubuntu 23.10 and newer (BW-01).
func (e *exam) apparmor() {
	const name, setting = "AppArmor", "kernel.apparmor_restrict_unprivileged_userns"
	switch value := e.read("/proc/sys/" + strings.ReplaceAll(setting, ".", "/")); {
	case value == "" || value == "0":
		e.ok(name, "does not restrict user namespaces")
	case e.works:
		e.ok(name, "restricts user namespaces, and lets bubblewrap have them")
	default:
		e.fail(name, fmt.Sprintf("%s is %s: programs without a profile may not make user namespaces", setting, value), allowBwrap(cmp.Or(e.bwrapPath(), "/usr/bin/bwrap")))
	}
}

// container looks for an outer container whose masks over /proc make the kernel
// refuse a new one inside (BW-03).
func (e *exam) container() {
	const name = "container"
	kind := ""
	for _, c := range []struct{ file, word, kind string }{
		{"/.dockerenv", "", "Docker"},
		{"/run/.containerenv", "", "Podman"},
		{"/proc/1/cgroup", "kubepods", "Kubernetes"},
		{"/proc/1/cgroup", "docker", "Docker"},
		{"/proc/1/cgroup", "lxc", "LXC"},
		{"/run/systemd/container", "", "a container"},
	} {
		if kind == "" && e.exists(c.file) && strings.Contains(e.read(c.file), c.word) {
			kind = c.kind
		}
	}
	var masks []string
	for _, m := range e.mounts() {
		if strings.HasPrefix(m.point, "/proc/") && m.kind != "binfmt_misc" && m.kind != "autofs" {
			masks = append(masks, m.point)
		}
	}
	slices.Sort(masks)
	masks = slices.Compact(masks)
	switch {
	case len(masks) > 0:
		shown := masks[:min(4, len(masks))]
		where := "something"
		if kind != "" {
			where = kind
		}
		e.cause(name, fmt.Sprintf("%s masks %s: the kernel then refuses a new /proc in a sandbox", where, strings.Join(shown, ", ")),
			"start the container with --security-opt systempaths=unconfined --security-opt seccomp=unconfined --security-opt apparmor=unconfined (Kubernetes: procMount: Unmasked, hostUsers: false), or run writ on the host")
	case kind != "" && !e.works:
		e.warn(name, "this is "+kind+", and it may refuse namespaces or mounts",
			"start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined, or run writ on the host")
	case kind != "":
		e.ok(name, "this is "+kind+", and it allows what a sandbox needs")
	default:
		e.ok(name, "none")
	}
}

func (e *exam) seccomp() {
	const name = "seccomp"
	actions := strings.Fields(e.read("/proc/sys/kernel/seccomp/actions_avail"))
	switch {
	case len(actions) == 0:
		e.cause(name, "this kernel has no seccomp filters (CONFIG_SECCOMP_FILTER)", "boot a kernel of your distribution")
	case !slices.Contains(actions, "errno"):
		e.cause(name, "this kernel's filters cannot refuse with an error", "boot a kernel of your distribution, 4.14 or newer")
	default:
		e.ok(name, "filters are available")
	}
}
