package codeapi

import (
	"net/http"
	"slices"

	"writ/origin"
)

// checkOrigin refuses what a browser page of somebody else could send, by an address or
// one of hosts.
func checkOrigin(r *http.Request, hosts []string) error {
	if !origin.Known(r.Host, append(slices.Clone(hosts), "0.0.0.0")) {
		return fail(http.StatusForbidden, "this server is not called that: use its address, or a host name that it is configured with")
	}
	if origin.Foreign(r.Host, r.Header.Values, nil) {
		return fail(http.StatusForbidden, "the request comes from a page of another site")
	}
	return nil
}
