package files

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// crashEnv makes the test binary carry out a patch, or a recovery, and be killed in
// the middle of it.
const crashEnv = "WRIT_TEST_CRASH"

// crashSpec is what the killed process does.
type crashSpec struct {
	Root, Journals string
	At             int  // which step it is killed at, counted from 1; 0 means it ends by itself
	Plain          bool // without exchange
	Edit           bool // somebody edits a file meanwhile, so that it rolls back
	Recover        bool // it recovers, instead of applying
	Undo           bool // it undoes op-1 as op-2, instead of applying op-1
	Forget         bool // it forgets what it has applied
	Keep           int  // operations kept for undoing; 0 means many
}

func (s crashSpec) journals() (*Journals, error) {
	keep := keepSome
	keep.Operations = cmp.Or(s.Keep, keep.Operations)
	return OpenJournals(s.Journals, keep)
}

func (s crashSpec) id() string {
	if s.Undo {
		return "op-2"
	}
	return "op-1"
}

// plan is what the process applies.
func (s crashSpec) plan(tree *Tree, j *Journals) (Plan, error) {
	if s.Undo {
		return tree.PlanUndo(context.Background(), j, "op-1")
	}
	return tryPlan(tree, nil, crashPatch...)
}

var crashPatch = []string{
	"*** Update File: a.txt", "-v1", "+v2",
	"*** Add File: new/deep/n.txt", "+n",
	"*** Update File: m.sh", "*** Move to: moved/m.sh", "-m1", "+M1",
	"*** Update File: sub/b.txt", "-b1", "+b2",
	"*** Delete File: d.txt",
}

func crashLayout(t testing.TB, dir string) {
	put(t, dir, layout{"a.txt": "v1\n", "m.sh": "m1\nm2\n", "sub/b.txt": "b1\n", "d.txt": "bye\n", "untouched": "x"})
	must(t, os.Chmod(filepath.Join(dir, "a.txt"), 0o600))
	must(t, os.Chmod(filepath.Join(dir, "m.sh"), 0o751))
	must(t, os.Chmod(filepath.Join(dir, "d.txt"), 0o444))
}

// crash is the process that is killed. It prints how many steps there were if not.
func crash(spec string) int {
	var s crashSpec
	steps := 0
	err := func() error {
		if err := json.Unmarshal([]byte(spec), &s); err != nil {
			return err
		}
		j, err := s.journals()
		if err != nil {
			return err
		}
		step := func(name Step) {
			if steps++; steps == s.At {
				_ = unix.Kill(os.Getpid(), unix.SIGKILL)
				select {}
			}
		}
		if s.Recover {
			j.at = step
			_, err := j.Recover(context.Background())
			return err
		}
		tree, err := Open(s.Root, Rules{})
		if err != nil {
			return err
		}
		tree.plain = s.Plain
		p, err := s.plan(tree, j)
		if err != nil {
			return err
		}
		looked := false
		tree.at = func(name Step) {
			if s.Edit && name == StepLook && !looked {
				looked = true
				_ = os.WriteFile(filepath.Join(s.Root, "d.txt"), []byte("theirs\n"), 0o644)
			}
			step(name)
		}
		o, err := tree.Apply(context.Background(), p, j, s.id())
		if err != nil || !s.Forget {
			return err
		}
		if o.Status != Applied {
			return fmt.Errorf("outcome %+v", o)
		}
		j.at = step
		return j.Forget(s.id())
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(steps)
	return 0
}

// run starts the process and says whether it was killed.
func (s crashSpec) run(t *testing.T) (killed bool) {
	t.Helper()
	spec, err := json.Marshal(s)
	must(t, err)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), crashEnv+"="+string(spec))
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatalf("%+v: %v: %s", s, err, out)
	}
	return err != nil
}

// settle recovers, and holds the outcome against the disk.
func (s crashSpec) settle(t *testing.T, before, after map[string]string) Settled {
	t.Helper()
	j, err := OpenJournals(s.Journals, keepSome)
	must(t, err)
	defer func() { must(t, j.Close()) }()
	all, err := j.Recover(t.Context())
	must(t, err)
	if len(all) != 1 || all[0].Err != nil || all[0].ID != "op-1" {
		t.Fatalf("killed at step %d: recover says %+v", s.At, all)
	}
	got := all[0]
	want := before
	switch {
	case got.Outcome.Status == Applied && !s.Edit:
		want = after
	case got.Outcome.Status != RolledBack:
		t.Errorf("killed at step %d: %+v", s.At, got.Outcome)
	}
	wantDisk(t, fmt.Sprintf("killed at step %d, %s", s.At, got.Outcome.Status), s.Root, want)
	again, err := j.Recover(t.Context())
	must(t, err)
	if diff := gocmp.Diff(all, again); diff != "" {
		t.Errorf("killed at step %d: the second recovery says otherwise: %s", s.At, diff)
	}
	must(t, j.Forget("op-1"))
	kept := []string(nil)
	if got.Outcome.Status == Applied {
		kept = []string{"op-1.undo"}
	}
	if names := inJournals(t, s.Journals); !slices.Equal(names, kept) {
		t.Errorf("killed at step %d, %s: the journals' folder has %q, want %q", s.At, got.Outcome.Status, names, kept)
	}
	if none, err := j.Recover(t.Context()); len(none) > 0 || err != nil {
		t.Errorf("forgotten, and still there: %+v, %v", none, err)
	}
	return got
}

// The server is killed at each step of a patch, and the next start finds the disk as
// it was before or as the patch meant it, modes too, and says which.
func TestKilledAtEachStep(t *testing.T) {
	for _, edit := range []bool{false, true} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("plain=%v,edit=%v", plain, edit), func(t *testing.T) {
				applied, rolledBack := 0, 0
				for n := 1; ; n++ {
					s := crashSpec{Root: t.TempDir(), Journals: filepath.Join(t.TempDir(), "j"), At: n, Plain: plain, Edit: edit}
					crashLayout(t, s.Root)
					before := disk(t, s.Root)
					if !s.run(t) {
						if applied+rolledBack != n-1 || n < 15 {
							t.Errorf("%d steps, %d applied, %d rolled back", n-1, applied, rolledBack)
						}
						break
					}
					after := wanted(t, plain)
					if edit && strings.Contains(disk(t, s.Root)["d.txt"]+asideText(t, s.Root), "theirs") {
						before["d.txt"] = `-r--r--r-- "theirs\n"`
					}
					if s.settle(t, before, after).Outcome.Status == Applied {
						applied++
					} else {
						rolledBack++
					}
				}
				if rolledBack == 0 || !edit && applied == 0 {
					t.Errorf("%d applied, %d rolled back: the steps do not reach both", applied, rolledBack)
				}
			})
		}
	}
}

// wanted is the disk after the patch, from a run that nobody disturbed.
func wanted(t *testing.T, plain bool) map[string]string {
	t.Helper()
	s := crashSpec{Root: t.TempDir(), Journals: filepath.Join(t.TempDir(), "j"), Plain: plain}
	crashLayout(t, s.Root)
	tree := openTree(t, s.Root)
	tree.plain = plain
	wantApplied(t, apply(t, tree, plan(t, tree, crashPatch...)))
	return disk(t, s.Root)
}

// asideText is all that is set aside in the root folder.
func asideText(t *testing.T, dir string) (text string) {
	t.Helper()
	for name, what := range disk(t, dir) {
		if strings.HasPrefix(name, ".writ-") {
			text += what
		}
	}
	return text
}

// The recovery is killed too, at each of its steps.
func TestKilledWhileItRecovers(t *testing.T) {
	for _, at := range []int{9, 13, 16, 18, 19} { // staged; in the middle of renaming, twice; all renamed; kept
		for n := 1; ; n++ {
			s := crashSpec{Root: t.TempDir(), Journals: filepath.Join(t.TempDir(), "j"), At: at}
			crashLayout(t, s.Root)
			before := disk(t, s.Root)
			if !s.run(t) {
				t.Fatalf("there is no step %d", at)
			}
			r := s
			r.At, r.Recover = n, true
			killed := r.run(t)
			s.settle(t, before, wanted(t, false))
			if !killed {
				break
			}
		}
	}
}

// evidenceCase is what a crash left, made by hand: names end in the suffix of what is
// set aside for the one change.
type evidenceCase struct {
	name  string
	patch []string
	disk  layout // %new, %old and %part stand for the names set aside
	want  Status
	after layout // what must be there then, and nothing else
	left  int
}

func TestRecoveryGoesByTheEvidence(t *testing.T) {
	update := []string{"*** Update File: f", "-v1", "+v2"}
	add := []string{"*** Add File: f", "+v2"}
	del := []string{"*** Delete File: f"}
	const v1, v2, theirs = "v1\n", "v2\n", "theirs\n"
	for _, c := range []evidenceCase{
		{"update: nothing yet", update, layout{"f": v1}, RolledBack, layout{"f": v1}, 0},
		{"update: half written", update, layout{"f": v1, "%part": "v"}, RolledBack, layout{"f": v1}, 0},
		{"update: staged", update, layout{"f": v1, "%new": v2}, RolledBack, layout{"f": v1}, 0},
		{"update: done", update, layout{"f": v2, "%new": v1}, Applied, layout{"f": v2}, 0},
		{"update: done and cleaned", update, layout{"f": v2}, Applied, layout{"f": v2}, 0},
		{"update: an edit displaced", update, layout{"f": v2, "%new": theirs}, RolledBack, layout{"f": theirs}, 0},
		{"update: done, edited since", update, layout{"f": theirs, "%new": v1}, Partial, layout{"f": theirs, "%new": v1}, 1},
		{"update: staged, edited since", update, layout{"f": theirs, "%new": v2}, RolledBack, layout{"f": theirs}, 0},
		{"update: a link since", update, layout{"f": "-> /etc/passwd", "%new": v1}, Partial, layout{"f": "-> /etc/passwd", "%new": v1}, 1},
		{"plain update: linked", update, layout{"f": v1, "%new": v2, "%old": v1}, RolledBack, layout{"f": v1}, 0},
		{"plain update: done", update, layout{"f": v2, "%old": v1}, Applied, layout{"f": v2}, 0},
		{"plain update: an edit displaced", update, layout{"f": v2, "%old": theirs}, RolledBack, layout{"f": theirs}, 0},
		{"add: staged", add, layout{"%new": v2}, RolledBack, layout{}, 0},
		{"add: half written", add, layout{"%part": "v"}, RolledBack, layout{}, 0},
		{"add: done", add, layout{"f": v2, "%new": v2}, Applied, layout{"f": v2}, 0},
		{"add: done and cleaned", add, layout{"f": v2}, Applied, layout{"f": v2}, 0},
		{"add: somebody else's", add, layout{"f": theirs, "%new": v2}, RolledBack, layout{"f": theirs}, 0},
		{"delete: done", del, layout{"%old": v1}, Applied, layout{}, 0},
		{"delete: not yet", del, layout{"f": v1}, RolledBack, layout{"f": v1}, 0},
		{"delete: an edit displaced", del, layout{"%old": theirs}, RolledBack, layout{"f": theirs}, 0},
		{"delete: done, another since", del, layout{"f": theirs, "%old": v1}, Partial, layout{"f": theirs, "%old": v1}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.patch[0] != add[0] {
				put(t, dir, layout{"f": v1})
			}
			tree := openTree(t, dir)
			p := plan(t, tree, c.patch...)
			must(t, os.RemoveAll(filepath.Join(dir, "f")))
			tx := newTX()
			named := func(l layout) layout {
				out := layout{}
				for name, content := range l {
					if kind, ok := strings.CutPrefix(name, "%"); ok {
						name = asideName(tx, 0, kind)
					}
					out[name] = content
				}
				return out
			}
			put(t, dir, named(c.disk))
			j := newJournals(t)
			x := newTransaction(tree, -1, "op-1", p)
			x.tx = tx
			begun, err := j.begin(x.beginning())
			must(t, err)
			begun.close()
			all, err := j.Recover(t.Context())
			must(t, err)
			if len(all) != 1 || all[0].Err != nil || all[0].Outcome.Status != c.want || len(all[0].Outcome.Left) != c.left {
				t.Fatalf("%+v, want %s with %d left", all, c.want, c.left)
			}
			want := t.TempDir()
			put(t, want, named(c.after))
			wantDisk(t, "after recovery", dir, disk(t, want))
		})
	}
}

func TestRecoverOddJournals(t *testing.T) {
	j := newJournals(t)
	dir := t.TempDir()
	valid := fmt.Sprintf(`{"v":1,"id":"ID","root":%q,"tx":%q,"folders":[],"changes":[{"path":"f","kind":"add","before_version":"absent","after_version":"sha256:0","after_mode":420}]}`, dir, newTX())
	for id, text := range map[string]string{
		"torn":     `{"v":1,"id":"torn","ro`,
		"empty":    "",
		"garbage":  "garbage\n",
		"version":  strings.Replace(strings.Replace(valid, "ID", "version", 1), `"v":1`, `"v":2`, 1) + "\n",
		"other":    strings.Replace(valid, "ID", "another", 1) + "\n",
		"escape":   strings.Replace(strings.Replace(valid, "ID", "escape", 1), `"path":"f"`, `"path":"../f"`, 1) + "\n",
		"tx":       strings.Replace(strings.Replace(valid, "ID", "tx", 1), `"tx":"`, `"tx":"../`, 1) + "\n",
		"gone":     strings.Replace(strings.Replace(valid, "ID", "gone", 1), dir, dir+"/gone", 1) + "\n",
		"tornend":  strings.Replace(valid, "ID", "tornend", 1) + "\n" + `{"status":"appl`,
		"settled":  strings.Replace(valid, "ID", "settled", 1) + "\n" + `{"status":"applied"}` + "\n",
		"longtail": strings.Replace(valid, "ID", "longtail", 1) + "\n" + `{"status":"applied"}` + "\nmore",
	} {
		must(t, os.WriteFile(filepath.Join(j.dir, id+journalSuffix), []byte(text), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(j.dir, "no journal"), nil, 0o600))
	all, err := j.Recover(t.Context())
	must(t, err)
	want := map[string]string{
		"torn": "failed_rolled_back", "empty": "failed_rolled_back", "garbage": "error", "version": "error", "other": "error", "escape": "error",
		"tx": "error", "gone": "error", "tornend": "failed_rolled_back", "settled": "applied", "longtail": "applied",
	}
	got := map[string]string{}
	for _, s := range all {
		status := string(s.Outcome.Status)
		if s.Err != nil {
			status += "error"
		}
		got[s.ID] = cmp.Or(status, "nothing")
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A transaction that is under way is nobody else's to settle.
func TestRecoverLeavesALiveTransactionAlone(t *testing.T) {
	tree := newTree(t, layout{"a.txt": "v1\n"})
	j := newJournals(t)
	p := plan(t, tree, "*** Update File: a.txt", "-v1", "+v2")
	other, err := OpenJournals(j.dir, keepSome)
	must(t, err)
	defer func() { must(t, other.Close()) }()
	at(tree, StepRename, 1, func() {
		if all, err := other.Recover(t.Context()); len(all) != 0 || err != nil {
			t.Errorf("recover says %+v, %v", all, err)
		}
	})
	o, err := tree.Apply(t.Context(), p, j, "op-1")
	must(t, err)
	wantApplied(t, o)
}
