package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// controllers are what limits and evidence come from: a memory limit for all
// processes of a run together and its count of OOM kills, a limit of processes,
// and the CPU time used.
var controllers = []string{"memory", "pids", "cpu"}

const delegate = "start writ in a unit with Delegate=yes, or: systemd-run --scope -p Delegate=yes writ serve"

// cgroups says which version there is and whether groups can be made. Without
// them runs work; memory is then watched instead of limited, and other limits hold for
// each process instead of all together.
func (e *exam) cgroups() {
	const name = "cgroups"
	v1 := map[string]string{} // mount point by controller
	v2 := ""
	for _, m := range e.mounts() {
		switch m.kind {
		case "cgroup2":
			v2 = m.point
		case "cgroup":
			for _, o := range m.options {
				v1[o] = m.point
			}
		}
	}
	own := e.ownGroups()
	if v2 != "" && v1["memory"] == "" {
		e.cgroups2(name, path.Join(v2, own[""]))
		return
	}
	if v1["memory"] == "" {
		e.warn(name, "none are mounted: memory of a run is only watched, and other limits hold for each process, not for all of a run together", "boot with systemd, or mount -t cgroup2 none /sys/fs/cgroup")
		return
	}
	var lacks []string
	for _, c := range controllers {
		if c == "cpu" {
			c = "cpuacct" // version 1 counts there
		}
		if v1[c] == "" || !e.writable(path.Join(v1[c], own[c], "cgroup.procs")) {
			lacks = append(lacks, c)
		}
	}
	if len(lacks) > 0 {
		mend := "start writ as root"
		if e.host.UID == 0 {
			mend = "mount the controllers writable, or boot with systemd.unified_cgroup_hierarchy=1"
		}
		e.warn(name, fmt.Sprintf("version 1; no groups can be made for %s", strings.Join(lacks, ", ")), mend)
		return
	}
	e.ok(name, "version 1: memory, pids and cpuacct can be used")
}

func (e *exam) cgroups2(name, own string) {
	has := strings.Fields(e.read(path.Join(own, "cgroup.controllers")))
	var lacks []string
	for _, c := range controllers {
		if !slices.Contains(has, c) {
			lacks = append(lacks, c)
		}
	}
	switch {
	case len(lacks) > 0:
		e.warn(name, fmt.Sprintf("version 2; %s has no %s", own, strings.Join(lacks, ", ")), delegate)
	case !e.writable(path.Join(own, "cgroup.procs")) || !e.writable(path.Join(own, "cgroup.subtree_control")):
		e.warn(name, "version 2; "+own+" is not delegated to this user", delegate)
	default:
		e.ok(name, "version 2: memory, pids and cpu can be used beneath "+own)
	}
}

// ownGroups is the group of this process by controller; "" is version 2's.
func (e *exam) ownGroups() map[string]string {
	own := map[string]string{}
	for line := range strings.Lines(e.read("/proc/self/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			own[c] = parts[2]
		}
	}
	return own
}
