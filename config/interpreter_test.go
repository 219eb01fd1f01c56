package config

import (
	"strings"
	"testing"

	"writ"
)

// Who can reach the code interpreter, and whom it believes, never contradict each other in
// silence.
func TestInterpreterDoor(t *testing.T) {
	for _, tt := range []struct {
		text, says string // nothing: it is right
	}{
		{"listen: 127.0.0.1:3112, auth: local", ""},
		{"listen: 'localhost:3112', auth: local", ""},
		{"listen: '[::1]:3112', auth: local", ""},
		{"listen: '127.1.2.3:3112', auth: local", ""},
		{"listen: 0.0.0.0:3112, auth: local", "can be reached from other machines, and auth: local"},
		{"listen: '[::]:3112', auth: local", "auth: local lets everybody in"},
		{"listen: 'writ.example.com:3112', auth: local", "auth: local lets everybody in"},
		{"listen: ':3112', auth: local", "the host is missing"},
		{"listen: 127.0.0.1:3112, auth: none", "set interpreter.allow_none too"},
		{"listen: 0.0.0.0:3112, auth: none", "set interpreter.allow_none too"},
		{"listen: 127.0.0.1:3112, auth: none, allow_none: true", ""},
		{"listen: 0.0.0.0:3112, auth: none, allow_none: true", "allow_none_exposed"},
		{"listen: 0.0.0.0:3112, auth: none, allow_none: true, allow_none_exposed: true", ""},
		{"listen: 0.0.0.0:3112, auth: none, allow_none_exposed: true", "set interpreter.allow_none too"},
		{"listen: 0.0.0.0:3112, auth: local, allow_none: true, allow_none_exposed: true", "auth: local lets everybody in"},
		{"listen: 0.0.0.0:3112", "interpreter.jwt.keys: name where the keys are"},
		{"listen: 0.0.0.0:3112, jwt: {keys: {file: /k}}", ""},
		{"listen: 127.0.0.1:8740, auth: local", "is the address of the HTTP API"},
		{"auth: none", ""},
		{"auth: jwt", ""},
	} {
		_, err := Parse("c.yaml", []byte("interpreter: {"+tt.text+"}"))
		if (err == nil) != (tt.says == "") || err != nil && (writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), tt.says)) {
			t.Errorf("%s: got %v, want %q", tt.text, err, tt.says)
		}
	}
}

// The gateway cuts what is above its maxima: a run of the interpreter would then have less
// than what was configured for it.
func TestInterpreterLimitsFitTheMaxima(t *testing.T) {
	for _, tt := range []struct{ text, says string }{
		{"limits: {max: {memory_bytes: 512MiB}}", ""}, // switched off
		{"limits: {max: {memory_bytes: 512MiB}}\ninterpreter: {listen: 127.0.0.1:1, auth: local, compile: {memory_bytes: 512MiB}}", ""},
		{"limits: {max: {memory_bytes: 511MiB}}\ninterpreter: {listen: 127.0.0.1:1, auth: local, compile: {memory_bytes: 256MiB}}", "interpreter.limits.memory_bytes: a run needs 536870912, with its files, and limits.max.memory_bytes is 535822336"},
		{"limits: {max: {wall_ms: 30s}}\ninterpreter: {listen: 127.0.0.1:1, auth: local}", "interpreter.limits.wall_ms: a run needs 60000"},
		{"limits: {max: {memory_bytes: 2GiB}}\ninterpreter: {listen: 127.0.0.1:1, auth: local, plans: [{id: pro, memory_bytes: 2GiB}]}", "interpreter.plans[0].memory_bytes: a run needs 2415919104"},
	} {
		_, err := Parse("c.yaml", []byte(tt.text))
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(writ.Message(err), tt.says) {
			t.Errorf("%s: got %v, want %q", tt.text, err, tt.says)
		}
	}
}

// The words of the example that are commented out must be true as well.
func TestExamplePlanIsValid(t *testing.T) {
	text := string(Example())
	from := strings.Index(text, "  plans: []")
	to := strings.Index(text[from:], "  # How often")
	section := strings.NewReplacer(": []\n#  ", ":\n  ", "\n#  ", "\n  ").Replace(text[from:][:to])
	got, err := Parse("example.yaml", []byte("interpreter:\n"+section))
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, section)
	}
	if p := got.Interpreter.Plans; len(p) != 1 || p[0] != (Plan{"pro", 1 << 30, 100 << 20}) {
		t.Errorf("read %+v", p)
	}
}
