package approval

import (
	"fmt"

	"writ"
)

// RenderPatch is the text that an approver of a patch reads: who asks for what and why
// it is held, the files, then the diff. a is the patch's approval, req what was sent and
// plan what it would do.
//
// The text depends on its arguments only, and on nothing in them that changes while
// the approval is pending.
func RenderPatch(a writ.Approval, req writ.PatchRequest, plan writ.PatchPlan) string {
	w := &page{}
	w.field("approval", string(a.ID))
	w.field("requester", a.Requester.String())
	w.field("held because", a.Reason)
	w.field("request", string(req.Fingerprint()))
	for i, c := range plan.Changes {
		w.quoted(fmt.Sprintf("file %d", i+1), c.Path)
	}
	w.body("diff", plan.Diff)
	return w.b.String()
}
