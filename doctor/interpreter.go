package doctor

import (
	"fmt"
	"strings"

	"writ"
	"writ/lang"
)

// Interpreter is the code interpreter's API as it is configured.
type Interpreter struct {
	Listen    string // host:port
	Auth      string // how its users come in
	Exposed   bool   // users are believed who they are, and other machines can reach it
	Keys      error  // why no token can be checked; nil when they can, or none has to be
	Languages lang.Table
	Blobs     string     // the folder of its users' files, where it is apart; empty in the data folder
	Applied   []Variable // of the environment, which stand above the file
	Unused    []Variable // of the environment, which mean nothing here
}

// Variable is one of the environment.
type Variable struct {
	Name string
	What string // the key that it is, or why it is none
}

// interpreter looks at the code interpreter, when it is switched on.
func (e *exam) interpreter() {
	in := e.host.Interpreter
	if in == nil {
		return
	}
	const name = "code interpreter"
	found := fmt.Sprintf("http://%s/v1, auth %s", in.Listen, in.Auth)
	switch {
	case in.Keys != nil:
		e.fail(name, found+": tokens cannot be checked: "+writ.Message(in.Keys), "correct interpreter.jwt in the configuration")
	case in.Exposed:
		e.warn(name, found+": other machines can reach it, and whoever does is who they say", "set interpreter.auth: jwt, or listen on 127.0.0.1")
	default:
		e.ok(name, found)
	}
	for _, l := range in.Languages {
		e.language("code interpreter "+string(l.Name), l)
	}
	if in.Blobs != "" {
		e.room("code interpreter files", in.Blobs, e.warn, "no file of its users can be kept", "name another folder with interpreter.blobs")
	}
	if len(in.Applied) > 0 {
		e.ok("environment", "above the file stand "+list(in.Applied, " for "))
	}
	if len(in.Unused) > 0 {
		names := make([]string, len(in.Unused))
		for i, v := range in.Unused {
			names[i] = v.Name
		}
		e.warn("environment without effect", list(in.Unused, ": "), "unset "+strings.Join(names, " "))
	}
}

func list(vs []Variable, between string) string {
	texts := make([]string, len(vs))
	for i, v := range vs {
		texts[i] = v.Name + between + v.What
	}
	return strings.Join(texts, "; ")
}
