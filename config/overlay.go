package config

import (
	"net"
	"slices"
	"strings"
)

// Variable is one of the environment.
type Variable struct {
	Name string
	Key  string // of the configuration that it stands for; empty when it stands for none
	Why  string // it stands for none
}

// Overlay is what stands above the file: what the environment says of the code interpreter,
// in the variables of the contract, and above that the flags of a command. The variables
// count while the code interpreter is switched on. One that is empty is not set.
type Overlay struct {
	set    map[string]string // variables
	flags  []override
	from   map[string]string // what a key has its value from, in words; variables that count
	faults []fault
}

// override is a flag of a command.
type override struct {
	name, key string
	set       func(*Config)
}

// NewOverlay reads environ, in the form of os.Environ.
func NewOverlay(environ []string) *Overlay {
	o := &Overlay{set: map[string]string{}, from: map[string]string{}}
	for _, line := range environ {
		if name, v, ok := strings.Cut(line, "="); ok && strings.TrimSpace(v) != "" {
			o.set[name] = v
		}
	}
	return o
}

// Flag has a flag of that name, which stands for a key, set a value. One for a key of the
// code interpreter switches it on.
func (o *Overlay) Flag(name, key string, set func(*Config)) {
	o.flags = append(o.flags, override{name, key, set})
}

// Apply puts it over c, once. What is wrong with values Validate says.
func (o *Overlay) Apply(c *Config) {
	if o.on(c) {
		o.applyVariables(c)
	}
	for _, f := range o.flags {
		f.set(c)
		o.from[f.key] = "the flag --" + f.name
	}
}

// on reports whether the code interpreter is switched on: by c, by a flag, or by a
// variable that says how it is to be reached.
func (o *Overlay) on(c *Config) bool {
	return c.Interpreter.Listen != "" || o.here() || o.set[servicePort] != "" || o.set[authProvider] != "" ||
		slices.ContainsFunc(o.flags, func(f override) bool { return strings.HasPrefix(f.key, "interpreter.") })
}

// here reports whether LOCAL_MODE is set, also to what is no word for it.
func (o *Overlay) here() bool { return o.set[localMode] != "" && o.set[localMode] != "false" }

func (o *Overlay) applyVariables(c *Config) {
	in := &c.Interpreter
	if in.Listen == "" {
		in.Listen = InterpreterListen
	}
	for _, v := range variables() {
		value, ok := o.set[v.name]
		if !ok {
			continue
		}
		label := "the environment variable " + v.name
		first := o.from[v.key]
		if v.key == publicID && first != "" && in.JWT.Keys.PublicID != value {
			o.faults = append(o.faults, fault{path: v.key, msg: first + " and " + label + " differ: set one"})
			continue
		}
		o.from[v.key] = label
		if first != "" { // it may be the one that is wrong, where the other changed nothing
			o.from[v.key] = first + " and " + label
		}
		if want := v.set(c, value); want != "" {
			o.faults = append(o.faults, fault{path: v.key, msg: label + ": want " + want})
		}
	}
	if o.here() && o.set[servicePort] != "" {
		_, port, _ := net.SplitHostPort(in.Listen)
		in.Listen = net.JoinHostPort("127.0.0.1", port) // whatever the file says
	}
}

// Validate reports every fault of c at once, as c.Validate does, and what each value came
// from.
func (o *Overlay) Validate(c Config) error {
	own, file := o.split(c.faults())
	return joined(append(own, file...))
}

// split is the faults of values that come from here, with those that were not understood,
// and those of all others.
func (o *Overlay) split(all []fault) (own, others []fault) {
	own = slices.Clone(o.faults)
	for _, f := range all {
		if slices.ContainsFunc(o.faults, f.within) || f.path == "interpreter.jwt.keys" && slices.ContainsFunc(o.faults, fault{path: "interpreter.auth"}.within) {
			continue // a value that was not understood is complained about once, and not what follows from it
		}
		key := f.path
		for key != "" && o.from[key] == "" {
			key = key[:max(0, strings.LastIndexAny(key, ".["))]
		}
		if key == "" {
			others = append(others, f)
			continue
		}
		f.msg = o.from[key] + ": " + f.msg
		own = append(own, f)
	}
	return own, others
}

// Applied are the variables that count, in the order of the contract.
func (o *Overlay) Applied() []Variable {
	var out []Variable
	for _, v := range variables() {
		if _, ok := o.set[v.name]; ok && o.from[v.key] != "" {
			out = append(out, Variable{Name: v.name, Key: v.key})
		}
	}
	return out
}

// Unused are the variables of the contract that are set and mean nothing here, by name.
func (o *Overlay) Unused() []Variable {
	var out []Variable
	for name := range o.set {
		if why := meaningless(name); why != "" {
			out = append(out, Variable{Name: name, Why: why})
		}
	}
	slices.SortFunc(out, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return out
}
