//go:build !race

package gateway_test

const raced = false
