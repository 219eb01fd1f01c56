package audit

import (
	"fmt"
	"testing"
	"time"
)

func TestBound(t *testing.T) {
	var b Bound
	at := time.Date(2026, 11, 29, 12, 0, 5, 0, time.UTC)
	written := 0
	for range 100 {
		if _, due := b.Due("a", at); due {
			written++
		}
	}
	if written != boundMinute {
		t.Errorf("%d of 100 were due in one minute", written)
	}
	if dropped, due := b.Due("b", at); !due || dropped != 0 {
		t.Errorf("another caller: %d, %v", dropped, due)
	}
	if dropped, due := b.Due("a", at.Add(time.Minute)); !due || dropped != 40 {
		t.Errorf("a minute later: %d dropped, due %v", dropped, due)
	}
	for i := range 5 * boundCallers {
		b.Due(fmt.Sprint(i), at.Add(2*time.Minute))
	}
	if len(b.callers) > boundCallers+1 {
		t.Errorf("%d callers are remembered", len(b.callers))
	}
}
