//go:build race

package gateway_test

// raced says that the race detector runs, under which everything takes many times as
// long: tests of many rounds then do fewer, as it finds what it finds in a few.
const raced = true
