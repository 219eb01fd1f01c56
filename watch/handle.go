package watch

import (
	"slices"

	"golang.org/x/sys/unix"
)

// handle tells of one record, and keeps the tree. Half a rename is a removal or a creation.
func (in *instance) handle(r record) {
	switch {
	case r.is(unix.IN_Q_OVERFLOW | unix.IN_UNMOUNT):
		in.again = true
		return
	case r.is(unix.IN_IGNORED):
		in.tree.ended(r.wd)
		in.again = in.again || in.tree.top.wd < 0
		return
	}
	n := in.tree.nodes[r.wd]
	if n == nil {
		if !in.tree.dropped[r.wd] {
			in.resync()
		}
		return
	}
	if r.name == "" {
		in.self(n, r)
		return
	}
	path, ok := in.name(n, r)
	if !ok {
		return
	}
	switch {
	case r.is(unix.IN_CREATE | unix.IN_MOVED_TO):
		in.emit(Event{Kind: Create, Path: path})
		if r.folder() {
			in.scan.look(n, r.name)
		}
	case r.is(unix.IN_DELETE | unix.IN_MOVED_FROM):
		in.emit(Event{Kind: Remove, Path: path})
		// When two changed places over the root's boundary, what came in was told before
		// what went out, and is told again.
		swapped := r.is(unix.IN_MOVED_FROM) && in.scan.there(n, r.name)
		// Of any kind: one that was not meant came there later, and its event follows.
		if child := n.children[r.name]; child != nil {
			in.tree.drop(child)
		}
		if swapped {
			in.emit(Event{Kind: Create, Path: path})
			in.scan.look(n, r.name)
		}
	case r.is(unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB):
		in.emit(Event{Kind: Modify, Path: path})
		if r.folder() && n.children[r.name] == nil {
			in.scan.look(n, r.name) // it may be readable now
		}
	default:
		in.resync()
	}
}

// self is about a watched folder by itself. All but the root have a parent that tells the
// same by name.
func (in *instance) self(n *node, r record) {
	if n != in.tree.top {
		return
	}
	if r.is(unix.IN_DELETE_SELF | unix.IN_MOVE_SELF) {
		in.again = true // its path leads elsewhere now, or nowhere
		return
	}
	in.resync()
}

// name is the path that a record is about. Without one it can only be told that something
// has changed.
func (in *instance) name(n *node, r record) (path string, ok bool) {
	if path, ok = in.tree.path(n, r.name); ok && valid(r.name) {
		return path, true
	}
	in.resync()
	// One that was moved too deep is not watched from now on. One without a place is found
	// again, or everything is watched anew.
	if !ok && in.tree.placed(n) {
		in.tree.drop(n)
		in.lacking()
	}
	return "", false
}

// rename tells of both halves of a rename.
func (in *instance) rename(from, to record) {
	source, target := in.tree.nodes[from.wd], in.tree.nodes[to.wd]
	if source == nil || target == nil {
		in.handle(from)
		in.handle(to)
		return
	}
	old, ok := in.name(source, from)
	if !ok {
		in.handle(to)
		return
	}
	now, ok := in.name(target, to)
	if !ok {
		in.handle(from)
		return
	}
	back := in.back(from, to)
	if !back || !to.folder() && !in.scan.there(source, from.name) {
		in.emit(Event{Kind: Rename, From: old, To: now})
	} else {
		in.emit(Event{Kind: Create, Path: now}) // the other of the two was told
	}
	if !to.folder() {
		// A folder at one of the names was seen too early.
		in.scan.unsaid = in.scan.unsaid || source.children[from.name] != nil || target.children[to.name] != nil
		return
	}
	unsaid := in.scan.unsaid
	in.moved(source, from.name, target, to.name)
	if back {
		// No kind of event says what is beneath two folders that have changed places.
		in.scan.unsaid = unsaid
		in.resync()
	}
}

// back remembers a rename, and reports whether it goes back over one of the last: so an
// exchange of two names is told by the kernel, as one rename each way. It may also be a
// rename of its own; whoever asks looks at what is there.
func (in *instance) back(from, to record) bool {
	same := func(a, b record) bool { return a.wd == b.wd && a.name == b.name }
	back := slices.ContainsFunc(in.renames, func(r [2]record) bool { return same(r[0], to) && same(r[1], from) })
	if len(in.renames) == maxBack {
		in.renames = slices.Delete(in.renames, 0, 1)
	}
	in.renames = append(in.renames, [2]record{from, to})
	return back
}

// moved follows a folder to its new place. What is there now says which folder it is: the
// event is older, and names may have changed since.
func (in *instance) moved(source *node, from string, target *node, to string) {
	left := source.children[from]
	in.scan.expected = left
	here := in.scan.look(target, to)
	in.scan.expected = nil
	switch {
	case left == nil, left == here:
	case here == nil: // it has moved on, or is not to be opened: believe the event
		in.tree.place(left, target, to)
		in.tree.doubtful[left] = true
	case in.scan.look(source, from) == left: // the two have changed places
		in.scan.unsaid = true
	default:
		in.tree.doubtful[left] = true
	}
}
