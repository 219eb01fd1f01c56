package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"writ"
)

func TestProbeSaysWhatIsEnforced(t *testing.T) {
	b := newProvider(t, Options{})
	got, err := b.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	always := []string{
		LayerUserNamespace, LayerPIDNamespace, LayerNetworkNamespace, LayerIPCNamespace, LayerUTSNamespace, LayerCgroupNamespace,
		LayerMountView, LayerNoNewPrivileges, LayerNoCapabilities, LayerNestedUsernsOff, LayerSeccomp, LayerRlimits,
	}
	for _, l := range always {
		if !slices.Contains(got.Active, l) {
			t.Errorf("%s is not active: %+v", l, got)
		}
	}
	for _, l := range []string{LayerSeparateUID, LayerMemoryCgroup, LayerPidsCgroup, LayerCPUCgroup} {
		if slices.Contains(got.Active, l) == slices.Contains(got.Missing, l) {
			t.Errorf("%s must be either active or missing: %+v", l, got)
		}
	}
	if root := os.Geteuid() == 0; slices.Contains(got.Active, LayerSeparateUID) != root {
		t.Errorf("as root %t: %+v", root, got)
	}
	if !strings.HasPrefix(got.Provider, "bubblewrap 0.") {
		t.Errorf("provider %q", got.Provider)
	}
	if required("cgroup") && os.Geteuid() == 0 && len(got.Missing) > 0 {
		t.Errorf("required, and missing: %v", got.Missing)
	}
	if r := runIn(t, b, program("/bin/true")); !slices.Equal(r.Sandbox.Active, got.Active) || r.Sandbox.Provider != got.Provider {
		t.Errorf("a result says %+v, the probe %+v", r.Sandbox, got)
	}
}

// fakeBwrap is a bwrap that cannot work: it says what a real one says on such a
// host, and leaves a mark when it was asked to start anything without saying it.
func fakeBwrap(t *testing.T, script string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "bwrap")
	text := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo bubblewrap 0.8.0; exit 0; fi\n" + script
	if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	// The user of a box must reach it.
	for d := filepath.Dir(p); d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestScenario15_HostsThatCannotSandbox(t *testing.T) {
	notExecutable := fakeBwrap(t, "exit 1")
	if err := os.Chmod(notExecutable, 0o644); err != nil {
		t.Fatal(err)
	}
	says := func(text string) string { return fakeBwrap(t, "echo \""+text+"\" >&2; exit 1\n") }
	for _, c := range []struct {
		name, bwrap string
		want        []string
	}{
		{"no bwrap", filepath.Join(t.TempDir(), "none"), []string{"not installed", "apt-get install bubblewrap"}},
		{"not executable", notExecutable, []string{"not executable", "chmod a+rx"}},
		{"BW-01 AppArmor of Ubuntu 24.04", says("bwrap: setting up uid map: Permission denied"),
			[]string{"AppArmor", "kernel.apparmor_restrict_unprivileged_userns", "bwrap-userns-restrict"}},
		{"no user namespaces", says("bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces."),
			[]string{"kernel.unprivileged_userns_clone", "user.max_user_namespaces"}},
		{"BW-03 nested, masked /proc", fakeBwrap(t, "tr '\\0' '\\n' <&$2 | grep -qx -- --proc && echo \"bwrap: Can't mount proc on /newroot/proc: Operation not permitted\" >&2\nexit 1\n"),
			[]string{"unmasked /proc", "unnested"}},
		{"BW-05 mount propagation", says("bwrap: Failed to make / slave: Permission denied"), []string{"may not change mounts", "unnested"}},
		{"too old", says("bwrap: Unknown option --disable-userns"), []string{"too old", "0.8.0"}},
		{"too old for workspaces", says("bwrap: Unknown option --bind-fd"), []string{"too old for workspaces", "0.10.0", "Update bubblewrap"}},
		{"no seccomp", says("bwrap: prctl(PR_SET_SECCOMP): Invalid argument"), []string{"CONFIG_SECCOMP_FILTER"}},
		{"silence", fakeBwrap(t, "exit 1"), []string{"without a word"}},
		{"something else", says("bwrap: flux"), []string{"bwrap: flux"}},
		{"no program at all", notAProgram(t), []string{"cannot be started", "exec format error"}},
		// One that answers and makes no box: no command may run with it.
		{"an impostor", fakeBwrap(t, "shift 3; exec \"$@\"\n"), []string{"the sandbox is unavailable"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := New(Options{Bwrap: c.bwrap})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			e, err := b.Probe(t.Context())
			checkUnavailable(t, err, c.want)
			if len(e.Active) > 0 {
				t.Errorf("a probe that failed claims %v", e.Active)
			}
			_, err1 := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits})
			_, err2 := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits})
			checkUnavailable(t, err1, c.want)
			if writ.Message(err1) != writ.Message(err2) {
				t.Errorf("two texts for one fault:\n%v\n%v", err1, err2)
			}
			if strings.Contains(writ.Message(err1), "exit status") {
				t.Errorf("an exit status in %v", err1)
			}
		})
	}
}

// What failed once is tried again: a host that is mended needs no other server.
func TestAFailedProbeIsNotKept(t *testing.T) {
	newProvider(t, Options{}) // or skip
	for name, broken := range map[string]string{
		"bwrap is installed later":  "",
		"bwrap fails and is mended": "echo 'bwrap: Failed to make / slave: Permission denied' >&2; exit 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := fakeBwrap(t, broken)
			if broken == "" {
				if err := os.Remove(p); err != nil {
					t.Fatal(err)
				}
			}
			b, err := New(Options{Bwrap: p})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			e, err := b.Probe(t.Context())
			if writ.KindOf(err) != writ.Unavailable || e.Provider == "" {
				t.Fatalf("got %+v, %v", e, err)
			}
			if err := errors.Join(os.RemoveAll(p), os.Symlink(mustLook(t, "bwrap"), p)); err != nil {
				t.Fatal(err)
			}
			if e, err = b.Probe(t.Context()); err != nil || len(e.Active) == 0 || !strings.HasPrefix(e.Provider, "bubblewrap 0.") {
				t.Errorf("after it was mended: %+v, %v", e, err)
			}
			wantExit(t, runIn(t, b, program("/bin/true")), 0)
			if err := os.Remove(p); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Probe(t.Context()); err != nil {
				t.Errorf("what worked is kept: %v", err)
			}
			if _, err := b.Refresh(t.Context()); err == nil {
				t.Error("looking again saw nothing")
			}
			if _, err := b.Probe(t.Context()); err == nil {
				t.Error("what worked is kept although it was seen to fail since")
			}
		})
	}
}

func notAProgram(t *testing.T) string {
	p := fakeBwrap(t, "")
	if err := os.WriteFile(p, []byte("\x7fELF, but not really"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// As root, a bwrap that only root may execute is of no use: boxes are not root.
func TestScenario15_BwrapOfRootAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root starts bwrap as another user")
	}
	p := fakeBwrap(t, "exit 1")
	if err := os.Chmod(p, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := New(Options{Bwrap: p})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits})
	checkUnavailable(t, err, []string{"permission denied", "chmod a+rx", "861000"})
}

func TestClosedProviderPreparesNothing(t *testing.T) {
	b, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits}); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("got %v", err)
	}
}

func checkUnavailable(t *testing.T, err error, want []string) {
	t.Helper()
	if writ.KindOf(err) != writ.Unavailable {
		t.Fatalf("want unavailable, got %v", err)
	}
	for _, w := range want {
		if !strings.Contains(writ.Message(err), w) {
			t.Errorf("%q is not in %q", w, writ.Message(err))
		}
	}
}

func TestBW06_MissingLayersAreNamedOrRefused(t *testing.T) {
	b := newProvider(t, Options{})
	none := &cgroups{}
	b.groups = none // a host without control groups
	e, err := b.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []string{LayerMemoryCgroup, LayerPidsCgroup, LayerCPUCgroup} {
		if !slices.Contains(e.Missing, l) || slices.Contains(e.Active, l) {
			t.Errorf("%s: %+v", l, e)
		}
	}
	if again, err := b.Probe(t.Context()); err != nil || !slices.Equal(again.Missing, e.Missing) {
		t.Errorf("the probe was not kept: %+v %v", again, err)
	}
	r := runIn(t, b, program("/bin/true"))
	wantExit(t, r, 0)
	if !slices.Equal(r.Sandbox.Missing, e.Missing) {
		t.Errorf("a result names %v as missing", r.Sandbox.Missing)
	}
	b.opt.Strict = true
	_, err = b.Refresh(t.Context())
	checkUnavailable(t, err, []string{LayerMemoryCgroup, "strict"})
	if _, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits}); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("strict prepared a box without a layer: %v", err)
	}
	b.opt.Strict, b.filter, b.fault = false, nil, &writ.Error{Kind: writ.Unavailable, Msg: "no filter"}
	if _, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits}); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("a box without seccomp: %v", err)
	}
}

// A bwrap that makes a box with fewer walls than it was told to is found out.
func TestBoxWithoutAWallIsRefused(t *testing.T) {
	real := mustLook(t, "bwrap")
	newProvider(t, Options{}) // or skip
	for name, c := range map[string]struct{ drop, want string }{
		"network": {"--unshare-net", LayerNetworkNamespace},
		"uts":     {"--unshare-uts", LayerUTSNamespace},
		"ipc":     {"--unshare-ipc", LayerIPCNamespace},
		"cgroup":  {"--unshare-cgroup", LayerCgroupNamespace},
	} {
		t.Run(name, func(t *testing.T) {
			// --args is read again from a pipe that lacks one of them.
			script := "n=$2; shift 2; tr '\\0' '\\n' <&$n | grep -vx -e " + c.drop + " -e --hostname -e writ | tr '\\n' '\\0' > $TMPFILE.$$; exec 5<$TMPFILE.$$; rm $TMPFILE.$$; exec " + real + " --args 5 \"$@\"\n"
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			script = strings.ReplaceAll(script, "$TMPFILE", filepath.Join(dir, "args"))
			fake := fakeBwrap(t, script)
			for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
				if err := os.Chmod(d, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			b, err := New(Options{Bwrap: fake})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			_, err = b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits})
			checkUnavailable(t, err, []string{"walls are missing", c.want})
		})
	}
}

func TestPrepareHonoursItsContext(t *testing.T) {
	b, err := New(Options{Bwrap: fakeBwrap(t, "exec sleep "+asleep(4795)+"\n")})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(sleeping(t, asleep(4795))) == 0 && ctx.Err() == nil {
			continue
		}
		cancel()
	}()
	_, err = b.Prepare(ctx, Template{Limits: writ.DefaultLimits})
	if writ.KindOf(err) != writ.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left := sleeping(t, asleep(4795)); left != nil {
		t.Errorf("left: %v", left)
	}
	if _, err := b.Prepare(ctx, Template{Limits: writ.DefaultLimits}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
