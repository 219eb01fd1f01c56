package patch

import (
	"slices"
	"testing"
)

// All patterns of up to five letters in all files of up to nine, of two letters.
func TestSearchFindsTheFirstPlace(t *testing.T) {
	letters := func(bits, n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = int32(bits >> i & 1)
		}
		return out
	}
	for n := range 10 {
		for f := range 1 << n {
			file := letters(f, n)
			for m := 1; m <= 5; m++ {
				for p := range 1 << m {
					pattern := letters(p, m)
					want := none
					for at := 0; at+m <= n && want == none; at++ {
						if slices.Equal(file[at:at+m], pattern) {
							want = at
						}
					}
					if got := search(file, pattern); got != want {
						t.Fatalf("search(%v, %v) = %d, want %d", file, pattern, got, want)
					}
				}
			}
		}
	}
}

func TestFoldsGrowLooser(t *testing.T) {
	for _, c := range []struct {
		a, b string
		pass int // the first in which they are equal; passes for never
	}{
		{"x", "x", exact},
		{"x \t", "x", trailing},
		{"x\u3000", "x", trailing},
		{"\tx", "  x", trimmed},
		{" a\u2014b \u201cc\u201d", "a-b \"c\"", lookalike},
		{"it\u2019s\u00a01\u22122", "it's 1-2", lookalike},
		{"caf\xe9", "caf\ufffd", lookalike},
		{"e\u0301 \u2013", "\u00e9 -", composed},
		{"\ufeffx", "x", composed},
		{"a b", "ab", passes},
		{"a\u200bb", "ab", passes},
		{"A", "a", passes},
	} {
		for pass := range passes {
			if equal := fold(pass, c.a) == fold(pass, c.b); equal != (pass >= c.pass) {
				t.Errorf("in pass %d %q and %q are equal: %v, want %v", pass, c.a, c.b, equal, !equal)
			}
		}
	}
}
