package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// cgroupMount is one mounted tree of control groups and where we are in it.
type cgroupMount struct {
	version     int
	controllers []string // version 1: those that the tree is for
	point       string   // where it is mounted
	dir         string   // our own group, a folder under point
}

// cgroupMounts reads /proc/self/mountinfo and /proc/self/cgroup (proc(5),
// cgroups(7)). A tree in which our own group has no folder, as it lies outside of
// what is mounted, is left out.
func cgroupMounts(mountinfo, self []byte) []cgroupMount {
	paths := map[string]string{} // controller, or "" for version 2 -> path of our group
	for line := range strings.Lines(string(self)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			for c := range strings.SplitSeq(f[1], ",") {
				paths[c] = f[2]
			}
		}
	}
	var mounts []cgroupMount
	for line := range strings.Lines(string(mountinfo)) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 6 || len(tail) < 3 {
			continue
		}
		m := cgroupMount{point: unescapeMount(f[4])}
		var own string
		switch tail[0] {
		case "cgroup":
			m.version = 1
			for c := range strings.SplitSeq(tail[2], ",") {
				if p, ok := paths[c]; ok {
					m.controllers = append(m.controllers, c)
					own = p
				}
			}
			ok = len(m.controllers) > 0
		case "cgroup2":
			m.version = 2
			own, ok = paths[""]
		default:
			continue
		}
		rel, err := filepath.Rel(unescapeMount(f[3]), own)
		if !ok || err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		m.dir = filepath.Join(m.point, rel)
		if !slices.ContainsFunc(mounts, func(o cgroupMount) bool { return o.version == m.version && o.dir == m.dir }) {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
