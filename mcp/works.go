package mcp

import (
	"context"
	"fmt"

	"writ"
	"writ/response"
)

func workOpenTool() tool {
	return tool{
		name: "work_open", title: "Open a work",
		description: "Say that you begin a piece of work in a workspace, so that the user can send you instructions for it. What waits there for the next work becomes this one's.",
		in: object{
			workspaceID(),
			may("title", withMost(writ.MaxTitleBytes, text("What the work is, for the user."))),
		},
		out: object{must("work_id", text("")), must("workspace_id", text("")), must("state", oneOf("", "active"))},
		run: workOpen,
	}
}

func workOpen(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Workspace writ.WorkspaceID `json:"workspace_id"`
		Title     string           `json:"title"`
	}](c)
	if err != nil {
		return nil, err
	}
	if err := writ.ValidTitle(in.Title); err != nil {
		return nil, invalidParams("arguments/" + err.Error())
	}
	w, err := c.works.Open(ctx, c.who, in.Workspace, in.Title)
	if err != nil {
		return nil, err
	}
	return struct {
		Work      writ.WorkID      `json:"work_id"`
		Workspace writ.WorkspaceID `json:"workspace_id"`
		State     writ.WorkState   `json:"state"`
	}{w.ID, w.Workspace, w.State}, nil
}

func theWork() property { return must("work_id", text("As work_open answered it.")) }

func workState() property { return must("state", oneOf("", "active", "closing", "closed")) }

func steerStatusTool() tool {
	return tool{
		name: "steer_status", title: "Status of a work",
		description: "How many instructions of the user wait in a work, and those that you have claimed and not completed. Claims nothing.",
		hints:       hints{readOnly: true, idempotent: true},
		in:          object{theWork()},
		out: object{
			must("work_id", text("")),
			workState(),
			must("queued", count(0, 0, "Instructions that wait, those for after this work included.")),
			must("claimed", count(0, 0, "Instructions that you have.")),
			must("claimable_now", count(0, 0, "How many of the queued ones steer_claim_next would give you now.")),
			must("queue_revision", count(0, 0, "Grows with every change.")),
			may("claimed_items", listOf(object(intentItem()).schema(), "What you have claimed and not completed; a stop_notice is here without being claimed.")),
			may("truncated", flag("True when claimed_items was cut to fit: complete some, then ask again.")),
		},
		run: steerStatus,
	}
}

// intentItem is an instruction as an agent gets it.
func intentItem() []property {
	return []property{
		must("intent_id", text("steer_complete takes it.")),
		must("revision", count(1, 0, "")),
		must("kind", oneOf("stop_notice: the user had the processes of the workspace ended.", "follow_up", "note", "stop_notice")),
		must("delivery", oneOf("", "after_current_work", "next_checkpoint", "next_work")),
		must("content", text("What the user wrote.")),
	}
}

type item struct {
	Intent   writ.IntentID   `json:"intent_id"`
	Revision int64           `json:"revision"`
	Kind     writ.IntentKind `json:"kind"`
	Delivery writ.Delivery   `json:"delivery"`
	Content  string          `json:"content"`
}

func itemOf(i writ.Intent) item { return item{i.ID, i.Revision, i.Kind, i.Delivery, i.Body} }

func steerStatus(ctx context.Context, c *call) (any, error) {
	id, err := workArg(c)
	if err != nil {
		return nil, err
	}
	st, claimed, err := c.works.Status(ctx, c.who, id)
	if err != nil {
		return nil, err
	}
	out := struct {
		Work      writ.WorkID    `json:"work_id"`
		State     writ.WorkState `json:"state"`
		Queued    int            `json:"queued"`
		Claimed   int            `json:"claimed"`
		Claimable int            `json:"claimable_now"`
		Revision  int64          `json:"queue_revision"`
		Items     []item         `json:"claimed_items,omitempty"`
		Truncated bool           `json:"truncated,omitzero"`
	}{Work: st.ID, State: st.State, Queued: st.Queued, Claimed: st.Claimed, Claimable: st.Claimable, Revision: st.Revision}
	room := MaxResultBytes - envelopeBytes
	for _, i := range claimed {
		if room -= textCost(i.Body) + 4*elementBytes; room < 0 {
			out.Truncated = true
			break
		}
		out.Items = append(out.Items, itemOf(i))
	}
	return out, nil
}

// workArg is the argument of the tools that take a work alone.
func workArg(c *call) (writ.WorkID, error) {
	in, err := decode[struct {
		Work writ.WorkID `json:"work_id"`
	}](c)
	return in.Work, err
}

func steerClaimNextTool() tool {
	return tool{
		name: "steer_claim_next", title: "Claim the next instruction",
		description: "Take the next instruction of the user in a work. Only at major checkpoints, not after every step. Without an item there is none for you now. Follow it, then steer_complete.",
		in:          object{theWork()},
		out:         object{may("item", object(intentItem()).within("Absent when nothing can be claimed now."))},
		run:         steerClaimNext,
	}
}

func steerClaimNext(ctx context.Context, c *call) (any, error) {
	id, err := workArg(c)
	if err != nil {
		return nil, err
	}
	i, err := c.works.ClaimNext(ctx, c.who, id)
	if err != nil {
		return nil, err
	}
	var out struct {
		Item *item `json:"item,omitempty"`
	}
	if i != nil {
		it := itemOf(*i)
		out.Item = &it
	}
	return out, nil
}

func steerCompleteTool() tool {
	return tool{
		name: "steer_complete", title: "Complete an instruction",
		description: "Say that you have done what a claimed instruction asks, or that you could not: outcome blocked.",
		in: object{
			theWork(),
			must("intent_id", text("As steer_claim_next answered it.")),
			may("outcome", oneOf("Default done.", string(writ.IntentDone), string(writ.IntentBlocked))),
		},
		out: object{
			must("intent_id", text("")),
			must("work_id", text("")),
			must("workspace_id", text("")),
			must("position", count(0, 0, "")),
			must("revision", count(1, 0, "")),
			must("kind", text("")),
			must("delivery", text("")),
			must("body", text("What the user wrote.")),
			must("state", oneOf("", string(writ.IntentDone), string(writ.IntentBlocked))),
		},
		run: steerComplete,
	}
}

func steerComplete(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Work    writ.WorkID      `json:"work_id"`
		Intent  writ.IntentID    `json:"intent_id"`
		Outcome writ.IntentState `json:"outcome"`
	}](c)
	if err != nil {
		return nil, err
	}
	switch in.Outcome {
	case "":
		in.Outcome = writ.IntentDone
	case writ.IntentDone, writ.IntentBlocked:
	default:
		return nil, invalidParams(fmt.Sprintf("arguments/outcome: want %s or %s", writ.IntentDone, writ.IntentBlocked))
	}
	i, err := c.works.Complete(ctx, c.who, in.Work, in.Intent, in.Outcome)
	if err != nil {
		return nil, err
	}
	return struct {
		Intent    writ.IntentID    `json:"intent_id"`
		Work      writ.WorkID      `json:"work_id"`
		Workspace writ.WorkspaceID `json:"workspace_id"`
		Position  int64            `json:"position"`
		Revision  int64            `json:"revision"`
		Kind      writ.IntentKind  `json:"kind"`
		Delivery  writ.Delivery    `json:"delivery"`
		Body      string           `json:"body"`
		State     writ.IntentState `json:"state"`
	}{i.ID, i.Work, i.Workspace, i.Position, i.Revision, i.Kind, i.Delivery, i.Body, i.State}, nil
}

func workFinishTool() tool {
	return tool{
		name: "work_finish", title: "Finish a work",
		description: "Say that a work is done. closed false with reason pending_user_input means that instructions of the user wait: claim and complete them, then finish again.",
		in:          object{theWork()},
		out: object{
			must("work_id", text("")),
			must("closed", flag("")),
			may("reason", oneOf("Only when it is not closed.", pendingInput)),
			must("queued", count(0, 0, "Instructions that are to be seen to first, claimed ones included.")),
			workState(),
		},
		run: workFinish,
	}
}

const pendingInput = "pending_user_input"

func workFinish(ctx context.Context, c *call) (any, error) {
	id, err := workArg(c)
	if err != nil {
		return nil, err
	}
	f, err := c.works.Finish(ctx, c.who, id)
	if err != nil {
		return nil, err
	}
	out := struct {
		Work   writ.WorkID    `json:"work_id"`
		Closed bool           `json:"closed"`
		Reason string         `json:"reason,omitempty"`
		Queued int            `json:"queued"`
		State  writ.WorkState `json:"state"`
	}{Work: f.Work.ID, Closed: f.Closed, Queued: f.Queued, State: f.Work.State}
	if !f.Closed {
		out.Reason = pendingInput
	}
	return out, nil
}

// hint says in the result of another tool that instructions wait; nil when there is
// nothing to say. What a tool did is not undone by a hint that cannot be had: that is
// only logged.
func (c *call) hint(ctx context.Context, workspace writ.WorkspaceID, work writ.WorkID) *writ.WorkHint {
	h, found, err := c.works.Hint(ctx, c.who, workspace, work)
	return c.hintOf(ctx, h, found, err)
}

func (c *call) hintOf(ctx context.Context, h writ.WorkHint, found bool, err error) *writ.WorkHint {
	if err != nil {
		c.noHint(ctx, err)
		return nil
	}
	if !found {
		return nil
	}
	return &h
}

// hintMeanwhile begins to ask for the hint, while the caller waits for something else that
// changes no work. wait answers as hint does; unless it is wanted, nothing.
func (c *call) hintMeanwhile(ctx context.Context, workspace writ.WorkspaceID, work writ.WorkID) (wait func(wanted bool) *writ.WorkHint) {
	var h writ.WorkHint
	var found bool
	var err error
	done := make(chan struct{})
	go func() { // ends with its question
		defer close(done)
		defer response.Catch(&err)
		h, found, err = c.works.Hint(ctx, c.who, workspace, work)
	}()
	return func(wanted bool) *writ.WorkHint {
		<-done
		if !wanted {
			return nil
		}
		return c.hintOf(ctx, h, found, err)
	}
}
