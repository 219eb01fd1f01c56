package shell

import (
	"cmp"
	"slices"
	"strings"
)

// wrapperOf is the table of programs that run the command in their arguments.
func wrapperOf(program string) (wrapper, bool) {
	switch program {
	case "env":
		return wrapper{flags: "i0v", values: "uCSa", assigns: true, look: lookEnv,
			long:       " ignore-environment null debug list-signal-handling block-signal default-signal ignore-signal ",
			longValues: " unset chdir split-string argv0 "}, true
	case "timeout":
		return wrapper{flags: "fpv", values: "ks", operands: 1, long: " foreground preserve-status verbose ", longValues: " kill-after signal "}, true
	case "nice":
		return wrapper{flags: "0123456789", values: "n", longValues: " adjustment "}, true
	case "nohup", "noglob", "nocorrect", "builtin", "fakeroot", "catchsegv":
		return wrapper{}, true
	case "setsid":
		return wrapper{flags: "cfw", long: " ctty fork wait "}, true
	case "stdbuf":
		return wrapper{values: "ioe", longValues: " input output error "}, true
	case "time":
		return wrapper{flags: "apqvV", values: "fo", long: " append portability quiet verbose ", longValues: " format output "}, true
	case "ionice":
		return wrapper{flags: "t", values: "cnpPu", long: " ignore ", longValues: " class classdata pid pgid uid "}, true
	case "chrt":
		return wrapper{flags: "abdfiorRv", values: "TPD", operands: 1, long: " all-tasks batch deadline fifo idle other rr reset-on-fork verbose "}, true
	case "taskset":
		return wrapper{flags: "ac", operands: 1, long: " all-tasks cpu-list "}, true
	case "setarch":
		return wrapper{flags: "3BFILRSTXZv", operands: 1, long: " addr-no-randomize 32bit verbose "}, true
	case "linux32", "linux64", "i386", "x86_64":
		return wrapper{flags: "3BFILRSTXZv", long: " addr-no-randomize 32bit verbose "}, true
	case "sudo":
		return wrapper{flags: "AbBeEHhiKklNnPSsVv", values: "aCcDghpRrtTUu", assigns: true, look: lookSudo,
			long:       " askpass background bell edit set-home help login remove-timestamp reset-timestamp list non-interactive preserve-env preserve-groups stdin shell version validate no-update ",
			longValues: " auth-type close-from login-class chdir group host prompt chroot role type command-timeout other-user user "}, true
	case "doas":
		return wrapper{flags: "Lns", values: "aCu", alone: Input}, true
	case "su", "runuser":
		return wrapper{flags: "fmpPlh", values: "cgGsuw", operands: 1, permutes: true, script: "c command session-command", alone: Input, look: lookSu,
			long: " fast login preserve-environment pty help version ", longValues: " command session-command group supp-group shell user whitelist-environment "}, true
	case "setpriv":
		return wrapper{long: " clear-groups keep-groups init-groups no-new-privs reset-env nnp ", alone: Indirect,
			longValues: " ruid euid rgid egid reuid regid groups inh-caps ambient-caps bounding-set securebits pdeathsig selinux-label apparmor-profile "}, true
	case "gosu", "su-exec", "setuser":
		return wrapper{operands: 1}, true
	case "tini", "dumb-init", "catatonit":
		return wrapper{flags: "svwghcV", values: "pe"}, true
	case "xargs":
		return wrapper{flags: "0oprtx", values: "adEILnPRsS", rests: "eil", look: lookXargs,
			long:       " null open-tty interactive no-run-if-empty exit verbose show-limits replace eof max-lines ",
			longValues: " arg-file delimiter max-args max-procs max-chars process-slot-var "}, true
	case "command":
		return wrapper{flags: "pvV", look: lookCommand}, true
	case "exec":
		return wrapper{flags: "cl", values: "a"}, true
	case "repeat":
		return wrapper{operands: 1}, true
	case "busybox", "toybox":
		return wrapper{}, true
	case "flock":
		return wrapper{flags: "sxeunFov", values: "wE", operands: 1, look: lookFlock,
			long: " shared exclusive unlock nonblock nb close no-fork verbose ", longValues: " timeout wait conflict-exit-code "}, true
	case "chroot":
		return wrapper{operands: 1, alone: Input, long: " skip-chdir ", longValues: " userspec groups "}, true
	case "unshare":
		return wrapper{flags: "cfr", rests: "CTUimnpu", values: "RwSG", alone: Input,
			long:       " mount uts ipc net pid user cgroup time fork map-root-user map-current-user map-auto keep-caps kill-child mount-proc mount-binfmt propagation setgroups ",
			longValues: " root wd setuid setgid map-user map-group map-users map-groups monotonic boottime "}, true
	case "nsenter":
		return wrapper{flags: "aeFZ", rests: "CTUimnpurw", values: "tSGW", alone: Input,
			long:       " all mount uts ipc net pid user cgroup time root wd preserve-credentials no-fork follow-context env ",
			longValues: " target setuid setgid wdns "}, true
	case "watch":
		return wrapper{flags: "bcCegprtwx", rests: "d", values: "nqs", shell: true, long: " beep color no-color errexit chgexit precise no-rerun no-title no-wrap exec differences ", longValues: " interval equexit shotsdir "}, true
	case "strace", "ltrace":
		return wrapper{flags: "cCdDfFhiknqrtTvVwxyzZ", values: "aAbeEIlmnoOpPsSuUX", look: lookTrace,
			long: " follow-forks summary-only summary instruction-pointer stack-traces quiet relative-timestamps absolute-timestamps syscall-times no-abbrev ", longValues: " output trace string-limit "}, true
	case "script":
		return wrapper{flags: "aefq", rests: "t", values: "cBEIOTmo", permutes: true, script: "c command", alone: Input, look: lookScript,
			long: " append return flush quiet force ", longValues: " command echo log-in log-out log-io log-timing logging-format output-limit "}, true
	case "coproc", "-":
		return wrapper{}, true
	}
	return wrapper{}, false
}

// carriers run a command that begins with the first word which is not an option, or
// nearly so.
const carriers = " bwrap firejail proot fakechroot valgrind gdb lldb rr perf xvfb-run dbus-run-session dbus-launch rlwrap unbuffer start-stop-daemon" +
	" pkexec cgexec numactl entr chpst softlimit torsocks torify proxychains proxychains4 systemd-run parallel chronic sem prlimit" +
	" qemu-x86_64 qemu-aarch64 ccache distcc faketime npx bunx pnpx uvx pipx envdir "

// indirects run a command that stands somewhere in their arguments, in a file or in
// their input.
const indirects = " direnv nix-shell nix mise asdf socat nc ncat netcat run-parts capsh hyperfine systemd-nspawn machinectl at batch crontab screen tmux dtach" +
	" abduco uv poetry pipenv pdm rye hatch bundle conda mamba micromamba dotenv envchain aws-vault op daemonize choom logsave flatpak-spawn flatpak snap" +
	" scl newgrp sg logrotate anacron "

// isLoader reports whether program is the loader of shared objects, which runs the
// program that it is given.
func isLoader(program string) bool {
	return program == "ld.so" || strings.HasPrefix(program, "ld-linux") || strings.HasPrefix(program, "ld-musl") || strings.HasPrefix(program, "ld64.so")
}

// lookEnv takes env -S apart, where it is words and nothing else.
func lookEnv(r *reader, at int, c call, o options, rest []word) ([]word, bool) {
	text, split := o.last("S", "split-string")
	if !split {
		return rest, true
	}
	special := func(r rune) bool { return !isPlain(r) }
	if len(o) > 1 || !text.known || strings.HasPrefix(text.text, "-") || strings.ContainsFunc(text.text, special) {
		r.guess(at, c)
		return nil, false
	}
	var words []word
	for f := range strings.FieldsSeq(text.text) {
		words = append(words, known(f))
	}
	return append(words, rest...), true
}

func isPlain(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune(" _./:,+@%=-", r)
}

// lookSudo: an editor of files, and a shell when there is no command.
func lookSudo(r *reader, at int, c call, o options, rest []word) ([]word, bool) {
	if _, ok := o.last("e", "edit"); ok {
		r.note(at, Indirect, texts(c.words))
		return nil, false
	}
	if _, ok := o.last("s", "i", "shell", "login"); ok && len(rest) == 0 {
		r.note(at, Input, texts(c.words))
	}
	return rest, true
}

// lookSu: the shell that is named, with what stands behind the user; runuser -u USER
// COMMAND is another thing.
func lookSu(r *reader, at int, c call, o options, rest []word) ([]word, bool) {
	if _, ok := o.last("u"); ok {
		r.run(c.with(at, rest))
		return nil, false
	}
	if len(rest) > 0 && rest[0].text == "-" {
		rest = rest[1:]
	}
	shell, named := o.last("s", "shell")
	text, scripted := o.last("c", "command", "session-command")
	switch {
	case named && scripted:
		r.run(c.with(at, []word{shell, known("-c"), text}))
	case named:
		r.run(c.with(at, append([]word{shell}, rest[min(1, len(rest)):]...)))
	case !scripted && len(rest) > 1:
		r.run(c.with(at, append([]word{known("sh")}, rest[1:]...)))
	default:
		return rest, true
	}
	return nil, false
}

// lookXargs runs the command with the arguments that only a run can tell.
func lookXargs(r *reader, at int, c call, o options, rest []word) ([]word, bool) {
	if len(rest) == 0 {
		rest = []word{known("echo")}
	}
	words := append(slices.Clone(rest), computed)
	if mark, ok := o.last("I", "i", "replace", "J", "R"); ok {
		words = words[:len(rest)]
		from := cmp.Or(mark.text, computed.text)
		for i, w := range words {
			if strings.Contains(w.text, from) { // whatever the mark is, this is no argument that is written out
				words[i] = word{text: strings.ReplaceAll(w.text, from, computed.text)}
			}
		}
	}
	inner := c.with(at, words)
	inner.stdin = nil // what xargs reads, its commands do not
	r.run(inner)
	return nil, false
}

// lookCommand: command -v only looks.
func lookCommand(_ *reader, _ int, _ call, o options, rest []word) ([]word, bool) {
	_, looks := o.last("v", "V")
	return rest, !looks
}

// lookFlock: flock FILE -c TEXT.
func lookFlock(r *reader, at int, c call, _ options, rest []word) ([]word, bool) {
	if len(rest) > 2 && rest[1].known && (rest[1].text == "-c" || rest[1].text == "--command") {
		r.script(at, rest[2], posix, c.depth)
		return nil, false
	}
	return rest, true
}

// lookTrace: the output of strace goes to a command that stands after a | or !.
func lookTrace(r *reader, at int, c call, o options, rest []word) ([]word, bool) {
	if v, ok := o.last("o", "output"); ok {
		if text := strings.TrimLeft(v.text, "|!"); !v.known || text != v.text {
			r.script(at, word{text: text, known: v.known}, posix, c.depth)
		}
	}
	return rest, true
}

// lookScript: script FILE runs a shell.
func lookScript(_ *reader, _ int, _ call, _ options, rest []word) ([]word, bool) {
	if len(rest) == 1 {
		rest = nil
	}
	return rest, true
}
