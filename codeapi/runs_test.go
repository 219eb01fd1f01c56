package codeapi

import (
	"context"
	"slices"
	"strings"
	"sync"

	"writ"
	"writ/interpreter"
)

// scriptedRuns stands in for package interpreter, whose own tests run code: it keeps what
// it was asked and answers what it is told.
type scriptedRuns struct {
	mode interpreter.Mode // Stateless when empty
	// exec answers a run; nil answers an empty one.
	exec func(ctx context.Context, who writ.Principal, r interpreter.Request) (interpreter.Reply, error)

	mu      sync.Mutex
	asked   []interpreter.Request // guarded by mu
	by      []writ.Principal      // guarded by mu; of asked
	running map[string]writ.Ref   // guarded by mu; who has a run of that id under way
	ended   []string              // guarded by mu; ids that were cancelled
}

func (s *scriptedRuns) Language(_ context.Context, name writ.Language) error {
	if slices.Contains([]string{"python", "py", "bash", "sh", "js", "javascript"}, strings.ToLower(string(name))) {
		return nil
	}
	return &writ.Error{Kind: writ.Invalid, Msg: "Unsupported language: " + string(name)}
}

func (s *scriptedRuns) Hint(hint string) error {
	if s.mode == interpreter.Strict && hint == "" {
		return &writ.Error{Kind: writ.Invalid, Msg: "runtime_session_hint is required in strict mode"}
	}
	if strings.ContainsAny(hint, " /") {
		return &writ.Error{Kind: writ.Invalid, Msg: `runtime_session_hint may only contain letters, digits, ".", "_", ":", and "-"`}
	}
	return nil
}

func (s *scriptedRuns) Exec(ctx context.Context, who writ.Principal, r interpreter.Request) (interpreter.Reply, error) {
	s.mu.Lock()
	s.asked, s.by = append(s.asked, r), append(s.by, who)
	if s.running == nil {
		s.running = map[string]writ.Ref{}
	}
	if r.ID != "" {
		s.running[r.ID] = who.Ref()
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, r.ID)
	}()
	if s.exec != nil {
		return s.exec(ctx, who, r)
	}
	code := 0
	return interpreter.Reply{Session: "aaaaaaaaaaaaaaaaaaaaa", Code: &code, Stdout: "hi\n", WallMS: 12}, nil
}

func (s *scriptedRuns) Cancel(_ context.Context, who writ.Principal, id string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] != who.Ref() || who.ID == "" {
		return false, nil
	}
	s.ended = append(s.ended, id)
	return true, nil
}

func (s *scriptedRuns) Mode() interpreter.Mode {
	if s.mode == "" {
		return interpreter.Stateless
	}
	return s.mode
}

// all is what was asked so far.
func (s *scriptedRuns) all() ([]interpreter.Request, []writ.Principal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), slices.Clone(s.by)
}
