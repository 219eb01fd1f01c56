package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"writ"
)

const (
	// readyTimeout bounds how long a box may take to get ready. It takes about ten
	// milliseconds; a machine under load takes more.
	readyTimeout = 15 * time.Second

	defaultUIDBase = 861_000
	defaultUIDs    = 1_000
)

// Options configure Bubblewrap. The zero value is good.
type Options struct {
	// Bwrap is the path of bwrap. Empty looks it up in PATH.
	Bwrap string
	// UIDBase and UIDs are the range of user ids that boxes get outside, one each,
	// when the server runs as root. Nothing else on the host may use them. Zero means
	// 861000 and 1000.
	UIDBase, UIDs int
	// Strict makes Probe and Prepare refuse a host that lacks a layer, instead of
	// naming it as missing.
	Strict bool
}

// Bubblewrap is the Provider that makes boxes with bwrap. It is safe for
// concurrent use.
type Bubblewrap struct {
	opt        Options
	executable *os.File // our own, O_PATH
	filter     []byte   // the seccomp program; nil when it cannot be had
	diskFilter []byte   // the one for boxes that have a folder of the host
	fault      error    // why nothing can ever be prepared, found by New
	groups     *cgroups
	uids       *uids         // nil unless we are root
	boxes      atomic.Uint64 // numbers them

	mu     sync.Mutex
	path   string            // guarded by mu; of bwrap; empty until it is found
	named  string            // guarded by mu; "bubblewrap 0.8.0"; empty until it answered
	probed *writ.Enforcement // guarded by mu; nil until a probe worked
}

var _ Provider = (*Bubblewrap)(nil)

// New opens a provider for this host and removes what dead ones left on it. That
// nothing can be sandboxed here is not an error of New: Probe says it. From then on this
// process and its children leave no core dumps, so that boxes leave none. The program
// that calls New must call jail.Main first thing when its first argument is
// jail.Arg. The caller must Close it, after all its boxes.
func New(opt Options) (*Bubblewrap, error) {
	if opt.UIDBase == 0 {
		opt.UIDBase = defaultUIDBase
	}
	if opt.UIDs == 0 {
		opt.UIDs = defaultUIDs
	}
	if opt.UIDBase < 1 || opt.UIDs < 1 {
		return nil, fmt.Errorf("user ids of boxes: base %d and count %d: want both positive", opt.UIDBase, opt.UIDs)
	}
	if err := forbidCores(); err != nil {
		return nil, err
	}
	// O_PATH: it is for execution, and what inherits it cannot read it through it. A
	// server that is replaced on disk keeps starting boxes with what it runs itself.
	fd, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening our own executable: %w", err)
	}
	b := &Bubblewrap{opt: opt, executable: os.NewFile(uintptr(fd), "writ")}
	if b.groups, err = openCgroups(); err != nil {
		return nil, errors.Join(err, b.executable.Close())
	}
	// A leftover that does not go yet, since its processes are dying or somebody else
	// sweeps as well, is no reason to run nothing: the next start tries again.
	_ = b.groups.sweep()
	if b.filter, b.diskFilter, err = seccompPrograms(); err != nil {
		b.fault = &writ.Error{Kind: writ.Unavailable, Op: "probe sandbox", Err: err,
			Msg: "the seccomp filter cannot be built for this machine; nothing is run without it"}
	}
	if os.Geteuid() == 0 {
		b.uids = newUIDs(opt.UIDBase, opt.UIDs, uidFile)
	}
	return b, nil
}

// Close gives back what the provider holds. It prepares nothing any more.
func (b *Bubblewrap) Close() error {
	err := b.executable.Close()
	if b.uids != nil {
		err = errors.Join(err, b.uids.close())
	}
	return err
}

// findBwrap is the path of an executable bwrap, or an error that says how to get one.
func findBwrap(path string) (string, error) {
	if path == "" {
		path = "bwrap"
	}
	found, err := exec.LookPath(path)
	if err == nil {
		return found, nil
	}
	e := &writ.Error{Kind: writ.Unavailable, Op: "probe sandbox", Err: err,
		Msg: "bubblewrap is not installed (" + path + " was not found): install it, with apt-get install bubblewrap on Debian and Ubuntu"}
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EACCES) {
		e.Msg = path + " is not executable: make it so, with chmod a+rx " + path
	}
	return "", e
}

// Prepare implements Provider.
func (b *Bubblewrap) Prepare(ctx context.Context, t Template) (Box, error) {
	box, err := b.prepare(ctx, t)
	if err != nil {
		if e, ours := errors.AsType[*writ.Error](err); !ours || e.Kind == writ.Internal {
			err = &writ.Error{Kind: writ.Unavailable, Op: "prepare sandbox", Err: err,
				Msg: "the sandbox could not be prepared; nothing was executed"}
		}
		return nil, err
	}
	lacks := slices.DeleteFunc(slices.Clone(box.sandbox.Missing), func(layer string) bool {
		// It is the owner of its folder on purpose; where we are not root, others lack.
		return layer == LayerSeparateUID && t.Workspace != nil && b.uids != nil
	})
	if b.opt.Strict && len(lacks) > 0 {
		return nil, errors.Join(strictError(lacks), box.Close())
	}
	return box, nil
}

func (b *Bubblewrap) prepare(ctx context.Context, t Template) (_ *bubblewrapBox, err error) {
	if b.fault != nil {
		return nil, b.fault
	}
	bwrap, err := b.bwrap()
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	plan := boxPlan{limits: t.Limits, filter: b.filter}
	var uid int // lent
	var p *process
	var group *cgroup
	defer func() {
		if err != nil {
			err = errors.Join(err, b.dispose(p, group, uid))
		}
	}()
	if plan.dir, err = t.dir(); err != nil {
		return nil, err
	}
	if plan.links, err = t.links(plan.dir); err != nil {
		return nil, err
	}
	switch {
	case t.Workspace != nil:
		if err := plan.openWorkspace(*t.Workspace, b.diskFilter); err != nil {
			return nil, err
		}
		defer plan.root.Close() // the box has its own
	case b.uids != nil:
		if uid, err = b.uids.acquire(); err != nil {
			return nil, err
		}
		plan.uid, plan.gid = uid, uid
	}
	if group, err = b.groups.make(strconv.FormatUint(b.boxes.Add(1), 10), groupLimits(t.Limits)); err != nil {
		return nil, err
	}
	if p, err = b.launch(bwrap, group, plan); err != nil {
		return nil, err
	}
	ready, err := p.awaitReady(ctx, time.Now().Add(readyTimeout))
	if err != nil {
		p.kill()
		p.awaitGone(time.Second)
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
			return nil, err
		}
		return nil, prepareError(p.stderr.String(), err)
	}
	active, missing, err := b.verify(p, ready, plan)
	if err != nil {
		return nil, err
	}
	box := newBox(b, p, uid, plan, writ.Enforcement{Provider: b.version(), Active: active, Missing: missing})
	if t.Workspace != nil {
		box.workspace = plan.workspace
		if box.unheld, err = plan.workspace.unheld(int(p.dirs[len(p.dirs)-1].Fd())); err != nil {
			return nil, err
		}
	}
	return box, nil
}

// dispose ends a process and gives back what its box had. Each may be nil or zero.
// After an error something of the box may be alive, so its user id stays reserved:
// the next box that got it could be reached by what is left.
func (b *Bubblewrap) dispose(p *process, g *cgroup, uid int) error {
	var errs []error
	if p != nil {
		errs = append(errs, p.end())
	}
	if err := g.remove(); err != nil {
		// Whatever is in it has outlived the first process of the box.
		errs = append(errs, g.kill(), g.remove())
	}
	err := errors.Join(errs...)
	switch {
	case uid > 0 && err != nil:
		return fmt.Errorf("taking a box apart, whose user id %d stays reserved: %w", uid, err)
	case uid > 0:
		b.uids.release(uid)
	}
	return err
}
