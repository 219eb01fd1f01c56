package doctor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"writ"
	"writ/lang"
)

// outputTime and outputBytes bound what a program of the host may take and say.
const (
	outputTime  = 5 * time.Second
	outputBytes = 64 << 10
)

// Local is the machine that this process runs on. bwrap is the configured path,
// or "" for the one on PATH; data is the data folder. Config is nil.
func Local(bwrap, data string, probe func(context.Context) (writ.Enforcement, error)) Host {
	return Host{
		Root: "/", UID: os.Geteuid(), Bwrap: bwrap, Path: os.Getenv("PATH"), Data: data,
		Languages: lang.All(),
		Probe:     probe,
		Output:    output,
		Free:      free,
		Synced:    synced,
		Now:       time.Now,
	}
}

func output(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, outputTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"LC_ALL=C"}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		if e, ok := err.(*exec.ExitError); ok && len(e.Stderr) > 0 {
			line, _, _ := bytes.Cut(bytes.TrimSpace(e.Stderr), []byte("\n"))
			return "", fmt.Errorf("%w: %s", err, line)
		}
		return "", err
	}
	return string(out[:min(len(out), outputBytes)]), nil
}

func free(path string) (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}

// timeError is TIME_ERROR of adjtimex(2): the clock is not synchronised.
const timeError = 5

func synced() (bool, error) {
	state, err := syscall.Adjtimex(new(syscall.Timex)) // all zero: it only reads
	if err != nil {
		return false, os.NewSyscallError("adjtimex", err)
	}
	return state != timeError, nil
}
