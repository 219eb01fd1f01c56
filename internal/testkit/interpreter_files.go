package testkit

import (
	"fmt"
	"strings"
	"testing"

	"writ"
	"writ/runner"
)

func (s suite) irregular(t *testing.T) {
	var d Depot
	res := s.interpret(t, &d, Interpret("bash", `
mkfifo result.csv; ln -s /etc/passwd passwd.txt; ln -s / root; ln -s . loop; ln a.txt b.txt 2>/dev/null
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('socket.csv')" 2>/dev/null || mkfifo socket.csv
rm in.csv; ln -s /proc/self/environ in.csv
echo x > kept.txt; chmod 000 kept.txt
`, d.Put("a.txt", []byte("a")), d.Put("in.csv", []byte("x"))), "new b.txt, new kept.txt, same a.txt")
	for _, p := range []string{"result.csv", "passwd.txt", "root", "loop", "socket.csv", "in.csv"} {
		if dropped(res, p) == "" {
			t.Errorf("%s is not named as dropped: %v", p, res.Dropped)
		}
	}
	if res.DroppedFiles != int64(len(res.Dropped)) || len(res.Dropped) != 6 {
		t.Errorf("%d dropped: %v", res.DroppedFiles, res.Dropped)
	}
}

// links has symlinks kept, as what they say: whoever keeps them follows none.
func (s suite) links(t *testing.T) {
	var d Depot
	spec := Interpret("bash", `
mkdir -p venv/bin; ln -s /usr/bin/python3 venv/bin/python; ln -s python venv/bin/python3
ln -s /etc/passwd passwd.txt; ln -s nowhere gone; ln -s . loop; printf passwd >text; chmod +x in.csv
rm in.txt; ln -s other in.txt; ln -s $'\xff' bytes; mkfifo fifo
ln -s x .dirkeep; mkdir e; ln -s x e/.dirkeep; ln -s "$(printf 'x%.0s' {1..4095})" long
`, d.Put("in.txt", []byte("other")), d.Put("in.csv", []byte("x")))
	spec.Collect.Links, spec.Collect.Names = true, nil
	first := s.interpret(t, &d, spec,
		"new .dirkeep, new bytes, new gone, new long, new loop, new passwd.txt, new text, new venv/bin/python, new venv/bin/python3, changed in.txt, same in.csv")
	for _, f := range first.Files {
		if plain := f.Path == "text" || f.Path == "in.csv"; f.Link == plain || f.Exec != (f.Path == "in.csv") {
			t.Errorf("%+v", f)
		}
	}
	if d.Content(first.Files[5]) != "/etc/passwd" || d.Content(first.Files[1]) != "\xff" || len(first.Dropped) != 2 {
		t.Errorf("files %+v, dropped %v", first.Files, first.Dropped)
	}
	spec = Interpret("bash", `
readlink venv/bin/python venv/bin/python3 gone; [ -e venv/bin/python3 ] && [ -x in.csv ] && [ ! -e gone ] && echo as they were
rm gone loop text long .dirkeep; ln -s elsewhere gone; printf . >loop; ln -s passwd text
`, d.Inputs(first)...)
	spec.Collect.Links, spec.Collect.Names = true, nil
	second := s.interpret(t, &d, spec,
		"changed gone, changed loop, changed text, same bytes, same in.csv, same in.txt, same passwd.txt, same venv/bin/python, same venv/bin/python3")
	wantText(t, second.Stdout, "/usr/bin/python3\npython\nnowhere\nas they were\n")
	if !second.Files[0].Link || second.Files[1].Link || !second.Files[2].Link || !second.Files[5].Link {
		t.Errorf("files %+v", second.Files)
	}
}

func (s suite) sizes(t *testing.T) {
	var d Depot
	spec := Interpret("bash", `
truncate -s 60M sparse.csv                       # larger than a file may be
head -c 1048576 /dev/zero > most.csv             # the most
head -c 1048577 /dev/zero > more.csv             # one more
for i in 1 2 3; do cp most.csv total$i.csv; done # together the most
echo x > z.csv                                   # more together
`)
	res := s.interpret(t, &d, spec, "new most.csv, new total1.csv, new total2.csv, new total3.csv")
	for _, p := range []string{"sparse.csv", "more.csv", "z.csv"} {
		if dropped(res, p) == "" {
			t.Errorf("%s is not named as dropped: %v", p, res.Dropped)
		}
	}
	if f := res.Files[0]; f.Size != 1<<20 || f.Digest != writ.DigestOf(make([]byte, 1<<20)) {
		t.Errorf("file %+v", f)
	}
	// An input is told whatever its size: nothing of it is kept anew.
	big := d.Put("big.csv", make([]byte, 2<<20))
	s.interpret(t, &d, Interpret("bash", ":", big), "same big.csv")
}

func (s suite) numbers(t *testing.T) {
	var d Depot
	spec := Interpret("bash", `mkdir d e; for i in $(seq 1000 1299); do : > d/$i.txt; done; echo more >> in.txt`, d.Put("in.txt", []byte("in")), d.Put("in2.txt", nil))
	res := MustInterpret(t, s.start(t, runner.Options{}), spec, &d)
	if len(res.Files) != 51 || res.Files[0].Path != "d/1000.txt" || res.Files[49].Path != "d/1049.txt" || res.Files[50].Path != "in2.txt" {
		t.Errorf("files %s", FilesOf(res))
	}
	if res.DroppedFiles != 252 || len(res.Dropped) != writ.MaxDropped || res.Dropped[0].Path != "d/1050.txt" || res.Dropped[0].Why == "" {
		t.Errorf("%d dropped, %d named, the first %v", res.DroppedFiles, len(res.Dropped), res.Dropped[0])
	}
}

func (s suite) names(t *testing.T) {
	long := strings.Repeat("l", 251) + ".txt"
	names := []string{
		"-rf.txt", "a b.txt", "con.txt", "dot..txt", "line\nbreak.txt", "quote'\".txt", "<script>.txt", "%00.txt",
		"\u202Etxt.txt", "\U0001F600.txt", "\u00e9.txt", "e\u0301.txt", long, "Dockerfile", "UPPER.TXT",
	}
	bad := []string{"bad\\.txt", "noext", "x.weird", "1/2/3/4/5/6/7/8/9/10/11.txt"}
	var code strings.Builder
	for _, n := range append(append([]string(nil), names...), bad...) {
		fmt.Fprintf(&code, "f=$(printf '%s'; echo x); f=${f%%x}; [[ $f != */* ]] || mkdir -p -- \"${f%%/*}\"; echo x > \"./$f\"\n", octal(n))
	}
	code.WriteString("echo x > $'latin\\xff1.txt'\n")
	code.WriteString("p=long; for i in 1 2 3; do p=$p/" + strings.Repeat("p", 100) + "; done; mkdir -p $p; echo x > $p/x.txt\n")
	var d Depot
	res := MustInterpret(t, s.start(t, runner.Options{}), Interpret("bash", code.String()), &d)
	got := map[string]bool{}
	for _, f := range res.Files {
		got[f.Path] = true
	}
	for _, n := range names {
		if !got[n] {
			t.Errorf("%q was not kept", n)
		}
	}
	if len(got) != len(names) || res.Stderr.Text != "" {
		t.Errorf("%d files, want %d: %s\nstderr %s", len(got), len(names), FilesOf(res), res.Stderr.Text)
	}
	for _, n := range append(bad, "latin\uFFFD1.txt", "long/"+strings.Repeat(strings.Repeat("p", 100)+"/", 3)+"x.txt") {
		if dropped(res, n) == "" {
			t.Errorf("%q is not named as dropped: %q", n, res.Dropped)
		}
	}
}

// octal is s for printf of a shell.
func octal(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\%03o`, s[i])
	}
	return b.String()
}

func (s suite) onlyBytes(t *testing.T) {
	var d Depot
	tool := d.Put("in.sh", []byte("x"))
	tool.Exec = true
	res := s.interpret(t, &d, Interpret("bash", `
echo x > run.sh; chmod 4755 run.sh; echo x > plain.txt; chmod 4644 plain.txt
setfattr -n user.x -v y plain.txt 2>/dev/null; echo y > in.sh; chmod 600 in.sh
`, tool), "new plain.txt, new run.sh, changed in.sh")
	if res.Files[0].Exec || !res.Files[1].Exec || res.Files[2].Exec {
		t.Errorf("files %+v", res.Files)
	}
}

func (s suite) refusedFiles(t *testing.T) {
	var d Depot
	res := s.interpret(t, &d, Interpret("bash", "for f in a refused1 z; do echo $f > $f.txt; done; echo more >> refused2.txt; mkdir e refused3", d.Put("refused2.txt", nil)),
		"new a.txt, new e/.dirkeep, new z.txt")
	for _, p := range []string{"refused1.txt", "refused2.txt", "refused3/.dirkeep"} {
		if dropped(res, p) == "" {
			t.Errorf("%s is not named as dropped: %v", p, res.Dropped)
		}
	}
}

func (s suite) filesOfFailed(t *testing.T) {
	r := s.start(t, runner.Options{})
	for _, tt := range []struct {
		name, code string
		limit      func(l *writ.Limits, ms int64)
		want       writ.Outcome
	}{
		{"exit", "echo x > x.txt; exit 1", nil, writ.Failed},
		{"signal", "echo x > x.txt; kill -9 $$", nil, writ.Failed},
		{"time", "echo x > x.txt; sleep 600; :", func(l *writ.Limits, ms int64) { l.WallMS = ms }, writ.TimedOut},
		{"memory", `echo x > x.txt; x=x; while :; do x=$x$x; done`, func(l *writ.Limits, _ int64) { l.MemoryBytes = 32 << 20 }, ""},
		{"files", `echo x > x.txt; for i in $(seq 2000); do : > /tmp/$i; done; sleep 600`, func(l *writ.Limits, _ int64) { l.Files = 500 }, writ.Killed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			LongEnough(t, 300, func(ms int64) bool {
				var d Depot
				spec := Interpret("bash", tt.code, d.Put("in.txt", []byte("in")))
				if tt.limit != nil {
					tt.limit(&spec.Limits, ms)
				}
				res := MustInterpret(t, r, spec, &d)
				if tt.want != "" && res.Outcome != tt.want || res.Outcome == writ.Succeeded {
					t.Errorf("it ended %s (%s), want %s", res.Outcome, res.Reason, tt.want)
				}
				whole := FilesOf(res) == "new x.txt, same in.txt" && d.Content(res.Files[0]) == "x\n"
				if !whole && tt.want == writ.TimedOut {
					return false // before the file was written
				}
				if !whole {
					t.Errorf("files %s, dropped %v", FilesOf(res), res.Dropped)
				}
				return true
			})
		})
	}
}

func (s suite) uncollected(t *testing.T) {
	var d Depot
	spec := Interpret("bash", "echo x > x.txt; rm in.txt", d.Put("in.txt", nil))
	spec.Collect = nil
	if res := s.interpret(t, &d, spec, ""); res.DroppedFiles != 0 || len(d.Kept()) != 0 {
		t.Errorf("kept %v, dropped %v", d.Kept(), res.Dropped)
	}
}
