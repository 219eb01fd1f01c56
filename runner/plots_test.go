package runner_test

import (
	"image/png"
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
	"writ/runner"
	"writ/sandbox"
)

// needMatplotlib ends t when the Python of this host has no matplotlib.
func needMatplotlib(t *testing.T, r testkit.AnyRunner) {
	t.Helper()
	testkit.NeedInterpreter(t, r, "python")
	var d testkit.Depot
	code := "import importlib.util, sys; sys.exit(importlib.util.find_spec('matplotlib') is None)"
	if res := testkit.MustInterpret(t, r, testkit.Interpret("python", code), &d); res.Outcome != writ.Succeeded {
		testkit.Missing(t, "python3-matplotlib", "Python has no matplotlib")
	}
}

// width of a file that is a PNG.
func width(t *testing.T, d *testkit.Depot, r writ.Result, path string) int {
	t.Helper()
	for _, f := range r.Files {
		if f.Path == path {
			c, err := png.DecodeConfig(strings.NewReader(d.Content(f)))
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return c.Width
		}
	}
	t.Errorf("%s is not there: %s", path, testkit.FilesOf(r))
	return 0
}

func TestLC31_FiguresThatAreShown(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{})
	needMatplotlib(t, r)
	var d testkit.Depot
	old := d.Put("plot_2.png", []byte("of another run"))
	old.ReadOnly = true
	// On line 20 it fails, and says so.
	res := testkit.MustInterpret(t, r, testkit.Interpret("python", `import matplotlib, os
matplotlib.use("Agg")  # as programs do that expect no screen
import matplotlib.pyplot as plt
from matplotlib.pyplot import show

text = """
lines that
    are indented"""
def plot():
    global text
    plt.plot([1, 2])
os.chdir("/tmp")
plot(); plt.show()
plt.figure(figsize=(2, 2)); plt.figure(figsize=(4, 2)); show()
plt.plot([1]); plt.savefig("/mnt/data/a.png", dpi=600); plt.savefig("/mnt/data/b.png"); plt.close()
plt.show()  # of none
fig, ax = plt.subplots(); fig.show()
print(plt.get_fignums(), text.splitlines()[2], __name__, sorted(k for k in globals() if "writ" in k or "hook" in k))
plt.figure(figsize=(1, 1)).savefig("/mnt/data/c.png", dpi=10)
1 / 0
`, old), &d)
	if res.ExitCode == nil || *res.ExitCode != 1 || !strings.Contains(res.Stderr.Text, `File "/mnt/data/main.py", line 20, in <module>`) || strings.Contains(res.Stderr.Text, "Warning") {
		t.Errorf("it ended %s (%s)\n%s", res.Outcome, res.Reason, res.Stderr.Text)
	}
	if res.Stdout.Text != "[]     are indented __main__ []\n" {
		t.Errorf("stdout %q", res.Stdout.Text)
	}
	// plot_2.png cannot be written.
	if got := testkit.FilesOf(res); got != "new a.png, new b.png, new c.png, new plot_1.png, new plot_3.png, new plot_4.png, new plot_5.png, same plot_2.png" {
		t.Errorf("files %s", got)
	}
	for path, want := range map[string]int{"plot_1.png": 960, "plot_3.png": 300, "plot_4.png": 600, "plot_5.png": 960, "a.png": 1280, "b.png": 960, "c.png": 10} {
		if w := width(t, &d, res, path); w != want {
			t.Errorf("%s is %d pixels wide, want %d", path, w, want)
		}
	}
}

// TestLC32_NoWordsAboutFonts: no font of the host has these characters.
func TestLC32_NoWordsAboutFonts(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{})
	needMatplotlib(t, r)
	var d testkit.Depot
	res := testkit.MustInterpret(t, r, testkit.Interpret("bash", `python3 - <<'END'
import matplotlib.pyplot as plt
plt.title('\u58f2\u4e0a \ub9e4\ucd9c'); plt.savefig('t.png')
plt.rcParams['font.family'] = ['No Such Font', 'sans-serif']
plt.plot([1]); plt.xlabel('\u58f2'); plt.show()
END
ls -A`), &d)
	if res.Outcome != writ.Succeeded || res.Stderr.Text != "" || res.Stdout.Text != "plot_1.png\nscript.sh\nt.png\n" {
		t.Errorf("it ended %s (%s) with stdout %q\nstderr %s", res.Outcome, res.Reason, res.Stdout.Text, res.Stderr.Text)
	}
	if got := testkit.FilesOf(res); got != "new plot_1.png, new t.png" {
		t.Errorf("files %s", got)
	}
}

// TestAidsOfPythonStandBack: what is ours imports nothing, and hides nobody's module.
func TestAidsOfPythonStandBack(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{})
	testkit.NeedInterpreter(t, r, "python")
	var d testkit.Depot
	spec := testkit.Interpret("python", `
import sys
print(any(m.split(".")[0] in ("matplotlib", "numpy", "logging") for m in sys.modules), [p for p in sys.path if "writ" in p])
import sitecustomize
print(sitecustomize.__file__, sitecustomize.mine)
try:
    import matplotlib.pyplot
except ZeroDivisionError as e:
    print("the program's own", e)
`, d.Put("lib/sitecustomize.py", []byte("mine = 'mine'\nprint('first')\n")), d.Put("matplotlib/__init__.py", []byte("1 / 0\n")))
	spec.Env = map[string]string{"PYTHONPATH": "/run/writ/aids:/mnt/data/lib"}
	res := testkit.MustInterpret(t, r, spec, &d)
	if want := "first\nFalse []\n/mnt/data/lib/sitecustomize.py mine\nthe program's own division by zero\n"; res.Stdout.Text != want || res.Stderr.Text != "" {
		t.Errorf("stdout %q, want %q\nstderr %s", res.Stdout.Text, want, res.Stderr.Text)
	}
}
