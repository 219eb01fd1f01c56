package sandbox

import (
	"errors"
	"os"
	"regexp"
	"strings"

	"writ"
)

// mends are what bwrap says when a host does not let it work, and what a person can
// do about it. The first that matches counts.
var mends = [...]struct {
	said *regexp.Regexp
	msg  string
}{
	{regexp.MustCompile(`setting up uid map: Permission denied`),
		"this host does not let bubblewrap make a user namespace: it is the AppArmor restriction of Ubuntu 23.10 and later " +
			"(sysctl kernel.apparmor_restrict_unprivileged_userns). Give bwrap alone a profile that allows it: install apparmor-profiles and run " +
			"ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict"},
	{regexp.MustCompile(`No permissions to creat(e|ing) (a )?new namespace|Creating new (user )?namespace failed|setting up uid map|kernel does not allow non-privileged user namespaces`),
		"this host does not let bubblewrap make a user namespace: allow it with sysctl -w kernel.unprivileged_userns_clone=1 (Debian) " +
			"and sysctl -w user.max_user_namespaces=15000; in a container, run writ outside of it or allow user namespaces there"},
	{regexp.MustCompile(`Can't mount proc`),
		"bubblewrap cannot mount /proc: this is a container whose own /proc is masked. Start the container with an unmasked /proc " +
			"(docker run --security-opt systempaths=unconfined, Kubernetes procMount: Unmasked) or run writ on the host, unnested"},
	{regexp.MustCompile(`Failed to make / slave`),
		"bubblewrap may not change mounts: this is a container that forbids it (AppArmor or seccomp). Run writ on the host, unnested, " +
			"or start the container with --security-opt apparmor=unconfined --security-opt seccomp=unconfined"},
	{regexp.MustCompile(`Unknown option --(ro-)?bind-fd`),
		"this bubblewrap is too old for workspaces: it needs the option --bind-fd of version 0.10.0, which the current packages of Debian 12 and Ubuntu 24.04 have as well. " +
			"Update bubblewrap, or install a newer one and name it with the bwrap setting"},
	{regexp.MustCompile(`Unknown option (--\S+)`),
		"this bubblewrap is too old: writ needs version 0.8.0 or later (Debian 12, Ubuntu 24.04). Install a newer one and name it with the bwrap setting"},
	{regexp.MustCompile(`seccomp|PR_SET_SECCOMP`),
		"this kernel does not take a seccomp filter: it needs CONFIG_SECCOMP_FILTER; nothing is run without it"},
	{regexp.MustCompile(`execvp /proc/self/fd/\d+: Permission denied`),
		"the user of a box cannot execute the writ program: make it so, with chmod a+rx on it"},
	{regexp.MustCompile(`Can't find source path \S+: Permission denied`),
		"the owner of the workspace cannot get to it: one of the folders above does not let that user pass. Allow it, with chmod o+x, or give the workspace to a user who may"},
	{regexp.MustCompile(`/proc/self/fd/\d+: No such file|Can't find source path`),
		"this host lacks a path that every box needs"},
}

// prepareError is what to tell about a box that did not get ready, from what bwrap
// and the jail said. It is the same each time, and never an exit code.
func prepareError(said string, err error) error {
	said = strings.TrimSpace(strings.ToValidUTF8(said, "?"))
	e := &writ.Error{Kind: writ.Unavailable, Op: "prepare sandbox", Err: errors.Join(err, errors.New(said))}
	for _, m := range mends {
		if m.said.MatchString(said) {
			e.Msg = "the sandbox is unavailable: " + m.msg + " (" + said + ")"
			return e
		}
	}
	switch {
	case said != "":
		e.Msg = "the sandbox is unavailable: " + said
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Msg = "the sandbox is unavailable: it was not ready in " + readyTimeout.String() + "; the machine may be overloaded"
	default:
		e.Msg = "the sandbox is unavailable: bubblewrap ended without a word"
	}
	return e
}
