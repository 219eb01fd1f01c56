package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"

	"writ"
)

const (
	maxReply   = 256 << 20 // of one JSON answer: a result with two outputs of the most, escaped
	maxOutput  = 64 << 20  // of one raw output
	maxProblem = 64 << 10
)

// Client talks to one server. It is safe for concurrent use.
type Client struct {
	http *http.Client
	base string // without a slash at the end
	name string // of the server, for messages
	// token is behind a pointer because fmt prints an unexported field without
	// asking its type; a pointer it prints as an address. Nil means no key.
	token *writ.Secret
}

// New is a client of the server at baseURL ("http://127.0.0.1:8080"), with the key
// token, or without one when that is empty. A baseURL that is not http or https with a host is an error of kind
// Invalid. It does not connect.
func New(baseURL string, token writ.Secret) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "server address", Msg: fmt.Sprintf("%q: want http://HOST:PORT", baseURL)}
	}
	base := strings.TrimRight(u.String(), "/")
	c := &Client{http: &http.Client{CheckRedirect: stay}, base: base, name: base}
	return c.WithKey(token), nil
}

// Unix is a client of the server that listens on a unix socket, as the user that
// runs this process. It does not connect. Close it to let go of its connections.
func Unix(socket string) *Client {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}
	return &Client{http: &http.Client{Transport: t, CheckRedirect: stay}, base: "http://localhost", name: socket}
}

// WithKey is c with another key, on the same connections. On a unix socket the key
// decides who asks, in place of the user of this process.
func (c *Client) WithKey(token writ.Secret) *Client {
	d := *c
	d.token = &token
	return &d
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// get asks for path and decodes the answer into a T.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	v, _, err := call[T](ctx, c, http.MethodGet, path, query, nil)
	return v, err
}

// post sends body as JSON and decodes the answer into a T.
func post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	v, _, err := call[T](ctx, c, http.MethodPost, path, nil, body)
	return v, err
}

// del asks for the removal of path.
func (c *Client) del(ctx context.Context, path string) error {
	resp, err := c.do(ctx, http.MethodDelete, path, nil, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func call[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (v T, status int, err error) {
	resp, err := c.do(ctx, method, path, query, body)
	if err != nil {
		return v, 0, err
	}
	defer resp.Body.Close()
	b, err := readAll(resp.Body, maxReply)
	if err != nil {
		return v, 0, c.broken(ctx, method+" "+path, err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, 0, fmt.Errorf("decode the answer to %s %s: %w", method, path, err)
	}
	return v, resp.StatusCode, nil
}

// do sends one request. The answer is one of success, and the caller must close
// its body; any other is an error.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		content = bytes.NewReader(b)
	}
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, content)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != nil && *c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.broken(ctx, method+" "+path, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, failure(method+" "+path, resp)
	}
	return resp, nil
}

// broken is err of a connection in the caller's terms.
func (c *Client) broken(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	}
	return &writ.Error{
		Kind: writ.Unavailable, Op: op, Err: err,
		Msg: fmt.Sprintf("the server at %s does not answer: %v", c.name, err),
	}
}

// failure is an answer that is not a success, as the error that the server meant.
func failure(op string, resp *http.Response) error {
	e := &writ.Error{Kind: kindOf(resp.StatusCode), Op: op, Msg: "the server answers " + resp.Status}
	b, err := readAll(resp.Body, maxProblem)
	if err != nil {
		return e
	}
	switch t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); t {
	case "application/problem+json":
	case "application/json": // of the inbox
		return fault(b, e)
	default:
		return e
	}
	var p problem
	if json.Unmarshal(b, &p) != nil {
		return e
	}
	p.fill(e)
	switch {
	case p.Approval != "":
		return &writ.Held{Approval: p.Approval, Err: e}
	case p.Operation != "":
		return &writ.OperationError{Operation: p.Operation, Err: e}
	}
	return e
}

// problem is the part of an error on the wire (RFC 9457) that a client uses.
type problem struct {
	Detail    string           `json:"detail"`
	Kind      string           `json:"kind"`
	Code      string           `json:"code"`
	Approval  writ.ApprovalID  `json:"approval_id"`
	Operation writ.OperationID `json:"operation_id"`
}

// fill puts what p says into e.
func (p problem) fill(e *writ.Error) {
	e.Code = p.Code
	for _, k := range writ.Kinds {
		if k.String() == p.Kind {
			e.Kind = k
		}
	}
	if p.Detail != "" {
		e.Msg = p.Detail
	}
}

// kindOf is the kind of error of a status, for answers that do not say it: those
// of something between client and server.
func kindOf(status int) writ.Kind {
	switch status {
	case http.StatusUnauthorized:
		return writ.Unauthenticated
	case http.StatusForbidden:
		return writ.Denied
	case http.StatusNotFound:
		return writ.NotFound
	case http.StatusConflict:
		return writ.Conflict
	case http.StatusTooManyRequests:
		return writ.Exhausted
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return writ.Unavailable
	}
	if status >= 400 && status < 500 {
		return writ.Invalid
	}
	return writ.Internal
}

// readAll reads r, which must not have more than max bytes.
func readAll(r io.Reader, max int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, max+1))
	if err == nil && int64(len(b)) > max {
		return nil, fmt.Errorf("the answer is larger than %d bytes", max)
	}
	return b, err
}
