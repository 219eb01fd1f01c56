package rest

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"writ"
)

// checkOrigin refuses what a browser page of somebody else could send: a request
// to a host name that is not ours (DNS rebinding), or one that another site's page
// made. Requests outside a browser have no Origin and pass.
func checkOrigin(r *http.Request, hosts []string) error {
	if !knownHost(r.Host, hosts) {
		return &writ.Error{
			Kind: writ.Denied, Op: "check host",
			Msg: fmt.Sprintf("this server is not called %q: use a loopback address, or the host it listens as", r.Host),
		}
	}
	foreign := false
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		foreign = foreign || err != nil || !strings.EqualFold(u.Host, r.Host)
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		foreign = true
	}
	if foreign {
		return &writ.Error{Kind: writ.Denied, Op: "check origin", Msg: "the request comes from a page of another site"}
	}
	return nil
}

// knownHost reports whether a Host header, with or without a port, names a
// loopback address or one of hosts. An unspecified address among hosts ("0.0.0.0",
// "::") stands for every address: a page cannot rebind an address, only a name.
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
