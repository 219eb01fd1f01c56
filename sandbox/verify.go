package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"writ"
	"writ/sandbox/jail"
)

// verify looks at a box that is ready, before it runs anything, and says which
// layers hold it. Only the layers that a host may lack can be missing: a box
// without one of the others is an error, whatever bwrap said.
func (b *Bubblewrap) verify(p *process, ready jail.Record, plan boxPlan) (active, missing []string, err error) {
	var errs []error
	need := func(layer string, ok bool) {
		if ok {
			active = append(active, layer)
		} else {
			errs = append(errs, errors.New(layer))
		}
	}
	for i, kind := range jail.Namespaces {
		var st unix.Stat_t
		err := unix.Stat("/proc/self/ns/"+kind, &st)
		need(namespaceLayers[i], err == nil && ready.Namespace(i) != 0 && ready.Namespace(i) != st.Ino)
	}
	status, err := readStatus(p.pid)
	if err != nil {
		return nil, nil, err
	}
	need(LayerNoNewPrivileges, status["NoNewPrivs"] == "1")
	noCaps := true
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		noCaps = noCaps && strings.Trim(status[set], "0") == "" && status[set] != ""
	}
	need(LayerNoCapabilities, noCaps)
	need(LayerNestedUsernsOff, true) // bwrap was told to assert it and would have failed
	need(LayerSeccomp, status["Seccomp"] == "2")
	ids := strings.Fields(status["Uid"] + " " + status["Gid"])
	switch {
	case b.uids != nil && (strings.Join(ids, " ") != idLine(plan.uid, plan.gid) || status["Groups"] != ""):
		errs = append(errs, errors.New("the user it shall be"))
	case b.uids == nil && slices.Contains(ids, "0"):
		errs = append(errs, errors.New("user that is not root"))
	}
	if b.uids != nil && plan.workspace == nil {
		active = append(active, LayerSeparateUID)
	} else {
		missing = append(missing, LayerSeparateUID)
	}
	if plan.workspace != nil {
		if err := plan.verifyWorkspace(p.dirs[len(p.dirs)-1]); err != nil {
			errs = append(errs, err)
		}
	}
	need(LayerRlimits, true) // the jail sets all of them, or executes nothing
	have, lack := b.groups.layers()
	active, missing = append(active, have...), append(missing, lack...)
	if err := errors.Join(errs...); err != nil {
		return nil, nil, &writ.Error{Kind: writ.Unavailable, Op: "prepare sandbox", Err: err,
			Msg: "bubblewrap started a box in which walls are missing (" + strings.ReplaceAll(err.Error(), "\n", ", ") + "); nothing was executed in it"}
	}
	return active, missing, nil
}

// verifyWorkspace checks that bound, the workspace as the box has it, is the folder that
// was opened, and no more writable than it shall be.
func (p boxPlan) verifyWorkspace(bound *os.File) error {
	var got, want unix.Stat_t
	var fs unix.Statfs_t
	err := errors.Join(unix.Fstat(int(bound.Fd()), &got), unix.Fstat(int(p.root.Fd()), &want), unix.Fstatfs(int(bound.Fd()), &fs))
	switch {
	case err != nil:
		return fmt.Errorf("looking at the workspace: %w", err)
	case got.Dev != want.Dev || got.Ino != want.Ino:
		return errors.New("workspace that was opened")
	case !p.workspace.Writable && fs.Flags&unix.ST_RDONLY == 0:
		return errors.New("read-only workspace")
	}
	return nil
}

// idLine are the four user and the four group ids of a process that has one of each.
func idLine(uid, gid int) string {
	return strings.TrimSpace(strings.Repeat(strconv.Itoa(uid)+" ", 4) + strings.Repeat(strconv.Itoa(gid)+" ", 4))
}

// readStatus is /proc/PID/status by key. The kernel writes it, but for the name.
func readStatus(pid int) (map[string]string, error) { return readKeys(pid, "status") }

// readKeys is a file of /proc/PID with "key: value" lines.
func readKeys(pid int, file string) (map[string]string, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return nil, fmt.Errorf("looking at the box: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return nil, fmt.Errorf("looking at the box: %w", err)
	}
	status := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			status[k] = strings.TrimSpace(v)
		}
	}
	return status, nil
}

// counts reports whether the group has a layer. A nil group has none.
func (g *cgroup) counts(layer string) bool { return g != nil && g.tree.has(layer) }

// maxRSS is the resident set of the largest process that s tells of, in bytes.
func maxRSS(s *os.ProcessState) int64 {
	if use, ok := s.SysUsage().(*syscall.Rusage); ok {
		return use.Maxrss << 10
	}
	return 0
}
