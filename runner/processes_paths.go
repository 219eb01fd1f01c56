package runner

import (
	"context"
	"errors"

	"writ"
	"writ/files"
)

// guarded are paths in a workspace that no command may change where they are, whatever
// the rules of the workspace say: what programs of the host read there of themselves and
// then execute, as soon as somebody looks at the folder with them. A patch may change
// them, since it is decided by its paths and a person can read it. What is not there
// cannot be held: a command may make it.
//
// In .git it is those two, and not all of it, since a commit must be possible.
var guarded = []string{
	".git/hooks", ".git/config", ".git/config.worktree", // git: filters, aliases, hooks
	".gitmodules",                       // git: where submodules come from
	".vscode", ".idea", ".devcontainer", // editors: tasks at the opening of a folder
	".envrc",                                               // direnv
	".mcp.json", ".claude", ".codex", ".cursor", ".agents", // coding agents: servers and hooks to start
}

// deniedPaths are what the rules of a workspace deny now. A tree of its own is opened for
// that: the rules are those of this order, and the folder is the one that the box gets.
func deniedPaths(ctx context.Context, w writ.Workspace, root string) (hidden, protected []string, err error) {
	rules := files.Rules(w.Rules)
	if len(rules.Read)+len(rules.DenyRead)+len(rules.DenyWrite) == 0 {
		return nil, nil, nil
	}
	tree, err := files.Open(root, rules)
	if err != nil {
		return nil, nil, err
	}
	hidden, protected, err = tree.Denied(ctx)
	return hidden, protected, errors.Join(err, tree.Close())
}
