package writ

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a run's description. What exceeds one is refused, never cut.
const (
	MaxCodeBytes   = 10 << 20 // spec/01 §5 scenario 20: 11 MB is refused
	MaxStdinBytes  = 10 << 20
	MaxInputBytes  = 32 << 20 // all inputs together
	MaxInputs      = 1000
	MaxArgs        = 256
	MaxArgBytes    = 64 << 10 // all arguments together, and all of the environment
	MaxEnv         = 128
	MaxNameBytes   = 255
	MaxInputsDepth = 32
)

// Language is the name of a row of lang's table, or one of its aliases.
type Language string

// Digest is a lower-case hexadecimal SHA-256.
type Digest string

// DigestOf is the digest of b.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest(hex.EncodeToString(sum[:]))
}

// Input is a file that the run finds in its workspace.
type Input struct {
	// Path is relative to the workspace, cleaned, with forward slashes.
	Path    string `json:"path"`
	Content []byte `json:"content"` // base64 in JSON
	Exec    bool   `json:"exec,omitempty"`
}

// RunSpec describes one run completely: what is executed, with what, and within
// which limits. It is the same value in a request, in the store and on the wire to
// a runner. A spec that was admitted is normalised: its language is the table's
// name and its limits are all set.
type RunSpec struct {
	Language Language          `json:"language"`
	Code     string            `json:"code"`
	Args     []string          `json:"args,omitempty"`
	Stdin    string            `json:"stdin,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Inputs   []Input           `json:"inputs,omitempty"`
	Limits   Limits            `json:"limits,omitzero"`

	// Kind is RunTask in requests from outside. What follows is for the others.
	Kind    RunKind     `json:"kind,omitempty"`
	Files   []FileInput `json:"files,omitempty"`
	Collect *Collect    `json:"collect,omitempty"` // nil keeps nothing
	// Compile are the limits of the compile step, for a language that has one; the step
	// works apart from the run, in a box of its own.
	Compile *Limits `json:"compile,omitempty"`
}

// Digest covers every byte of the spec: it is the SHA-256 of its canonical JSON
// under a prefix of its own. Two specs with one digest run the same.
func (s RunSpec) Digest() Digest {
	b, err := json.Marshal(s)
	if err != nil {
		panic("writ: a RunSpec always encodes: " + err.Error()) // strings, byte slices and integers only
	}
	return DigestOf(append([]byte("writ run spec v1\n"), b...))
}

// Validate reports every fault of the spec at once. It does not know which
// languages there are; lang does.
func (s RunSpec) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	text := func(what, v string, max int) {
		switch {
		case len(v) > max:
			fault("%s has %d bytes, the most is %d", what, len(v), max)
		case !utf8.ValidString(v):
			fault("%s is not UTF-8 (first bad byte at offset %d)", what, badUTF8(v))
		case strings.IndexByte(v, 0) >= 0:
			fault("%s has a NUL byte at offset %d", what, strings.IndexByte(v, 0))
		}
	}
	if s.Language == "" {
		fault("language is missing")
	}
	if s.Code == "" && s.Kind == RunTask {
		fault("code is empty")
	}
	text("code", s.Code, MaxCodeBytes)
	if len(s.Stdin) > MaxStdinBytes {
		fault("stdin has %d bytes, the most is %d", len(s.Stdin), MaxStdinBytes)
	} else if !utf8.ValidString(s.Stdin) {
		fault("stdin is not UTF-8 (first bad byte at offset %d): send bytes as an input file", badUTF8(s.Stdin))
	}
	errs = append(errs, s.validateArgs(text)...)
	errs = append(errs, s.validateInputs()...)
	errs = append(errs, s.validateFiles()...)
	if err := s.Limits.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

func (s RunSpec) validateArgs(text func(what, v string, max int)) (errs []error) {
	total := 0
	for i, a := range s.Args {
		text(fmt.Sprintf("args[%d]", i), a, MaxArgBytes)
		total += len(a)
	}
	if len(s.Args) > MaxArgs || total > MaxArgBytes {
		errs = append(errs, fmt.Errorf("args: %d of %d bytes together, the most is %d of %d", len(s.Args), total, MaxArgs, MaxArgBytes))
	}
	total = 0
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		if !envName.MatchString(k) {
			errs = append(errs, fmt.Errorf("env name %q: want letters, digits and _, at most 64, not starting with a digit", k))
		}
		text("env "+k, s.Env[k], MaxArgBytes)
		total += len(k) + len(s.Env[k])
	}
	if len(s.Env) > MaxEnv || total > MaxArgBytes {
		errs = append(errs, fmt.Errorf("env: %d names of %d bytes together, the most is %d of %d", len(s.Env), total, MaxEnv, MaxArgBytes))
	}
	return errs
}

func (s RunSpec) validateInputs() (errs []error) {
	total := 0
	seen := map[string]bool{}
	for i, in := range s.Inputs {
		if err := ValidPath(in.Path); err != nil {
			errs = append(errs, fmt.Errorf("inputs[%d]: %w", i, err))
		} else if seen[in.Path] {
			errs = append(errs, fmt.Errorf("inputs[%d]: path %q is given twice", i, in.Path))
		}
		seen[in.Path] = true
		total += len(in.Content)
	}
	for p := range seen {
		for d := path.Dir(p); d != "." && d != "/"; d = path.Dir(d) {
			if seen[d] {
				errs = append(errs, fmt.Errorf("inputs: %q is a file and a folder", d))
			}
		}
	}
	if len(s.Inputs) > MaxInputs || total > MaxInputBytes {
		errs = append(errs, fmt.Errorf("inputs: %d files of %d bytes together, the most is %d of %d", len(s.Inputs), total, MaxInputs, MaxInputBytes))
	}
	return errs
}

// ValidPath says why p may not name a file in a workspace: it must be relative,
// clean, UTF-8, without NUL or backslash, with names of at most 255 bytes and at
// most 32 of them.
func ValidPath(p string) error {
	switch {
	case p == "":
		return errors.New("path is empty")
	case !utf8.ValidString(p):
		return fmt.Errorf("path %q is not UTF-8", p)
	case strings.ContainsAny(p, "\x00\\"):
		return fmt.Errorf("path %q has a NUL or a backslash", p)
	case path.IsAbs(p), p == ".", p == "..", strings.HasPrefix(p, "../"):
		return fmt.Errorf("path %q is not a file beneath the workspace", p)
	case path.Clean(p) != p:
		return fmt.Errorf("path %q is not clean: want %q", p, path.Clean(p))
	case strings.Count(p, "/") >= MaxInputsDepth:
		return fmt.Errorf("path %q is deeper than %d", p, MaxInputsDepth)
	}
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > MaxNameBytes {
			return fmt.Errorf("path %q has a name of %d bytes, the most is %d", p, len(name), MaxNameBytes)
		}
	}
	return nil
}

// Limits bound one run. A zero field means the default. Sizes are bytes, times
// are milliseconds.
type Limits struct {
	WallMS         int64 `json:"wall_ms,omitempty"`         // from start to end
	CPUMS          int64 `json:"cpu_ms,omitempty"`          // of all processes together where a cgroup counts it, else of each
	MemoryBytes    int64 `json:"memory_bytes,omitempty"`    // of all processes and memory file systems together where a cgroup counts it
	Processes      int64 `json:"processes,omitempty"`       // processes and threads at one time
	FileBytes      int64 `json:"file_bytes,omitempty"`      // of one file
	OpenFiles      int64 `json:"open_files,omitempty"`      // of one process
	OutputBytes    int64 `json:"output_bytes,omitempty"`    // kept of stdout, and of stderr
	WorkspaceBytes int64 `json:"workspace_bytes,omitempty"` // of all files in the workspace
	TmpBytes       int64 `json:"tmp_bytes,omitempty"`       // of all files in /tmp, and of /dev/shm
	Files          int64 `json:"files,omitempty"`           // files and folders in workspace, /tmp and /dev/shm, each
}

// Wall is the wall time limit.
func (l Limits) Wall() time.Duration { return time.Duration(l.WallMS) * time.Millisecond }

// DefaultLimits are what a run gets that asks for nothing.
var DefaultLimits = Limits{
	WallMS: 60_000, CPUMS: 60_000, MemoryBytes: 512 << 20, Processes: 128,
	FileBytes: 64 << 20, OpenFiles: 1024, OutputBytes: 1 << 20,
	WorkspaceBytes: 128 << 20, TmpBytes: 64 << 20, Files: 20_000,
}

// DefaultProcessLimits are what a process in a workspace gets unless the operator says
// otherwise: room for a build, and the time of spec/02 §3.3. What it writes beneath the
// root is not bounded by them, but for the size of one file.
var DefaultProcessLimits = Limits{
	WallMS: 30_000, CPUMS: 3_600_000, MemoryBytes: 4 << 30, Processes: 1024,
	FileBytes: 4 << 30, OpenFiles: 4096, OutputBytes: 1 << 20,
	WorkspaceBytes: 128 << 20, TmpBytes: 1 << 30, Files: 200_000,
}

// MaxLimits are the most that a run may get unless the operator configures less.
var MaxLimits = Limits{
	WallMS: 3_600_000, CPUMS: 4 * 3_600_000, MemoryBytes: 16 << 30, Processes: 4096,
	FileBytes: 4 << 30, OpenFiles: 65_536, OutputBytes: 16 << 20,
	WorkspaceBytes: 8 << 30, TmpBytes: 4 << 30, Files: 1_000_000,
}

// minLimits are the least that can be asked for: below them no interpreter starts.
var minLimits = Limits{
	WallMS: 10, CPUMS: 10, MemoryBytes: 16 << 20, Processes: 4,
	FileBytes: 4 << 10, OpenFiles: 16, OutputBytes: 1,
	WorkspaceBytes: 64 << 10, TmpBytes: 64 << 10, Files: 16,
}

// LimitField is one limit by its wire name.
type LimitField struct {
	Name  string
	Value *int64
}

// Fields gives access to every limit by name, in a fixed order.
func (l *Limits) Fields() []LimitField {
	return []LimitField{
		{"wall_ms", &l.WallMS}, {"cpu_ms", &l.CPUMS}, {"memory_bytes", &l.MemoryBytes},
		{"processes", &l.Processes}, {"file_bytes", &l.FileBytes}, {"open_files", &l.OpenFiles},
		{"output_bytes", &l.OutputBytes}, {"workspace_bytes", &l.WorkspaceBytes},
		{"tmp_bytes", &l.TmpBytes}, {"files", &l.Files},
	}
}

// Validate reports every limit that is set and smaller than anything can run with.
// Too large a limit is not a fault: Within cuts it and says so.
func (l Limits) Validate() error {
	var errs []error
	low := minLimits
	for i, f := range low.Fields() {
		if v := *l.Fields()[i].Value; v != 0 && v < *f.Value {
			errs = append(errs, fmt.Errorf("limits.%s is %d, the least is %d", f.Name, v, *f.Value))
		}
	}
	return errors.Join(errs...)
}

// Within fills what l leaves open from def and cuts what exceeds max. It returns
// the names of the limits it cut, which the answer to the caller must name.
func (l Limits) Within(def, max Limits) (Limits, []string) {
	var cut []string
	out := l
	d, m := def.Fields(), max.Fields()
	for i, f := range out.Fields() {
		*f.Value = cmp.Or(*f.Value, *d[i].Value)
		if *f.Value > *m[i].Value {
			if *l.Fields()[i].Value != 0 {
				cut = append(cut, f.Name)
			}
			*f.Value = *m[i].Value
		}
	}
	return out, cut
}

func badUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}
