package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"writ/response"
)

const metadataPath = "/.well-known/oauth-protected-resource"

// isMetadata reports whether path is where RFC 9728 has the metadata of the endpoint.
func (h *Handler) isMetadata(path string) bool {
	return h.opt.Issuer != "" && h.opt.Resource != "" && (path == metadataPath || path == metadataPath+Path)
}

func (h *Handler) metadata(w *response.Recorder, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return refuse(http.StatusMethodNotAllowed, "want GET")
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(map[string]any{
		"resource": h.opt.Resource, "authorization_servers": []string{h.opt.Issuer},
		"bearer_methods_supported": []string{"header"}, "resource_name": serverName,
	})
}

// challenge is what a client without a key is told.
func (h *Handler) challenge() string {
	if !h.isMetadata(metadataPath) {
		return "Bearer"
	}
	u, err := url.Parse(h.opt.Resource)
	if err != nil {
		return "Bearer"
	}
	return fmt.Sprintf("Bearer resource_metadata=%q", u.Scheme+"://"+u.Host+metadataPath+Path)
}
