package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"writ"
	"writ/internal/testkit"
)

// Whatever is asked in whatever order, by whom, and whatever becomes of the server and
// of the files meanwhile: a line that a patch adds is on the disk as often as the ledger
// says that it was applied and not undone, no key and no grant is used twice, nothing
// that is held happens without a grant, and in the end the workspace is free.
func TestPropertyLedgerIsTheDisk(t *testing.T) {
	t.Parallel() // it waits most of the time
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom([]writ.ApprovalMode{writ.ApprovalsOff, writ.ApprovalsConfirm, writ.ApprovalsReview}).Draw(rt, "mode")
		ws := testkit.Workspace(t, "app", map[string]string{"f0": "0\n", "f1": "0\n"}, func(w *writ.Workspace) { w.Approvals = mode })
		s := testkit.Workspaces(t, []writ.Workspace{ws})
		defer s.End()
		m := &ledgerModel{t: t, s: s, ws: ws}
		rt.Repeat(map[string]func(*rapid.T){
			"patch":   m.patch,
			"again":   m.again,
			"create":  m.create,
			"resolve": m.resolve,
			"resume":  m.resume,
			"undo":    m.undo,
			"edit":    m.edit,
			"policy": func(rt *rapid.T) {
				setPolicy(t, s.System, testkit.WorkspacePolicy+rapid.SampledFrom([]string{"", holdPatches, noPatches}).Draw(rt, "rules"))
			},
			"expire": func(rt *rapid.T) {
				if id, ok := pickFrom(rt, "hold", m.holds); ok && !s.StoredApproval(id).State.Terminal() {
					expire(t, s, id)
				}
			},
			"sweep":   func(*rapid.T) { s.Settle() },
			"restart": func(*rapid.T) { s.Restart() },
			"":        m.check,
		})
		setPolicy(t, s.System, testkit.WorkspacePolicy)
		mustPatchFree(rt, m)
	})
}

// ledgerModel is what was asked for. What became of it, the ledger and the disk say.
type ledgerModel struct {
	t     *testing.T
	s     *testkit.Workshop
	ws    writ.Workspace
	sent  []writ.PatchRequest // each adds a line of its own; those of one index are the same
	by    []writ.Principal    // who sent it
	holds []writ.ApprovalID
	edits int
}

func pickFrom[T any](rt *rapid.T, label string, all []T) (one T, ok bool) {
	if len(all) == 0 {
		return one, false
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(rt, label)], true
}

// line is what request i adds.
func line(i int) string { return fmt.Sprintf("line %d of a patch", i) }

func (m *ledgerModel) fresh(rt *rapid.T) (writ.Principal, writ.PatchRequest) {
	lines := []string{"*** Update File: " + rapid.SampledFrom([]string{"f0", "f1"}).Draw(rt, "file"), "@@", "+" + line(len(m.sent))}
	req := keyed(rapid.SampledFrom([]string{"", "", "k0", "k1", "k2"}).Draw(rt, "key"), lines...)
	req.CheckOnly = rapid.IntRange(0, 4).Draw(rt, "check") == 0
	who := m.s.Agent(rapid.SampledFrom([]writ.IdentityID{"coder", "coder", "mate"}).Draw(rt, "who"))
	m.sent, m.by = append(m.sent, req), append(m.by, who)
	return who, req
}

// allow fails rt on an error that none of codes explains, and notes a hold.
func (m *ledgerModel) allow(rt *rapid.T, err error, codes ...string) {
	if h, ok := errors.AsType[*writ.Held](err); ok {
		if !slices.Contains(m.holds, h.Approval) {
			m.holds = append(m.holds, h.Approval)
		}
		return
	}
	if err != nil && !slices.Contains(append(codes, "UNAUTHORIZED"), writ.CodeOf(err)) {
		rt.Fatalf("%v with code %q", err, writ.CodeOf(err))
	}
}

func (m *ledgerModel) send(rt *rapid.T, who writ.Principal, req writ.PatchRequest) {
	lost := rapid.IntRange(0, 9).Draw(rt, "lost") == 0
	if lost { // whatever the files do, the gateway is not told
		m.s.Files.Answer(func(r writ.PatchResult, err error) (writ.PatchResult, error) {
			if err != nil {
				return r, err
			}
			return writ.PatchResult{Status: writ.PatchUnknown, Reason: "lost"}, nil
		})
	}
	_, _, err := m.s.Tools.Patch(context.Background(), who, req)
	m.s.Files.Mend()
	m.allow(rt, err, "OPERATION_KEY_CONFLICT", "VERSION_CONFLICT", "OPERATION_NOT_FOUND", "INVALID_PATCH")
}

func (m *ledgerModel) patch(rt *rapid.T) {
	who, req := m.fresh(rt)
	m.send(rt, who, req)
}

func (m *ledgerModel) again(rt *rapid.T) {
	if len(m.sent) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.sent)-1).Draw(rt, "request")
	m.send(rt, m.by[i], m.sent[i])
}

func (m *ledgerModel) create(rt *rapid.T) {
	who, req := m.fresh(rt)
	a, err := m.s.CreateApproval(context.Background(), who, req)
	if err == nil {
		m.holds = append(m.holds, a.ID)
	}
	m.allow(rt, err, "OPERATION_KEY_CONFLICT")
}

func (m *ledgerModel) resolve(rt *rapid.T) {
	id, ok := pickFrom(rt, "hold", m.holds)
	if !ok {
		return
	}
	a := m.s.StoredApproval(id)
	who := m.s.Operator("ann")
	if rapid.Bool().Draw(rt, "self") {
		who = m.s.Agent(a.Identity)
	}
	_, err := m.s.Verdict(who, id, rapid.SampledFrom([]writ.Verdict{writ.Grant, writ.Grant, writ.Refuse}).Draw(rt, "verdict"), "")
	switch kind := writ.KindOf(err); {
	case err == nil && who.Kind == writ.KindAgent && a.Call.Mode != writ.ApprovalsConfirm:
		rt.Fatalf("the requester decided a hold of mode %s", a.Call.Mode)
	case err != nil && kind != writ.Conflict && kind != writ.Denied:
		rt.Fatal(err)
	}
}

func (m *ledgerModel) resume(rt *rapid.T) {
	id, ok := pickFrom(rt, "hold", m.holds)
	if !ok {
		return
	}
	was := m.s.StoredApproval(id)
	_, op, err := m.s.Resume(context.Background(), m.s.Agent(was.Identity), id)
	m.allow(rt, err, "APPROVAL_CONFLICT", "OPERATION_KEY_CONFLICT", "VERSION_CONFLICT", "INVALID_PATCH", "OPERATION_NOT_FOUND")
	if err == nil && was.State != writ.ApprovalGranted && was.State != writ.ApprovalQueued && was.State != writ.ApprovalConsumed {
		rt.Fatalf("operation %s was carried out for a hold that was %s", op.ID, was.State)
	}
}

func (m *ledgerModel) undo(rt *rapid.T) {
	op, ok := pickFrom(rt, "operation", m.s.Operations())
	if !ok {
		return
	}
	m.send(rt, m.s.Agent(writ.IdentityID(op.By.ID)), writ.PatchRequest{Workspace: "app", Undo: op.ID})
}

// edit is of somebody who is not one of us.
func (m *ledgerModel) edit(rt *rapid.T) {
	name := rapid.SampledFrom([]string{"f0", "f1"}).Draw(rt, "file")
	m.edits++
	text := testkit.FilesBeneath(m.t, m.ws.Root)[name]
	testkit.PutFiles(m.t, m.ws.Root, map[string]string{name: fmt.Sprint("edit ", m.edits, "\n") + text})
}

func (m *ledgerModel) check(rt *rapid.T) {
	ops := m.s.Operations()
	keys, grants := map[string]bool{}, map[writ.ApprovalID]bool{}
	undone := map[writ.OperationID][]writ.Operation{}
	for _, op := range ops {
		if op.Finished == nil {
			rt.Fatalf("operation %s is not finished", op.ID)
		}
		if op.Key != "" && keys[op.Key] || op.Approval != "" && grants[op.Approval] {
			rt.Fatalf("operation %s is another of key %q or of approval %q", op.ID, op.Key, op.Approval)
		}
		keys[op.Key], grants[op.Approval] = true, true
		if op.Approval != "" {
			if a := m.s.StoredApproval(op.Approval); a.State != writ.ApprovalConsumed || a.Call.Operation != op.ID || a.Spec != op.Fingerprint {
				rt.Fatalf("operation %s is of approval %s, which is %s with %s", op.ID, a.ID, a.State, a.Call.Operation)
			}
		} else if m.ws.Approvals != writ.ApprovalsOff {
			rt.Fatalf("operation %s had no approval", op.ID)
		}
		undone[op.Undoes] = append(undone[op.Undoes], op)
	}
	// How often an operation's change is on the disk, at least and at most: of an unknown
	// one nobody can say.
	var net func(op writ.Operation) (least, most int)
	net = func(op writ.Operation) (least, most int) {
		switch {
		case op.CheckOnly:
			return 0, 0
		case op.Result.Status == writ.PatchApplied:
			least, most = 1, 1
		case op.Result.Status == writ.PatchUnknown:
			least, most = 0, 1
		}
		for _, u := range undone[op.ID] {
			l, h := net(u)
			least, most = least-h, most-l
		}
		return least, most
	}
	disk := ""
	for _, text := range testkit.FilesBeneath(m.t, m.ws.Root) {
		disk += text
	}
	for i, req := range m.sent {
		least, most := 0, 0
		for _, op := range ops {
			if op.Fingerprint == req.Fingerprint() {
				l, h := net(op)
				least, most = least+l, most+h
			}
		}
		if n := strings.Count(disk, line(i)+"\n"); n < least || n > most {
			rt.Fatalf("%q is on the disk %d times, the ledger says %d to %d\n%s", line(i), n, least, most, disk)
		}
	}
}

// mustPatchFree fails rt if something still has the workspace, or was left in it.
func mustPatchFree(rt *rapid.T, m *ledgerModel) {
	op, _, err := m.s.Tools.Patch(context.Background(), m.s.Agent("coder"), change(add("last", "x")...))
	if h, ok := errors.AsType[*writ.Held](err); ok {
		who := m.s.Operator("ann")
		m.s.MustResolve(who, h.Approval, true)
		_, op, err = m.s.Resume(context.Background(), m.s.Agent("coder"), h.Approval)
	}
	if err != nil || op.Result.Status != writ.PatchApplied {
		rt.Fatalf("%s, %v", op.Result.Status, err)
	}
	m.s.Restart()
	if left := m.s.Journals(); left != nil {
		rt.Fatalf("journals are left: %v", left)
	}
	for name := range testkit.FilesBeneath(m.t, m.ws.Root) {
		if strings.Contains(name, ".writ-") {
			rt.Fatalf("%s is left", name)
		}
	}
}
