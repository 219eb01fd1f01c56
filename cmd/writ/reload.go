package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"writ"
	"writ/policy"
)

// loadPolicy compiles the *.cedar files of dir.
func loadPolicy(dir string) (*policy.Set, error) {
	files, err := readPolicy(dir)
	if err != nil {
		return nil, err
	}
	return policy.Compile(files)
}

func readPolicy(dir string) ([]policy.File, error) {
	if !fileExists(dir) {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "load policy", Msg: fmt.Sprintf("there is no policy folder %s: without policy everything is denied, so an empty one must be made on purpose", dir)}
	}
	files, err := policy.FromFS(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("read policy folder %s: %w", dir, err)
	}
	return files, nil
}

// policyPoll is the time between two readings of the policy folder. A change is in
// force after the second reading that shows it.
const policyPoll = time.Second

// reading is what the policy folder held at one moment.
type reading struct {
	files []policy.File
	fault string // why it could not be read; empty when it could
}

func readNow(dir string) (reading, error) {
	err := checkTrusted(dir)
	var files []policy.File
	if err == nil {
		files, err = readPolicy(dir)
	}
	if err != nil {
		return reading{fault: err.Error()}, err
	}
	return reading{files: files}, nil
}

// settling tells which readings are to be acted on: each that two in a row agree on,
// once. A file that is being written is empty or half there at one moment, and may
// well compile: without the rules that forbid.
type settling struct {
	last, done *reading
}

func (s *settling) settled(now reading) bool {
	same := s.last != nil && reflect.DeepEqual(*s.last, now)
	s.last = &now
	if !same || s.done != nil && reflect.DeepEqual(*s.done, now) {
		return false
	}
	s.done = &now
	return true
}

// again has the same reading acted on once more.
func (s *settling) again() { s.done = nil }

// watchPolicy puts the policy in force anew when its files change, and tries it again
// on SIGHUP. What does not load is logged, and the old set stays in force.
func (s *system) watchPolicy(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	tick := time.NewTicker(policyPoll)
	defer tick.Stop()
	dir := s.cfg.PolicyDir(s.folder.path)
	var seen settling
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-hup:
			seen.again()
			continue
		}
		now, err := readNow(dir)
		if !seen.settled(now) {
			continue
		}
		if err == nil {
			if err = s.applyPolicy(ctx, now.files); err != nil && writ.KindOf(err) != writ.Invalid {
				seen.again() // the files are good
			}
		}
		if err != nil && ctx.Err() == nil {
			s.slog.Error("the policy folder does not load, the old policy stays in force", "err", err)
		}
	}
}

func (s *system) applyPolicy(ctx context.Context, files []policy.File) error {
	old := s.gw.Policy()
	rules, err := policy.Compile(files)
	if err != nil || rules.Version() == old.Version() {
		return err
	}
	if err := s.gw.SetPolicy(ctx, localAs("policy-folder"), rules); err != nil {
		return fmt.Errorf("record the new policy: %w", err)
	}
	s.slog.Info("policy in force", "version", rules.Version())
	for _, effect := range []writ.Effect{writ.Deny, writ.Hold} {
		if was, is := old.Count(effect), rules.Count(effect); is < was {
			s.slog.Warn("the policy has fewer rules of an effect than before", "effect", effect, "before", was, "now", is)
		}
	}
	return nil
}
