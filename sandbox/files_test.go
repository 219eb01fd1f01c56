package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"writ"
)

const workDir = "/mnt/data"

// prepareAt is a new box that works in workDir.
func prepareAt(t testing.TB, b *Bubblewrap, l writ.Limits) Box {
	t.Helper()
	box, err := b.Prepare(t.Context(), Template{Limits: l, Dir: workDir})
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return box
}

// leave runs cmd in such a box and gives the box with what it left.
func leave(t testing.TB, b *Bubblewrap, cmd Command) (Box, writ.Result) {
	t.Helper()
	cmd.Dir = workDir
	cmd.Env = slices.DeleteFunc(append(slices.Clone(cmd.Env), "HOME="+workDir), func(e string) bool { return e == "HOME="+boxHome })
	box := prepareAt(t, b, cmd.Limits)
	run, err := box.Start(t.Context(), cmd)
	if err != nil {
		t.Fatalf("start %q: %v", cmd.Argv, err)
	}
	return box, run.Wait()
}

// lines is a line for each entry: of a file its mode and content, of a symlink where it
// leads, else its kind.
func lines(t testing.TB, box Box, dir string) string {
	t.Helper()
	var text strings.Builder
	err := box.Files(t.Context(), dir, func(e Entry) error {
		if e.Kind == EntryFile {
			content, err := contentOf(e)
			fmt.Fprintf(&text, "%q %v %s\n", e.Path, e.Mode, content)
			return err
		}
		if e.Kind == EntryLink {
			to, err := contentOf(e)
			fmt.Fprintf(&text, "%q -> %q\n", e.Path, to)
			return err
		}
		if _, err := e.Open(); !errors.Is(err, fs.ErrInvalid) {
			return fmt.Errorf("%q is no file and was opened: %v", e.Path, err)
		}
		fmt.Fprintf(&text, "%q %s\n", e.Path, map[EntryKind]string{EntryFolder: "folder", EntryOther: "other", EntryUnreadable: "unreadable"}[e.Kind])
		return nil
	})
	if err != nil {
		t.Fatalf("files of %s: %v", dir, err)
	}
	return text.String()
}

func contentOf(e Entry) (string, error) {
	r, err := e.Open()
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err == nil && int64(len(content)) != e.Size {
		err = fmt.Errorf("%q has %d bytes, and %d were read", e.Path, e.Size, len(content))
	}
	return string(content), err
}

func wantLines(t testing.TB, box Box, dir string, want ...string) {
	t.Helper()
	if got := lines(t, box, dir); got != strings.Join(want, "\n")+"\n" && !(got == "" && want == nil) {
		t.Errorf("%s holds\n%swant\n%s", dir, got, strings.Join(want, "\n"))
	}
}

func TestLC24_FilesAndEmptyFoldersInOrder(t *testing.T) {
	b := newProvider(t, Options{})
	box, r := leave(t, b, shell(`mkdir -p a/b empty/deeper x; echo -n 1 > a.txt; echo -n 2 > a/b/x; echo -n 3 > a/b.c
		echo -n 4 > a0; echo -n 5 > .hidden; : > zero; chmod 750 zero; echo -n code > /run/writ/c`))
	wantExit(t, r, 0)
	want := []string{`".hidden" -rw-r--r-- 5`, `"a.txt" -rw-r--r-- 1`, `"a/b.c" -rw-r--r-- 3`, `"a/b/x" -rw-r--r-- 2`, `"a0" -rw-r--r-- 4`,
		`"empty/deeper" folder`, `"x" folder`, `"zero" -rwxr-x--- `}
	wantLines(t, box, workDir, want...)
	wantLines(t, box, "/run/writ", `"c" -rw-r--r-- code`)
	wantLines(t, box, workDir, want...) // as often as one likes
}

// FIFOs and sockets are named, and never opened; of a symlink is read where it leads.
func TestIO01_WhatIsNoFileIsNotOpened(t *testing.T) {
	b := newProvider(t, Options{})
	box, r := leave(t, b, python(t, `
import os, socket
os.mkfifo("result.csv")
socket.socket(socket.AF_UNIX).bind("socket.csv")
os.mkdir("d"); open("d/f", "w").write("x")
for name, to in dict(passwd="/etc/passwd", folder="d", file="d/f", up="..", out="../../etc/passwd", gone="nowhere", loop="loop", proc="/proc/self/root", self="/proc/self/fd/0").items():
    os.symlink(to, name)
try: os.mknod("null", 0o20666, os.makedev(1, 3))
except PermissionError: pass
`))
	wantExit(t, r, 0)
	wantLines(t, box, workDir, `"d/f" -rw-r--r-- x`, `"file" -> "d/f"`, `"folder" -> "d"`, `"gone" -> "nowhere"`, `"loop" -> "loop"`,
		`"out" -> "../../etc/passwd"`, `"passwd" -> "/etc/passwd"`, `"proc" -> "/proc/self/root"`, `"result.csv" other`,
		`"self" -> "/proc/self/fd/0"`, `"socket.csv" other`, `"up" -> ".."`)
}

// Symlinks come after all else, so that nothing is placed where one leads, and say what
// they said, whatever that is.
func TestSymlinksThatArePlaced(t *testing.T) {
	b := newProvider(t, Options{})
	link := func(at, to string) File { return File{Path: workDir + "/" + at, Content: []byte(to), Link: true} }
	longest := strings.Repeat("x/", writ.MaxLinkBytes/2) + "x"
	cmd := shell(`cat d/same; for l in *; do [ ! -L "$l" ] || readlink -n -- "$l" | md5sum | head -c 4; done`)
	cmd.Files = []File{
		link("d/same", "f"), link("away", "/run/writ"), link("bytes", "\xff\n\x01"), link("longest", longest),
		{Path: workDir + "/d/f", Content: []byte("of f\n"), Mode: 0o600},
		link("new/folder/up", "../.."),
	}
	box, r := leave(t, b, cmd)
	wantExit(t, r, 0)
	wantLines(t, box, workDir, `"away" -> "/run/writ"`, `"bytes" -> "\xff\n\x01"`, `"d/f" -rw------- of f`+"\n", `"d/same" -> "f"`, fmt.Sprintf(`"longest" -> %q`, longest), `"new/folder/up" -> "../.."`)
	if !strings.HasPrefix(r.Stdout.Text, "of f\n") {
		t.Errorf("stdout %q", r.Stdout.Text)
	}

	// Where a symlink and a file would have one path there is neither, and nothing runs.
	for name, files := range map[string][]File{
		"a file in a symlink":          {link("d", "/tmp"), {Path: workDir + "/d/f", Mode: 0o600}},
		"a symlink over a file":        {link("f", "/tmp"), {Path: workDir + "/f", Mode: 0o600}},
		"a symlink that leads nowhere": {link("f", "")},
		"a symlink that leads too far": {link("f", longest+"x")},
	} {
		cmd := shell(":")
		cmd.Files = files
		if _, err := prepareAt(t, b, cmd.Limits).Start(t.Context(), cmd); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIO03_SparseFileIsAsLongAsItSays(t *testing.T) {
	b := newProvider(t, Options{})
	cmd := shell("truncate -s 1T sparse; echo -n end >> sparse")
	cmd.Limits.FileBytes = Unlimited
	box, r := leave(t, b, cmd)
	wantExit(t, r, 0)
	found := 0
	err := box.Files(t.Context(), workDir, func(e Entry) error {
		found++
		if e.Size != 1<<40+3 {
			t.Errorf("%q has %d bytes", e.Path, e.Size)
		}
		body, err := e.Open()
		if err != nil {
			return err
		}
		defer body.Close()
		n, err := io.Copy(io.Discard, io.LimitReader(body, 8<<20))
		if n != 8<<20 {
			t.Errorf("read %d bytes: %v", n, err)
		}
		return err
	})
	if err != nil || found != 1 {
		t.Errorf("%d files: %v", found, err)
	}
}

func TestIO04_AHundredThousandFiles(t *testing.T) {
	b := newProvider(t, Options{})
	cmd := python(t, `
import os
os.mkdir("d")
for i in range(100_000): os.close(os.open("d/%05d" % i, os.O_CREAT | os.O_WRONLY))
`)
	cmd.Limits.Files, cmd.Limits.MemoryBytes = 200_000, 1<<30
	box, r := leave(t, b, cmd)
	wantExit(t, r, 0)
	n := 0
	err := box.Files(t.Context(), workDir, func(e Entry) error {
		if want := fmt.Sprintf("d/%05d", n); e.Path != want || e.Kind != EntryFile || e.Size != 0 {
			return fmt.Errorf("got %+v, want %s", e, want)
		}
		n++
		return nil
	})
	if err != nil || n != 100_000 {
		t.Errorf("%d files: %v", n, err)
	}
}

// More files than may be end the run, and what is there can be read all the same.
func TestIO04_FilesOfARunThatMadeTooMany(t *testing.T) {
	b := newProvider(t, Options{})
	cmd := python(t, "i = 0\nwhile True:\n    open(str(i), 'w').write('x'); i += 1")
	cmd.Limits.Files = 50
	box, r := leave(t, b, cmd)
	wantOutcome(t, r, writ.Killed)
	if want := "limit of files reached: more than 50 files and folders in /mnt/data"; r.Reason != want {
		t.Errorf("reason %q, want %q", r.Reason, want)
	}
	enough := errors.New("enough")
	n := 0
	err := box.Files(t.Context(), workDir, func(Entry) error {
		if n++; n == 10 {
			return enough
		}
		return nil
	})
	if err != enough || n != 10 {
		t.Errorf("%d visits: %v", n, err)
	}
}

func TestIO06_NamesAreTheirBytes(t *testing.T) {
	b := newProvider(t, Options{})
	names := []string{"a\nb", "\xff\xfe", strings.Repeat("n", 255), "-rf", "con", "dot.", "\u202efdp.exe", "😀", "%00", `"'`, "<script>", "back\\slash", " ", "...", "\x01\x1b[2J", "a\r"}
	cmd := python(t, "import os, sys\nfor a in sys.argv[1:]:\n    os.makedirs(b'd/' + os.fsencode(a)); open(b'd/' + os.fsencode(a) + b'/' + os.fsencode(a), 'w').write('x')", names...)
	box, r := leave(t, b, cmd)
	wantExit(t, r, 0)
	var want, got []string
	for _, n := range names {
		want = append(want, "d/"+n+"/"+n)
	}
	slices.Sort(want)
	err := box.Files(t.Context(), workDir, func(e Entry) error {
		got = append(got, e.Path)
		_, err := contentOf(e)
		return err
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: %v", got, want, err)
	}
}

// What a file is beside its bytes and its permissions stays in the box.
func TestIO13_SetUserIDLinksAndAttributes(t *testing.T) {
	b := newProvider(t, Options{})
	box, r := leave(t, b, python(t, `
import os
open("tool", "w").write("x"); os.chmod("tool", 0o6755)
os.link("tool", "link")
os.mkdir("sticky"); os.chmod("sticky", 0o3777)
try: os.setxattr("tool", "user.a", b"b")
except OSError: pass
print(oct(os.stat("tool").st_mode))
`))
	wantExit(t, r, 0)
	if r.Stdout.Text != "0o106755\n" {
		t.Errorf("the mode is %s", r.Stdout.Text)
	}
	wantLines(t, box, workDir, `"link" -rwxr-xr-x x`, `"sticky" folder`, `"tool" -rwxr-xr-x x`)
	err := box.Files(t.Context(), workDir, func(e Entry) error {
		if e.Mode&^0o777 != 0 {
			t.Errorf("%q has mode %v", e.Path, e.Mode)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Whatever permissions a program took away, from the folder itself, too.
func TestFilesWithoutPermission(t *testing.T) {
	b := newProvider(t, Options{})
	box, r := leave(t, b, shell("mkdir -p d/e shut empty; echo -n 1 > d/e/f; echo -n 2 > shut/g; echo -n 3 > w; chmod 0 d/e/f d/e d empty; chmod 111 shut; chmod 222 w; chmod 0 ."))
	wantExit(t, r, 0)
	want := []string{`"d/e/f" ---------- 1`, `"empty" folder`, `"shut/g" -rw-r--r-- 2`, `"w" --w--w--w- 3`}
	wantLines(t, box, workDir, want...)
}

func TestFilesInDeepFolders(t *testing.T) {
	b := newProvider(t, Options{})
	box, r := leave(t, b, python(t, `
import os
for root, depth in ("ok", 62), ("deep", 10_000):
    here = os.open(".", os.O_RDONLY)
    os.mkdir(root); os.chdir(root)
    for i in range(depth): os.mkdir("d"); os.chdir("d")
    open("f", "w").write(root)
    os.fchdir(here)
`))
	wantExit(t, r, 0)
	before := openFiles(t)
	wantLines(t, box, workDir, fmt.Sprintf("%q unreadable", "deep"+strings.Repeat("/d", 63)), fmt.Sprintf("%q -rw-r--r-- ok", "ok"+strings.Repeat("/d", 62)+"/f"))
	if after := openFiles(t); after > before {
		t.Errorf("%d descriptors are open, before it were %d", after, before)
	}
}

// Files are there however a run ended.
func TestFilesOfARunThatWasEnded(t *testing.T) {
	t.Parallel() // its time is long enough for a slow machine to come to the file
	b := newProvider(t, Options{})
	const script = "echo -n kept > f; "
	slow, big, dead := shell(script+"exec sleep 60"), shell(script+"exec tail /dev/zero"), shell(script+"kill -9 $$")
	slow.Limits.WallMS = 5000
	big.Limits.MemoryBytes = 64 << 20
	for name, c := range map[string]struct {
		cmd  Command
		want []writ.Outcome
	}{
		"time":   {slow, []writ.Outcome{writ.TimedOut}},
		"memory": {big, []writ.Outcome{writ.OutOfMemory, writ.Failed}}, // failed where no group counts
		"killed": {dead, []writ.Outcome{writ.Failed}},
	} {
		box, r := leave(t, b, c.cmd)
		if !slices.Contains(c.want, r.Outcome) {
			t.Errorf("%s: %s", name, show(r))
		}
		wantLines(t, box, workDir, `"f" -rw-r--r-- kept`)
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cmd := shell(script + "echo ready; exec sleep 60")
		cmd.Dir = workDir
		cmd.Stdout = writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
		box := prepareAt(t, b, cmd.Limits)
		run, err := box.Start(ctx, cmd)
		if err != nil {
			t.Fatal(err)
		}
		wantOutcome(t, run.Wait(), writ.Killed)
		wantLines(t, box, workDir, `"f" -rw-r--r-- kept`)
	})
}

func TestFilesAtTheWrongTime(t *testing.T) {
	b := newProvider(t, Options{})
	fail := func(Entry) error { t.Error("something was visited"); return nil }
	box := prepareAt(t, b, writ.DefaultLimits)
	conflict := func(when string) {
		t.Helper()
		if err := box.Files(t.Context(), workDir, fail); writ.KindOf(err) != writ.Conflict || writ.Message(err) == "" {
			t.Errorf("%s: %v", when, err)
		}
	}
	conflict("before the run")
	cmd := shell("cat; touch a b")
	cmd.Dir, cmd.Input = workDir, true
	run, err := box.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	conflict("while it runs")
	if err := run.CloseInput(); err != nil {
		t.Fatal(err)
	}
	wantExit(t, run.Wait(), 0)

	cause := errors.New("the caller went")
	ctx, cancel := context.WithCancelCause(t.Context())
	err = box.Files(ctx, workDir, func(Entry) error { cancel(cause); return nil })
	if !errors.Is(err, cause) {
		t.Errorf("cancelled: %v", err)
	}
	var late Entry
	visits := 0
	err = box.Files(t.Context(), workDir, func(e Entry) error {
		late = e
		visits++
		return box.Close() // does not wait for us
	})
	if writ.KindOf(err) != writ.Conflict || visits != 1 {
		t.Errorf("closed meanwhile: %d visits, %v", visits, err)
	}
	if _, err := late.Open(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("opened when its visit was over: %v", err)
	}
	conflict("when the box is closed")
}

// Files are given of the folders of which they are meant to be given, and of no other.
func TestFilesOfOtherFolders(t *testing.T) {
	b := newProvider(t, Options{})
	check := func(box Box, dirs ...string) {
		t.Helper()
		for _, dir := range dirs {
			err := box.Files(t.Context(), dir, func(Entry) error { t.Errorf("%q was visited", dir); return nil })
			if writ.KindOf(err) != writ.Invalid {
				t.Errorf("%q: %v", dir, err)
			}
		}
	}
	box, r := leave(t, b, shell("echo x > /tmp/f; echo x > ~/f"))
	wantExit(t, r, 0)
	check(box, "", "/", "/tmp", "/home/agent", "/dev/shm", "/workspace", "/etc", "/mnt", "/mnt/data/", "/mnt/data/../../tmp")

	w := newWorkspace(t, map[string]string{"secret": "x"})
	disk := prepareIn(t, b, w, writ.DefaultLimits)
	cmd := program("/bin/true")
	cmd.Dir = w.Root
	run, err := disk.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, run.Wait(), 0)
	check(disk, w.Root, "", workDir, "/workspace")
	wantLines(t, disk, "/run/writ")
}
