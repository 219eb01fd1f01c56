package runner

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"writ"
	"writ/lang"
)

// visible are the folders of the host that a box shows. An interpreter anywhere
// else, also by way of a link, is not there for the run.
var visible = [...]string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"}

// Languages says which languages this runner knows, those of tasks first, and where the
// interpreter of each is on this host. The error is always nil.
func (r *Runner) Languages(context.Context) ([]writ.LanguageStatus, error) {
	var all []writ.LanguageStatus
	for _, l := range slices.Concat(r.opt.Languages, r.opt.Interpreters) {
		interpreter, _ := interpreterOf(l) // the empty path says it
		all = append(all, writ.LanguageStatus{
			Name: l.Name, Aliases: l.Aliases, Kind: l.Kind, Scope: l.Scope,
			Interpreter: interpreter, Package: l.Package, Install: l.Install(),
		})
	}
	return all, nil
}

// interpreterOf is the first of l's candidates that a run could execute. The error
// is of kind writ.Unavailable and names the package to install.
func interpreterOf(l lang.Language) (string, error) {
	for _, c := range l.Candidates {
		if executable(c) {
			return c, nil
		}
	}
	return "", &writ.Error{
		Kind: writ.Unavailable,
		Op:   "run",
		Msg: fmt.Sprintf("%s is not installed on the runner's host (looked for %s): install it with: %s",
			l.Name, strings.Join(l.Candidates, ", "), l.Install()),
	}
}

// executable reports whether the path names a file that a box shows and anybody
// may execute.
func executable(path string) bool {
	mode, ok := inBox(path)
	return ok && mode.IsRegular() && mode.Perm()&0o001 != 0
}

// isFolder reports whether the path names a folder that a box shows.
func isFolder(path string) bool {
	mode, ok := inBox(path)
	return ok && mode.IsDir()
}

// inBox is the mode of what path leads to, if a box shows that.
func inBox(path string) (fs.FileMode, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return 0, false
	}
	info, err := os.Stat(real)
	if err != nil || !slices.ContainsFunc(visible[:], func(dir string) bool { return strings.HasPrefix(real, dir) }) {
		return 0, false
	}
	return info.Mode(), true
}
