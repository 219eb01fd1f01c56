package main

import (
	"testing"

	"writ/policy"
)

// A file that is being written is empty, or half there, at one moment, and may compile
// without the rules that forbid: only what two readings in a row agree on counts.
func TestPolicyCountsWhenTwoReadingsAgree(t *testing.T) {
	whole := func() reading { return reading{files: []policy.File{{Name: "a.cedar", Content: []byte("forbid")}}} }
	other := reading{files: []policy.File{{Name: "a.cedar", Content: []byte("permit")}}}
	half := reading{files: []policy.File{{Name: "a.cedar"}}}
	gone, broken := reading{}, reading{fault: "no such folder"}
	var s settling
	for i, step := range []struct {
		now  reading
		want bool
	}{
		{whole(), false}, {whole(), true}, {whole(), false}, // once
		{half, false}, {other, false}, {other, true}, {other, false}, // half is never acted on
		{half, false}, {other, false}, {other, false}, // what is in force already is not loaded again
		{gone, false}, {gone, true}, {broken, false}, {broken, true}, {broken, false}, // a fault is told once
		{whole(), false}, {whole(), true},
	} {
		if got := s.settled(step.now); got != step.want {
			t.Fatalf("reading %d, %+v: acted on %v, want %v", i, step.now, got, step.want)
		}
	}
	s.again()
	if !s.settled(whole()) {
		t.Error("not acted on again when asked to")
	}
}
