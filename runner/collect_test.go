package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"writ"
	"writ/sandbox"
)

// left is an entry that a box of a fake has.
func left(path, content string) sandbox.Entry {
	return sandbox.Entry{Path: path, Kind: sandbox.EntryFile, Size: int64(len(content)), Mode: 0o644, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

func folder(path string) sandbox.Entry { return sandbox.Entry{Path: path, Kind: sandbox.EntryFolder} }

// interpreted is a normalised spec of the code interpreter.
func interpreted(inputs ...writ.FileInput) writ.RunSpec {
	return writ.RunSpec{
		Kind: writ.RunInterpreter, Language: "bash", Code: "code", Files: inputs, Limits: writ.DefaultLimits,
		Collect: &writ.Collect{Files: 50, FileBytes: 1 << 20, TotalBytes: 1 << 20, Depth: 10, PathLength: 200},
	}
}

func inputOf(path, content string) writ.FileInput {
	return writ.FileInput{Path: path, Digest: writ.DigestOf([]byte(content)), Size: int64(len(content))}
}

// collected runs spec over a fake in whose boxes entries are left.
func collected(t *testing.T, spec writ.RunSpec, x *writ.Exchange, entries ...sandbox.Entry) writ.Result {
	t.Helper()
	r, p := newFake(t, Options{})
	p.left = entries
	res, err := r.Run(t.Context(), writ.NewID("run"), spec, spec.Digest(), x)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func filesOf(r writ.Result) string {
	var all []string
	for _, f := range r.Files {
		all = append(all, string(f.State)+" "+f.Path)
	}
	return strings.Join(all, ", ")
}

func TestWhatABoxLeavesIsNotBelieved(t *testing.T) {
	short := left("short.txt", "12345")
	short.Size = 9
	long := left("long.txt", "12345")
	long.Size = 3
	unreadable := left("unreadable.txt", "x")
	unreadable.Open = func() (io.ReadCloser, error) { return nil, errors.New("secret detail") }
	res := collected(t, interpreted(inputOf("in.txt", "in")), nil,
		left("-\xff.txt", "x"), left("a\\b.txt", "x"), left("fine.txt", "x"), folder("in.txt"), long, short, unreadable,
		left(strings.Repeat("d/", 40)+"x.txt", "x"), left(strings.Repeat("\xff", 5000), "x"))
	if got := filesOf(res); got != "new fine.txt, new in.txt/.dirkeep" {
		t.Errorf("files %s", got)
	}
	if res.DroppedFiles != 7 || len(res.Dropped) != 7 {
		t.Errorf("%d dropped: %q", res.DroppedFiles, res.Dropped)
	}
	for _, d := range res.Dropped {
		if d.Why == "" || strings.Contains(d.Why, "secret") || strings.ToValidUTF8(d.Path, "") != d.Path || len(d.Path) > 4*maxDroppedPath {
			t.Errorf("dropped %.40q (%d bytes): %q", d.Path, len(d.Path), d.Why)
		}
	}
}

// TestWhatIsMissedIsNamed: also beside many files that nobody asked for.
func TestWhatIsMissedIsNamed(t *testing.T) {
	var entries []sandbox.Entry
	for i := range 2 * writ.MaxDropped {
		entries = append(entries, left(fmt.Sprintf("%03d.o", i), "x"))
	}
	spec := interpreted()
	spec.Collect.Names = []string{"csv"}
	spec.Collect.FileBytes = 1
	res := collected(t, spec, nil, append(entries, left("a.csv", "large"), left("b.csv", "x"), left("c.csv", "large"))...)
	if res.DroppedFiles != 2*writ.MaxDropped+2 || len(res.Dropped) != writ.MaxDropped || res.Dropped[0].Path != "a.csv" || res.Dropped[1].Path != "c.csv" || res.Dropped[2].Path != "002.o" {
		t.Errorf("%d dropped, %d named: %v", res.DroppedFiles, len(res.Dropped), res.Dropped[:3])
	}
}

// TestWhatIsKeptIsGoodForTheNextRun: whatever its name is and whatever it is, else one run
// could make all that follow it invalid.
func TestWhatIsKeptIsGoodForTheNextRun(t *testing.T) {
	link := func(path, to string) sandbox.Entry {
		e := left(path, to)
		e.Kind = sandbox.EntryLink
		return e
	}
	long, deep := strings.Repeat("n", writ.MaxNameBytes), strings.Repeat("d/", writ.MaxInputsDepth-1)
	for _, names := range [][]string{
		{writ.KeepName, "d/" + writ.KeepName, writ.KeepName + "/a", writ.KeepName + "/" + writ.KeepName},
		{" ", "a b", "...", "..a", "-", "*", "new\nline", "back\\slash", "\xff", "a\xff/b", "\u202e", "script.sh/a", "d/script.sh"},
		{long, long + "/" + long, long + "x", deep + "a", deep + "a/b", strings.Repeat(long+"/", 5) + "a", history, history + "/a"},
	} {
		for _, n := range names {
			for _, e := range []sandbox.Entry{left(n, ""), left(n, "x"), link(n, "x"), link(n, strings.Repeat("x", writ.MaxLinkBytes)), folder(n)} {
				spec := interpreted()
				spec.Collect = &writ.Collect{Files: 50, FileBytes: 1 << 20, TotalBytes: 1 << 20, Depth: writ.MaxInputsDepth, PathLength: 1024, Hidden: true, Links: true}
				res := collected(t, spec, nil, e)
				for _, f := range res.Files {
					spec.Files = append(spec.Files, writ.FileInput{Path: f.Path, Digest: f.Digest, Size: f.Size, Exec: f.Exec, Link: f.Link})
				}
				if err := spec.Validate(); err != nil {
					t.Errorf("%.40q of kind %d with %d bytes: %v", n, e.Kind, e.Size, err)
				}
				if len(res.Files)+int(res.DroppedFiles) > 1 {
					t.Errorf("%.40q is told twice: %+v", n, res)
				}
			}
		}
	}
}

func TestKeepThatDoesNotReadToTheEndKeepsNothing(t *testing.T) {
	x := &writ.Exchange{Keep: func(_ context.Context, f writ.OutputFile, r io.Reader) error {
		if f.Path == "a.txt" {
			_, err := r.Read(make([]byte, 2))
			return err
		}
		_, err := io.Copy(io.Discard, r)
		return err
	}}
	res := collected(t, interpreted(), x, left("a.txt", "12345"), left("b.txt", "12345"))
	if filesOf(res) != "new b.txt" || len(res.Dropped) != 1 || res.Dropped[0].Path != "a.txt" {
		t.Errorf("files %s, dropped %v", filesOf(res), res.Dropped)
	}
}

// TestCollectingIsBounded: one that keeps files too slowly does not hold a slot for ever,
// and what did not change needs nobody to keep it.
func TestCollectingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &writ.Exchange{
			Open: func(context.Context, writ.Digest) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader("in")), nil
			},
			Keep: func(ctx context.Context, f writ.OutputFile, r io.Reader) error {
				if f.Path == "b.txt" {
					<-ctx.Done()
				}
				_, err := io.Copy(io.Discard, r)
				return err
			},
		}
		ro := inputOf("ro.txt", "in")
		ro.ReadOnly = true
		began := time.Now()
		res := collected(t, interpreted(inputOf("in.txt", "in"), ro), x,
			left("a.txt", "x"), left("b.txt", "x"), left("c.txt", "x"), left("in.txt", "in"), left("ro.txt", "in"))
		if took := time.Since(began); took != collectTime {
			t.Errorf("it took %v", took)
		}
		if filesOf(res) != "new a.txt, same in.txt, same ro.txt" || res.DroppedFiles != 2 || res.Outcome != writ.Succeeded {
			t.Errorf("files %s, dropped %q", filesOf(res), res.Dropped)
		}
	})
}

func TestCollectingThatFailsIsTold(t *testing.T) {
	r, p := newFake(t, Options{})
	p.left, p.leftErr = []sandbox.Entry{left("a.txt", "x")}, errors.New("secret detail")
	spec := interpreted()
	res, err := r.Run(t.Context(), "r", spec, spec.Digest(), nil)
	if err != nil || filesOf(res) != "new a.txt" || len(res.Dropped) != 1 || strings.Contains(fmt.Sprint(res.Dropped), "secret") {
		t.Errorf("files %s, dropped %v, %v", filesOf(res), res.Dropped, err)
	}
}

// TestEmitIsOverBeforeKeep: whoever gets both needs no lock.
func TestEmitIsOverBeforeKeep(t *testing.T) {
	keeping := false
	x := &writ.Exchange{
		Emit: func(writ.Chunk) {
			if keeping {
				t.Error("a chunk came while files are kept")
			}
		},
		Keep: func(_ context.Context, _ writ.OutputFile, r io.Reader) error {
			keeping = true
			_, err := io.Copy(io.Discard, r)
			return err
		},
	}
	if res := collected(t, interpreted(), x, left("a.txt", "x")); filesOf(res) != "new a.txt" || !keeping {
		t.Errorf("files %s", filesOf(res))
	}
}

func TestLC14_AnInputThatIsNotOfAKindThatIsKept(t *testing.T) {
	spec := interpreted(inputOf("a.weird", "in"), inputOf("b.weird", "in"))
	spec.Collect.Names = []string{"txt"}
	spec.Collect.FileBytes = 1
	x := &writ.Exchange{Open: func(context.Context, writ.Digest) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("in")), nil
	}}
	res := collected(t, spec, x, left("a.weird", "in"), left("b.weird", "IN"), left("script.sh", "code"))
	if filesOf(res) != "same a.weird" || len(res.Dropped) != 1 {
		t.Errorf("files %s, dropped %v", filesOf(res), res.Dropped)
	}
}

func TestBoxesOfTheCodeInterpreterAreWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := writ.DefaultLimits
		limits.WorkspaceBytes *= 2
		r, p := newFake(t, Options{Warm: 1, InterpreterWarm: 2, Interpreter: limits})
		synctest.Wait()
		dirs := map[string]int{}
		p.mu.Lock()
		for _, tmpl := range p.made {
			dirs[tmpl.Dir]++
			if want := r.opt.Limits; tmpl.Dir == "/mnt/data" && tmpl.Limits != limits || tmpl.Dir != "/mnt/data" && tmpl.Limits != want {
				t.Errorf("a box was made with %+v", tmpl)
			}
		}
		p.mu.Unlock()
		if dirs["/workspace"] != 1 || dirs["/mnt/data"] != 2 {
			t.Errorf("boxes %v", dirs)
		}
		spec := interpreted()
		spec.Limits = limits
		if _, err := r.Run(t.Context(), "r", spec, spec.Digest(), nil); err != nil {
			t.Fatal(err)
		}
		if made, _, _ := p.counts(); made != 3 {
			t.Errorf("%d boxes were made, want the warm ones alone", made)
		}
	})
}
