package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"writ"
)

// Probe implements Provider: it makes a box and runs /bin/true in it. What it found
// is kept, and Refresh looks again. A failure is not kept: the host may be mended.
func (b *Bubblewrap) Probe(ctx context.Context) (writ.Enforcement, error) {
	b.mu.Lock()
	last := b.probed
	b.mu.Unlock()
	if last != nil {
		return *last, nil
	}
	return b.Refresh(ctx)
}

// Refresh is Probe without its memory.
func (b *Bubblewrap) Refresh(ctx context.Context) (writ.Enforcement, error) {
	sandbox, err := b.probe(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.probed = &sandbox
	case ctx.Err() == nil: // else it says nothing of the host
		b.probed = nil
	}
	return sandbox, err
}

func (b *Bubblewrap) probe(ctx context.Context) (writ.Enforcement, error) {
	box, err := b.Prepare(ctx, Template{Limits: writ.DefaultLimits})
	if err != nil {
		return writ.Enforcement{Provider: b.version()}, err
	}
	result, err := runTrue(ctx, box)
	if err = errors.Join(err, box.Close()); err != nil {
		return writ.Enforcement{Provider: b.version()}, &writ.Error{Kind: writ.Unavailable, Op: "probe sandbox", Err: err,
			Msg: "a box was made, but /bin/true could not be run in it: " + writ.Message(err)}
	}
	return result.Sandbox, nil
}

func runTrue(ctx context.Context, box Box) (writ.Result, error) {
	run, err := box.Start(ctx, Command{Argv: []string{"/bin/true"}, Dir: "/", Limits: writ.DefaultLimits})
	if err != nil {
		return writ.Result{}, err
	}
	r := run.Wait()
	if r.Outcome != writ.Succeeded {
		return r, &writ.Error{Kind: writ.Unavailable, Msg: fmt.Sprintf("it ended as %s: %s %s", r.Outcome, r.Reason, r.Stderr.Text)}
	}
	return r, nil
}

// bwrap is the path of bwrap. It is looked for until it is found, since it may be
// installed while we run.
func (b *Bubblewrap) bwrap() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.path == "" {
		path, err := findBwrap(b.opt.Bwrap)
		if err != nil {
			return "", err
		}
		b.path = path
	}
	return b.path, nil
}

// version is the provider and its version, for example "bubblewrap 0.8.0". It asks
// until it gets an answer, and then never again.
func (b *Bubblewrap) version() string {
	const name = "bubblewrap"
	b.mu.Lock()
	path, known := b.path, b.named
	b.mu.Unlock()
	if known != "" || path == "" {
		return cmp.Or(known, name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	_, version, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !ok || len(version) > 32 {
		return name
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.named = name + " " + version
	return b.named
}

// strictError refuses a host that lacks layers.
func strictError(layers []string) error {
	return &writ.Error{Kind: writ.Unavailable, Op: "prepare sandbox",
		Msg: "this host lacks " + strings.Join(layers, ", ") + ", and the strict setting wants every layer: mend the host (writ doctor says how) or turn strict off"}
}
