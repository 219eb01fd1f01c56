package shell

import "strings"

// commandVariables hold a command line that some program runs through a shell.
const commandVariables = " PAGER MANPAGER GIT_PAGER SYSTEMD_PAGER EDITOR VISUAL FCEDIT GIT_EDITOR GIT_SEQUENCE_EDITOR" +
	" GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS BROWSER PROMPT_COMMAND "

// promptVariables are expanded by shells, and what is substituted in them is run.
const promptVariables = " PS0 PS1 PS2 PS3 PS4 PROMPT RPROMPT RPS1 "

// loadVariables make shells, the loader, interpreters and tools run or load something
// else than their arguments say. One that ends in * stands for all that begin so.
const loadVariables = " PATH HOME XDG_CONFIG_HOME SHELL ENV BASH_ENV ZDOTDIR IFS SHELLOPTS BASHOPTS BASH_FUNC_* BASH_LOADABLES_PATH BASH_CMDS BASH_ALIASES" +
	" fpath FPATH path functions aliases galiases saliases commands" +
	" LD_* DYLD_* GCONV_PATH GLIBC_TUNABLES LESSOPEN LESSCLOSE TAR_OPTIONS RSYNC_RSH CVS_RSH GIT_*" +
	" PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONINSPECT PYTHONBREAKPOINT PYTHONWARNINGS PYTHONUSERBASE PERL5OPT PERL5LIB PERLLIB PERL5DB" +
	" RUBYOPT RUBYLIB GEM_PATH GEM_HOME BUNDLE_GEMFILE NODE_OPTIONS NODE_PATH npm_config_* NPM_CONFIG_* LUA_INIT* LUA_PATH* LUA_CPATH*" +
	" JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH MAVEN_OPTS GRADLE_OPTS GOFLAGS GOTOOLCHAIN GOROOT CC CXX LD AR" +
	" RUSTC RUSTC_WRAPPER RUSTDOC RUSTFLAGS CARGO_* MAKEFLAGS MFLAGS MAKEFILES PIP_* UV_* CMAKE_* PHPRC PHP_INI_SCAN_DIR R_PROFILE* R_ENVIRON* "

// harmlessGit are variables of git that say who and when, and nothing to run.
const harmlessGit = " GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS "

// assign looks at NAME=value, which the command at sets or is given.
func (r *reader) assign(at int, w word, depth int) {
	name, value, found := strings.Cut(w.text, "=")
	name = strings.TrimSuffix(name, "+")
	name, _, _ = strings.Cut(name, "[")
	switch {
	case !isVariable(name):
		r.note(at, Environment, w.text)
	case !found:
	case in(commandVariables, name):
		r.script(at, word{text: value, known: w.known}, posix, depth)
	case in(promptVariables, name):
		if !w.known || strings.ContainsAny(value, "$`") {
			r.note(at, Environment, w.text)
			r.expansions(at, word{text: value, known: w.known}, depth)
		}
	case loads(name):
		r.note(at, Environment, name)
	}
}

// variable looks at a variable that the text sets without NAME=value.
func (s *scope) variable(name string) {
	if runsThings(name) {
		s.note(s.at, Environment, name)
	}
}

// runsThings reports whether a value of the variable can make something run.
func runsThings(name string) bool {
	return loads(name) || in(commandVariables, name) || in(promptVariables, name)
}

func isVariable(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func loads(name string) bool {
	if in(harmlessGit, name) {
		return false
	}
	for v := range strings.FieldsSeq(loadVariables) {
		if prefix, ok := strings.CutSuffix(v, "*"); v == name || ok && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// in reports whether list, with a space before and after each word, has name.
func in(list, name string) bool {
	return name != "" && !strings.ContainsAny(name, " \t\n") && strings.Contains(list, " "+name+" ")
}
