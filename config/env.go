package config

import (
	"strconv"
	"time"

	"writ"
)

// The variables are those of spec/03 §16 and spec/05 §4.1: who comes from the server that the contract is
// of keeps their names and their formats.

// variable is one that stands for a key.
type variable struct {
	name, key string
	// set puts a value, which is not empty, into c, or says what was wanted. It must not
	// quote the value of a secret.
	set func(c *Config, v string) (want string)
}

const (
	servicePort  = "SERVICE_PORT"
	localMode    = "LOCAL_MODE"
	authProvider = "CODEAPI_AUTH_PROVIDER"
	publicID     = "interpreter.jwt.keys.public_id" // has two variables
)

// variables are read in this order.
func variables() []variable {
	vs := []variable{
		{authProvider, "interpreter.auth", func(c *Config, v string) string {
			known := map[string]Auth{"librechat-jwt": AuthJWT, "none": AuthNone}
			if known[v] == "" {
				return "librechat-jwt or none"
			}
			c.Interpreter.Auth = known[v]
			return ""
		}},
		{localMode, "interpreter.auth", func(c *Config, v string) string {
			var on bool
			want := boolean(&on, v)
			if in := &c.Interpreter; on {
				in.Auth = AuthLocal
			} else if want == "" && in.Auth == AuthLocal {
				in.Auth = AuthJWT
			}
			return want
		}},
		{servicePort, "interpreter.listen", setPort},
		{"CODEAPI_ALLOW_AUTH_PROVIDER_NONE", "interpreter.allow_none", truth(func(c *Config) *bool { return &c.Interpreter.AllowNone })},
		{"CODEAPI_HTTP_JSON_LIMIT", "interpreter.json_bytes", func(c *Config, v string) string { return httpSize(&c.Interpreter.JSONBytes, v) }},
		{"CODEAPI_PLAN_LIMITS", "interpreter.plans", func(c *Config, v string) string { return planLimits(&c.Interpreter.Plans, v) }},
		{"CODEAPI_TENANT_ISOLATION_STRICT", "interpreter.strict_tenants", truth(func(c *Config) *bool { return &c.Interpreter.StrictTenants })},
		{"LOG_LEVEL", "log.level", word(func(c *Config) *string { return &c.Log.Level })},
		{"JOB_TIMEOUT", "interpreter.job_timeout", millis(func(c *Config) *int64 { return (*int64)(&c.Interpreter.JobTimeout) })},
		{"MAX_FILE_SIZE", "interpreter.file_bytes", whole64(func(c *Config) *int64 { return &c.Interpreter.FileBytes })},
		{"CODEAPI_FILE_RETENTION_HOURS", "interpreter.retention.keep", hours(func(c *Config) *time.Duration { return &c.Interpreter.Retention.Keep })},
		{"CODEAPI_FILE_RETENTION_ENABLED", "interpreter.retention.remove", truth(func(c *Config) *bool { return &c.Interpreter.Retention.Remove })},
		{"CODEAPI_FILE_RETENTION_INTERVAL_MS", "interpreter.retention.every", millis(func(c *Config) *int64 { return (*int64)(&c.Interpreter.Retention.Every) })},
		{"SESSION_CACHE_TTL", "interpreter.retention.ttl", seconds(func(c *Config) *int64 { return (*int64)(&c.Interpreter.Retention.TTL) })},
		{"CODEAPI_RUNTIME_SESSION_MODE", "interpreter.runtime.mode", word(func(c *Config) *string { return &c.Interpreter.Runtime.Mode })},
		{"CODEAPI_RUNTIME_SESSION_LOCK_WAIT_MS", "interpreter.runtime.lock_wait", millis(func(c *Config) *int64 { return (*int64)(&c.Interpreter.Runtime.LockWait) })},
	}
	vs = append(vs, variable{"CODEAPI_CHECKPOINT_MAX_BYTES", "interpreter.runtime.session_bytes", whole64(func(c *Config) *int64 { return &c.Interpreter.Runtime.SessionBytes })})
	vs = append(vs, rateVariables()...)
	vs = append(vs, tokenVariables()...)
	return append(vs, runVariables()...)
}

func rateVariables() (vs []variable) {
	for _, r := range []struct {
		most, window, key string
		rate              func(c *Config) *Rate
	}{
		{"MAX_REQUESTS", "RATE_LIMIT_WINDOW", "exec", func(c *Config) *Rate { return &c.Interpreter.Rates.Exec }},
		{"UPLOAD_MAX_REQUESTS", "UPLOAD_LIMIT_WINDOW", "upload", func(c *Config) *Rate { return &c.Interpreter.Rates.Upload }},
		{"DOWNLOAD_MAX_REQUESTS", "DOWNLOAD_LIMIT_WINDOW", "download", func(c *Config) *Rate { return &c.Interpreter.Rates.Download }},
		{"FETCH_MAX_REQUESTS", "FETCH_LIMIT_WINDOW", "fetch", func(c *Config) *Rate { return &c.Interpreter.Rates.Fetch }},
	} {
		vs = append(vs,
			variable{r.most, "interpreter.rates." + r.key + ".most", func(c *Config, v string) string { return integer(&r.rate(c).Most, v) }},
			variable{r.window, "interpreter.rates." + r.key + ".window", millis(func(c *Config) *int64 { return (*int64)(&r.rate(c).Window) })},
		)
	}
	return vs
}

func tokenVariables() []variable {
	const jwt, syn = "interpreter.jwt.", "interpreter.synthetic."
	return []variable{
		{"CODEAPI_JWT_ISSUER", jwt + "issuer", word(func(c *Config) *string { return &c.Interpreter.JWT.Issuer })},
		{"CODEAPI_JWT_AUDIENCE", jwt + "audience", word(func(c *Config) *string { return &c.Interpreter.JWT.Audience })},
		{"CODEAPI_JWT_ALLOWED_ALGS", jwt + "algs", func(c *Config, v string) string {
			c.Interpreter.JWT.Algs = commaList(v)
			return ""
		}},
		{"CODEAPI_JWT_CLOCK_SKEW_SECONDS", jwt + "skew", capped(func(c *Config) *time.Duration { return &c.Interpreter.JWT.Skew }, maxSkew)},
		{"CODEAPI_JWT_MAX_TTL_SECONDS", jwt + "max_ttl", capped(func(c *Config) *time.Duration { return &c.Interpreter.JWT.MaxTTL }, maxTokenTTL)},
		{"CODEAPI_JWT_KEY_CACHE_TTL_SECONDS", jwt + "refresh", func(c *Config, v string) string {
			if n, err := strconv.ParseInt(v, 10, 64); err == nil && n <= 0 { // the contract's word for: the default
				c.Interpreter.JWT.Refresh = defaultInterpreter().JWT.Refresh
				return ""
			}
			return capped(func(c *Config) *time.Duration { return &c.Interpreter.JWT.Refresh }, maxTokenTTL)(c, v)
		}},
		{"CODEAPI_JWT_SINGLE_TENANT_ID", jwt + "single_tenant", func(c *Config, v string) string {
			c.Interpreter.JWT.SingleTenant = writ.Tenant(v)
			return ""
		}},
		{"CODEAPI_JWT_JWKS_JSON", jwt + "keys.jwks", word(func(c *Config) *string { return &c.Interpreter.JWT.Keys.JWKS })},
		{"CODEAPI_JWT_PUBLIC_KEYS_DIR", jwt + "keys.folder", word(func(c *Config) *string { return &c.Interpreter.JWT.Keys.Folder })},
		{"CODEAPI_JWT_PUBLIC_KEY", jwt + "keys.public", func(c *Config, v string) string {
			c.Interpreter.JWT.Keys.Public = pemText(v)
			return ""
		}},
		{"CODEAPI_JWT_KEY_ID", publicID, word(func(c *Config) *string { return &c.Interpreter.JWT.Keys.PublicID })},
		{"CODEAPI_JWT_KID", publicID, func(c *Config, v string) string {
			k := &c.Interpreter.JWT.Keys
			if k.PublicID = v; k.SecretID == defaultInterpreter().JWT.Keys.SecretID { // nobody named it; CODEAPI_JWT_HS256_KID may
				k.SecretID = v
			}
			return ""
		}},
		{"CODEAPI_JWT_HS256_SECRET", jwt + "keys.secret", secret(func(c *Config) *writ.Secret { return &c.Interpreter.JWT.Keys.Secret })},
		{"CODEAPI_JWT_HS256_KID", jwt + "keys.secret_id", word(func(c *Config) *string { return &c.Interpreter.JWT.Keys.SecretID })},
		{"CODEAPI_SYNTHETIC_ACCESS_TOKEN", syn + "token", secret(func(c *Config) *writ.Secret { return &c.Interpreter.Synthetic.Token })},
		{"CODEAPI_SYNTHETIC_USER_ID", syn + "user", word(func(c *Config) *string { return &c.Interpreter.Synthetic.User })},
		{"CODEAPI_SYNTHETIC_TENANT_ID", syn + "tenant", func(c *Config, v string) string {
			c.Interpreter.Synthetic.Tenant = writ.Tenant(v)
			return ""
		}},
	}
}

func runVariables() []variable {
	const limits, collect = "interpreter.limits.", "interpreter.collect."
	return []variable{
		{"SANDBOX_OUTPUT_MAX_SIZE", "interpreter.output_units", whole64(func(c *Config) *int64 { return &c.Interpreter.OutputUnits })},
		{"SANDBOX_RUN_TIMEOUT", limits + "wall_ms", whole64(func(c *Config) *int64 { return &c.Interpreter.Limits.WallMS })},
		{"SANDBOX_RUN_CPU_TIME", limits + "cpu_ms", whole64(func(c *Config) *int64 { return &c.Interpreter.Limits.CPUMS })},
		{"SANDBOX_COMPILE_TIMEOUT", "interpreter.compile.wall_ms", whole64(func(c *Config) *int64 { return &c.Interpreter.Compile.WallMS })},
		{"SANDBOX_RUN_MEMORY_LIMIT", limits + "memory_bytes", func(c *Config, v string) string {
			if v == "-1" { // the contract's word for: the default
				return ""
			}
			return integer(&c.Interpreter.Limits.MemoryBytes, v)
		}},
		{"SANDBOX_MAX_PROCESS_COUNT", limits + "processes", whole64(func(c *Config) *int64 { return &c.Interpreter.Limits.Processes })},
		{"SANDBOX_MAX_OPEN_FILES", limits + "open_files", whole64(func(c *Config) *int64 { return &c.Interpreter.Limits.OpenFiles })},
		{"SANDBOX_RLIMIT_FSIZE", limits + "file_bytes", func(c *Config, v string) string {
			var megabytes int64
			if want := integer(&megabytes, v); want != "" || megabytes > 1<<20 {
				return "a number of megabytes"
			}
			c.Interpreter.Limits.FileBytes = megabytes << 20
			return ""
		}},
		{"SANDBOX_MAX_FILE_SIZE", collect + "file_bytes", whole64(func(c *Config) *int64 { return &c.Interpreter.Collect.FileBytes })},
		{"SANDBOX_MAX_OUTPUT_FILES", collect + "files", whole64(func(c *Config) *int64 { return &c.Interpreter.Collect.Files })},
		{"SANDBOX_MAX_NESTING_DEPTH", collect + "depth", whole64(func(c *Config) *int64 { return &c.Interpreter.Collect.Depth })},
		{"SANDBOX_MAX_PATH_LENGTH", collect + "path_length", whole64(func(c *Config) *int64 { return &c.Interpreter.Collect.PathLength })},
		{"SANDBOX_MAX_INPUT_FILES", "interpreter.inputs", whole64(func(c *Config) *int64 { return &c.Interpreter.Inputs })},
		{"SANDBOX_MAX_CONCURRENT_JOBS", "runner.slots", func(c *Config, v string) string { return integer(&c.Runner.Slots, v) }},
		{"SANDBOX_JOB_UID_BASE", "runner.uid_base", func(c *Config, v string) string { return integer(&c.Runner.UIDBase, v) }},
	}
}
