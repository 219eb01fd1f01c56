// Package shell reads command lines: an argv, as an agent sends it, and the programs
// that it would run. `bash -c "git log && curl x"` is three of them: bash, git, curl.
//
// # Promises
//
//   - [Read] is pure and bounded in time and memory, whatever the argv.
//   - Each simple command that stands in the text of the line is in the [Reading], also
//     inside of pipes, lists, loops, functions, substitutions and in the background,
//     behind wrappers (env, sudo, xargs, find -exec, bash -c, ...) and in the argument
//     of eval and trap. The first is the argv itself: a wrapper counts as well as
//     what it wraps.
//   - A program has the name that it is started by, without its folder and with all
//     quoting resolved: /usr/bin/sudo, \sudo and s""udo are sudo.
//   - What cannot be known is said, as an [Unknown] of the command that it is in: a name
//     that is computed, a file of commands, code in another language, an environment
//     variable that makes programs load others, text that does not parse. A shell whose
//     dialect depends on the host (sh, zsh, ksh) is read in both that it may be, and what
//     only one of them accepts counts as text that does not parse.
//   - It errs towards too many: what is only defined, or stands behind a condition
//     that never holds, counts as run.
//
// # What it refuses to know
//
// Any disk: whether a program exists, what a link or a script leads to, what a
// configuration file makes git or npm do. A program under a name of its own is known by
// that name alone, and so is what it runs by itself: the tables of this package name
// wrappers, interpreters and options that run other programs, and they are not all there
// are. Startup files of shells are not read. A reading says what to ask about a command;
// what holds the command is the sandbox.
//
// # Hostile input
//
// All of it. Text that a shell could read otherwise than the parser does (a control
// character, a carriage return, backslashes within backquotes) counts as text that does
// not parse.
package shell
