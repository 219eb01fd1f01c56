package config

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
)

// contract is the variables of spec/03 §16 and spec/05 §4.1.
func contract(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/variables.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

// Whoever comes with the settings of the contract is told what each of them is here.
func TestEveryVariableOfTheContractIsKnown(t *testing.T) {
	known := map[string]string{}
	for _, v := range variables() {
		if known[v.name] != "" {
			t.Errorf("%s is two keys", v.name)
		}
		known[v.name] = v.key
	}
	names := contract(t)
	for _, name := range names {
		if known[name] == "" && meaningless(name) == "" {
			t.Errorf("%s is neither a key nor said to mean nothing", name)
		}
		delete(known, name)
	}
	if len(known) > 0 {
		t.Errorf("these are not the contract's: %v", slices.Sorted(maps.Keys(known)))
	}
	for _, row := range unused() {
		for pattern := range strings.FieldsSeq(row.names) {
			prefix, family := strings.CutSuffix(pattern, "*")
			if !slices.ContainsFunc(names, func(n string) bool { return n == pattern || family && strings.HasPrefix(n, prefix) }) {
				t.Errorf("%s is no variable of the contract", pattern)
			}
		}
	}
	for _, name := range []string{"PATH", "WRIT_DATA", "HOME", "SANDBOX", "REDIS"} {
		if why := meaningless(name); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// A key that a variable stands for must be one of the file, so that it is found there.
func TestVariablesNameKeys(t *testing.T) {
	all := slices.Concat(leaves("interpreter", reflect.TypeFor[Interpreter]()), []string{"log.level", "runner.slots", "runner.uid_base"})
	for _, v := range variables() {
		if !slices.Contains(all, v.key) {
			t.Errorf("%s stands for %q, which is no key", v.name, v.key)
		}
	}
}

func TestVariables(t *testing.T) {
	for _, tt := range []struct {
		set  string // NAME=value, one a line
		want func(c *Config)
	}{
		{"SERVICE_PORT=4000\nCODEAPI_JWT_PUBLIC_KEYS_DIR=/keys", func(c *Config) {
			c.Interpreter.Listen, c.Interpreter.JWT.Keys.Folder = "127.0.0.1:4000", "/keys"
		}},
		{"LOCAL_MODE=true", func(c *Config) { c.Interpreter.Auth = AuthLocal }},
		{"CODEAPI_AUTH_PROVIDER=none\nCODEAPI_ALLOW_AUTH_PROVIDER_NONE=true", func(c *Config) { c.Interpreter.Auth, c.Interpreter.AllowNone = AuthNone, true }},
		{"CODEAPI_AUTH_PROVIDER=none\nLOCAL_MODE=true", func(c *Config) { c.Interpreter.Auth = AuthLocal }},
		{"LOCAL_MODE=true\nCODEAPI_HTTP_JSON_LIMIT=1.5mb", func(c *Config) { c.Interpreter.Auth, c.Interpreter.JSONBytes = AuthLocal, 3<<19 }},
		{"LOCAL_MODE=true\nCODEAPI_HTTP_JSON_LIMIT=2048", func(c *Config) { c.Interpreter.Auth, c.Interpreter.JSONBytes = AuthLocal, 2048 }},
		{`LOCAL_MODE=true
CODEAPI_PLAN_LIMITS={"pro":{"run_memory_limit":536870912,"max_file_size":1},"free":{}}`, func(c *Config) {
			c.Interpreter.Auth = AuthLocal
			c.Interpreter.Plans = []Plan{{ID: "free"}, {ID: "pro", MemoryBytes: 512 << 20, FileBytes: 1}}
		}},
		{`SERVICE_PORT=3112
CODEAPI_TENANT_ISOLATION_STRICT=true
CODEAPI_JWT_ISSUER=chat
CODEAPI_JWT_AUDIENCE=code
CODEAPI_JWT_ALLOWED_ALGS=HS256, EdDSA,
CODEAPI_JWT_CLOCK_SKEW_SECONDS=0
CODEAPI_JWT_MAX_TTL_SECONDS=60
CODEAPI_JWT_KEY_CACHE_TTL_SECONDS=5
CODEAPI_JWT_JWKS_JSON={"keys":[]}
CODEAPI_JWT_PUBLIC_KEYS_DIR=/keys
CODEAPI_JWT_PUBLIC_KEY=-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----
CODEAPI_JWT_KID=one
CODEAPI_JWT_KEY_ID=one
CODEAPI_JWT_HS256_SECRET=01234567890123456789012345678901
CODEAPI_JWT_HS256_KID=two
CODEAPI_JWT_SINGLE_TENANT_ID=acme
CODEAPI_SYNTHETIC_ACCESS_TOKEN=x1234567890123456789012345678901
CODEAPI_SYNTHETIC_USER_ID=monitor
CODEAPI_SYNTHETIC_TENANT_ID=probes`, func(c *Config) {
			in := &c.Interpreter
			in.StrictTenants = true
			in.JWT = JWT{Issuer: "chat", Audience: "code", Algs: []string{"HS256", "EdDSA"}, MaxTTL: time.Minute, Refresh: 5 * time.Second, SingleTenant: "acme",
				Keys: Keys{JWKS: `{"keys":[]}`, Folder: "/keys", Public: "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----", PublicID: "one",
					Secret: "01234567890123456789012345678901", SecretID: "two"}}
			in.Synthetic = Synthetic{Token: "x1234567890123456789012345678901", User: "monitor", Tenant: "probes"}
		}},
		{`LOCAL_MODE=true
LOG_LEVEL=debug
JOB_TIMEOUT=60000
MAX_FILE_SIZE=100
SESSION_CACHE_TTL=3600
CODEAPI_FILE_RETENTION_HOURS=0.5
CODEAPI_FILE_RETENTION_ENABLED=false
CODEAPI_FILE_RETENTION_INTERVAL_MS=60000
MAX_REQUESTS=1
RATE_LIMIT_WINDOW=1000
UPLOAD_MAX_REQUESTS=2
UPLOAD_LIMIT_WINDOW=2000
DOWNLOAD_MAX_REQUESTS=3
DOWNLOAD_LIMIT_WINDOW=3000
FETCH_MAX_REQUESTS=4
FETCH_LIMIT_WINDOW=4000
CODEAPI_RUNTIME_SESSION_MODE=affinity
CODEAPI_RUNTIME_SESSION_LOCK_WAIT_MS=50
CODEAPI_CHECKPOINT_MAX_BYTES=1048576`, func(c *Config) {
			in := &c.Interpreter
			c.Log.Level, in.Auth, in.JobTimeout, in.FileBytes, in.Retention.TTL = "debug", AuthLocal, time.Minute, 100, time.Hour
			in.Retention.Keep, in.Retention.Every, in.Retention.Remove = 30*time.Minute, time.Minute, false
			in.Rates = Rates{Exec: Rate{1, time.Second}, Upload: Rate{2, 2 * time.Second}, Download: Rate{3, 3 * time.Second}, Fetch: Rate{4, 4 * time.Second}}
			in.Runtime.Mode, in.Runtime.LockWait, in.Runtime.SessionBytes = "affinity", 50*time.Millisecond, 1<<20
		}},
		{`LOCAL_MODE=true
SANDBOX_OUTPUT_MAX_SIZE=1024
SANDBOX_RUN_TIMEOUT=15000
SANDBOX_RUN_CPU_TIME=16000
SANDBOX_COMPILE_TIMEOUT=17000
SANDBOX_RUN_MEMORY_LIMIT=134217728
SANDBOX_MAX_PROCESS_COUNT=100
SANDBOX_MAX_OPEN_FILES=512
SANDBOX_RLIMIT_FSIZE=50
SANDBOX_MAX_FILE_SIZE=1000
SANDBOX_MAX_OUTPUT_FILES=5
SANDBOX_MAX_NESTING_DEPTH=6
SANDBOX_MAX_PATH_LENGTH=70
SANDBOX_MAX_INPUT_FILES=8
SANDBOX_MAX_CONCURRENT_JOBS=3
SANDBOX_JOB_UID_BASE=200000`, func(c *Config) {
			in := &c.Interpreter
			in.Auth, in.OutputUnits, in.Compile.WallMS, in.Inputs = AuthLocal, 1024, 17000, 8
			in.Limits.WallMS, in.Limits.CPUMS, in.Limits.MemoryBytes, in.Limits.Processes = 15000, 16000, 128<<20, 100
			in.Limits.OpenFiles, in.Limits.FileBytes = 512, 50<<20
			in.Collect.FileBytes, in.Collect.Files, in.Collect.Depth, in.Collect.PathLength = 1000, 5, 6, 70
			c.Runner.Slots, c.Runner.UIDBase = 3, 200_000
		}},
		// Beyond their caps the contract takes those, and below zero the default.
		{`LOCAL_MODE=true
CODEAPI_JWT_CLOCK_SKEW_SECONDS=60
CODEAPI_JWT_MAX_TTL_SECONDS=3600
CODEAPI_JWT_KEY_CACHE_TTL_SECONDS=301`, func(c *Config) {
			c.Interpreter.Auth = AuthLocal
			c.Interpreter.JWT.Skew, c.Interpreter.JWT.MaxTTL, c.Interpreter.JWT.Refresh = 30*time.Second, 5*time.Minute, 5*time.Minute
		}},
		{"LOCAL_MODE=true\nCODEAPI_JWT_KEY_CACHE_TTL_SECONDS=0", func(c *Config) { c.Interpreter.Auth = AuthLocal }},
		{"LOCAL_MODE=true\nCODEAPI_JWT_KEY_CACHE_TTL_SECONDS=-1", func(c *Config) { c.Interpreter.Auth = AuthLocal }},
		// The secret has the id of the other key where it has none of its own.
		{"LOCAL_MODE=true\nCODEAPI_JWT_KID=one", func(c *Config) {
			c.Interpreter.Auth, c.Interpreter.JWT.Keys.PublicID, c.Interpreter.JWT.Keys.SecretID = AuthLocal, "one", "one"
		}},
		{"LOCAL_MODE=true\nSANDBOX_RUN_MEMORY_LIMIT=-1\nMAX_FILE_SIZE=\nJOB_TIMEOUT= ", func(c *Config) { c.Interpreter.Auth = AuthLocal }},
	} {
		want, got := Default(), Default()
		want.Interpreter.Listen = InterpreterListen
		tt.want(&want)
		env := NewOverlay(strings.Split(tt.set, "\n"))
		env.Apply(&got)
		if d := cmp.Diff(want, got, cmp.Comparer(sameSecret)); d != "" {
			t.Errorf("%s\n(-want +got):\n%s", tt.set, d)
		}
		if err := env.Validate(got); err != nil {
			t.Errorf("%s\n%v", tt.set, err)
		}
	}
}

// Every one of them is read: what is not understood is a fault that names it, and quotes
// no secret.
func TestVariablesThatAreWrong(t *testing.T) {
	free := []string{ // any text may be their value
		"CODEAPI_JWT_ISSUER", "CODEAPI_JWT_AUDIENCE", "CODEAPI_JWT_SINGLE_TENANT_ID", "CODEAPI_JWT_JWKS_JSON", "CODEAPI_JWT_PUBLIC_KEY",
		"CODEAPI_JWT_KID", "CODEAPI_JWT_KEY_ID", "CODEAPI_JWT_HS256_KID", "CODEAPI_SYNTHETIC_USER_ID", "CODEAPI_SYNTHETIC_TENANT_ID",
	}
	for _, v := range variables() {
		c := Default()
		env := NewOverlay([]string{v.name + "=h,unter2"})
		env.Flag("interpreter", "interpreter.warm", func(*Config) {})
		env.Apply(&c)
		err := env.Validate(c)
		if slices.Contains(free, v.name) {
			continue
		}
		if writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), v.key) || !strings.Contains(writ.Message(err), "the environment variable "+v.name+": ") {
			t.Errorf("%s: got %v, want Invalid that names it and its key", v.name, err)
		}
		if strings.Contains(writ.Message(err), "unter2") && (strings.Contains(v.name, "SECRET") || strings.Contains(v.name, "TOKEN")) {
			t.Errorf("%s: the message has the value: %v", v.name, err)
		}
	}
	for set, says := range map[string]string{
		"LOCAL_MODE=1":                                                             "LOCAL_MODE: want true or false",
		"LOCAL_MODE=true\nMAX_REQUESTS=0":                                          "MAX_REQUESTS: 0 is outside 1 to",
		"LOCAL_MODE=true\nMAX_REQUESTS=-1":                                         "MAX_REQUESTS: -1 is outside",
		"LOCAL_MODE=true\nMAX_REQUESTS=99999999999999999999":                       "MAX_REQUESTS: want a whole number",
		"LOCAL_MODE=true\nRATE_LIMIT_WINDOW=9999999999999999":                      "RATE_LIMIT_WINDOW: want a whole number of milliseconds",
		"LOCAL_MODE=true\nCODEAPI_JWT_CLOCK_SKEW_SECONDS=-1":                       "CODEAPI_JWT_CLOCK_SKEW_SECONDS: want a whole number of seconds",
		"LOCAL_MODE=true\nCODEAPI_FILE_RETENTION_HOURS=-1":                         "CODEAPI_FILE_RETENTION_HOURS: want a number of hours",
		"LOCAL_MODE=true\nCODEAPI_FILE_RETENTION_HOURS=NaN":                        "CODEAPI_FILE_RETENTION_HOURS: want a number of hours",
		"LOCAL_MODE=true\nCODEAPI_FILE_RETENTION_HOURS=1e9":                        "CODEAPI_FILE_RETENTION_HOURS: want a number of hours",
		"LOCAL_MODE=true\nCODEAPI_FILE_RETENTION_HOURS=10000":                      "CODEAPI_FILE_RETENTION_HOURS: 10000h0m0s is outside",
		"LOCAL_MODE=true\nCODEAPI_FILE_RETENTION_INTERVAL_MS=1":                    "CODEAPI_FILE_RETENTION_INTERVAL_MS: 1ms is outside",
		"LOCAL_MODE=true\nCODEAPI_JWT_ALLOWED_ALGS=none":                           `CODEAPI_JWT_ALLOWED_ALGS: "none" is none of`,
		"LOCAL_MODE=true\nCODEAPI_JWT_KID=a\nCODEAPI_JWT_KEY_ID=b":                 "CODEAPI_JWT_KEY_ID and the environment variable CODEAPI_JWT_KID differ",
		"LOCAL_MODE=true\nCODEAPI_HTTP_JSON_LIMIT=50m":                             `CODEAPI_HTTP_JSON_LIMIT: want bytes, or a size`,
		"LOCAL_MODE=true\n" + `CODEAPI_PLAN_LIMITS={"pro":{"memory":1}}`:           "CODEAPI_PLAN_LIMITS: want JSON",
		"LOCAL_MODE=true\n" + `CODEAPI_PLAN_LIMITS={"pro":{"max_file_size":-1}}`:   "CODEAPI_PLAN_LIMITS: want limits of plans above 0",
		"LOCAL_MODE=true\n" + `CODEAPI_PLAN_LIMITS={"pro":{"run_memory_limit":1}}`: "CODEAPI_PLAN_LIMITS: 1 is too little",
		"LOCAL_MODE=true\nSERVICE_PORT=http":                                       "SERVICE_PORT: want a port",
		"LOCAL_MODE=true\nCODEAPI_SYNTHETIC_ACCESS_TOKEN=short":                    "CODEAPI_SYNTHETIC_ACCESS_TOKEN: has 5 bytes",
		"CODEAPI_AUTH_PROVIDER=none":                                               "set interpreter.allow_none too",
		"CODEAPI_AUTH_PROVIDER=none\nLOCAL_MODE=false":                             "interpreter.auth: the environment variable CODEAPI_AUTH_PROVIDER and the environment variable LOCAL_MODE: none believes",
		"LOCAL_MODE=true\nCODEAPI_SYNTHETIC_USER_ID=moni\x7ftor":                   `CODEAPI_SYNTHETIC_USER_ID: "moni\x7ftor": want 1 to 256 bytes without control characters`,
		"LOCAL_MODE=true\nCODEAPI_SYNTHETIC_TENANT_ID=a\tb":                        `CODEAPI_SYNTHETIC_TENANT_ID: "a\tb": want 1 to 256 bytes`,
		"LOCAL_MODE=true\nCODEAPI_JWT_SINGLE_TENANT_ID=a\x1bb":                     `CODEAPI_JWT_SINGLE_TENANT_ID: "a\x1bb": want 1 to 256 bytes`,
		"CODEAPI_AUTH_PROVIDER=both":                                               "CODEAPI_AUTH_PROVIDER: want librechat-jwt or none",
		"SERVICE_PORT=3112":                                                        "interpreter.jwt.keys: name where the keys are",
	} {
		c := Default()
		env := NewOverlay(strings.Split(set, "\n"))
		env.Apply(&c)
		if err := env.Validate(c); writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), says) {
			t.Errorf("%s\ngot %v, want Invalid with %q", set, err, says)
		}
	}
}

// Whoever slips in the word for who comes in is told of that alone, and not that tokens,
// which were not meant, have no keys.
func TestWhatFollowsFromAFaultIsNone(t *testing.T) {
	for _, set := range []string{"LOCAL_MODE=1", "CODEAPI_AUTH_PROVIDER=both"} {
		c := Default()
		env := NewOverlay([]string{set})
		env.Apply(&c)
		if err := env.Validate(c); strings.Contains(writ.Message(err), "\n") || !strings.HasPrefix(writ.Message(err), "interpreter.auth: ") {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// Names such as LOG_LEVEL and PORT are others' too: they count only for who runs a code
// interpreter.
func TestVariablesCountOnlyWhereItIsOn(t *testing.T) {
	for _, tt := range []struct {
		set, listen string
		flag, on    bool
	}{
		{set: "LOG_LEVEL=debug\nMAX_FILE_SIZE=x\nPORT=1"},
		{set: "LOG_LEVEL=debug\nLOCAL_MODE=false"},
		{set: "LOG_LEVEL=debug\nLOCAL_MODE=\nSERVICE_PORT= "},
		{set: "LOG_LEVEL=debug", listen: "127.0.0.1:1", on: true},
		{set: "LOG_LEVEL=debug", flag: true, on: true},
		{set: "LOG_LEVEL=debug\nSERVICE_PORT=3112", on: true},
		{set: "LOG_LEVEL=debug\nCODEAPI_AUTH_PROVIDER=librechat-jwt", on: true},
	} {
		c := Default()
		c.Interpreter.Listen = tt.listen
		env := NewOverlay(strings.Split(tt.set, "\n"))
		if tt.flag {
			env.Flag("interpreter", "interpreter.listen", func(c *Config) { c.Interpreter.Listen = "127.0.0.1:1" })
		}
		env.Apply(&c)
		if on := c.Interpreter.Listen != "" && c.Log.Level == "debug" && len(env.Applied()) > 0; on != tt.on {
			t.Errorf("%+v: on=%v: %+v", tt, on, c.Interpreter.Listen)
		}
		if err := env.Validate(c); !tt.on && err != nil {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestUnusedVariables(t *testing.T) {
	env := NewOverlay([]string{"REDIS_HOST=r", "SANDBOX_DISABLE_NETWORKING=false", "HOME=/root", "PTC_MODE=", "MAX_FILE_SIZE=1"})
	var got []string
	for _, v := range env.Unused() {
		if v.Why == "" || v.Key != "" {
			t.Errorf("%+v", v)
		}
		got = append(got, v.Name)
	}
	if d := cmp.Diff([]string{"REDIS_HOST", "SANDBOX_DISABLE_NETWORKING"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
