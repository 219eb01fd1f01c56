package rest

import (
	"fmt"
	"net/http"

	"writ"
	"writ/origin"
)

// checkOrigin refuses what a browser page of somebody else could send.
func checkOrigin(r *http.Request, hosts []string) error {
	if !origin.Known(r.Host, hosts) {
		return &writ.Error{
			Kind: writ.Denied, Op: "check host",
			Msg: fmt.Sprintf("this server is not called %q: use a loopback address, or the host it listens as", r.Host),
		}
	}
	if origin.Foreign(r.Host, r.Header.Values, nil) {
		return &writ.Error{Kind: writ.Denied, Op: "check origin", Msg: "the request comes from a page of another site"}
	}
	return nil
}
