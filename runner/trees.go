package runner

import (
	"encoding/json"
	"path/filepath"
	"sync"

	"writ"
	"writ/files"
)

// trees keeps the roots of workspaces open that were used last. It is safe for
// concurrent use. What is lent is not closed before it is given back.
type trees struct {
	max     int      // trees kept; more are open only while they are lent
	watches *watches // of their roots; nil: none

	mu   sync.Mutex
	open map[treeKey]*openTree // guarded by mu
	turn uint64                // guarded by mu; counts uses
}

// treeKey is a canonical root, and rules as JSON.
type treeKey struct{ root, rules string }

type openTree struct {
	*files.Tree
	key  treeKey
	lent int    // guarded by trees.mu
	used uint64 // guarded by trees.mu; the turn of the last use
	gone bool   // guarded by trees.mu; not in trees.open any more: closed when lent is 0
}

func newTrees(max int) *trees { return &trees{max: max, open: map[treeKey]*openTree{}} }

// get lends the tree of a workspace, which must be given back by put. The root is looked
// at each time: where it leads elsewhere now, or is another folder, another tree is
// opened. Errors are those of files.Open.
func (t *trees) get(w writ.Workspace) (*openTree, error) {
	key := treeKey{root: w.Root}
	if real, err := filepath.EvalSymlinks(w.Root); err == nil { // else Open says what is wrong
		key.root = real
	}
	if len(w.Rules.Read)+len(w.Rules.Write)+len(w.Rules.DenyRead)+len(w.Rules.DenyWrite) > 0 {
		b, err := json.Marshal(w.Rules)
		if err != nil {
			return nil, err
		}
		key.rules = string(b)
	}
	if tree := t.lend(key); tree != nil {
		if !tree.Stale() {
			return tree, nil
		}
		t.discard(tree)
		t.put(tree)
		t.watches.renew(key.root)
	}
	opened, err := files.Open(w.Root, files.Rules(w.Rules))
	if err != nil {
		return nil, err
	}
	key.root = opened.Root()
	t.watches.hold(key.root)
	return t.add(key, opened), nil
}

// lend is the tree of a key, or nil.
func (t *trees) lend(key treeKey) *openTree {
	t.mu.Lock()
	defer t.mu.Unlock()
	tree := t.open[key]
	if tree != nil {
		t.use(tree)
	}
	return tree
}

// use lends a tree. mu is held.
func (t *trees) use(tree *openTree) {
	t.turn++
	tree.used = t.turn
	tree.lent++
}

// add keeps a tree that was opened, or one that somebody else has opened meanwhile, and
// lends it.
func (t *trees) add(key treeKey, opened *files.Tree) *openTree {
	t.mu.Lock()
	tree := t.open[key]
	idle := []*openTree{{Tree: opened}}
	if tree == nil {
		tree = &openTree{Tree: opened, key: key}
		t.open[key], idle = tree, nil
	}
	t.use(tree)
	idle = append(idle, t.surplus()...)
	t.mu.Unlock()
	t.end(idle)
	return tree
}

// put gives a tree back.
func (t *trees) put(tree *openTree) {
	t.mu.Lock()
	tree.lent--
	idle := t.surplus()
	if tree.gone && tree.lent == 0 {
		idle = append(idle, tree)
	}
	t.mu.Unlock()
	t.end(idle)
}

// discard sees that a tree, which the caller has, is not lent to others any more.
func (t *trees) discard(tree *openTree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !tree.gone {
		t.drop(tree)
	}
}

// drop takes a tree out. mu is held. The last put closes the tree; of one that is not
// lent the caller must.
func (t *trees) drop(tree *openTree) {
	tree.gone = true
	delete(t.open, tree.key)
}

// surplus takes out those least recently used that nobody has, until no more than max
// are kept. mu is held; the caller closes them.
func (t *trees) surplus() (idle []*openTree) {
	for len(t.open) > t.max {
		var oldest *openTree
		for _, tree := range t.open {
			if tree.lent == 0 && (oldest == nil || tree.used < oldest.used) {
				oldest = tree
			}
		}
		if oldest == nil {
			break
		}
		t.drop(oldest)
		idle = append(idle, oldest)
	}
	return idle
}

// close ends all trees. None may be lent, or be asked for later.
func (t *trees) close() {
	t.mu.Lock()
	var all []*openTree
	for _, tree := range t.open {
		t.drop(tree)
		all = append(all, tree)
	}
	t.mu.Unlock()
	t.end(all)
	t.watches.close()
}

func (t *trees) end(all []*openTree) {
	for _, tree := range all {
		_ = tree.Close() // a descriptor that only named a folder: nothing can be lost
		t.watches.release(tree.Root())
	}
}
