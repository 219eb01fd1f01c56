package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inJournals is what is in the journals' folder.
func inJournals(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// applyAndForget is a transaction as a gateway has it done.
func (s crashSpec) applyAndForget(t *testing.T) {
	t.Helper()
	j, err := s.journals()
	must(t, err)
	defer func() { must(t, j.Close()) }()
	tree := openTree(t, s.Root)
	p, err := s.plan(tree, j)
	must(t, err)
	o, err := tree.Apply(t.Context(), p, j, s.id())
	must(t, err)
	wantApplied(t, o)
	must(t, j.Forget(s.id()))
}

// The server is killed at each step of a patch that it forgets at its end, and at each
// step of an undoing. At the next start what was applied can be undone, exactly, and
// what was not cannot; nothing else is kept, and no more than the bound allows.
func TestKilledAtEachStepOfAnUndo(t *testing.T) {
	for _, undo := range []bool{false, true} {
		for _, keep := range []int{1, 2} {
			t.Run(fmt.Sprintf("undo=%v,keep=%d", undo, keep), func(t *testing.T) {
				forgotten, applied, rolledBack, n := 0, 0, 0, 1
				for ; ; n++ {
					s := crashSpec{Root: t.TempDir(), Journals: filepath.Join(t.TempDir(), "j"), At: n, Undo: undo, Forget: true, Keep: keep}
					crashLayout(t, s.Root)
					before := disk(t, s.Root)
					if undo {
						first := s
						first.Undo = false
						first.applyAndForget(t)
					}
					after := wanted(t, false)
					if !s.run(t) {
						break
					}
					switch s.undoAfterKill(t, before, after) {
					case "":
						forgotten++
					case Applied:
						applied++
					case RolledBack:
						rolledBack++
					}
				}
				if forgotten == 0 || applied == 0 || rolledBack == 0 || n < 18 {
					t.Errorf("%d steps: %d forgotten, %d applied, %d rolled back", n-1, forgotten, applied, rolledBack)
				}
			})
		}
	}
}

// undoAfterKill settles, undoes what can be undone, and says how the transaction ended
// that the process was killed in, empty when it was forgotten before.
func (s crashSpec) undoAfterKill(t *testing.T, before, after map[string]string) (status Status) {
	t.Helper()
	at := fmt.Sprintf("killed at step %d", s.At)
	j, err := s.journals()
	must(t, err)
	defer func() { must(t, j.Close()) }()
	all, err := j.Recover(t.Context())
	must(t, err)
	if len(all) > 0 {
		status = all[0].Outcome.Status
	}
	if len(all) > 1 || status == Partial {
		t.Fatalf("%s: recover says %+v", at, all)
	}
	from, to := before, after
	if s.Undo {
		from, to = after, before
	}
	done, kept := status != RolledBack, []string{}
	if s.Undo && (s.Keep > 1 || !done) {
		kept = append(kept, "op-1.undo")
	}
	if done {
		from, to = to, from
		kept = append(kept, s.id()+".undo")
	}
	wantDisk(t, at, s.Root, from)
	must(t, j.Forget(s.id()))
	if got := inJournals(t, s.Journals); !slices.Equal(got, kept) {
		t.Errorf("%s, %s: the journals' folder has %q, want %q", at, status, got, kept)
	}

	tree := openTree(t, s.Root)
	for _, id := range []string{"op-1", "op-2"} {
		if slices.Contains(kept, id+".undo") {
			continue
		}
		_, err := tree.PlanUndo(t.Context(), j, id)
		wantCode(t, at+", undo "+id, err, CodeNoOperation)
	}
	if len(kept) == 0 {
		return status
	}
	last := strings.TrimSuffix(kept[len(kept)-1], ".undo")
	p, err := tree.PlanUndo(t.Context(), j, last)
	must(t, err)
	o, err := tree.Apply(t.Context(), p, j, "op-3")
	must(t, err)
	wantApplied(t, o)
	wantDisk(t, at+", and undone", s.Root, to)
	return status
}

// A process that is killed before anything of it is on the disk, or that somebody else's
// power loss took the journal from, leaves a draft that nobody will finish.
func TestDraftsOfNobodyAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	must(t, os.Mkdir(dir, 0o700))
	for _, name := range []string{"op-1.undo.part", "op-2.undo.part", "op-2.journal", "op-3.undo"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	j, err := OpenJournals(dir, keepSome)
	must(t, err)
	defer func() { must(t, j.Close()) }()
	if got, want := inJournals(t, dir), []string{"op-2.journal", "op-2.undo.part", "op-3.undo"}; !slices.Equal(got, want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}
	must(t, j.Forget("op-2"))
	if got, want := inJournals(t, dir), []string{"op-3.undo"}; !slices.Equal(got, want) {
		t.Errorf("the folder has %q after Forget, want %q", got, want)
	}
}
