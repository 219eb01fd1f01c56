package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"writ"
)

// FolderID is the id of a workspace that nobody registered: the folder that somebody
// works in.
const FolderID writ.WorkspaceID = "default"

// system are folders that hold the system: neither they nor what is beneath them is a
// workspace that nobody registered. Places are folders that hold others, of which one
// may be.
const (
	system = "/bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /proc /run /sbin /sys /usr " +
		"/var/cache /var/lib /var/log /var/spool"
	places = "/ /home /media /mnt /opt /root /srv /tmp /var /var/mail /var/tmp"
)

// Folder is a workspace for a folder that no registry names: workspace-write, approvals
// off, network restricted, no rules, of the default tenant. The caller changes what
// flags change. home is the home folder of the one who works, empty when there is none;
// private are the server's own folders.
//
// The root is canonical. An error is of kind writ.Denied for a folder that would give
// away more than somebody's work: "/", a home folder itself or one over it, a system
// folder, and one that overlaps a private one. It is of kind writ.NotFound when nothing
// is there, and of kind writ.Invalid when it is no folder or its path is not UTF-8.
func Folder(dir, home string, private ...string) (writ.Workspace, error) {
	none := writ.Workspace{}
	fail := func(kind writ.Kind, format string, args ...any) (writ.Workspace, error) {
		return none, &writ.Error{Kind: kind, Op: "offer folder", Msg: fmt.Sprintf(format, args...)}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return none, fmt.Errorf("offer folder: %w", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(writ.NotFound, "there is no folder %s", abs)
	}
	if err != nil {
		return none, fmt.Errorf("offer folder: %w", err)
	}
	if !utf8.ValidString(real) {
		return fail(writ.Invalid, "the path %q is not UTF-8: rename the folder", real)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return fail(writ.Invalid, "%s is not a folder", real)
	}
	if why := tooMuch(locate(real), home, private); why != "" {
		return fail(writ.Denied, "%s %s: change to the folder of your work, or register a workspace in the configuration", real, why)
	}
	return writ.Workspace{
		ID: FolderID, Tenant: writ.DefaultTenant, Root: real, Profile: writ.WorkspaceWrite,
		Environment: LocalEnvironment, EnvironmentKind: writ.EnvironmentHost,
		Network: writ.NetworkRestricted, Approvals: writ.ApprovalsOff,
	}, nil
}

// tooMuch says why a folder is not offered; empty when it is.
func tooMuch(at place, home string, private []string) string {
	if home != "" && locate(home).within(at) {
		return "is a home folder, or has one in it"
	}
	if filepath.Dir(at.path) == "/home" {
		return "is a home folder"
	}
	for _, folder := range private {
		if at.overlaps(locate(folder)) {
			return "and the server's own folder " + folder + " are one in the other"
		}
	}
	if slices.Contains(strings.Fields(places), at.path) {
		return "holds more than one project"
	}
	for _, folder := range strings.Fields(system) {
		if at.within(locate(folder)) {
			return "is a system folder"
		}
	}
	return ""
}
