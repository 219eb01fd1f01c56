package config

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"writ"
)

// FileName is what the file is called in a data folder.
const FileName = "config.yaml"

// maxBytes bounds the file: thousands of identities fit.
const maxBytes = 1 << 20

// Config is the whole file. The json tags are its keys: the vocabulary's types
// have the same names here as on every wire.
type Config struct {
	// Listen is the TCP address of the HTTP API, host:port.
	Listen string `json:"listen"`
	// Hosts are further names and addresses that clients know the API by, without a
	// port: those of a proxy in front of it.
	Hosts []string `json:"hosts"`
	MCP   MCP      `json:"mcp"`
	// Database is "" for SQLite in the data folder, "sqlite:FILE", or a
	// "postgres://" URL. It may carry a password.
	Database writ.Secret `json:"database"`
	// Policy is the folder of the Cedar files; see PolicyDir.
	Policy     string          `json:"policy"`
	Identities []writ.Identity `json:"identities"`
	// Environments are where Workspaces may be, beside this host, which is "local".
	Environments []Environment `json:"environments"`
	Workspaces   []Workspace   `json:"workspaces"`
	Approvals    Approvals     `json:"approvals"`
	Limits       Limits        `json:"limits"`
	Processes    Processes     `json:"processes"`
	Interpreter  Interpreter   `json:"interpreter"`
	Runner       Runner        `json:"runner"`
	Log          Log           `json:"log"`
}

// MCP says what the endpoint of the workspace tools tells its clients and whom it
// answers, beside the clients of Listen and Hosts.
type MCP struct {
	Issuer   string   `json:"issuer"`   // URL of the authorization server to ask for a key, with Resource
	Resource string   `json:"resource"` // public URL of the endpoint
	Origins  []string `json:"origins"`  // of pages that may call it, as https://host:port
}

// Approvals says how held requests wait.
type Approvals struct {
	TTL     time.Duration `json:"ttl"`     // from the request to its expiry
	Pending int           `json:"pending"` // requests of one identity that may wait; one more is refused
}

// Limits bound every run. A default that the file does not set is never above
// the maximum: it follows it down.
type Limits struct {
	Default writ.Limits `json:"default"` // what a run gets that asks for nothing
	Max     writ.Limits `json:"max"`     // the most it may ask for, at most writ.MaxLimits
}

// Processes bounds the commands that run in workspaces.
type Processes struct {
	Live   int         `json:"live"`   // at one time, over all workspaces; one more is refused
	Cwd    bool        `json:"cwd"`    // agents may say in which folder of the workspace one starts
	Limits writ.Limits `json:"limits"` // of each, at most writ.MaxLimits; wall_ms is its time
}

// Runner sizes the part that runs things.
type Runner struct {
	// Socket is where a runner answers that somebody else starts ("writ runner --socket
	// FILE"). "" means that the server starts its own, which ends with it.
	Socket    string        `json:"socket"`
	Slots     int           `json:"slots"`      // runs at one time; 0 means one per core
	Queue     int           `json:"queue"`      // runs that may wait for a slot
	QueueWait time.Duration `json:"queue_wait"` // how long each may wait
	Warm      int           `json:"warm"`       // boxes kept ready; 0 means none
	Strict    bool          `json:"strict"`     // refuse to run when a layer of the sandbox is missing
	Bwrap     string        `json:"bwrap"`      // path of the program; "" means bwrap on PATH
	UIDBase   int           `json:"uid_base"`   // first of the host's user ids that boxes run under, used when root
}

// Log says what the server logs and how.
type Log struct {
	Level  string `json:"level"`  // debug, info, warn, error
	Format string `json:"format"` // auto (text on a terminal, else json), text, json
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		Listen:      "127.0.0.1:8740",
		Policy:      "policy",
		Approvals:   Approvals{TTL: time.Hour, Pending: 50},
		Limits:      Limits{Default: writ.DefaultLimits, Max: writ.MaxLimits},
		Processes:   Processes{Live: 8, Limits: writ.DefaultProcessLimits},
		Interpreter: defaultInterpreter(),
		Runner:      Runner{Queue: 64, QueueWait: 30 * time.Second, Warm: 2, UIDBase: 861_000},
		Log:         Log{Level: "info", Format: "auto"},
	}
}

//go:embed example.yaml
var example string

// Example is the file that a first start writes: every key with its default and
// what it means. It parses to Default. The caller owns the bytes.
func Example() []byte { return []byte(example) }

// Load reads the file at path, puts over it what stands above it, and checks the whole.
// Its errors are *writ.Error: NotFound when there is no such file, Invalid for everything
// that is wrong, all at once, and Unavailable when it cannot be read.
func Load(path string, over *Overlay) (Config, error) {
	data, mode, err := read(path)
	if err != nil {
		return Config{}, err
	}
	var file Config
	cfg, err := parse(path, data, func(c *Config) {
		file = *c
		over.Apply(c)
	}, over.split)
	if err != nil {
		return Config{}, err
	}
	if what := file.secret(); mode.Perm()&0o044 != 0 && what != "" {
		return Config{}, invalid("%s holds %s and others may read it (mode %04o): chmod 600 %s", path, what, mode.Perm(), path)
	}
	return cfg, nil
}

// Parse checks data as if it had been read from a file called name, with nothing above it.
func Parse(name string, data []byte) (Config, error) {
	return parse(name, data, func(*Config) {}, func(all []fault) (own, file []fault) { return nil, all })
}

// parse is Parse with apply, which puts over the file what stands above it, and split,
// which tells what that brought of the faults.
func parse(name string, data []byte, apply func(*Config), split func([]fault) (own, file []fault)) (Config, error) {
	src := source{name: name, lines: strings.Split(string(data), "\n"), at: map[string]position{}}
	cfg := Default()
	faults := src.decode(data, &cfg)
	src.settle(&cfg)
	apply(&cfg)
	own, file := split(cfg.faults())
	for _, f := range file {
		// What could not be read has no meaning to complain about.
		if !slices.ContainsFunc(src.found, f.within) {
			faults = append(faults, f)
		}
	}
	var texts []string
	if len(faults) > 0 {
		texts = append(texts, src.render(faults))
	}
	for _, f := range own {
		texts = append(texts, f.path+": "+f.msg)
	}
	if len(texts) > 0 {
		return Config{}, &writ.Error{Kind: writ.Invalid, Op: "read configuration", Msg: strings.Join(texts, "\n")}
	}
	return cfg, nil
}

// Validate reports every fault at once, as Load does but without lines. Its error is a *writ.Error of kind Invalid.
func (c Config) Validate() error {
	return joined(c.faults())
}

// joined is the error of faults without lines, nil when there are none.
func joined(faults []fault) error {
	var errs []error
	for _, f := range faults {
		errs = append(errs, fmt.Errorf("%s: %s", f.path, f.msg))
	}
	if err := errors.Join(errs...); err != nil {
		return &writ.Error{Kind: writ.Invalid, Op: "check configuration", Msg: err.Error()}
	}
	return nil
}

// PolicyDir is the folder of the policies: Policy, beneath data when relative.
func (c Config) PolicyDir(data string) string {
	if filepath.IsAbs(c.Policy) {
		return c.Policy
	}
	return filepath.Join(data, c.Policy)
}

// DatabaseURL is Database with its default filled in and a relative SQLite file
// placed beneath data.
func (c Config) DatabaseURL(data string) writ.Secret {
	url := c.Database.Reveal()
	file, sqlite := strings.CutPrefix(url, "sqlite:")
	switch {
	case url == "":
		return writ.Secret("sqlite:" + filepath.Join(data, "writ.db"))
	case sqlite && !filepath.IsAbs(file):
		return writ.Secret("sqlite:" + filepath.Join(data, file))
	}
	return c.Database
}

// BlobsDir is the folder with the bytes of files.
func (c Config) BlobsDir(data string) string {
	if c.Interpreter.Blobs != "" {
		return c.Interpreter.Blobs
	}
	return filepath.Join(data, "blobs")
}

// secret is what c holds that only its owner may read, in words; empty for nothing.
func (c Config) secret() string {
	switch {
	case hasPassword(c.Database.Reveal()):
		return "the password of the database"
	case c.Interpreter.JWT.Keys.Secret != "":
		return "the secret that tokens are signed with"
	case c.Interpreter.Synthetic.Token != "":
		return "the token of synthetic tests"
	}
	return ""
}

func read(path string) ([]byte, fs.FileMode, error) {
	unavailable := func(err error) error {
		return &writ.Error{Kind: writ.Unavailable, Op: "read configuration", Msg: err.Error(), Err: err}
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, &writ.Error{Kind: writ.NotFound, Op: "read configuration", Msg: "there is no file " + path, Err: err}
	}
	if err != nil {
		return nil, 0, unavailable(err)
	}
	defer f.Close()
	// The open file is asked, not the name: what is judged is what is read.
	info, err := f.Stat()
	if err != nil {
		return nil, 0, unavailable(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, invalid("%s is not a regular file", path)
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return nil, 0, invalid("%s can be written by others than its owner (mode %04o), who could give themselves any scope: chmod go-w %s", path, perm, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, 0, unavailable(err)
	}
	if len(data) > maxBytes {
		return nil, 0, invalid("%s is larger than %d bytes", path, maxBytes)
	}
	return data, info.Mode(), nil
}

func invalid(format string, args ...any) error {
	return &writ.Error{Kind: writ.Invalid, Op: "read configuration", Msg: fmt.Sprintf(format, args...)}
}
