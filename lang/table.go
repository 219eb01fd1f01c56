package lang

import "writ"

// All is the table of every language that tasks run in. The caller owns the slice.
func All() Table {
	return Table{
		{
			Name: "python", Aliases: []writ.Language{"py", "python3"}, Scope: "python",
			File:       "main.py",
			Candidates: []string{"/usr/bin/python3", "/usr/local/bin/python3"},
			Package:    "python3",
			Vars: map[string]string{
				"PYTHONPATH":              Workspace, // modules among the inputs; the code itself lies elsewhere
				"PYTHONUNBUFFERED":        "1",       // output comes as it is written
				"PYTHONUTF8":              "1",
				"PYTHONDONTWRITEBYTECODE": "1", // no __pycache__ among the results
			},
		},
		{
			Name: "bash", Scope: "shell",
			File:       "main.sh",
			Candidates: []string{"/usr/bin/bash", "/bin/bash", "/usr/local/bin/bash"},
			Package:    "bash",
		},
		{
			Name: "sh", Scope: "shell",
			File:       "main.sh",
			Candidates: []string{"/bin/sh"}, // POSIX promises no other place
			Package:    "dash",
		},
		{
			Name: "node", Aliases: []writ.Language{"js", "javascript", "nodejs"}, Scope: "node",
			File:       "main.js",
			Candidates: []string{"/usr/bin/node", "/usr/local/bin/node", "/usr/bin/nodejs"},
			Package:    "nodejs",
			// require("x") finds x.js among the inputs; require("./x") is relative to
			// the code, which lies elsewhere.
			Vars: map[string]string{"NODE_PATH": Workspace},
		},
	}
}

const basePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// baseEnv is what every task gets. Whatever a tool likes to write beside its work
// goes to Home or /tmp, which are private to the box, so that it neither fails on
// a read-only place (EX-20) nor turns up among the results.
func baseEnv() map[string]string {
	return map[string]string{
		"PATH":    basePath,
		"HOME":    Home,
		"USER":    User,
		"LOGNAME": User,
		"SHELL":   "/bin/sh",
		"TMPDIR":  tmp,
		"TERM":    "dumb",
		"LANG":    "C.UTF-8",
		"LC_ALL":  "C.UTF-8",

		"XDG_CACHE_HOME":  Home + "/.cache",
		"XDG_CONFIG_HOME": Home + "/.config",
		"XDG_DATA_HOME":   Home + "/.local/share",
		"XDG_STATE_HOME":  Home + "/.local/state",

		"MPLCONFIGDIR":               tmp + "/matplotlib",
		"MPLBACKEND":                 "Agg", // there is no display
		"GOCACHE":                    Home + "/.cache/go-build",
		"GOPATH":                     Home + "/go",
		"npm_config_cache":           Home + "/.npm",
		"npm_config_update_notifier": "false",
		"NODE_REPL_HISTORY":          "",
	}
}

// unattended is for every run: nobody is there to page, to edit, to answer a prompt or to
// read of a newer version.
func unattended() map[string]string {
	return map[string]string{
		"PIP_DISABLE_PIP_VERSION_CHECK": "1",
		"PAGER":                         "cat",
		"GIT_PAGER":                     "cat",
		"GIT_EDITOR":                    "true",
		"GIT_TERMINAL_PROMPT":           "0",
		"GIT_AUTHOR_NAME":               User,
		"GIT_AUTHOR_EMAIL":              User + "@writ.invalid",
		"GIT_COMMITTER_NAME":            User,
		"GIT_COMMITTER_EMAIL":           User + "@writ.invalid",
	}
}
