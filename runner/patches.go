package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"writ"
	"writ/files"
)

// patches remembers the outcomes of patches until they are recorded elsewhere. The
// journals have all of it on the disk; this answers without reading them.
type patches struct {
	journals *files.Journals

	mu      sync.Mutex
	settled map[writ.OperationID]writ.PatchResult // guarded by mu; each has a journal
	// unsettled are patches that a crash interrupted and that could not be brought to an
	// end yet. Guarded by mu.
	unsettled map[writ.OperationID]interrupted
	busy      map[writ.OperationID]chan struct{} // guarded by mu; closed when the call is over

	// recovering holds a token while somebody recovers: a second one would find journals
	// locked, and take them for under way.
	recovering chan struct{}
}

// interrupted is a patch that is not settled.
type interrupted struct {
	root   string           // canonical; empty when its journal cannot be read
	result writ.PatchResult // with writ.PatchUnknown
}

func newPatches(journals *files.Journals) *patches {
	return &patches{
		journals:  journals,
		settled:   map[writ.OperationID]writ.PatchResult{},
		unsettled: map[writ.OperationID]interrupted{},
		busy:      map[writ.OperationID]chan struct{}{},

		recovering: make(chan struct{}, 1),
	}
}

// outcome answers what is known of id. One that is not settled is tried again, and is
// writ.PatchUnknown when it cannot be settled now.
func (p *patches) outcome(ctx context.Context, id writ.OperationID) (result writ.PatchResult, known bool) {
	result, known = p.lookUp(id)
	if !known || result.Status != writ.PatchUnknown {
		return result, known
	}
	if _, err := p.recover(ctx); err != nil {
		result.Reason = "it was interrupted and cannot be settled yet: " + err.Error()
		return result, true
	}
	return p.lookUp(id)
}

func (p *patches) lookUp(id writ.OperationID) (writ.PatchResult, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.unsettled[id]; ok {
		return s.result, true
	}
	result, ok := p.settled[id]
	return result, ok
}

// once answers the outcome of id if there is one by now, else that of carryOut, which
// says whether it is in the journal. No two calls carry out one id at a time, and none
// begins beneath a root, or over one, on which a patch is not settled.
func (p *patches) once(ctx context.Context, id writ.OperationID, root string, carryOut func() (result writ.PatchResult, kept bool, err error)) (writ.PatchResult, error) {
	if err := p.clear(ctx, root); err != nil {
		return writ.PatchResult{}, err
	}
	if result, known := p.begin(ctx, id); known {
		return result, nil
	}
	var result writ.PatchResult
	var kept bool
	defer func() { p.end(id, result, kept) }() // also when carryOut panics
	var err error
	result, kept, err = carryOut()
	return result, err
}

// begin takes id for one call, which must end it, or answers what is known of it. It
// waits for another call that has it; when ctx ends meanwhile nobody can say yet.
func (p *patches) begin(ctx context.Context, id writ.OperationID) (result writ.PatchResult, known bool) {
	for {
		p.mu.Lock()
		result, known = p.settled[id]
		other, busy := p.busy[id]
		if !known && !busy {
			p.busy[id] = make(chan struct{})
		}
		p.mu.Unlock()
		if known || !busy {
			return result, known
		}
		select {
		case <-other:
		case <-ctx.Done():
			return writ.PatchResult{Status: writ.PatchUnknown, Reason: "another call carries it out"}, true
		}
	}
}

func (p *patches) end(id writ.OperationID, result writ.PatchResult, kept bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept {
		p.settled[id] = result
	}
	close(p.busy[id])
	delete(p.busy, id)
}

// clear sees that no patch is unsettled that concerns root, and tries those again.
func (p *patches) clear(ctx context.Context, root string) error {
	if !p.concerns(root) {
		return nil
	}
	if _, err := p.recover(ctx); err != nil {
		return err
	}
	if p.concerns(root) {
		return &writ.Error{
			Kind: writ.Unavailable, Code: files.CodeOperationFailed, Op: "apply patch",
			Msg: "an earlier patch of this workspace was interrupted and cannot be brought to an end: an operator must look at the runner's journals",
		}
	}
	return nil
}

// concerns reports whether a patch on a root that overlaps root is not settled.
func (p *patches) concerns(root string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.unsettled {
		if s.root != "" && (beneath(root, s.root) || beneath(s.root, root)) {
			return true
		}
	}
	return false
}

// beneath reports whether the canonical path is folder or beneath it.
func beneath(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// recover is Files.Recover.
func (p *patches) recover(ctx context.Context) ([]writ.Settlement, error) {
	select {
	case p.recovering <- struct{}{}:
		defer func() { <-p.recovering }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	all, err := p.journals.Recover(ctx)
	if err != nil {
		return nil, err
	}
	return p.settle(all), nil
}

// settle remembers what the journals say, and answers it.
func (p *patches) settle(all []files.Settled) []writ.Settlement {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.unsettled)
	out := make([]writ.Settlement, 0, len(all))
	for _, s := range all {
		id := writ.OperationID(s.ID)
		if _, busy := p.busy[id]; busy {
			continue // its call says how it ended
		}
		if s.Root == "" && errors.Is(s.Err, fs.ErrNotExist) {
			continue // its journal went before it was looked at: somebody forgot it
		}
		result := resultOf(s.Changes, s.Outcome)
		switch known, ok := p.settled[id]; {
		case ok:
			result = known
		case s.Err != nil:
			result.Status, result.Reason = writ.PatchUnknown, "it was interrupted and cannot be settled yet: "+s.Err.Error()
			p.unsettled[id] = interrupted{s.Root, result}
		default:
			p.settled[id] = result
		}
		out = append(out, writ.Settlement{Operation: id, Result: result})
	}
	return out
}

// forget is Files.Forget.
func (p *patches) forget(id writ.OperationID) error {
	p.mu.Lock()
	_, busy := p.busy[id]
	_, unsettled := p.unsettled[id]
	p.mu.Unlock()
	if busy || unsettled {
		return &writ.Error{Kind: writ.Conflict, Op: "forget patch", Msg: fmt.Sprintf("operation %s has no outcome yet", id)}
	}
	// The journal first: an id without one must not be known as settled after a crash
	// either.
	if err := p.journals.Forget(string(id)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.settled, id)
	return nil
}

// resultOf is the outcome of a transaction as the ledger has it.
func resultOf(changes []files.Change, o files.Outcome) writ.PatchResult {
	r := writ.PatchResult{Status: writ.PatchStatus(o.Status), Changes: changesOf(changes), Reason: o.Reason}
	if len(o.Left) > 0 {
		if r.Reason != "" {
			r.Reason += "; "
		}
		r.Reason += "not restored: " + strings.Join(o.Left, "; ")
	}
	return r
}
