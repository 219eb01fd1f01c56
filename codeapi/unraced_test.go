//go:build !race

package codeapi

// raced says that the race detector runs.
const raced = false
