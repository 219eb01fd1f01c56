// Package levenshtein tells how far two texts are from each other, for messages that say
// what somebody may have meant: a name that is not there, a line that is not in a file.
//
// It promises nothing but the number, and refuses to know how near is near enough. It is
// pure. Its inputs may be hostile: time is that of the lengths multiplied, memory that of
// the second, so callers bound both.
package levenshtein

// Distance is the number of bytes to insert, delete or replace to get from a to b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1) // of the part of a that was read: to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal = row[j+1]
			row[j+1] = cost
		}
	}
	return row[len(b)]
}
