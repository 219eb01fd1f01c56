package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"writ/sandbox/jail"
)

func main() {
	// First: inside a sandbox this program is only its init.
	if len(os.Args) > 1 && os.Args[1] == jail.Arg {
		jail.Main()
	}
	writ := flag.String("writ", "", "`path` of the writ program to measure")
	n := flag.Int("n", 60, "how often each run is measured")
	flag.Parse()
	if *writ == "" || *n < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := bench(ctx, os.Stdout, *writ, *n)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench measures everything with exe as the server, and prints the tables.
func bench(ctx context.Context, w io.Writer, exe string, n int) error {
	dir, err := os.MkdirTemp("", "writ-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(w, "%s, %d cores, load %s\n\n", runtime.GOARCH, runtime.NumCPU(), load())
	tables, err := runs(ctx, exe, dir, n)
	if err != nil {
		return err
	}
	for _, t := range tables {
		t.print(w)
	}
	parts, err := measureParts(ctx, filepath.Join(dir, "parts"), n)
	if err != nil {
		return err
	}
	printParts(w, parts)

	for _, t := range tables {
		over := t.row("REST").at(0.5) - t.row("bwrap").at(0.5)
		aim(w, fmt.Sprintf("%s through REST is at most 10 ms above bare bwrap", t.name), over <= 10*time.Millisecond, over)
	}
	decision := parts[1].at(0.5)
	aim(w, parts[1].name+" takes less than 50 µs", decision < 50*time.Microsecond, decision)
	return nil
}

func aim(w io.Writer, text string, met bool, got time.Duration) {
	verdict := "NOT MET"
	if met {
		verdict = "met"
	}
	fmt.Fprintf(w, "aim: %s: %s (%s)\n", text, verdict, show(got))
}

// load is what else the machine does, as the kernel averages it.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}
