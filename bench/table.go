package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// series is what one way of doing something took, each time.
type series struct {
	id, name string
	took     []time.Duration
}

// measure calls fn, which answers how long that took.
func (s *series) measure(fn func() (time.Duration, error)) error {
	d, err := fn()
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.took = append(s.took, d)
	return nil
}

// at is the quantile q: 0 is the best, 0.5 the median.
func (s *series) at(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(s.took))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

// table compares ways to do one thing.
type table struct {
	name  string
	rows  []*series
	bases []string // ids of the rows that others are compared with; the last is a floor
}

func (t *table) row(id string) *series {
	return t.rows[slices.IndexFunc(t.rows, func(s *series) bool { return s.id == id })]
}

func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "| %s, %d times | best | p50 | p95 |", t.name, len(t.rows[0].took))
	for _, base := range t.bases {
		fmt.Fprintf(w, " p50 of %s |", base)
	}
	fmt.Fprintf(w, " above %s |\n|---|%s\n", t.bases[len(t.bases)-1], strings.Repeat("--:|", 4+len(t.bases)))
	for _, s := range t.rows {
		p50 := s.at(0.5)
		fmt.Fprintf(w, "| %s | %s | %s | %s |", s.name, show(s.at(0)), show(p50), show(s.at(0.95)))
		for _, base := range t.bases {
			fmt.Fprintf(w, " %.2f |", t.ratio(s.id, base))
		}
		fmt.Fprintf(w, " %s |\n", show(p50-t.row(t.bases[len(t.bases)-1]).at(0.5)))
	}
	fmt.Fprintln(w)
}

// ratio is the median of one row as a part of that of another.
func (t *table) ratio(id, base string) float64 {
	return float64(t.row(id).at(0.5)) / float64(t.row(base).at(0.5))
}

func printParts(w io.Writer, parts []*series) {
	fmt.Fprint(w, "| part | best | p50 | p95 |\n|---|--:|--:|--:|\n")
	for _, s := range parts {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", s.name, show(s.at(0)), show(s.at(0.5)), show(s.at(0.95)))
	}
	fmt.Fprintln(w)
}

func show(d time.Duration) string {
	if d > -time.Millisecond && d < time.Millisecond {
		return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
	}
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// timed is how long fn takes.
func timed(fn func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		began := time.Now()
		err := fn()
		return time.Since(began), err
	}
}
