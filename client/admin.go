package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"writ"
)

// Approvals is one page of a list, newest first, and the cursor of the next, which
// is empty after the last. f.Tenant is not sent: the server takes the caller's.
func (c *Client) Approvals(ctx context.Context, f writ.ApprovalFilter) ([]writ.Approval, string, error) {
	r, err := get[struct {
		Approvals []writ.Approval `json:"approvals"`
		Next      string          `json:"next"`
	}](ctx, c, "/v1/approvals", listQuery(f.States, f.Identity, f.Page))
	return r.Approvals, r.Next, err
}

// Approval is an approval with the text that its approver must read.
func (c *Client) Approval(ctx context.Context, id writ.ApprovalID) (writ.ApprovalView, error) {
	return get[writ.ApprovalView](ctx, c, at("/v1/approvals/", id, ""), nil)
}

// Vote grants or denies. A grant must name the digest of the text that was shown.
func (c *Client) Vote(ctx context.Context, id writ.ApprovalID, v writ.VoteRequest) (writ.Approval, error) {
	return post[writ.Approval](ctx, c, at("/v1/approvals/", id, "/vote"), v)
}

// Events is at most f.Limit events (0 means writ.DefaultPage), from f.After+1 on.
// more says that the log has others that f selects, after the last of them. Only the
// owner of the data folder may name a tenant that is not its own.
func (c *Client) Events(ctx context.Context, f writ.EventFilter) (events []writ.Event, more bool, err error) {
	r, err := get[struct {
		Events []writ.Event `json:"events"`
		More   bool         `json:"more"`
	}](ctx, c, "/v1/audit/events", eventQuery(f))
	return r.Events, r.More, err
}

// Checkpoint is the last signed checkpoint of the audit log.
func (c *Client) Checkpoint(ctx context.Context) (writ.Checkpoint, error) {
	return get[writ.Checkpoint](ctx, c, "/v1/audit/checkpoint", nil)
}

// Verifier is the public key of the checkpoints. Who wants to check a server
// against itself must have got it in another way.
func (c *Client) Verifier(ctx context.Context) (string, error) {
	r, err := get[struct {
		Verifier string `json:"verifier"`
	}](ctx, c, "/v1/audit/verifier", nil)
	return r.Verifier, err
}

// Prove shows that event seq is in the log.
func (c *Client) Prove(ctx context.Context, seq int64) (writ.AuditProof, error) {
	return get[writ.AuditProof](ctx, c, "/v1/audit/proof/"+strconv.FormatInt(seq, 10), nil)
}

// Verify has the server read its log and check it, also against the checkpoints
// that the caller kept. What it finds is in the report, not an error.
func (c *Client) Verify(ctx context.Context, anchors []string) (writ.AuditReport, error) {
	return post[writ.AuditReport](ctx, c, "/v1/audit/verify", writ.VerifyRequest{Anchors: anchors})
}

// Export copies events to w as lines of JSON: format is "jsonl" or "cloudevents".
// f.Limit 0 means all. After an error w may have a part of them.
func (c *Client) Export(ctx context.Context, w io.Writer, format string, f writ.EventFilter) error {
	const path = "/v1/audit/export"
	q := eventQuery(f)
	q.Set("format", format)
	resp, err := c.do(ctx, http.MethodGet, path, q, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return c.broken(ctx, "GET "+path, err)
	}
	return nil
}

func eventQuery(f writ.EventFilter) url.Values {
	q := url.Values{"after": {strconv.FormatInt(f.After, 10)}}
	if f.Limit != 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	if f.Tenant != "" {
		q.Set("tenant", string(f.Tenant))
	}
	if f.Task != "" {
		q.Set("task", string(f.Task))
	}
	for _, t := range f.Types {
		q.Add("type", string(t))
	}
	return q
}

// CreateKey makes a key. Its token is in this answer and never again.
func (c *Client) CreateKey(ctx context.Context, r writ.KeyRequest) (writ.NewKey, error) {
	return post[writ.NewKey](ctx, c, "/v1/keys", r)
}

// Keys lists keys, without their secrets.
func (c *Client) Keys(ctx context.Context) ([]writ.Key, error) {
	r, err := get[struct {
		Keys []writ.Key `json:"keys"`
	}](ctx, c, "/v1/keys", nil)
	return r.Keys, err
}

// RevokeKey ends a key at once.
func (c *Client) RevokeKey(ctx context.Context, id writ.KeyID) error {
	return c.del(ctx, at("/v1/keys/", id, ""))
}

// AddOperator adds a person and answers its first key.
func (c *Client) AddOperator(ctx context.Context, r writ.OperatorRequest) (writ.NewKey, error) {
	return post[writ.NewKey](ctx, c, "/v1/operators", r)
}

// Operators lists the operators.
func (c *Client) Operators(ctx context.Context) ([]writ.Operator, error) {
	r, err := get[struct {
		Operators []writ.Operator `json:"operators"`
	}](ctx, c, "/v1/operators", nil)
	return r.Operators, err
}

// DisableOperator ends what an operator may do, and its keys.
func (c *Client) DisableOperator(ctx context.Context, id string) error {
	return c.del(ctx, at("/v1/operators/", id, ""))
}

// Explain says what policy would decide about req, as the server's JSON object. Who
// administers is also told why: the rules that matched, and the nearest other one.
func (c *Client) Explain(ctx context.Context, req writ.TaskRequest) (json.RawMessage, error) {
	return post[json.RawMessage](ctx, c, "/v1/policy/explain", req)
}

// Status says what the sandbox of the server enforces.
func (c *Client) Status(ctx context.Context) (writ.Enforcement, error) {
	return get[writ.Enforcement](ctx, c, "/v1/status", nil)
}
