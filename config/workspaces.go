package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"writ"
)

// Environment is where files and commands of workspaces are.
type Environment struct {
	ID   string               `json:"id"`
	Kind writ.EnvironmentKind `json:"kind"`
}

// localEnvironment is this host, which nobody has to name.
const localEnvironment = "local"

// Workspace is a folder that tools may work in. Fields that the file leaves open are
// filled in: what is not said allows the least.
type Workspace struct {
	ID          writ.WorkspaceID   `json:"id"`
	Tenant      writ.Tenant        `json:"tenant"`
	Root        string             `json:"root"` // absolute; whether it is there is not looked at
	Profile     writ.Profile       `json:"profile"`
	Environment string             `json:"environment"`
	Network     writ.NetworkPolicy `json:"network"`
	Approvals   writ.ApprovalMode  `json:"approvals"`
	Rules       writ.PathRules     `json:"rules"`
}

// Registered is the workspaces as the rest of the server knows them.
func (c Config) Registered() []writ.Workspace {
	var all []writ.Workspace
	for _, w := range c.Workspaces {
		kind, _ := c.environment(w.Environment)
		all = append(all, writ.Workspace{
			ID: w.ID, Tenant: w.Tenant, Root: w.Root, Profile: w.Profile,
			Environment: w.Environment, EnvironmentKind: kind, Network: w.Network, Approvals: w.Approvals,
			Participation: writ.ParticipationOff, Rules: w.Rules,
		})
	}
	return all
}

// environment is the kind of the environment of that id, if there is one.
func (c Config) environment(id string) (writ.EnvironmentKind, bool) {
	for _, e := range c.Environments {
		if e.ID == id {
			return e.Kind, true
		}
	}
	return writ.EnvironmentHost, id == localEnvironment
}

// settleWorkspaces fills what the file leaves open.
func (c *Config) settleWorkspaces() {
	for i := range c.Workspaces {
		w := &c.Workspaces[i]
		fill(&w.Tenant, writ.DefaultTenant)
		fill(&w.Profile, writ.ReadOnly)
		fill(&w.Environment, localEnvironment)
		fill(&w.Network, writ.NetworkRestricted)
		fill(&w.Approvals, writ.ApprovalsOff)
	}
}

func fill[T ~string](v *T, otherwise T) {
	if *v == "" {
		*v = otherwise
	}
}

func (c Config) workspaceFaults(add func(path, format string, args ...any)) {
	name := func(path, s string) {
		if !writ.ValidName(s) {
			add(path, "%.80q: want 1 to 64 of A-Z a-z 0-9 _ . -, the first a letter or digit", s)
		}
	}
	environments := map[string]int{}
	for i, e := range c.Environments {
		path := fmt.Sprintf("environments[%d]", i)
		name(path+".id", e.ID)
		unique(add, path, "environments", environments, e.ID, i)
		among(add, path+".kind", e.Kind, writ.EnvironmentHost, writ.EnvironmentContainer)
	}
	ids := map[string]int{}
	for i, w := range c.Workspaces {
		path := fmt.Sprintf("workspaces[%d]", i)
		name(path+".id", string(w.ID))
		unique(add, path, "workspaces", ids, string(w.ID), i)
		name(path+".tenant", string(w.Tenant))
		switch {
		case w.Root == "":
			add(path+".root", "is missing: name the folder")
		case !filepath.IsAbs(w.Root):
			add(path+".root", "%q is not absolute", w.Root)
		}
		among(add, path+".profile", w.Profile, writ.ReadOnly, writ.WorkspaceWrite)
		if _, ok := c.environment(w.Environment); !ok {
			add(path+".environment", "%q is none of environments", w.Environment)
		}
		among(add, path+".network", w.Network, writ.NetworkRestricted, writ.NetworkEnabled)
		among(add, path+".approvals", w.Approvals, writ.ApprovalsOff, writ.ApprovalsConfirm, writ.ApprovalsReview)
	}
}

// unique adds a fault when the id of list[i] is that of one before.
func unique(add func(path, format string, args ...any), path, list string, first map[string]int, id string, i int) {
	if j, twice := first[id]; twice {
		add(path+".id", "%q is the id of %s[%d] already", id, list, j)
		return
	}
	first[id] = i
}

// among adds a fault when v is none of the values that a key may have.
func among[T ~string](add func(path, format string, args ...any), path string, v T, allowed ...T) {
	if slices.Contains(allowed, v) {
		return
	}
	var want []string
	for _, a := range allowed {
		want = append(want, string(a))
	}
	add(path, "%q is none of %s", string(v), strings.Join(want, ", "))
}
