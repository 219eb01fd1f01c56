package testkit

import (
	"slices"
	"strings"
	"testing"

	"writ"
	"writ/runner"
)

// Interpreter is the conformance suite of runners for runs of the code interpreter, over a
// real sandbox. start is as that of Runner.
func Interpreter(t *testing.T, start func(t *testing.T, opt runner.Options) AnyRunner) {
	s := suite{start}
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"WhereARunIs", s.whereARunIs},
		{"LC01_AFileIsInTheNextRun", s.nextRun},
		{"LC04_LC21_InputsStay", s.inputsStay},
		{"LC14_ReadOnlyInputsOfAnyKind", s.readOnly},
		{"LC19_LC23_ChangedInputs", s.changed},
		{"LC24_EmptyFilesAndFolders", s.empty},
		{"LC26_CachesAreNoFiles", s.caches},
		{"EntryFile", s.entryFile},
		{"IO01_NoRegularFiles", s.irregular},
		{"SymlinksThatAreAskedFor", s.links},
		{"IO03_SizesAreBounded", s.sizes},
		{"IO04_NumbersAreBounded", s.numbers},
		{"IO06_Names", s.names},
		{"IO08_ArchiveBombs", s.bombs},
		{"IO13_OnlyBytesAreKept", s.onlyBytes},
		{"RefusedFilesAreDropped", s.refusedFiles},
		{"FilesOfARunThatFailed", s.filesOfFailed},
		{"NothingIsCollectedUnasked", s.uncollected},
		{"StdoutOverTheLimit", s.stdoutLimit},
		{"InputsAreWhatWasApproved", s.wrongInputs},
		{"CancelWhilePlacing", s.cancelPlacing},
		{"CancelWhileRunning", s.cancelInterpreted},
		{"CancelWhileCollecting", s.cancelCollecting},
		{"CompileStep", s.compileStep},
	} {
		t.Run(c.name, c.run)
	}
}

// interpret runs spec, which must succeed with an empty stderr, and tell want of its
// files.
func (s suite) interpret(t *testing.T, d *Depot, spec writ.RunSpec, want string) writ.Result {
	t.Helper()
	res := MustInterpret(t, s.start(t, runner.Options{}), spec, d)
	if res.Outcome != writ.Succeeded || res.Stderr.Text != "" {
		t.Fatalf("%q ended %s (%s)\nstderr %q", spec.Code, res.Outcome, res.Reason, res.Stderr.Text)
	}
	if got := FilesOf(res); got != want {
		t.Errorf("files %s\nwant  %s\ndropped %v", got, want, res.Dropped)
	}
	return res
}

func wantText(t *testing.T, o writ.Output, want string) {
	t.Helper()
	if o.Text != want {
		t.Errorf("output %q, want %q", o.Text, want)
	}
}

// dropped is why a path was dropped, empty when it was not.
func dropped(r writ.Result, path string) string {
	if i := slices.IndexFunc(r.Dropped, func(d writ.DroppedFile) bool { return d.Path == path }); i >= 0 {
		return r.Dropped[i].Why
	}
	return ""
}

func (s suite) whereARunIs(t *testing.T) {
	var d Depot
	spec := Interpret("bash", `
pwd; echo "$0" "$#" "$HOME" "$SANDBOX_LANGUAGE"; cat | od -An -c | tr -d ' '
ls -A; stat -c '%a %n' . script.sh; cd /; echo ~
echo 'echo ran' > /mnt/data/tool.sh; chmod +x /mnt/data/tool.sh; /mnt/data/tool.sh; rm /mnt/data/tool.sh
`)
	spec.Args = []string{"a b"}
	res := s.interpret(t, &d, spec, "")
	wantText(t, res.Stdout, "/mnt/data\nscript.sh 1 /mnt/data bash\n\\n\nscript.sh\n700 .\n644 script.sh\n/mnt/data\nran\n")
	s.interpret(t, &d, Interpret("bash", ""), "") // an empty program is one

	r := s.start(t, runner.Options{Slots: 1, InterpreterWarm: 2, Interpreter: InterpreterLimits})
	for range 3 { // no box has what was there before
		res := MustInterpret(t, r, Interpret("bash", `ls -A . /tmp; touch /tmp/trace trace.txt`), &d)
		wantText(t, res.Stdout, ".:\nscript.sh\n\n/tmp:\n")
	}
}

func (s suite) nextRun(t *testing.T) {
	r := s.start(t, runner.Options{})
	NeedInterpreter(t, r, "python")
	var d Depot
	first := s.interpret(t, &d, Interpret("bash", "echo 41 > n.txt"), "new n.txt")
	second := s.interpret(t, &d, Interpret("python", "print(int(open('/mnt/data/n.txt').read())+1)", d.Inputs(first)...), "same n.txt")
	wantText(t, second.Stdout, "42\n")
}

func (s suite) inputsStay(t *testing.T) {
	var d Depot
	a, b, c := d.Put("a.csv", []byte("a\n")), d.Put("b/b.csv", []byte("b\n")), d.Put("c.csv", nil)
	tool := d.Put("tool", []byte("#!/bin/sh\necho tool\n"))
	tool.Exec = true
	first := s.interpret(t, &d, Interpret("bash", "cat a.csv; ./tool; stat -c '%a %n' a.csv b tool; echo x > out.txt", a, b, c, tool),
		"new out.txt, same a.csv, same b/b.csv, same c.csv, same tool")
	wantText(t, first.Stdout, "a\ntool\n600 a.csv\n700 b\n700 tool\n")
	second := s.interpret(t, &d, Interpret("bash", "ls; rm a.csv", d.Inputs(first)...), "same b/b.csv, same c.csv, same out.txt, same tool")
	wantText(t, second.Stdout, "a.csv\nb\nc.csv\nout.txt\nscript.sh\ntool\n")

	spec := Interpret("bash", "cat inline.txt; echo y >> inline.txt")
	spec.Inputs = []writ.Input{{Path: "inline.txt", Content: []byte("x\n")}}
	if res := s.interpret(t, &d, spec, "changed inline.txt"); d.Content(res.Files[0]) != "x\ny\n" {
		t.Errorf("content %q", d.Content(res.Files[0]))
	}
}

func (s suite) readOnly(t *testing.T) {
	var d Depot
	var files []writ.FileInput
	for _, name := range []string{"skill/a.xsd", "skill/types.d.ts", "skill/LICENSE", "skill/.env.example", "skill/gone.xsd", "skill/link.xsd", "skill/folder"} {
		f := d.Put(name, []byte(name+"\n"))
		f.ReadOnly = true
		files = append(files, f)
	}
	res := s.interpret(t, &d, Interpret("bash", `
cd skill
cat a.xsd; stat -c %a LICENSE; test -w LICENSE || echo held
rm a.xsd gone.xsd link.xsd folder; echo other > a.xsd; ln -s /etc/passwd link.xsd; mkdir folder; touch folder/x.txt
`, files...), "same skill/.env.example, same skill/LICENSE, same skill/a.xsd, same skill/folder, same skill/link.xsd, same skill/types.d.ts")
	wantText(t, res.Stdout, "skill/a.xsd\n444\nheld\n")
	for _, f := range res.Files {
		if d.Content(f) != f.Path+"\n" {
			t.Errorf("%s is %q", f.Path, d.Content(f))
		}
	}
	if len(d.Kept()) != 0 || dropped(res, "skill/folder/x.txt") == "" {
		t.Errorf("kept %v, dropped %v", d.Kept(), res.Dropped)
	}

	// One that may be written is echoed whatever its kind, and when it changed kept as others.
	res = s.interpret(t, &d, Interpret("bash", "echo more >> b.xsd", d.Put("a.xsd", []byte("a")), d.Put("b.xsd", []byte("b"))), "same a.xsd")
	if dropped(res, "b.xsd") == "" {
		t.Errorf("dropped %v", res.Dropped)
	}
}

func (s suite) changed(t *testing.T) {
	var d Depot
	res := s.interpret(t, &d, Interpret("bash", `
printf b >> d.csv             # other bytes
printf A > same_size.csv      # as many other bytes
touch touched.csv             # no other bytes
cp copied.csv x; mv x copied.csv
echo new > a.txt; echo new > z.txt
`, d.Put("d.csv", []byte("a")), d.Put("same_size.csv", []byte("a")), d.Put("touched.csv", []byte("t")), d.Put("copied.csv", []byte("c"))),
		"new a.txt, new z.txt, changed d.csv, changed same_size.csv, same copied.csv, same touched.csv")
	if d.Content(res.Files[2]) != "ab" || res.Files[2].Size != 2 || res.Files[2].Digest != writ.DigestOf([]byte("ab")) || d.Content(res.Files[3]) != "A" {
		t.Errorf("files %+v", res.Files)
	}
	var kept []string
	for _, k := range d.Kept() {
		kept = append(kept, strings.Fields(k)[0])
	}
	if got := strings.Join(kept, " "); got != "a.txt z.txt d.csv same_size.csv" {
		t.Errorf("kept in the order %s", got)
	}
	if res.DroppedFiles != 0 {
		t.Errorf("dropped %v", res.Dropped)
	}
}

func (s suite) empty(t *testing.T) {
	var d Depot
	first := s.interpret(t, &d, Interpret("bash", ": > zero.txt; mkdir -p keep/me full; touch full/f.txt"),
		"new full/f.txt, new keep/me/.dirkeep, new zero.txt")
	if f := first.Files[1]; f.Size != 0 || f.Digest != writ.DigestOf(nil) {
		t.Errorf("marker %+v", f)
	}
	second := s.interpret(t, &d, Interpret("bash", `
stat -c '%s %n' zero.txt; test -d keep/me && echo yes; ls -A keep/me; mkdir other`, d.Inputs(first)...),
		"new other/.dirkeep, same full/f.txt, same keep/me/.dirkeep, same zero.txt")
	wantText(t, second.Stdout, "0 zero.txt\nyes\n")
	third := s.interpret(t, &d, Interpret("bash", "touch keep/me/x.txt; rmdir other", d.Inputs(second)...),
		"new keep/me/x.txt, same full/f.txt, same zero.txt")
	if third.DroppedFiles != 0 {
		t.Errorf("dropped %v", third.Dropped)
	}
	fourth := s.interpret(t, &d, Interpret("bash", "mkdir a; echo text > a/.dirkeep"), "")
	if dropped(fourth, "a/.dirkeep") == "" { // it would be an empty folder in the next run
		t.Errorf("dropped %v", fourth.Dropped)
	}
}

func (s suite) caches(t *testing.T) {
	var d Depot
	res := s.interpret(t, &d, Interpret("bash", `
mkdir -p .cache/fontconfig lib/__pycache__ node_modules/x .hidden/deep/.more .empty lib/.git
for f in .cache/fontconfig/a.txt lib/__pycache__/m.py node_modules/x/i.json .hidden/deep/x.txt .config/new.txt .config/.deep/x.txt lib/.git/config.txt; do
	mkdir -p "${f%/*}"; echo x > "$f"
done
echo x > .env; echo x > lib/.env; echo '{}' > _ptc_history.json; echo '{}' > lib/_ptc_history.json
`, d.Put(".config/app.toml", []byte("a = 1\n")), d.Put(".x/__pycache__/kept.bin", nil)),
		"new .config/new.txt, new .env, new lib/.env, new lib/_ptc_history.json, same .config/app.toml, same .x/__pycache__/kept.bin")
	if res.DroppedFiles != 0 {
		t.Errorf("caches are named as dropped: %v", res.Dropped)
	}
	// A folder with nothing else in it is an empty one.
	ro := d.Put("ro.txt", []byte("r"))
	ro.ReadOnly = true
	s.interpret(t, &d, Interpret("bash", `
mkdir -p e2/.cache d/e/.git d/.a d/node_modules f/__pycache__ g/.h k/.l
echo x > e2/.cache/x.txt; echo x > d/e/.git/x.txt; echo x > d/node_modules/x.txt; echo x > f/__pycache__/x.txt; echo x > f/z.txt; echo x > g/.h/x.txt
rm -f ro.txt; mkdir -p ro.txt/.git; echo x > ro.txt/.git/x.txt
`, ro, d.Put("g/.dirkeep", nil)), "new d/e/.dirkeep, new e2/.dirkeep, new f/z.txt, new k/.dirkeep, same g/.dirkeep, same ro.txt")
	spec := Interpret("bash", "mkdir -p .hidden/deep; echo x > .hidden/deep/x.txt")
	spec.Collect.Hidden = true
	s.interpret(t, &d, spec, "new .hidden/deep/x.txt")
}

func (s suite) entryFile(t *testing.T) {
	var d Depot
	code := "cat script.sh > /dev/null; touch script.sh"
	s.interpret(t, &d, Interpret("bash", code), "")
	res := s.interpret(t, &d, Interpret("bash", "echo other > x; mv x script.sh"), "new script.sh")
	if d.Content(res.Files[0]) != "other\n" {
		t.Errorf("the rewritten code is %q", d.Content(res.Files[0]))
	}
	s.interpret(t, &d, Interpret("bash", "rm script.sh"), "")

	r := s.start(t, runner.Options{})
	for _, name := range []string{"script.sh", "script.sh/x"} {
		spec := Interpret("bash", code, d.Put(name, nil))
		if _, err := r.Run(t.Context(), "r", spec, spec.Digest(), d.Exchange()); writ.KindOf(err) != writ.Invalid {
			t.Errorf("an input %s: %v, want invalid", name, err)
		}
	}
}
