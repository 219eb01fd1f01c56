package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"writ"
)

// The bounds of what may be configured. They catch a slip of the pen, such as a
// duration in the wrong unit.
const (
	minTTL       = time.Second
	maxTTL       = 30 * 24 * time.Hour
	maxQueueWait = time.Hour
	maxSlots     = 4096
	maxQueue     = 100_000
	maxPending   = 100_000
	minUIDBase   = 1000          // below are the system's own users
	maxUIDBase   = 1<<32 - 1<<17 // the highest ids mean "nobody" to the kernel
)

// settle fills what the file leaves open and what has no constant default.
func (s *source) settle(c *Config) {
	for i := range c.Identities {
		if c.Identities[i].Tenant == "" {
			c.Identities[i].Tenant = writ.DefaultTenant
		}
	}
	c.settleWorkspaces()
	most := c.Limits.Max.Fields()
	for i, f := range c.Limits.Default.Fields() {
		if _, set := s.at["limits.default."+f.Name]; !set {
			*f.Value = min(*f.Value, *most[i].Value)
		}
	}
}

// faults checks what the values mean. It assumes that types are right.
func (c Config) faults() []fault {
	var out []fault
	add := func(path, format string, args ...any) {
		out = append(out, fault{path: path, msg: fmt.Sprintf(format, args...)})
	}
	within := func(path string, v, low, high int) {
		if v < low || v > high {
			add(path, "%d is outside %d to %d", v, low, high)
		}
	}
	if why := badListen(c.Listen); why != "" {
		add("listen", "%q: %s", c.Listen, why)
	}
	for i, h := range c.Hosts {
		if !validHost(h) {
			add(fmt.Sprintf("hosts[%d]", i), "%q: want a name or an address alone, as \"writ.example.com\"", h)
		}
	}
	c.mcpFaults(add)
	if why := badDatabase(c.Database.Reveal()); why != "" {
		add("database", "%s", why) // not the value: it may hold a password
	}
	if c.Policy == "" {
		add("policy", "is empty: name the folder of the policies")
	}
	c.identityFaults(add)
	c.workspaceFaults(add)
	if d := c.Approvals.TTL; d < minTTL || d > maxTTL {
		add("approvals.ttl", "%v is outside %v to %v", d, minTTL, maxTTL)
	}
	within("approvals.pending", c.Approvals.Pending, 1, maxPending)
	c.limitFaults(add)
	within("processes.live", c.Processes.Live, 1, maxSlots)
	c.interpreterFaults(add)
	within("runner.slots", c.Runner.Slots, 0, maxSlots)
	within("runner.queue", c.Runner.Queue, 0, maxQueue)
	within("runner.warm", c.Runner.Warm, 0, maxSlots)
	within("runner.uid_base", c.Runner.UIDBase, minUIDBase, maxUIDBase)
	if d := c.Runner.QueueWait; d < 0 || d > maxQueueWait {
		add("runner.queue_wait", "%v is outside 0s to %v", d, maxQueueWait)
	}
	if p := c.Runner.Socket; p != "" && !filepath.IsAbs(p) {
		add("runner.socket", "%q is not an absolute path", p)
	}
	if p := c.Runner.Bwrap; p != "" && !filepath.IsAbs(p) {
		add("runner.bwrap", "%q is not an absolute path", p)
	}
	among(add, "log.level", c.Log.Level, "debug", "info", "warn", "error")
	among(add, "log.format", c.Log.Format, "auto", "text", "json")
	return out
}

func (c Config) mcpFaults(add func(path, format string, args ...any)) {
	for _, u := range []struct{ key, value, other, otherValue string }{
		{"issuer", c.MCP.Issuer, "resource", c.MCP.Resource}, {"resource", c.MCP.Resource, "issuer", c.MCP.Issuer},
	} {
		if u.value == "" {
			continue
		}
		if !webURL(u.value) {
			add("mcp."+u.key, "%q: want a URL as \"https://writ.example.com/mcp\"; http only for this machine", u.value)
		}
		if u.otherValue == "" {
			add("mcp."+u.key, "is of use only with mcp.%s: set both or none", u.other)
		}
	}
	for i, origin := range c.MCP.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			add(fmt.Sprintf("mcp.origins[%d]", i), "%q: want a scheme and a host alone, as \"https://app.example.com\"", origin)
		}
	}
}

// webURL takes https URLs, and http ones of this machine: who asks there for a key must
// not be told over a wire that others can change.
func webURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && here
}

func (c Config) identityFaults(add func(path, format string, args ...any)) {
	first := map[writ.IdentityID]int{}
	for i, id := range c.Identities {
		path := fmt.Sprintf("identities[%d]", i)
		if err := id.Validate(); err != nil {
			for msg := range strings.SplitSeq(err.Error(), "\n") {
				add(path, "%s", msg)
			}
		}
		if j, twice := first[id.ID]; twice {
			add(path+".id", "%q is the id of identities[%d] already: ids are unique over all tenants", id.ID, j)
			continue
		}
		first[id.ID] = i
	}
}

func (c Config) limitFaults(add func(path, format string, args ...any)) {
	absolute, most := writ.MaxLimits, c.Limits.Max
	low := func(path string, l writ.Limits) {
		if err := l.Validate(); err != nil {
			for msg := range strings.SplitSeq(err.Error(), "\n") {
				name, what, _ := strings.Cut(strings.TrimPrefix(msg, "limits."), " ")
				add(path+"."+name, "%s", what)
			}
		}
	}
	low("processes.limits", c.Processes.Limits)
	for i, f := range c.Processes.Limits.Fields() {
		if most := *absolute.Fields()[i].Value; *f.Value == 0 || *f.Value > most {
			add("processes.limits."+f.Name, "%d is outside 1 to %d, the most that writ allows", *f.Value, most)
		}
	}
	low("limits.default", c.Limits.Default)
	low("limits.max", c.Limits.Max)
	ceiling, maxima := absolute.Fields(), most.Fields()
	for i, f := range c.Limits.Default.Fields() {
		def, most, ceiling := *f.Value, *maxima[i].Value, *ceiling[i].Value
		if def == 0 {
			add("limits.default."+f.Name, "is 0: a run must have every limit")
		}
		if most == 0 {
			add("limits.max."+f.Name, "is 0: a run must have every limit")
		}
		if most > ceiling {
			add("limits.max."+f.Name, "%d is above %d, the most that writ allows", most, ceiling)
		}
		if def > most && most != 0 {
			add("limits.default."+f.Name, "%d is above limits.max.%s, which is %d", def, f.Name, most)
		}
	}
}

func badListen(s string) string {
	host, port, err := net.SplitHostPort(s)
	switch {
	case err != nil:
		return `want host:port, as "127.0.0.1:8740"`
	case host == "":
		return `the host is missing; for every address of the machine write "0.0.0.0:` + port + `"`
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "the port is not a number from 0 to 65535"
	}
	return ""
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$`)

// validHost takes what a Host header may name, without a port. An unspecified address
// would stand for every one there is.
func validHost(s string) bool {
	if ip := net.ParseIP(s); ip != nil {
		return !ip.IsUnspecified()
	}
	return hostName.MatchString(s)
}

func badDatabase(s string) string {
	if s == "" {
		return ""
	}
	if file, ok := strings.CutPrefix(s, "sqlite:"); ok {
		if file == "" || strings.HasPrefix(file, "//") {
			return `want "sqlite:" and the path of a file`
		}
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "is not a URL that can be read; characters such as % and / in a password must be escaped"
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return `want nothing (SQLite in the data folder), "sqlite:FILE" or "postgres://..."`
	case strings.Trim(u.Path, "/") == "":
		return "names no database: postgres://user@host/DATABASE"
	}
	return ""
}

// hasPassword reports whether a database URL carries one.
func hasPassword(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	_, set := u.User.Password()
	return set || u.Query().Has("password")
}
