package workspace

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"writ"
	"writ/files"
)

// CodeNotFound is the code of an error for a workspace that is not there for the
// caller (spec/02 §5.14).
const CodeNotFound = "WORKSPACE_NOT_FOUND"

// LocalEnvironment is the environment of a workspace that names none: this host.
const LocalEnvironment = "local"

// Registry is the workspaces that there are. It does not change, and may be used from
// several goroutines. The zero Registry has none.
type Registry struct {
	all map[writ.WorkspaceID]writ.Workspace
}

// NewRegistry makes a registry. Ids are unique over all tenants, every workspace is
// valid, its rules are patterns, and no root overlaps one of the folders private, which
// are the server's own: a tool could else read its keys. Whether a root is there is not
// looked at (spec/02 §3.1). The error is of kind writ.Invalid and names every fault.
func NewRegistry(all []writ.Workspace, private ...string) (*Registry, error) {
	r := &Registry{all: map[writ.WorkspaceID]writ.Workspace{}}
	var errs []error
	for _, w := range all {
		for _, err := range faults(w, private) {
			errs = append(errs, fmt.Errorf("workspace %s: %w", w.ID, err))
		}
		if _, twice := r.all[w.ID]; twice {
			errs = append(errs, fmt.Errorf("workspace %s is there twice: ids are unique over all tenants", w.ID))
		}
		r.all[w.ID] = w
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "register workspaces", Msg: err.Error()}
	}
	return r, nil
}

func faults(w writ.Workspace, private []string) (errs []error) {
	if err := w.Validate(); err != nil {
		for fault := range strings.SplitSeq(err.Error(), "\n") {
			errs = append(errs, errors.New(fault))
		}
		return errs
	}
	if err := files.Rules(w.Rules).Validate(); err != nil {
		errs = append(errs, err)
	}
	root := locate(w.Root)
	for _, folder := range private {
		if root.overlaps(locate(folder)) {
			errs = append(errs, fmt.Errorf("root %s and the server's own folder %s are one in the other: choose another root", w.Root, folder))
		}
	}
	return errs
}

// Get is the workspace of an id, for who: one of its own tenant, or any when who is the
// owner of the data folder. Every other id, also one of another tenant, is the same
// error, of kind writ.NotFound with CodeNotFound, which names the ids that there are
// for who.
func (r *Registry) Get(who writ.Principal, id writ.WorkspaceID) (writ.Workspace, error) {
	if w, ok := r.all[id]; ok && visible(who, w) {
		return w, nil
	}
	return writ.Workspace{}, &writ.Error{
		Kind: writ.NotFound, Code: CodeNotFound, Op: "find workspace",
		Msg: fmt.Sprintf("there is no workspace %.80q for you%s", string(id), r.hint(who)),
	}
}

// hintedIDs is how many ids an error names.
const hintedIDs = 20

func (r *Registry) hint(who writ.Principal) string {
	var ids []string
	for _, w := range r.List(who) {
		ids = append(ids, string(w.ID))
	}
	switch {
	case len(ids) == 0:
		return ": an operator must register one"
	case len(ids) > hintedIDs:
		return fmt.Sprintf("; there are %s and %d more", strings.Join(ids[:hintedIDs], ", "), len(ids)-hintedIDs)
	}
	return "; there are " + strings.Join(ids, ", ")
}

// List is the workspaces that Get gives who, in the order of their ids.
func (r *Registry) List(who writ.Principal) []writ.Workspace {
	var out []writ.Workspace
	for _, id := range slices.Sorted(maps.Keys(r.all)) {
		if w := r.all[id]; visible(who, w) {
			out = append(out, w)
		}
	}
	return out
}

// Overlapping is the workspaces whose root is folder, an absolute path, or beneath it,
// or over it, in the order of their ids. Where there is one, a workspace that nobody
// registered would have other rules for the same files.
func (r *Registry) Overlapping(folder string) []writ.Workspace {
	at := locate(folder)
	var out []writ.Workspace
	for _, id := range slices.Sorted(maps.Keys(r.all)) {
		if w := r.all[id]; locate(w.Root).overlaps(at) {
			out = append(out, w)
		}
	}
	return out
}

func visible(who writ.Principal, w writ.Workspace) bool {
	return who.Kind == writ.KindLocal || who.Tenant == w.Tenant
}
