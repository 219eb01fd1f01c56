package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
)

// victim is what a process is told that is started to be killed: a gateway and its
// files on this store, which carries out one patch.
type victim struct {
	URL       string
	LogKey    string // not a Secret, which would not cross
	State     string
	Workspace writ.Workspace
	Request   writ.PatchRequest
	Key       string
	Approval  writ.ApprovalID // to resume; empty to send the request
	Step      string          // of crashSteps, at which it hangs; empty for none
}

const (
	victimOrder = "WRIT_TEST_VICTIM"
	begins      = "victim begins"
	arrives     = "victim is there"
)

// TestVictim is the process that is killed. By itself it does nothing.
func TestVictim(t *testing.T) {
	order := os.Getenv(victimOrder)
	if order == "" {
		return
	}
	go func() { // ends with the process, which must not outlive its parent
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	var v victim
	if err := json.Unmarshal([]byte(order), &v); err != nil {
		t.Fatal(err)
	}
	s := v.open(t)
	for _, step := range crashSteps {
		if step.name == v.Step {
			arrived, _ := step.at(s.Files)
			go func() { <-arrived; fmt.Println(arrives) }()
		}
	}
	fmt.Println(begins)
	v.Request.Key = v.Key
	var err error
	if v.Approval == "" {
		_, _, err = s.Tools.Patch(context.Background(), s.Agent("coder"), v.Request)
	} else {
		_, _, err = s.Resume(context.Background(), s.Agent("coder"), v.Approval)
	}
	if err != nil {
		t.Fatal(err)
	}
	select {} // until it is killed
}

func (v victim) open(t *testing.T) *testkit.Workshop {
	return testkit.Workspaces(t, []writ.Workspace{v.Workspace}, func(g *testkit.GatewaySetup) {
		g.URL, g.LogKey, g.State, g.Operators = v.URL, writ.Secret(v.LogKey), v.State, nil
	})
}

// killed runs the victim and kills it when it says the line, after that time more.
func (v victim) killed(t *testing.T, line string, after time.Duration) {
	t.Helper()
	v.Key = v.Request.Key
	order, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victimOrder+"="+string(order))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan bool, 1)
	var all strings.Builder
	read := make(chan struct{})
	go func() { // ends with the process
		defer close(read)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if lines.Text() == line {
				said <- true
			}
		}
		close(said)
	}()
	if testkit.Receive(t, "the victim says: "+line, said) {
		<-time.After(after) // no condition: the moment of a death
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-read
	_ = cmd.Wait() // it was killed
	if !strings.Contains(all.String(), line) {
		t.Fatalf("the victim ended by itself:\n%s", all.String())
	}
}

// newVictim is a store, a state folder and a workspace of these files, which outlive the
// processes that use them.
func newVictim(t *testing.T, content map[string]string, adjust ...func(*writ.Workspace)) victim {
	t.Helper()
	dir := t.TempDir()
	return victim{
		URL: "sqlite:" + filepath.Join(dir, "writ.db"), LogKey: string(testkit.LogKey(t)), State: filepath.Join(dir, "state"),
		Workspace: testkit.Workspace(t, "app", content, adjust...),
	}
}

// hold has the victim's request granted, and the victim resume it.
func (v *victim) hold(t *testing.T) {
	t.Helper()
	s := v.open(t)
	v.Approval = mustHold(t, s, s.Agent("coder"), v.Request).ID
	s.MustResolve(s.Agent("coder"), v.Approval, true)
	s.End()
}

func TestScenario60_124_KilledAtEachStep(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, step := range crashSteps {
		for _, held := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, held %v", step.name, held), func(t *testing.T) {
				var adjust []func(*writ.Workspace)
				if held {
					adjust = append(adjust, confirm)
				}
				v := newVictim(t, map[string]string{"a": "1\n"}, adjust...)
				v.Request, v.Step = keyed("k", edit("a", "1", "2")...), step.name
				if held {
					v.hold(t)
				}
				v.killed(t, arrives, 0)
				s := v.open(t)
				checkCrashed(t, s, v.Workspace, v.Request, v.Approval, step.want, step.changed)
				s.End()
			})
		}
	}
}

// Killed at whatever moment of a patch of many files: the ledger says what is on the
// disk, nothing is left beside it, and what has not begun can be done.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel() // it waits most of the time
	rounds := 60
	if raced {
		rounds = 16
	}
	if testing.Short() {
		rounds = 8
	}
	for name, held := range map[string]bool{"sent": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := map[string]string{"moves-0": "m 0\n", "goes-0": "x\n"}
			for i := range 150 {
				content[fmt.Sprintf("d%d/f%d", i%7, i)] = "v 0\n"
			}
			var adjust []func(*writ.Workspace)
			if held {
				adjust = append(adjust, confirm)
			}
			v := newVictim(t, content, adjust...)
			took := 300 * time.Millisecond
			ends := map[string]int{}
			version := 0
			for round := range rounds / 2 {
				req, after := nextVersion(content, version)
				req.Key = fmt.Sprint("round-", round)
				v.Request = req
				if held {
					v.hold(t)
				}
				// Spread over the time that it takes, with a little more for what comes after it.
				v.killed(t, begins, took*time.Duration(round)/time.Duration(rounds/2)*12/10)
				began := time.Now()
				end := v.settled(t, content, after)
				ends[end]++
				if end == "not begun" { // then the survivor has done it
					took = (took + time.Since(began)) / 2
				}
				if t.Failed() {
					t.Fatalf("in round %d, which ended: %s", round, end)
				}
				if end == "not begun" || end == string(writ.PatchApplied) {
					content, version = after, version+1
				}
			}
			t.Logf("%v", ends)
		})
	}
}

// nextVersion is a patch of each kind of change to every file of content, and what it
// makes of it.
func nextVersion(content map[string]string, version int) (writ.PatchRequest, map[string]string) {
	var lines []string
	after := map[string]string{}
	next := fmt.Sprint(version + 1)
	for name := range content {
		if strings.HasPrefix(name, "d") {
			lines = append(lines, edit(name, fmt.Sprint("v ", version), "v "+next)...)
			after[name] = "v " + next + "\n"
		}
	}
	lines = append(lines, fmt.Sprint("*** Update File: moves-", version), "*** Move to: moves-"+next, "@@", fmt.Sprint("-m ", version), "+m "+next)
	lines = append(lines, fmt.Sprint("*** Delete File: goes-", version), "*** Add File: goes-"+next, "+x")
	after["moves-"+next], after["goes-"+next] = "m "+next+"\n", "x\n"
	return change(lines...), after
}

// settled starts a server on what the victim left, and checks it. It answers how the
// patch ended.
func (v victim) settled(t *testing.T, before, after map[string]string) string {
	t.Helper()
	s := v.open(t)
	defer s.End() // which verifies the log
	coder := s.Agent("coder")
	op, err := s.Tools.Operation(t.Context(), coder, "", v.Request.Key)
	if writ.KindOf(err) == writ.NotFound {
		wantDisk(t, v.Workspace, before)
		if v.Approval == "" {
			mustPatch(t, s, coder, v.Request, writ.PatchApplied)
		} else {
			mustResume(t, s, coder, v.Approval, writ.PatchApplied)
		}
		wantDisk(t, v.Workspace, after)
		return "not begun"
	}
	if err != nil || op.Finished == nil {
		t.Errorf("operation %s is not finished, %v", op.ID, err)
	}
	switch op.Result.Status {
	case writ.PatchApplied:
		wantDisk(t, v.Workspace, after)
	case writ.PatchRolledBack, writ.PatchUnknown: // unknown: the runner had not heard of it
		wantDisk(t, v.Workspace, before)
	default:
		t.Errorf("operation is %s (%s)", op.Result.Status, op.Result.Reason)
	}
	if left := s.Journals(); left != nil {
		t.Errorf("journals are left: %v", left)
	}
	if v.Approval != "" {
		if again := mustResume(t, s, coder, v.Approval, op.Result.Status); again.ID != op.ID {
			t.Errorf("resumed: %s, want %s", again.ID, op.ID)
		}
	}
	got, replayed, err := s.Tools.Patch(t.Context(), coder, v.Request)
	if err != nil || !replayed || got.ID != op.ID || s.Files.Calls("Patch") != 0 {
		t.Errorf("sent again: %s, replayed %v, %v, %d patches", got.ID, replayed, err, s.Files.Calls("Patch"))
	}
	mustPatchNext(t, s)
	return string(op.Result.Status)
}
