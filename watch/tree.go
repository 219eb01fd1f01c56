package watch

import "strings"

// node is a folder with a watch, at the place where it was seen last.
type node struct {
	wd       int32 // -1 once the kernel has ended the watch
	id       inode
	parent   *node // nil for the root, and for one whose place is unknown
	name     string
	children map[string]*node // folders with a watch; nil for none
}

// tree is the watched folders beneath one root, by their watches and by their names.
type tree struct {
	kernel *inotify
	top    *node
	nodes  map[int32]*node
	ids    map[inode]*node // of nodes

	// dropped are watches that were given up, until the kernel says that it has done so:
	// what it still tells of them is out of the root.
	dropped map[int32]bool
	// strays have lost their place to another folder. Most are found again at once, since
	// two folders changed places, or are gone, since one was put over an empty one.
	strays map[*node]bool
	// doubtful are nodes whose place, or whose content, could not be looked at.
	doubtful map[*node]bool
}

func newTree(kernel *inotify) *tree {
	return &tree{
		kernel:   kernel,
		nodes:    map[int32]*node{},
		ids:      map[inode]*node{},
		dropped:  map[int32]bool{},
		strays:   map[*node]bool{},
		doubtful: map[*node]bool{},
	}
}

func (t *tree) add(wd int32, id inode) *node {
	n := &node{wd: wd, id: id}
	t.nodes[wd], t.ids[id] = n, n
	return n
}

// remove forgets the watch of a node.
func (t *tree) remove(n *node) {
	delete(t.nodes, n.wd)
	if t.ids[n.id] == n { // a new folder may have got the inode of a removed one
		delete(t.ids, n.id)
	}
	n.wd = -1
}

func (n *node) at(parent *node, name string) bool { return n.parent == parent && n.name == name }

// path is where a name in a folder is, from the root. It is not ok when the folder's
// place is not known, or is deeper than anything is watched.
func (t *tree) path(n *node, name string) (path string, ok bool) {
	names := []string{name}
	size := len(name)
	for ; n != t.top; n = n.parent {
		if n == nil || len(names) > MaxDepth {
			return "", false
		}
		names = append(names, n.name)
		size += 1 + len(n.name)
	}
	if size > maxPathBytes {
		return "", false
	}
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	return strings.Join(names, "/"), true
}

// depth is how many folders are over n.
func (t *tree) depth(n *node) (depth int) {
	for ; n != nil && n != t.top; n = n.parent {
		depth++
	}
	return depth
}

// place puts a node where it was seen. What the tree had there is a stray now.
func (t *tree) place(n, parent *node, name string) {
	if n.at(parent, name) {
		return
	}
	for over := parent; over != nil; over = over.parent {
		if over == n { // two moves were seen in the wrong order
			t.doubtful[n] = true
			return
		}
	}
	t.detach(n)
	if other := parent.children[name]; other != nil {
		t.detach(other)
		if other.wd >= 0 {
			t.strays[other] = true
		}
	}
	if parent.children == nil {
		parent.children = map[string]*node{}
	}
	parent.children[name] = n
	n.parent, n.name = parent, name
}

// detach takes a node out of its place, with all beneath.
func (t *tree) detach(n *node) {
	delete(t.strays, n)
	if n.parent != nil {
		delete(n.parent.children, n.name)
		n.parent = nil
	}
}

// drop ends the watches of a node and of all beneath.
func (t *tree) drop(n *node) {
	t.detach(n)
	all := []*node{n}
	for len(all) > 0 {
		n := all[len(all)-1]
		all = all[:len(all)-1]
		for _, child := range n.children {
			all = append(all, child)
		}
		delete(t.doubtful, n)
		if n.wd >= 0 {
			t.kernel.remove(n.wd)
			t.dropped[n.wd] = true
			t.remove(n)
		}
	}
}

// ended takes note that the kernel has ended a watch. The node stays at its place until
// its removal is told.
func (t *tree) ended(wd int32) {
	delete(t.dropped, wd)
	if n := t.nodes[wd]; n != nil {
		delete(t.doubtful, n)
		delete(t.strays, n)
		t.remove(n)
	}
}

// placed reports whether it is known where a node is, however deep.
func (t *tree) placed(n *node) bool {
	for n != nil && n != t.top {
		n = n.parent
	}
	return n != nil
}
