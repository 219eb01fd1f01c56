package config

import (
	"net"
	"time"

	"writ"
)

// InterpreterListen is where the code interpreter's API is when it is switched on without
// an address: the contract's port, for this machine.
const InterpreterListen = "127.0.0.1:3112"

// Auth says how the users of the code interpreter's API come in (spec/03 §3.2).
type Auth string

const (
	AuthJWT   Auth = "jwt"   // by tokens that their front end signs
	AuthNone  Auth = "none"  // by the name that they say is theirs
	AuthLocal Auth = "local" // all are one user
)

// Interpreter is the code interpreter's API, which front ends such as LibreChat call for
// their users (spec/03).
type Interpreter struct {
	Listen           string `json:"listen"` // TCP address, host:port; "" switches it off
	Auth             Auth   `json:"auth"`
	AllowNone        bool   `json:"allow_none"`         // without it, AuthNone is refused
	AllowNoneExposed bool   `json:"allow_none_exposed"` // without it, AuthNone is for this machine alone
	JWT              JWT    `json:"jwt"`
	// StrictTenants refuses tokens that name no tenant.
	StrictTenants bool         `json:"strict_tenants"`
	Synthetic     Synthetic    `json:"synthetic"`
	Scopes        []writ.Scope `json:"scopes"` // what every user may ask for
	// FileBytes is how many bytes an uploaded file must stay below, unless the user's plan
	// says otherwise.
	FileBytes   int64       `json:"file_bytes"`
	JSONBytes   int64       `json:"json_bytes"` // of a request's body, decoded
	Plans       []Plan      `json:"plans"`
	Rates       Rates       `json:"rates"`
	OutputUnits int64       `json:"output_units"` // UTF-16 code units of stdout, and of stderr
	Limits      writ.Limits `json:"limits"`       // of a run; its memory without its files
	Compile     writ.Limits `json:"compile"`      // of the compile step of a run
	Inputs      int64       `json:"inputs"`       // files that a run may be given
	// Collect says which files are kept when a run is over.
	Collect    Collect       `json:"collect"`
	JobTimeout time.Duration `json:"job_timeout"` // of a run, from when it was asked for
	Runtime    Runtime       `json:"runtime"`
	Retention  Retention     `json:"retention"`
	Quotas     Quotas        `json:"quotas"`
	// Blobs is the absolute path of the folder with the bytes of files; "" means blobs in the
	// data folder.
	Blobs string `json:"blobs"`
	Warm  int    `json:"warm"` // boxes kept ready; 0 means none
}

// Exposed reports whether other machines can reach the API.
func (in Interpreter) Exposed() bool {
	host, _, _ := net.SplitHostPort(in.Listen)
	return !loopback(host)
}

// JWT says which tokens are accepted (spec/03 §3.3).
type JWT struct {
	Issuer       string        `json:"issuer"`
	Audience     string        `json:"audience"`
	Algs         []string      `json:"algs"`
	Skew         time.Duration `json:"skew"`          // by how much clocks may differ
	MaxTTL       time.Duration `json:"max_ttl"`       // for how long a token may be valid
	Refresh      time.Duration `json:"refresh"`       // for how long keys are kept before they are read again
	SingleTenant writ.Tenant   `json:"single_tenant"` // of tokens that name none
	Keys         Keys          `json:"keys"`
}

// Keys is where the keys are that tokens are checked by. Of two with one id the later
// place's counts, and all before URL.
type Keys struct {
	JWKS     string      `json:"jwks"`      // a JWK set, as text
	File     string      `json:"file"`      // absolute path of a JWK set
	Folder   string      `json:"folder"`    // absolute path of a folder of one key a file
	Public   string      `json:"public"`    // one key, in PEM or as a JWK
	PublicID string      `json:"public_id"` // its id
	Secret   writ.Secret `json:"secret"`    // of HS256
	SecretID string      `json:"secret_id"` // its id
	URL      string      `json:"url"`       // of a JWK set
}

// none reports whether no key can come from anywhere.
func (k Keys) none() bool {
	return k.JWKS == "" && k.File == "" && k.Folder == "" && k.Public == "" && k.Secret == "" && k.URL == ""
}

// Synthetic is who the secret of synthetic tests speaks for, which may run code and
// nothing else.
type Synthetic struct {
	Token  writ.Secret `json:"token"` // "" lets nobody in
	User   string      `json:"user"`
	Tenant writ.Tenant `json:"tenant"`
}

// Plan is what users of a plan may have. A zero means what everybody may.
type Plan struct {
	ID          string `json:"id"`
	MemoryBytes int64  `json:"memory_bytes"` // of a run, without its files
	FileBytes   int64  `json:"file_bytes"`   // that an uploaded file must stay below
}

// Collect is writ.Collect without what is not an operator's to say.
type Collect struct {
	Files      int64    `json:"files"`
	FileBytes  int64    `json:"file_bytes"`
	TotalBytes int64    `json:"total_bytes"`
	Depth      int64    `json:"depth"`
	PathLength int64    `json:"path_length"`
	Names      []string `json:"names"`
	Hidden     bool     `json:"hidden"`
}

// Bounds are c as runs have them.
func (c Collect) Bounds() writ.Collect {
	return writ.Collect{
		Files: c.Files, FileBytes: c.FileBytes, TotalBytes: c.TotalBytes, Depth: c.Depth, PathLength: c.PathLength,
		Names: c.Names, Hidden: c.Hidden,
	}
}

// Rates are how often one user may come (spec/03 §5).
type Rates struct {
	Exec     Rate `json:"exec"`
	Upload   Rate `json:"upload"`
	Download Rate `json:"download"`
	Fetch    Rate `json:"fetch"`
}

// Rate is at most Most requests in each Window.
type Rate struct {
	Most   int           `json:"most"`
	Window time.Duration `json:"window"`
}

// Runtime says whether what a run leaves is there in the user's next (spec/03 §12).
type Runtime struct {
	Mode         string        `json:"mode"`      // stateless, affinity, strict
	LockWait     time.Duration `json:"lock_wait"` // for another run of the same session
	TTL          time.Duration `json:"ttl"`       // from its last use
	SessionBytes int64         `json:"session_bytes"`
}

// Retention says how long files are there.
type Retention struct {
	TTL   time.Duration `json:"ttl"`   // from when their session was made
	Keep  time.Duration `json:"keep"`  // after that, until they are removed
	Every time.Duration `json:"every"` // between two passes that remove what is due
	// Remove has passes remove what is due; without it they only say how much that is.
	Remove bool `json:"remove"`
}

// Quotas bound what is kept.
type Quotas struct {
	SessionObjects int64 `json:"session_objects"`
	SessionBytes   int64 `json:"session_bytes"`
	TenantSessions int64 `json:"tenant_sessions"`
	TenantBytes    int64 `json:"tenant_bytes"`
}

// defaultInterpreter is the contract's, where it has a word on it.
func defaultInterpreter() Interpreter {
	return Interpreter{
		Auth: AuthJWT,
		JWT: JWT{
			Issuer: "librechat", Audience: "codeapi", Algs: []string{"EdDSA", "RS256"},
			Skew: 30 * time.Second, MaxTTL: 300 * time.Second, Refresh: 30 * time.Second, SingleTenant: "legacy",
			Keys: Keys{SecretID: "hs256-dev"},
		},
		Synthetic: Synthetic{User: "synthetic-tests", Tenant: "synthetic"},
		Scopes:    []writ.Scope{"python", "node", "shell", "c", "cpp", "java", "php", "rust", "go", "d", "fortran", "r"},
		FileBytes: 25 << 20,
		JSONBytes: 50 << 20,
		Rates: Rates{
			Exec: Rate{20, 30 * time.Second}, Upload: Rate{30, 300 * time.Second},
			Download: Rate{60, 60 * time.Second}, Fetch: Rate{120, 60 * time.Second},
		},
		OutputUnits: 65_536,
		// The memory is the contract's. Bun and the JVM start a thread for each core and
		// more, and compilers work in parallel: the contract's 64 processes are not enough.
		Limits: writ.Limits{
			WallMS: 60_000, CPUMS: 60_000, MemoryBytes: 256 << 20, Processes: 256,
			FileBytes: 100 << 20, OpenFiles: 2048, OutputBytes: 256 << 10,
			WorkspaceBytes: 256 << 20, TmpBytes: 64 << 20, Files: 20_000,
		},
		// Without a cache, Go compiles the packages of its library that a program uses.
		Compile: writ.Limits{
			WallMS: 120_000, CPUMS: 240_000, MemoryBytes: 1 << 30, Processes: 256,
			FileBytes: 100 << 20, OpenFiles: 2048, OutputBytes: 256 << 10,
			WorkspaceBytes: 256 << 20, TmpBytes: 512 << 20, Files: 20_000,
		},
		Inputs: 256,
		Collect: Collect{
			Files: 50, FileBytes: 10_000_000, TotalBytes: 500_000_000, Depth: 10, PathLength: 256,
			Names: collectNames(),
		},
		JobTimeout: 300 * time.Second,
		Runtime:    Runtime{Mode: "stateless", LockWait: 15 * time.Second, TTL: 8*time.Hour + 10*time.Minute, SessionBytes: 512 << 20},
		Retention:  Retention{TTL: 24 * time.Hour, Keep: 48 * time.Hour, Every: 15 * time.Minute, Remove: true},
		Quotas:     Quotas{SessionObjects: 1000, SessionBytes: 8 << 30, TenantSessions: 10_000_000, TenantBytes: 64 << 30},
		Warm:       1,
	}
}

// collectNames are the extensions and names of spec/03 §8.
func collectNames() []string {
	return []string{
		"c", "cs", "cpp", "go", "java", "js", "kt", "kts", "lua", "php", "pl", "ps1", "py", "r", "rb", "rs", "scala", "sh", "sql", "swift", "ts", "jsx", "tsx", "groovy",
		"css", "htm", "html", "less", "sass", "scss", "svg", "svelte", "vue",
		"adoc", "asciidoc", "md", "rst", "tex", "txt", "wiki",
		"csv", "json", "bson", "json5", "jsonl", "parquet", "tsv", "xml", "yaml", "yml",
		"ics", "ical", "ifb", "icalendar",
		"conf", "env", "gitignore", "ini", "properties", "toml",
		"doc", "docx", "pdf", "ppt", "pptx", "xls", "xlsx", "odt", "ods", "odp", "rtf",
		"avif", "bmp", "gif", "ico", "jpeg", "jpg", "png", "tif", "tiff", "webp",
		"eot", "ttf", "woff", "woff2",
		"7z", "bz2", "gz", "gzip", "rar", "tar", "zip",
		"tf", "tfvars", "tfstate", "hcl",
		"dockerfile", "dockerignore", "helmignore", "helmfile", "jenkinsfile", "vagrantfile", "eslintrc", "prettierrc", "editorconfig", "nomad",
		"bat", "cmd", "deb", "log", "rpm", "vbs",
	}
}
