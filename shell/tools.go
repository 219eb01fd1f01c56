package shell

import (
	"slices"
	"strings"
)

// find runs what stands between -exec and ; or {} +.
func (r *reader) find(at int, c call) {
	args := c.args()
	for i := 0; i < len(args); i++ {
		if !args[i].known {
			r.note(at, Indirect, texts(c.words)) // it may be -exec
			continue
		}
		switch args[i].text {
		case "-exec", "-execdir", "-ok", "-okdir":
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			if i+1 < len(args) {
				r.writes(at, args[i+1])
			}
			continue
		default:
			continue
		}
		var words []word
		for i++; i < len(args); i++ {
			w := args[i]
			if w.known && (w.text == ";" || w.text == "+" && len(words) > 0 && words[len(words)-1].text == computed.text) {
				break
			}
			if strings.Contains(w.text, computed.text) {
				w = word{text: w.text}
			}
			words = append(words, w)
		}
		r.run(c.with(at, words))
	}
}

// writes records a file that the command at writes to without a redirection.
func (r *reader) writes(at int, file word) {
	d := Redirect{Path: file.text, Write: true}
	r.out.Redirects = append(r.out.Redirects, d)
	r.out.Commands[at].Redirects = append(r.out.Commands[at].Redirects, d)
	if !file.known {
		r.note(at, Target, file.text)
	}
}

// gitCommands are the commands of git that we know not to run what their arguments say,
// but for what git looks at. Any other may be an alias, or a program of its own.
const gitCommands = " add am annotate apply archive bisect blame branch bundle cat-file check-ignore checkout checkout-index cherry cherry-pick clean clone" +
	" column commit commit-tree config count-objects describe diff diff-files diff-index diff-tree difftool fetch filter-branch for-each-ref format-patch fsck gc grep" +
	" hash-object help index-pack init log ls-files ls-remote ls-tree maintenance merge merge-base merge-file merge-tree mergetool mktag mktree mv name-rev notes" +
	" pack-objects pack-refs prune pull push range-diff read-tree rebase reflog remote repack replace reset restore rev-list rev-parse revert rm shortlog show show-branch" +
	" show-ref sparse-checkout stage stash status submodule switch symbolic-ref tag unpack-objects update-index update-ref var verify-commit verify-tag version whatchanged worktree write-tree "

// harmlessConfig are keys of git's configuration that run nothing.
const harmlessConfig = " user.name user.email core.quotepath core.autocrlf core.filemode core.ignorecase init.defaultbranch commit.gpgsign tag.gpgsign gc.auto" +
	" safe.directory pull.rebase pull.ff push.default log.showsignature diff.renames merge.conflictstyle fetch.prune color.ui color.diff color.status advice.detachedhead http.sslverify "

// commandConfig are keys whose value is a command line.
const commandConfig = " core.pager core.editor core.sshcommand core.askpass core.fsmonitor sequence.editor diff.external gpg.program pager.log pager.diff pager.show "

// git follows what its options, its configuration and some of its commands run.
func (r *reader) git(at int, c call) {
	w := wrapper{flags: "pPhv", values: "Cc", long: " version help html-path man-path info-path paginate no-pager no-replace-objects no-lazy-fetch no-optional-locks no-advice bare" +
		" literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs exec-path ", longValues: " git-dir work-tree namespace super-prefix config-env list-cmds attr-source "}
	o, rest, ok := w.parse(c.args())
	for _, opt := range o {
		switch key, value, _ := strings.Cut(opt.value.text, "="); opt.name {
		case "exec-path":
			if opt.value.text != "" {
				r.note(at, Environment, "--exec-path="+opt.value.text)
			}
		case "config-env":
			r.note(at, Environment, "--config-env "+opt.value.text)
		case "c":
			key = strings.ToLower(key)
			if text, ok := strings.CutPrefix(value, "!"); opt.value.known && (ok || in(commandConfig, key)) {
				r.script(at, known(text), posix, c.depth)
			}
			if !opt.value.known || !in(harmlessConfig, key) {
				r.note(at, Environment, "-c "+opt.value.text)
			}
		}
	}
	if !ok {
		r.note(at, Indirect, texts(c.words))
		return
	}
	if len(rest) > 0 {
		r.gitCommand(at, c, rest[0], rest[1:])
	}
}

func (r *reader) gitCommand(at int, c call, name word, args []word) {
	has := func(options ...string) bool {
		return slices.ContainsFunc(args, func(w word) bool {
			return slices.ContainsFunc(options, func(o string) bool {
				return w.known && (w.text == o || strings.HasPrefix(w.text, o+"=") || len(o) == 2 && strings.HasPrefix(w.text, o))
			})
		})
	}
	runs := func() { r.note(at, Indirect, texts(c.words)) }
	if slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "ext::") }) {
		runs()
	}
	switch {
	case !name.known || !in(gitCommands, name.text):
		runs()
		return
	case name.text == "bisect" && len(args) > 1 && args[0].text == "run":
		r.run(c.with(at, args[1:]))
	case name.text == "submodule" && len(args) > 0:
		for i, w := range args {
			if w.known && w.text == "foreach" {
				args = args[i+1:]
				for len(args) > 0 && args[0].known && strings.HasPrefix(args[0].text, "-") {
					args = args[1:]
				}
				r.script(at, joined(args), posix, c.depth)
				break
			}
		}
	case name.text == "filter-branch" || name.text == "difftool" || name.text == "mergetool":
		runs()
	case name.text == "rebase" && has("-x", "--exec", "-i", "--interactive", "--edit-todo"):
		runs()
		for i, w := range args {
			if text, ok := strings.CutPrefix(w.text, "--exec="); ok {
				r.script(at, word{text: text, known: w.known}, posix, c.depth)
			} else if w.known && (w.text == "-x" || w.text == "--exec") && i+1 < len(args) {
				r.script(at, args[i+1], posix, c.depth)
			}
		}
	case name.text == "grep" && has("-O", "--open-files-in-pager"),
		slices.Contains([]string{"clone", "fetch", "pull", "push", "ls-remote", "archive"}, name.text) && has("-u", "--upload-pack", "--receive-pack", "--exec", "-c", "--config", "--template"),
		name.text == "init" && has("--template"):
		if name.text != "push" || has("--receive-pack", "--exec") { // push -u is another option
			runs()
		}
	case name.text == "config":
		for _, w := range args {
			key := strings.ToLower(w.text)
			if !w.known || strings.Contains(key, ".") && !in(harmlessConfig, key) && !strings.ContainsAny(key, " /@") {
				r.note(at, Environment, texts(c.words))
				break
			}
		}
	}
}

// runningOptions are options of programs, or words among their arguments, that make
// them run another program. One that ends in = has its command line behind it.
func runningOptions(program string) []string {
	switch program {
	case "tar", "gtar", "bsdtar":
		return []string{"--to-command=", "--checkpoint-action", "--use-compress-program=", "--info-script=", "--new-volume-script=", "--rsh-command=", "--rmt-command=", "-I", "-F"}
	case "rsync":
		return []string{"-e", "--rsh=", "--rsync-path="}
	case "scp", "sftp":
		return []string{"-S", "-o", "-D", "-F"}
	case "sort":
		return []string{"--compress-program="}
	case "split":
		return []string{"--filter="}
	case "rg":
		return []string{"--pre=", "--pre", "--hostname-bin", "--search-zip", "-z"}
	case "fd", "fdfind":
		return []string{"-x", "-X", "--exec", "--exec-batch"}
	case "fzf":
		return []string{"--preview", "--bind", "--become"}
	case "zip":
		return []string{"-TT", "--unzip-command"}
	case "wget":
		return []string{"--use-askpass", "-e", "--execute", "--config"}
	case "curl":
		return []string{"-K", "--config"}
	case "tcpdump":
		return []string{"-z"}
	case "nmap":
		return []string{"--script"}
	case "go":
		return []string{"-exec", "-toolexec", "-vettool", "--exec", "--toolexec", "--vettool", "run", "generate", "tool"}
	case "cargo":
		return []string{"--config", "run", "xtask", "make"}
	case "gcc", "g++", "cc", "c++", "clang", "clang++":
		return []string{"-wrapper", "-fplugin", "-specs", "-B", "@"}
	case "openssl":
		return []string{"-engine", "-provider-path"}
	case "pip", "pip3":
		return []string{"install", "wheel", "download"}
	case "ctest", "cmake", "cpack":
		return []string{"-P", "-E", "--build", "--test-command", "-S", "-D"}
	case "gpg", "gpg2":
		return []string{"--photo-viewer", "--agent-program", "--dirmngr-program"}
	}
	return nil
}

// optionsThatRun notes an option of the command at that makes it run another program.
func (r *reader) optionsThatRun(at int, c call, program string) {
	options := runningOptions(program)
	for _, w := range c.args() {
		for _, o := range options {
			option := strings.HasPrefix(o, "-") || o == "@"
			if !w.known || w.text != o && !(option && strings.HasPrefix(w.text, strings.TrimSuffix(o, "="))) {
				continue
			}
			r.note(at, Indirect, texts(c.words))
			if text, ok := strings.CutPrefix(w.text, o); ok && strings.HasSuffix(o, "=") {
				r.script(at, known(text), posix, c.depth)
			}
		}
	}
}
