package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
)

// askTime is how long a user has to answer a form of an older client, whose call is
// open meanwhile. It leaves time to carry out what was granted within callTime.
const askTime = 40 * time.Second

// stateTime is how long a client may keep the state of a request. The approval
// itself lives on.
const stateTime = 10 * time.Minute

// question is the name of the one input request of a held patch.
const question = "approve"

// held brings the hold h of a call before the client's user, when the requester may lift
// it and the client can ask. Otherwise it is err, which says what to do.
func (c *call) held(ctx context.Context, in patchArgs, h *writ.Held, err error) (any, error) {
	req := in.request()
	if !h.Self || !c.canAsk() {
		return nil, err
	}
	if c.req.ProtocolVersion() >= stateless {
		return c.inputRequired(req, h.Approval), nil
	}
	asked, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer, askErr := c.req.Session.Elicit(asked, askFor(req, h.Approval))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if askErr != nil {
		// No answer, or one that is none. The hold is pending as before.
		return nil, err
	}
	return c.answered(ctx, in, h.Approval, answer.Action)
}

// canAsk reports whether the client says that it shows forms to a user.
func (c *call) canAsk() bool {
	caps := c.req.ClientCapabilities()
	if caps == nil || caps.Elicitation == nil {
		return false
	}
	// Forms are meant when nothing is said.
	return caps.Elicitation.Form != nil || caps.Elicitation.URL == nil
}

// inputRequired asks a client of the stateless era: it puts the question to its user
// and sends the call again, with the answer and the state.
func (c *call) inputRequired(req writ.PatchRequest, id writ.ApprovalID) *sdk.CallToolResult {
	return &sdk.CallToolResult{
		InputRequests: sdk.InputRequestMap{question: askFor(req, id)},
		RequestState:  c.seal.close(id, c.who, requestDigest(req), time.Now().Add(stateTime)),
	}
}

// again takes a call that a client of the stateless era sends again.
func (c *call) again(ctx context.Context, in patchArgs) (any, error) {
	req := in.request()
	state, err := c.seal.open(c.req.Params.RequestState, c.who, requestDigest(req), time.Now())
	if err != nil {
		return nil, invalidParams(err.Error())
	}
	c.approval = state.Approval
	answer, ok := c.req.Params.InputResponses[question].(*sdk.ElicitResult)
	if !ok {
		return c.inputRequired(req, state.Approval), nil // it has the state, and no answer yet
	}
	if err := c.seal.use(state, time.Now()); err != nil {
		return nil, invalidParams(err.Error())
	}
	return c.answered(ctx, in, state.Approval, answer.Action)
}

// answered does what the user said about the hold id.
func (c *call) answered(ctx context.Context, in patchArgs, id writ.ApprovalID, action string) (any, error) {
	switch action {
	case "accept":
		// Somebody else may have decided meanwhile: then what was decided counts.
		if _, err := c.ws.ResolveApproval(ctx, c.who, id, true); err != nil && writ.CodeOf(err) != codeApprovalConflict {
			return nil, err
		}
		_, op, err := c.ws.Resume(ctx, c.who, id)
		if err != nil {
			return nil, err
		}
		return c.patched(ctx, in, op, false), nil
	case "decline":
		if _, err := c.ws.ResolveApproval(ctx, c.who, id, false); err != nil {
			return nil, err
		}
		return nil, &writ.Error{Kind: writ.Conflict, Code: codeApprovalConflict, Msg: "the user declined: the change was not made, do not send it again"}
	}
	return nil, &writ.Error{
		Kind: writ.Conflict, Code: codeApprovalRequired,
		Msg: "the user did not decide: the change waits for approval " + string(id) + ", approval_resolve decides it and operation_resume carries it out",
	}
}

// requestDigest covers everything that a client asks with req.
func requestDigest(req writ.PatchRequest) writ.Digest {
	return writ.DigestOf([]byte("writ mcp apply_patch v1\n" + string(req.Fingerprint()) + "\n" + req.Key))
}

// maxNamed bounds how many files a question names.
const maxNamed = 20

// askFor is the question whether to carry out req. Accepting it is the answer; there
// is nothing to fill in.
func askFor(req writ.PatchRequest, id writ.ApprovalID) *sdk.ElicitParams {
	var b strings.Builder
	verb := "Change"
	if req.CheckOnly {
		verb = "Check, without changing,"
	}
	fmt.Fprintf(&b, "%s files in workspace %s?", verb, shown(string(req.Workspace)))
	n := 0
	for line := range strings.Lines(req.Patch) {
		what, path, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "*** "), ": ")
		if !ok || !strings.HasPrefix(strings.TrimSpace(line), "*** ") {
			continue
		}
		if n++; n <= maxNamed {
			fmt.Fprintf(&b, "\n%s: %s", shown(what), shown(path))
		}
	}
	if n > maxNamed {
		fmt.Fprintf(&b, "\nand %d more", n-maxNamed)
	}
	fmt.Fprintf(&b, "\nApproval %s: \"writ approvals show %s\" shows the diff.", id, id)
	return &sdk.ElicitParams{
		Mode: "form", Message: b.String(),
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
	}
}

// shown is text of the client for its user: what does not print is escaped, and what
// is long is cut.
func shown(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "…"
	}
	q := strconv.QuoteToGraphic(s)
	return q[1 : len(q)-1]
}
