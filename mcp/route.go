package mcp

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"writ"
	"writ/response"
)

// route brings a message to the era that it is of. A request that stands alone says so
// in its header or in itself; initialize begins a session, whatever revision a client
// hopes for; everything else belongs to a session.
func (h *Handler) route(w *response.Recorder, r *http.Request, m message, who writ.Principal) error {
	id := r.Header.Get("Mcp-Session-Id")
	begins := m.method == "initialize" && m.revision < stateless
	if id == "" && !begins && (m.revision >= stateless || r.Header.Get("Mcp-Protocol-Version") >= stateless) {
		if m.notification() && !notifications[m.method] {
			w.WriteHeader(http.StatusAccepted)
			return nil
		}
		next := h.alone
		if m.listens {
			next = h.aloneStream
		}
		h.pass(next, w, r, who)
		return nil
	}
	if begins && id == "" {
		r.Header.Del("Mcp-Protocol-Version") // initialize itself negotiates it
		return h.open(w, r, m, who)
	}
	next, err := h.ofSession(id, who)
	if err != nil {
		return err
	}
	switch {
	case m.notification() && !notifications[m.method]:
		w.WriteHeader(http.StatusAccepted)
		return nil
	case m.method != "" && !m.notification() && !methods[m.method]:
		return refuseMessage(http.StatusOK, &rejection{
			id: m.id, code: jsonrpc.CodeMethodNotFound, msg: "there is no method " + quoted(m.method),
		})
	}
	h.pass(next, w, r, who)
	return nil
}

// open begins a session of who. Only a client that can ask its user gets streams: the
// others get each answer as one JSON value (spec/02 §2).
func (h *Handler) open(w *response.Recorder, r *http.Request, m message, who writ.Principal) error {
	kind, next := kindJSON, h.json
	if m.asks {
		kind, next = kindStream, h.stream
	}
	id := h.sessions.mint(kind, owner(who))
	srv := h.server.connect(bearer, func() string { return id }, nil)
	if err := h.sessions.add(srv, owner(who)); err != nil {
		return refuse(http.StatusTooManyRequests, writ.Message(err))
	}
	defer h.sessions.settled(srv)
	h.pass(next, w, r.WithContext(context.WithValue(r.Context(), freshKey{}, srv)), who)
	return nil
}

// ofSession is the handler of the session id of who.
func (h *Handler) ofSession(id string, who writ.Principal) (http.Handler, error) {
	if id == "" {
		return nil, refuseMessage(http.StatusBadRequest, &rejection{
			code: jsonrpc.CodeInvalidRequest, msg: "no Mcp-Session-Id: send initialize first, or a request of revision " + stateless,
		})
	}
	switch h.sessions.kind(id, owner(who)) {
	case kindJSON:
		return h.json, nil
	case kindStream:
		return h.stream, nil
	}
	return nil, refuseMessage(http.StatusNotFound, &rejection{
		code: jsonrpc.CodeInvalidRequest, msg: "there is no such session: send initialize again",
	})
}

// resume takes the stream of a session, or its end.
func (h *Handler) resume(w *response.Recorder, r *http.Request, who writ.Principal) error {
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" && r.Header.Get("Mcp-Protocol-Version") >= stateless {
		h.pass(h.alone, w, r, who) // says which methods there are
		return nil
	}
	next, err := h.ofSession(id, who)
	if err != nil {
		return err
	}
	h.pass(next, w, r, who)
	return nil
}

// pass gives r to the SDK as a request of who. The SDK keeps to one UserID for each
// session, beside our own check.
func (h *Handler) pass(next http.Handler, w *response.Recorder, r *http.Request, who writ.Principal) {
	info := &auth.TokenInfo{UserID: owner(who), Extra: map[string]any{principalKey: who}}
	verified := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) { return info, nil }
	auth.RequireBearerToken(verified, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next).ServeHTTP(w, r)
}
