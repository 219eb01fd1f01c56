//go:build race

package codeapi

// raced says that the race detector runs, under which everything takes many times as
// long.
const raced = true
