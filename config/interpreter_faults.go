package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"writ"
)

const (
	maxSkew      = 30 * time.Second  // spec/03 §3.3
	maxTokenTTL  = 300 * time.Second // spec/03 §3.3
	minSecret    = 32                // bytes
	maxRate      = 1_000_000_000
	maxWindow    = 24 * time.Hour
	maxLockWait  = 10 * time.Minute
	maxJSONBytes = 1 << 30
	maxOutput    = 4 << 20 // UTF-16 code units
	maxKept      = 1 << 50
	maxInputs    = 10_000
)

// adder adds a fault.
type adder func(path, format string, args ...any)

func (add adder) within(path string, v, low, high int64) {
	if v < low || v > high {
		add(path, "%d is outside %d to %d", v, low, high)
	}
}

func (add adder) lasts(path string, d, low, high time.Duration) {
	if d < low || d > high {
		add(path, "%v is outside %v to %v", d, low, high)
	}
}

// foreign wants a name of a user or of a tenant; empty says what to do about one that is.
func (add adder) foreign(path, name, empty string) {
	switch {
	case strings.TrimSpace(name) == "":
		add(path, "is empty%s", empty)
	case !writ.ValidForeignName(name):
		add(path, "%.80q: want 1 to 256 bytes without control characters", name)
	}
}

// interpreterFaults checks the section also while it is switched off, but for what only
// an address makes wrong.
func (c Config) interpreterFaults(add adder) {
	in := c.Interpreter
	if in.Listen != "" {
		c.doorFaults(add)
	}
	among(add, "interpreter.auth", in.Auth, AuthJWT, AuthNone, AuthLocal)
	in.JWT.faults(add)
	if in.Listen != "" && in.Auth == AuthJWT && in.JWT.Keys.none() {
		add("interpreter.jwt.keys", "name where the keys are by which tokens are checked, one of jwks, file, folder, public, secret, url; on this machine alone, auth: local needs none")
	}
	if !in.StrictTenants {
		add.foreign("interpreter.jwt.single_tenant", string(in.JWT.SingleTenant), ": name the tenant of tokens that name none, or set interpreter.strict_tenants")
	}
	if n := len(in.Synthetic.Token); n > 0 && n < minSecret {
		add("interpreter.synthetic.token", "has %d bytes, the least is %d", n, minSecret)
	}
	add.foreign("interpreter.synthetic.user", in.Synthetic.User, "")
	add.foreign("interpreter.synthetic.tenant", string(in.Synthetic.Tenant), "")
	for i, s := range in.Scopes {
		if !writ.ValidName(string(s)) {
			add(fmt.Sprintf("interpreter.scopes[%d]", i), "%.80q: want 1 to 64 of A-Z a-z 0-9 _ . -, the first a letter or digit", s)
		}
	}
	add.within("interpreter.file_bytes", in.FileBytes, 1, writ.MaxLimits.WorkspaceBytes)
	add.within("interpreter.json_bytes", in.JSONBytes, 1024, maxJSONBytes)
	add.within("interpreter.output_units", in.OutputUnits, 1, maxOutput)
	add.within("interpreter.inputs", in.Inputs, 1, maxInputs)
	add.within("interpreter.warm", int64(in.Warm), 0, maxSlots)
	c.planFaults(add)
	in.Rates.faults(add)
	c.runLimitFaults(add)
	if err := in.Collect.Bounds().Validate(); err != nil {
		for msg := range strings.SplitSeq(err.Error(), "\n") {
			key, what, _ := strings.Cut(strings.TrimPrefix(msg, "collect."), " ")
			add("interpreter.collect."+strings.TrimSuffix(key, ":"), "%s", what)
		}
	}
	add.lasts("interpreter.job_timeout", in.JobTimeout, time.Second, maxWindow)
	among(add, "interpreter.runtime.mode", in.Runtime.Mode, "stateless", "affinity", "strict")
	add.lasts("interpreter.runtime.lock_wait", in.Runtime.LockWait, 0, maxLockWait)
	add.lasts("interpreter.runtime.ttl", in.Runtime.TTL, minTTL, maxTTL)
	add.within("interpreter.runtime.session_bytes", in.Runtime.SessionBytes, 1, writ.MaxLimits.WorkspaceBytes)
	add.lasts("interpreter.retention.ttl", in.Retention.TTL, minTTL, maxTTL)
	add.lasts("interpreter.retention.keep", in.Retention.Keep, 0, 12*maxTTL)
	add.lasts("interpreter.retention.every", in.Retention.Every, time.Second, maxWindow)
	if p := in.Blobs; p != "" && !filepath.IsAbs(p) {
		add("interpreter.blobs", "%q is not an absolute path", p)
	}
	add.within("interpreter.quotas.session_objects", in.Quotas.SessionObjects, 1, maxKept)
	add.within("interpreter.quotas.session_bytes", in.Quotas.SessionBytes, 1, maxKept)
	add.within("interpreter.quotas.tenant_sessions", in.Quotas.TenantSessions, 1, maxKept)
	add.within("interpreter.quotas.tenant_bytes", in.Quotas.TenantBytes, 1, maxKept)
}

// doorFaults is about who can reach the API.
func (c Config) doorFaults(add adder) {
	in := c.Interpreter
	if why := badListen(in.Listen); why != "" {
		add("interpreter.listen", "%q: %s", in.Listen, why)
		return
	}
	_, port, _ := net.SplitHostPort(in.Listen)
	if in.Listen == c.Listen && port != "0" {
		add("interpreter.listen", "%q is the address of the HTTP API: the two need one each", in.Listen)
	}
	switch {
	case in.Auth == AuthLocal && in.Exposed():
		add("interpreter.listen", "%q can be reached from other machines, and auth: local lets everybody in: listen on 127.0.0.1, or set auth: jwt", in.Listen)
	case in.Auth == AuthNone && !in.AllowNone:
		add("interpreter.auth", "none believes whatever name it is told: set interpreter.allow_none too, if that is meant")
	case in.Auth == AuthNone && in.Exposed() && !in.AllowNoneExposed:
		add("interpreter.listen", "%q can be reached from other machines, and auth: none believes whatever name it is told: listen on 127.0.0.1, or set interpreter.allow_none_exposed too, if that is meant", in.Listen)
	}
}

// loopback reports whether only this machine reaches a host that is listened on.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (j JWT) faults(add adder) {
	const at = "interpreter.jwt."
	for _, f := range [][2]string{{"issuer", j.Issuer}, {"audience", j.Audience}} {
		if strings.TrimSpace(f[1]) == "" {
			add(at+f[0], "is empty")
		}
	}
	if len(j.Algs) == 0 {
		add(at+"algs", "is empty: want some of EdDSA, RS256, HS256")
	}
	for i, alg := range j.Algs {
		among(add, fmt.Sprintf(at+"algs[%d]", i), alg, "EdDSA", "RS256", "HS256")
	}
	add.lasts(at+"skew", j.Skew, 0, maxSkew)
	add.lasts(at+"max_ttl", j.MaxTTL, time.Second, maxTokenTTL)
	add.lasts(at+"refresh", j.Refresh, time.Second, maxTokenTTL)
	k := j.Keys
	for _, f := range [][2]string{{"file", k.File}, {"folder", k.Folder}} {
		if f[1] != "" && !filepath.IsAbs(f[1]) {
			add(at+"keys."+f[0], "%q is not an absolute path", f[1])
		}
	}
	if k.Public != "" && k.PublicID == "" {
		add(at+"keys.public_id", "is missing: tokens name their key by it")
	}
	if k.Secret != "" {
		if len(k.Secret) < minSecret {
			add(at+"keys.secret", "has %d bytes, the least is %d", len(k.Secret), minSecret)
		}
		if !slices.Contains(j.Algs, "HS256") {
			add(at+"keys.secret", "is of use only with HS256 among interpreter.jwt.algs")
		}
		if k.SecretID == "" {
			add(at+"keys.secret_id", "is missing: tokens name their key by it")
		}
	}
	if k.URL != "" && !keyURL(k.URL) {
		add(at+"keys.url", `want a URL as "https://chat.example.com/keys.json"; http only for this machine`)
	}
}

// keyURL takes what keys may be fetched from: what others can change on the way would
// let them in.
func keyURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())
}

func (c Config) planFaults(add adder) {
	in, first := c.Interpreter, map[string]int{}
	for i, p := range in.Plans {
		path := fmt.Sprintf("interpreter.plans[%d]", i)
		if p.ID == "" {
			add(path+".id", "is missing")
		}
		unique(add, path, "interpreter.plans", first, p.ID, i)
		if p.FileBytes != 0 {
			add.within(path+".file_bytes", p.FileBytes, 1, writ.MaxLimits.WorkspaceBytes)
		}
		if p.MemoryBytes != 0 {
			c.memoryFaults(add, path+".memory_bytes", p.MemoryBytes)
		}
	}
}

// memoryFaults checks the memory of a run. What it may use is that and its files, which
// are in memory as well.
func (c Config) memoryFaults(add adder, path string, bytes int64) {
	in, files := c.Interpreter, c.Interpreter.Limits.WorkspaceBytes
	least := writ.Limits{MemoryBytes: max(bytes, 1)}
	if err := least.Validate(); err != nil {
		add(path, "%d is too little for any interpreter", bytes)
	}
	if most := writ.MaxLimits.MemoryBytes - files; bytes > most {
		add(path, "%d is above %d, the most that writ allows beside the bytes of files", bytes, most)
	} else if most := c.Limits.Max.MemoryBytes; in.Listen != "" && bytes+files > most && most != 0 {
		add(path, "a run needs %d, with its files, and limits.max.memory_bytes is %d", bytes+files, most)
	}
}

func (r Rates) faults(add adder) {
	for _, f := range []struct {
		key  string
		rate Rate
	}{{"exec", r.Exec}, {"upload", r.Upload}, {"download", r.Download}, {"fetch", r.Fetch}} {
		add.within("interpreter.rates."+f.key+".most", int64(f.rate.Most), 1, maxRate)
		add.lasts("interpreter.rates."+f.key+".window", f.rate.Window, time.Millisecond, maxWindow)
	}
}

// runLimitFaults checks limits, which also must fit beneath the maxima of all runs: cut
// in silence, they would not be what was configured.
func (c Config) runLimitFaults(add adder) {
	in, absolute, most := c.Interpreter, writ.MaxLimits, c.Limits.Max
	for _, l := range []struct {
		key    string
		limits writ.Limits
	}{{"limits", in.Limits}, {"compile", in.Compile}} {
		low := l.limits
		if err := low.Validate(); err != nil {
			for msg := range strings.SplitSeq(err.Error(), "\n") {
				name, what, _ := strings.Cut(strings.TrimPrefix(msg, "limits."), " ")
				add("interpreter."+l.key+"."+name, "%s", what)
			}
		}
		for i, f := range l.limits.Fields() {
			path, v := "interpreter."+l.key+"."+f.Name, *f.Value
			if f.Name == "memory_bytes" && l.key == "limits" {
				c.memoryFaults(add, path, v)
				continue
			}
			if ceiling := *absolute.Fields()[i].Value; v == 0 || v > ceiling {
				add(path, "%d is outside 1 to %d, the most that writ allows", v, ceiling)
				continue
			}
			if ceiling := *most.Fields()[i].Value; in.Listen != "" && v > ceiling && ceiling != 0 {
				add(path, "a run needs %d, and limits.max.%s is %d", v, f.Name, ceiling)
			}
		}
	}
}
