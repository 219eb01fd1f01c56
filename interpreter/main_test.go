package interpreter_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"writ/sandbox/jail"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == jail.Arg {
		jail.Main() // this binary is what a box starts as its first process
	}
	goleak.VerifyTestMain(m)
}
