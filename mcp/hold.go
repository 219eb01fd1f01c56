package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
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

// question is the name of the one input request of a held call.
const question = "approve"

// holdable is a call that can be held, as the client sent it.
type holdable interface {
	// digest covers everything that the client asks.
	digest() writ.Digest
	// question asks the client's user whether to carry it out. What the client sent is
	// escaped, and what is cut is said to be.
	question(context.Context, *call, writ.ApprovalID) string
	// resumed is what the tool answers once the call was carried out after its hold.
	resumed(context.Context, *call, writ.Resumed) (any, error)
}

// unlessHeld is what carryOut answers. When the call is held, or was and the client sends
// it again, it comes before the client's user instead.
func (c *call) unlessHeld(ctx context.Context, in holdable, carryOut func() (any, error)) (any, error) {
	if c.req.Params.RequestState != "" {
		return c.again(ctx, in)
	}
	out, err := carryOut()
	if h, ok := errors.AsType[*writ.Held](err); ok {
		c.approval = h.Approval
		return c.held(ctx, in, h, err)
	}
	return out, err
}

// held brings the hold h of a call before the client's user, when the requester may lift
// it and the client can ask. Otherwise it is err, which says what to do.
func (c *call) held(ctx context.Context, in holdable, h *writ.Held, err error) (any, error) {
	if !h.Self || !c.canAsk() {
		return nil, err
	}
	if c.req.ProtocolVersion() >= stateless {
		return c.inputRequired(ctx, in, h.Approval), nil
	}
	asked, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer, askErr := c.req.Session.Elicit(asked, c.ask(ctx, in, h.Approval))
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
func (c *call) inputRequired(ctx context.Context, in holdable, id writ.ApprovalID) *sdk.CallToolResult {
	return &sdk.CallToolResult{
		InputRequests: sdk.InputRequestMap{question: c.ask(ctx, in, id)},
		RequestState:  c.seal.close(id, c.who, in.digest(), time.Now().Add(stateTime)),
	}
}

// again takes a call that a client of the stateless era sends again.
func (c *call) again(ctx context.Context, in holdable) (any, error) {
	state, err := c.seal.open(c.req.Params.RequestState, c.who, in.digest(), time.Now())
	if err != nil {
		return nil, invalidParams(err.Error())
	}
	c.approval = state.Approval
	answer, ok := c.req.Params.InputResponses[question].(*sdk.ElicitResult)
	if !ok {
		return c.inputRequired(ctx, in, state.Approval), nil // it has the state, and no answer yet
	}
	if err := c.seal.use(state, time.Now()); err != nil {
		return nil, invalidParams(err.Error())
	}
	return c.answered(ctx, in, state.Approval, answer.Action)
}

// answered does what the user said about the hold id.
func (c *call) answered(ctx context.Context, in holdable, id writ.ApprovalID, action string) (any, error) {
	switch action {
	case "accept":
		// Somebody else may have decided meanwhile: then what was decided counts.
		if _, err := c.ws.ResolveApproval(ctx, c.who, id, true); err != nil && writ.CodeOf(err) != codeApprovalConflict {
			return nil, err
		}
		r, err := c.ws.Resume(ctx, c.who, id)
		if err != nil {
			return nil, err
		}
		return in.resumed(ctx, c, r)
	case "decline":
		if _, err := c.ws.ResolveApproval(ctx, c.who, id, false); err != nil {
			return nil, err
		}
		return nil, &writ.Error{Kind: writ.Conflict, Code: codeApprovalConflict, Msg: "the user declined: nothing was done, do not send it again"}
	}
	return nil, &writ.Error{
		Kind: writ.Conflict, Code: codeApprovalRequired,
		Msg: "the user did not decide: the call waits for approval " + string(id) + ", approval_resolve decides it and operation_resume carries it out",
	}
}

// ask is the question whether to carry out in. Accepting it is the answer; there is
// nothing to fill in.
func (c *call) ask(ctx context.Context, in holdable, id writ.ApprovalID) *sdk.ElicitParams {
	return &sdk.ElicitParams{
		Mode: "form", Message: in.question(ctx, c, id),
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
