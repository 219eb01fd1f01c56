package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"writ"
)

// maxFileBytes bounds a registry file: thousands of workspaces fit.
const maxFileBytes = 1 << 20

// LoadFile reads a registry file in the form of spec/02 §3.1 (see [ParseFile]). Its
// errors are *writ.Error: NotFound when there is no such file, Invalid for what is
// wrong with it, also that others than its owner may write it, and Unavailable when it
// cannot be read.
func LoadFile(path string) ([]writ.Workspace, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return ParseFile(path, data)
}

func readFile(path string) ([]byte, error) {
	unavailable := func(err error) error {
		return &writ.Error{Kind: writ.Unavailable, Op: "read registry", Msg: err.Error(), Err: err}
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &writ.Error{Kind: writ.NotFound, Op: "read registry", Msg: "there is no file " + path, Err: err}
	}
	if err != nil {
		return nil, unavailable(err)
	}
	defer f.Close()
	// The open file is asked, not the name: what is judged is what is read.
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, unavailable(err)
	case !info.Mode().IsRegular():
		return nil, invalid("%s is not a regular file", path)
	case info.Mode().Perm()&0o022 != 0:
		return nil, invalid("%s can be written by others than its owner (mode %04o), who could register any folder: chmod go-w %s", path, info.Mode().Perm(), path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, unavailable(err)
	}
	if len(data) > maxFileBytes {
		return nil, invalid("%s is larger than %d bytes", path, maxFileBytes)
	}
	return data, nil
}

func invalid(format string, args ...any) error {
	return &writ.Error{Kind: writ.Invalid, Op: "read registry", Msg: fmt.Sprintf(format, args...)}
}

// The file, as spec/02 §3.1 has it.
type registryFile struct {
	Environments map[string]environmentEntry `json:"environments"`
	Workspaces   map[string]workspaceEntry   `json:"workspaces"`
}

type environmentEntry struct {
	Kind writ.EnvironmentKind `json:"kind"`
}

type workspaceEntry struct {
	Root        string             `json:"root"`
	Profile     writ.Profile       `json:"profile"`
	Environment string             `json:"environment"`
	Network     writ.NetworkPolicy `json:"network"`
	Approvals   writ.ApprovalMode  `json:"approvals"`
	Resources   resourcesEntry     `json:"resources"`
}

// resourcesEntry is read whole, though only Participation means anything here.
type resourcesEntry struct {
	Participation writ.Participation `json:"participation"`
	Request       struct {
		CPUMilli    uint64 `json:"cpu_milli"`
		MemoryBytes uint64 `json:"memory_bytes"`
		Tasks       uint64 `json:"tasks"`
		Minimum     struct {
			CPU    enforcement `json:"cpu"`
			Memory enforcement `json:"memory"`
			PIDs   enforcement `json:"pids"`
		} `json:"minimum"`
	} `json:"request"`
}

// enforcement is how strictly a resource must be bounded.
type enforcement string

// ParseFile reads data as if it had been the registry file called name. What the file
// leaves open is as in spec/02 §3.1; all workspaces are of the default tenant, and
// approvals may be "review" as well. Whether a root is there is not looked at.
//
// The error is of kind writ.Invalid and gives name and line. Text that is not of the
// file's form (a key that is unknown, given twice or in another case, a value of
// another type) ends the reading; faults of values are named all at once.
func ParseFile(name string, data []byte) ([]writ.Workspace, error) {
	var file registryFile
	if err := json.Unmarshal(data, &file, strict()); err != nil {
		return nil, formFault(name, data, err)
	}
	lines := keyLines(data)
	var found []lineFault
	add := func(path, format string, args ...any) {
		found = append(found, lineFault{nearestLine(lines, path), fmt.Sprintf(format, args...)})
	}
	for id, e := range file.Environments {
		oneOf(add, at("environments", id, "kind"), e.Kind, writ.EnvironmentHost, writ.EnvironmentContainer)
	}
	if _, ok := file.Environments[LocalEnvironment]; !ok {
		if file.Environments == nil {
			file.Environments = map[string]environmentEntry{}
		}
		file.Environments[LocalEnvironment] = environmentEntry{writ.EnvironmentHost}
	}
	var all []writ.Workspace
	for _, id := range slices.Sorted(maps.Keys(file.Workspaces)) {
		e := file.Workspaces[id]
		e.settle()
		e.check(id, file.Environments, add)
		all = append(all, writ.Workspace{
			ID: writ.WorkspaceID(id), Tenant: writ.DefaultTenant, Root: e.Root, Profile: e.Profile,
			Environment: e.Environment, EnvironmentKind: file.Environments[e.Environment].Kind,
			Network: e.Network, Approvals: e.Approvals, Participation: e.Resources.Participation,
		})
	}
	if len(found) > 0 {
		return nil, invalid("%s", render(name, found))
	}
	return all, nil
}

// settle fills what the file leaves open.
func (e *workspaceEntry) settle() {
	set(&e.Profile, writ.ReadOnly)
	set(&e.Environment, LocalEnvironment)
	set(&e.Network, writ.NetworkRestricted)
	set(&e.Approvals, writ.ApprovalsOff)
	set(&e.Resources.Participation, writ.ParticipationOff)
}

func set[T ~string](v *T, otherwise T) {
	if *v == "" {
		*v = otherwise
	}
}

func (e workspaceEntry) check(id string, environments map[string]environmentEntry, add func(path, format string, args ...any)) {
	here := func(keys ...string) string { return at(append([]string{"workspaces", id}, keys...)...) }
	if !writ.ValidName(id) {
		add(here(), "%.80q cannot name a workspace: want 1 to 64 of A-Z a-z 0-9 _ . -, the first a letter or digit", id)
	}
	switch {
	case e.Root == "":
		add(here("root"), "root is missing")
	case !strings.HasPrefix(e.Root, "/"):
		add(here("root"), "root %q is not absolute", e.Root)
	}
	oneOf(add, here("profile"), e.Profile, writ.ReadOnly, writ.WorkspaceWrite)
	if _, ok := environments[e.Environment]; !ok {
		add(here("environment"), "environment %q is not registered in this file", e.Environment)
	}
	oneOf(add, here("network"), e.Network, writ.NetworkRestricted, writ.NetworkEnabled)
	oneOf(add, here("approvals"), e.Approvals, writ.ApprovalsOff, writ.ApprovalsConfirm, writ.ApprovalsReview)
	oneOf(add, here("resources", "participation"), e.Resources.Participation, writ.ParticipationOff, writ.ParticipationRequired)
	for key, v := range map[string]enforcement{"cpu": e.Resources.Request.Minimum.CPU, "memory": e.Resources.Request.Minimum.Memory, "pids": e.Resources.Request.Minimum.PIDs} {
		oneOf(add, here("resources", "request", "minimum", key), v, "", "accounted", "kernel")
	}
}

// oneOf adds a fault when v is none of the values that may stand at path.
func oneOf[T ~string](add func(path, format string, args ...any), path string, v T, allowed ...T) {
	if slices.Contains(allowed, v) {
		return
	}
	var want []string
	for _, a := range allowed {
		if a != "" {
			want = append(want, fmt.Sprintf("%q", string(a)))
		}
	}
	key := path[strings.LastIndexByte(path, '/')+1:]
	add(path, "%s is %q: want %s", key, string(v), strings.Join(want, ", "))
}
