// Package origin tells what a browser page of somebody else could send from what programs
// and our own pages do: the servers on a person's machine ask for no more than that where
// they ask for no credential, and in addition to it where they do (case CP-10).
//
// It promises that a page which reaches a server under a name that is not its own (DNS
// rebinding), and a page of another site, are told by what browsers send and pages cannot
// change. It refuses to know HTTP, and what is answered. All of it is pure.
//
// Hostile inputs: headers, and names in them.
package origin

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// Known reports whether a Host header, with or without a port, names a loopback address or
// one of hosts. An unspecified address among hosts ("0.0.0.0", "::") stands for every
// address: a page cannot rebind an address, only a name.
func Known(header string, hosts []string) bool {
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

// Foreign reports whether a request to host, its Host header, comes from a page of another
// site than the one that host names and than those of allowed ("https://host:port").
// values are those of a header. Requests outside a browser have no Origin, and are not
// foreign.
func Foreign(host string, values func(header string) []string, allowed []string) bool {
	let := false
	for _, origin := range values("Origin") {
		if slices.ContainsFunc(allowed, func(o string) bool { return strings.EqualFold(o, origin) }) {
			let = true
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, host) {
			return true
		}
	}
	return !let && slices.Contains(values("Sec-Fetch-Site"), "cross-site")
}
