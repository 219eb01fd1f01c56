package approval

import (
	"slices"
	"strings"
)

// ShellLine is argv as one line that a POSIX shell reads back as the same argv: what
// could mean something to it stands between single quotes. Elements without NUL are taken
// for granted; newlines stay.
func ShellLine(argv []string) string {
	var b strings.Builder
	for i, arg := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if plain(arg) && (i > 0 || !special(arg)) {
			b.WriteString(arg)
			continue
		}
		b.WriteByte('\'')
		b.WriteString(strings.ReplaceAll(arg, "'", `'\''`))
		b.WriteByte('\'')
	}
	return b.String()
}

// plain reports whether a shell takes arg for itself without quotes. Of =ls, zsh does not.
func plain(arg string) bool {
	const marks = "_@+=:,./-"
	return arg != "" && arg[0] != '=' && strings.IndexFunc(arg, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(marks, r)
	}) < 0
}

// special reports whether a shell takes word for something else than the name of a
// program where that stands: an assignment, or a word of its own.
func special(word string) bool {
	return strings.Contains(word, "=") || slices.Contains(strings.Fields(
		"if then elif else fi do done case esac while until for in function select time coproc"), word)
}
