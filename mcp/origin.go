package mcp

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// knownHost reports whether a Host header, with or without a port, names a loopback
// address or one of hosts. An unspecified address among hosts ("0.0.0.0", "::") stands
// for every address: a page cannot rebind an address, only a name.
func knownHost(header string, hosts []string) bool {
	host := header
	if h, _, err := net.SplitHostPort(header); err == nil {
		host = h
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	host = strings.ToLower(host)
	if host == "" {
		return false
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(hosts, func(h string) bool {
		if strings.EqualFold(h, host) {
			return true
		}
		any := net.ParseIP(h)
		return ip != nil && any != nil && any.IsUnspecified()
	})
}

// foreignOrigin reports whether r comes from a page of another site than the one that
// r.Host names and than those of origins ("https://host:port"). Requests outside a
// browser have no Origin.
func foreignOrigin(r *http.Request, origins []string) bool {
	values := r.Header.Values("Origin")
	for _, origin := range values {
		if slices.ContainsFunc(origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return len(values) == 0 && r.Header.Get("Sec-Fetch-Site") == "cross-site"
}
