package codeapi

import (
	"net/http"
	"net/url"
	"strings"

	"writ"
	"writ/limit"
)

// handler serves a route for who, whose request was counted.
type handler func(a *API, w http.ResponseWriter, r *http.Request, who writ.Principal)

// route is one row of spec/03 §2. A route of GET takes HEAD, too.
type route struct {
	method, path string // beneath /v1; {session} and {object} are parts of the path
	limit        string // the name of one of package limit's; none when empty
	live         bool   // answers 503 while the server starts or stops
	open         bool   // needs no credential
	serve        handler
}

// execPath is that of the route that a synthetic token may use.
const execPath = "/exec"

func routes() []route {
	return []route{
		{method: "GET", path: "/health", open: true, serve: (*API).health},
		{method: "POST", path: execPath, limit: limit.Exec, live: true, serve: (*API).exec},
		{method: "POST", path: "/exec/programmatic/cancel", serve: (*API).cancel},
		{method: "POST", path: "/upload", limit: limit.Upload, live: true, serve: (*API).uploadOne},
		{method: "POST", path: "/upload/batch", limit: limit.Upload, live: true, serve: (*API).uploadBatch},
		{method: "GET", path: "/files/{session}", limit: limit.Fetch, serve: (*API).listFiles},
		{method: "GET", path: "/sessions/{session}/objects/{object}", limit: limit.Fetch, serve: (*API).metadata},
		{method: "DELETE", path: "/files/{session}/{object}", limit: limit.Fetch, serve: (*API).deleteFile},
		{method: "GET", path: "/download/{session}/{object}", limit: limit.Download, serve: (*API).download},
	}
}

// find is the route of r, which gets the parts of its path, or nil. Letters of either case
// are the same, and one slash at the end is none.
func find(r *http.Request) *route {
	parts := strings.Split(strings.TrimSuffix(r.URL.EscapedPath(), "/"), "/")
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, rt := range routes() {
		if rt.method == method && rt.takes(r, parts) {
			return &rt
		}
	}
	return nil
}

// takes reports whether rt is the route of a path in parts, "", "v1" and what follows, and
// has r keep those that differ.
func (rt *route) takes(r *http.Request, parts []string) bool {
	want := strings.Split("/v1"+rt.path, "/")
	if len(want) != len(parts) {
		return false
	}
	for i, name := range want {
		part, err := url.PathUnescape(parts[i])
		switch {
		case err != nil || part == "" && i > 0:
			return false
		case strings.HasPrefix(name, "{"):
			r.SetPathValue(strings.Trim(name, "{}"), part)
		case !strings.EqualFold(name, part):
			return false
		}
	}
	return true
}

// beneathV1 reports whether a path is one of the API's, known or not.
func beneathV1(r *http.Request) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return strings.EqualFold(first, "v1")
}
