package approval

import (
	"slices"
	"strings"
)

// runsCommands says why a change of the file may make commands run which nobody
// approved; empty for nothing known. Letters count the same in either case.
//
// The list is of what commonly runs by itself, and short on purpose: any script may be
// called by another. It makes an approver look twice, and denies nothing.
func runsCommands(path string) string {
	names := strings.Split(strings.ToLower(path), "/")
	base := names[len(names)-1]
	among := func(list string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(strings.Fields(list), name) })
	}
	is := func(list string) bool { return slices.Contains(strings.Fields(list), base) }
	beneath := func(dirs string) bool { return strings.Contains("/"+strings.Join(names, "/"), "/"+dirs+"/") }
	switch {
	case among(".git .githooks .husky"), is(".gitconfig .pre-commit-config.yaml"):
		return "git runs hooks, and commands that its settings name"
	case beneath(".github/workflows"), beneath(".github/actions"), among(".circleci"), is(".gitlab-ci.yml jenkinsfile"):
		return "build servers run what it says"
	case is("makefile gnumakefile justfile package.json setup.py conftest.py build.rs dockerfile"), strings.HasSuffix(base, ".mk"):
		return "builds, installs and tests run commands from it"
	case is(".profile .bashrc .bash_profile .bash_login .bash_logout .zshrc .zshenv .zprofile .zlogin .envrc"):
		return "shells run it when they start"
	case among(".vscode .idea .devcontainer .claude .codex .cursor"), is(".mcp.json"):
		return "editors and agents run commands that it names"
	}
	return ""
}
