// Package config is the configuration file of a writ server: what may stand in
// it, what holds when it says nothing, and every fault of one that is wrong.
//
// It promises that a Config from Load is complete and valid: each field that the
// file leaves open has its default, and no unknown, doubled or mistyped key was
// passed over. All faults are reported at once, each with file, line, column and
// the line itself, unless that may hold a password.
//
// The code interpreter's section also has the variables that spec/03 §16 names, in
// their own formats (Env): they stand above the file, and count only where the code
// interpreter is switched on. Those that mean nothing here are known, with why.
//
// It refuses to know what the values are used for and where the data folder is, and
// reads no environment by itself: cmd/writ hands it over, applies flags on top, calls
// Validate again, and hands each part only what that part needs. No other package
// imports this one.
//
// The file is trusted, being the operator's; therefore Load refuses one that
// others may write. It is still read with a bound, and YAML's anchors, aliases
// and tags are refused: nothing here needs them.
package config
