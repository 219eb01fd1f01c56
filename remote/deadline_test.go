package remote

import (
	"context"
	"errors"
	"testing"
	"time"

	"writ"
)

// TestTimeIsOverAtTheRunnerFirst: the deadline of a call passes at both ends, and whoever
// sees it first, its caller hears of its own deadline.
func TestTimeIsOverAtTheRunnerFirst(t *testing.T) {
	c, _ := serve(t, fake{probe: func(ctx context.Context) (writ.Enforcement, error) {
		<-ctx.Done()
		return writ.Enforcement{}, ctx.Err()
	}}, ownUID())
	for range 50 {
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Millisecond)
		_, err := c.Probe(ctx)
		stop()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v", err)
		}
	}
	// One that is not the call's own is an answer as any other.
	own, _ := serve(t, fake{probe: func(context.Context) (writ.Enforcement, error) {
		return writ.Enforcement{}, context.DeadlineExceeded
	}}, ownUID())
	if _, err := own.Probe(t.Context()); err == nil || errors.Is(err, context.DeadlineExceeded) || writ.KindOf(err) != writ.Internal {
		t.Errorf("of the runner: %v", err)
	}
}
