// Command writ is an execution server for AI agents. This file is the list of its
// commands; each has a file of its own, and system.go wires the parts together.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/alecthomas/kong"

	"writ"
	"writ/sandbox/jail"
)

// version is set when a release is built.
var version = "dev"

// env is what a command may use of its surroundings. Tests make their own.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	exe            string // this program, to start the runner as a child
}

// cli is every command and flag. Flags of all commands stand first.
type cli struct {
	Data   string `help:"The data folder: configuration, policy, database, keys." env:"WRIT_DATA" type:"path" placeholder:"DIR"`
	Listen string `help:"TCP address of the HTTP API of a server that this command starts." env:"WRIT_LISTEN" placeholder:"HOST:PORT"`
	Server string `help:"URL of a running server, instead of the one of the data folder." env:"WRIT_SERVER" placeholder:"URL"`
	Key    string `help:"File with the API key to use; WRIT_KEY holds the key itself." env:"WRIT_KEY_FILE" type:"path" placeholder:"FILE"`

	Run        runCmd        `cmd:"" help:"Run a file, or standard input, as a registered identity."`
	Serve      serveCmd      `cmd:"" help:"Start the server."`
	MCP        mcpCmd        `cmd:"" name:"mcp" help:"Offer the workspace tools to a coding agent on standard input and output."`
	Tasks      tasksCmd      `cmd:"" help:"List, show, watch, wait for and cancel tasks."`
	Approvals  approvalsCmd  `cmd:"" help:"List, show, grant, deny and resume held requests."`
	Workspaces workspacesCmd `cmd:"" help:"List the folders that tools may work in."`
	Operations operationsCmd `cmd:"" help:"List, show and undo what was done to workspaces."`
	Works      worksCmd      `cmd:"" help:"List and show what agents work on in workspaces."`
	Inbox      inboxCmd      `cmd:"" help:"Give an agent instructions while it works, and stop it."`
	Sessions   sessionsCmd   `cmd:"" help:"List, show and remove what the code interpreter keeps for its users."`
	Audit      auditCmd      `cmd:"" help:"Read, verify, prove and export the audit log."`
	Backup     backupCmd     `cmd:"" help:"Copy the data folder, also while a server works on it."`
	Policy     policyCmd     `cmd:"" help:"Check, test and explain the policy."`
	Keys       keysCmd       `cmd:"" help:"Create, list and revoke API keys."`
	Operators  operatorsCmd  `cmd:"" help:"Add, list and disable operators."`
	Doctor     doctorCmd     `cmd:"" help:"Say what this host can enforce, and how to mend what it cannot."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
	Runner     runnerCmd     `cmd:"" hidden:"" help:"The runner process; started by serve."`
}

func main() {
	// First: inside a sandbox this program is only its init.
	if len(os.Args) > 1 && os.Args[1] == jail.Arg {
		jail.Main()
	}
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], env{os.Stdin, os.Stdout, os.Stderr, exe}))
}

// run is the program: it parses args, runs one command and answers the exit code.
func run(ctx context.Context, args []string, e env) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("writ"),
		kong.Description("Runs what agents ask for: decided by policy, held for a person, sandboxed, recorded."),
		kong.Writers(e.stdout, e.stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(e),
	)
	if err != nil {
		fmt.Fprintln(e.stderr, "writ:", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	kctx, err := parser.Parse(args)
	if exited >= 0 {
		return exited // help was shown
	}
	if err != nil {
		fmt.Fprintf(e.stderr, "writ: %v\nwrit: see writ --help\n", err)
		return exitUsage
	}
	if c.Data == "" {
		c.Data = defaultData()
	}
	return exitCode(kctx.Run(&c), e.stderr)
}

// defaultData is where the data folder is when nothing says otherwise.
func defaultData() string {
	if os.Geteuid() == 0 {
		return "/var/lib/writ"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "writ")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "."
	}
	return filepath.Join(home, ".local", "share", "writ")
}

// Exit codes beside a program's own. Those above 119 are for `writ run`, where a
// program's codes pass through: choose other codes in programs to tell them apart.
const (
	exitFailed      = 1   // the command failed
	exitUsage       = 2   // the command line is wrong
	exitCancelled   = 120 // the task was cancelled, or ended by us for a limit
	exitDenied      = 121 // policy or a person said no
	exitHeld        = 122 // held, and --no-wait was given; also of operations undo
	exitExpired     = 123 // nobody decided in time
	exitTimedOut    = 124 // as timeout(1)
	exitNotRun      = 125 // the sandbox or the server failed; the program did not run to its end
	exitOutOfMemory = 137 // as a program that the kernel killed
)

// exit is an error that only sets the exit code.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitCode prints an error for a person and answers the code that goes with it.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exit](err); ok {
		return int(code)
	}
	text := err.Error()
	if e, ok := errors.AsType[*writ.Error](err); ok && e.Kind != writ.Internal && e.Msg != "" {
		text = e.Msg
	}
	_ = untrusted(stderr, "writ: "+text+"\n") // a server's message may quote what an agent sent
	return exitFailed
}
