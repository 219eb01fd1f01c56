package jail

import (
	"syscall"
	"unsafe"
)

// ignoreSignals gives every signal but SIGURG back to the kernel's default. The
// kernel drops a signal to the first process of a namespace that comes from inside
// it and has the default action, so nothing in the box can end or stop the jail;
// with the Go runtime's handlers in place kill(1, SIGTERM) would. os/signal cannot
// do this: it keeps handlers, and a queued SIGSEGV would still be taken for a fault.
// SIGURG stays with the runtime, which uses it to preempt and ignores it else.
func ignoreSignals() {
	var act [4]uint64 // struct sigaction of the kernel: handler SIG_DFL, no flags, empty mask
	const maskBytes = 8
	for sig := 1; sig <= 64; sig++ {
		switch syscall.Signal(sig) {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGURG:
			continue
		}
		// Errors are not possible for a valid signal number and pointer.
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act)), 0, maskBytes, 0, 0)
	}
}
