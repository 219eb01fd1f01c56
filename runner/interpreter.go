package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"writ"
	"writ/lang"
)

// visible are the folders of the host that a box shows. An interpreter anywhere
// else, also by way of a link, is not there for the run.
var visible = [...]string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"}

// Languages says which languages this runner knows and where the interpreter of
// each is on this host. The error is always nil.
func (r *Runner) Languages(context.Context) ([]writ.LanguageStatus, error) {
	all := make([]writ.LanguageStatus, len(r.opt.Languages))
	for i, l := range r.opt.Languages {
		interpreter, _ := interpreterOf(l) // the empty path says it
		all[i] = writ.LanguageStatus{
			Name: l.Name, Aliases: l.Aliases, Scope: l.Scope, Interpreter: interpreter, Package: l.Package,
		}
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
		Msg: fmt.Sprintf("%s is not installed on the runner's host (looked for %s): install it with: apt-get install %s",
			l.Name, strings.Join(l.Candidates, ", "), l.Package),
	}
}

// executable reports whether the path names a file that a box shows and anybody
// may execute.
func executable(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	info, err := os.Stat(real)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o001 == 0 {
		return false
	}
	for _, dir := range visible {
		if strings.HasPrefix(real, dir) {
			return true
		}
	}
	return false
}
