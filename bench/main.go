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
	clients := flag.String("clients", "", "`folder` of the commands that scripts/mcpclients.sh installs; without it the tools for files are not measured")
	only := flag.Bool("tools", false, "measure the tools and the commands of workspaces alone")
	code := flag.Bool("interpreter", false, "measure the code interpreter alone")
	n := flag.Int("n", 60, "how often each is measured")
	flag.Parse()
	if *writ == "" || *n < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if !*only && !*code {
		err = bench(ctx, os.Stdout, *writ, *n)
	}
	if err == nil && !*only {
		err = benchInterpreter(ctx, os.Stdout, *writ, *n)
	}
	if err == nil && !*code {
		err = benchCommands(ctx, os.Stdout, *writ, *n)
	}
	if err == nil && !*code && *clients != "" {
		err = benchTools(ctx, os.Stdout, *writ, *clients, *n)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench measures runs with exe as the server, and prints the tables.
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

// benchInterpreter measures the code interpreter with exe, and prints the tables.
func benchInterpreter(ctx context.Context, w io.Writer, exe string, n int) error {
	dir, err := os.MkdirTemp("", "writ-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(w, "\ncode interpreter, load %s\n\n", load())
	tables, err := interpreting(ctx, exe, dir, n)
	if err != nil {
		return err
	}
	for _, t := range tables {
		t.print(w)
	}
	return nil
}

// benchTools measures the tools of workspaces with exe, and prints the tables.
func benchTools(ctx context.Context, w io.Writer, exe, clients string, n int) error {
	dir, err := os.MkdirTemp("", "writ-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(w, "\ntools of workspaces, load %s\n\n", load())
	tables, err := workspaces(ctx, exe, clients, dir, n)
	if err != nil {
		return err
	}
	for _, t := range tables {
		t.print(w)
	}
	for _, t := range tables {
		got := t.ratio("writ", "official")
		verdict(w, t.name+" takes at most 0.3 of what server-filesystem takes", got <= 0.3, fmt.Sprintf("%.2f", got))
	}
	return nil
}

// benchCommands measures the commands of workspaces with exe, and prints the tables.
func benchCommands(ctx context.Context, w io.Writer, exe string, n int) error {
	dir, err := os.MkdirTemp("", "writ-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(w, "\ncommands in workspaces, load %s\n\n", load())
	tables, err := commands(ctx, exe, dir, n)
	if err != nil {
		return err
	}
	for _, t := range tables {
		t.print(w)
	}
	return nil
}

func aim(w io.Writer, text string, met bool, got time.Duration) { verdict(w, text, met, show(got)) }

func verdict(w io.Writer, text string, met bool, got string) {
	is := "NOT MET"
	if met {
		is = "met"
	}
	fmt.Fprintf(w, "aim: %s: %s (%s)\n", text, is, got)
}

// load is what else the machine does, as the kernel averages it.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}
