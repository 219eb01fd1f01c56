package jail

import (
	"encoding/binary"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loadFilter puts a seccomp program into force for this thread.
func loadFilter(program []byte) error {
	insns := make([]unix.SockFilter, 0, len(program)/8)
	for ; len(program) >= 8; program = program[8:] {
		insns = append(insns, unix.SockFilter{
			Code: binary.LittleEndian.Uint16(program), Jt: program[2], Jf: program[3], K: binary.LittleEndian.Uint32(program[4:]),
		})
	}
	f := unix.SockFprog{Len: uint16(len(insns)), Filter: &insns[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&f)), 0, 0)
	runtime.KeepAlive(insns)
	runtime.KeepAlive(&f)
	return err
}
