package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"writ"
)

// probeResult is what the last probe found.
type probeResult struct {
	sandbox writ.Enforcement
	err     error
}

// Probe implements Provider: it makes a box and runs /bin/true in it. What it found
// is kept; Refresh looks again.
func (b *Bubblewrap) Probe(ctx context.Context) (writ.Enforcement, error) {
	b.mu.Lock()
	last := b.probed
	b.mu.Unlock()
	if last != nil {
		return last.sandbox, last.err
	}
	return b.Refresh(ctx)
}

// Refresh is Probe without its memory. A probe that ctx ended is not kept.
func (b *Bubblewrap) Refresh(ctx context.Context) (writ.Enforcement, error) {
	sandbox, err := b.probe(ctx)
	if err == nil || ctx.Err() == nil {
		b.mu.Lock()
		b.probed = &probeResult{sandbox, err}
		b.mu.Unlock()
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

// askVersion is the provider and its version, for example "bubblewrap 0.8.0".
func (b *Bubblewrap) askVersion() string {
	const name = "bubblewrap"
	if b.path == "" {
		return name
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, b.path, "--version").Output()
	_, version, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !ok || len(version) > 32 {
		return name
	}
	return name + " " + version
}

// strictError refuses a host that lacks layers.
func strictError(e writ.Enforcement) error {
	return &writ.Error{Kind: writ.Unavailable, Op: "prepare sandbox",
		Msg: "this host lacks " + strings.Join(e.Missing, ", ") + ", and the strict setting wants every layer: mend the host (writ doctor says how) or turn strict off"}
}
