package sandbox

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"

	filter "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	profile "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter answers every system call of a box in this order:
//
//  1. A call that is not of this machine's own ABI kills the process: the
//     numbers below would mean other calls there (attacks PR-09).
//  2. x32, and numbers newer than the tables that this was built with, get
//     ENOSYS, which is what C libraries fall back from.
//  3. The calls of argRules are judged by their arguments.
//  4. The calls that containers are commonly given, less those of withheld, are allowed.
//  5. All others get EPERM.
//
// It is in force for the init of a box as well, before anything of the box is executed.
// Boxes that have a folder of the host have diskRules too.
const (
	allow       = verdict(unix.SECCOMP_RET_ALLOW)
	killProcess = verdict(unix.SECCOMP_RET_KILL_PROCESS)
)

// verdict is what the filter returns to the kernel.
type verdict uint32

// refuse makes a call fail with e. With e zero the call does nothing and succeeds.
func refuse(e unix.Errno) verdict { return verdict(unix.SECCOMP_RET_ERRNO) | verdict(e) }

// The kernel's struct seccomp_data.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
	dataSize   = 64
)

// x32Bit marks a call of the x32 ABI, which shares x86-64's architecture value.
// No architecture has numbers this high, so it is refused on all of them.
const x32Bit = 0x40000000

// withheld are calls that the common profile allows and a box does not get.
var withheld = []string{
	// One process reading or steering another. A box needs no debugger, and these
	// have been the way into init and its descriptors (attacks PR-04).
	"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "process_madvise",
	// Handles reach files by inode, past the names that the view leaves out (FS-01).
	"name_to_handle_at", "open_by_handle_at",
	// Watches of whole file systems, host ones included.
	"fanotify_init", "fanotify_mark",
	// Old segment descriptors: kernel surface that no language of ours uses.
	"modify_ldt",
	// Memory that the kernel can neither see nor move, outside of the swap and
	// reclaim that the memory limit counts on.
	"memfd_secret",
	// Kernel surface without a user: the kernel itself calls uretprobe, and a box
	// has one mount table that it can read in /proc.
	"uretprobe", "statmount", "listmount",
}

// seccompPrograms are the filters of boxes in memory and of those with a folder of the
// host, in the form that bwrap reads from its --seccomp descriptor: struct sock_filter
// each. The caller must not change the bytes. An error means that this architecture has
// no filter; then nothing may be run. It compiles once: the result depends on nothing
// but the build.
func seccompPrograms() (memory, disk []byte, err error) {
	p, err := compiled()
	return p[0], p[1], err
}

var compiled = sync.OnceValues(func() (programs [2][]byte, err error) {
	for i, rules := range [][]argRule{argRules, slices.Concat(argRules, diskRules)} {
		if programs[i], err = compile(rules); err != nil {
			return programs, fmt.Errorf("compiling the seccomp filter: %w", err)
		}
	}
	return programs, nil
})

func compile(rules []argRule) ([]byte, error) {
	insns, err := seccompInstructions(rules)
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(insns)
	if err != nil {
		return nil, err
	}
	// struct sock_filter: code, jt, jf, k. Both architectures that we know are
	// little-endian.
	b := make([]byte, 0, 8*len(raw))
	for _, in := range raw {
		b = binary.LittleEndian.AppendUint16(b, in.Op)
		b = append(b, in.Jt, in.Jf)
		b = binary.LittleEndian.AppendUint32(b, in.K)
	}
	return b, nil
}

func seccompInstructions(rules []argRule) ([]bpf.Instruction, error) {
	native, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	newest := slices.Max(slices.Collect(maps.Values(native.SyscallNames)))
	insns := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(native.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(killProcess)},
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: uint32(min(newest, x32Bit-1)), SkipFalse: 1},
		bpf.RetConstant{Val: uint32(refuse(unix.ENOSYS))},
	}
	ruled := map[string]bool{}
	for _, r := range rules {
		ruled[r.call] = true
		if number, ok := native.SyscallNames[r.call]; ok {
			insns = append(insns, r.assemble(uint32(number))...)
		}
	}
	names, err := allowedCalls(native, ruled)
	if err != nil {
		return nil, err
	}
	// The library gets names alone. Its own argument conditions leave an argument
	// where the next comparison expects the call's number, and have no masked
	// comparison; argRules has neither fault.
	list := filter.Policy{
		DefaultAction: filter.ActionErrno, // which it makes EPERM
		Syscalls:      []filter.SyscallGroup{{Names: names, Action: filter.ActionAllow}},
	}
	rest, err := list.Assemble()
	if err != nil {
		return nil, err
	}
	return append(insns, rest...), nil
}

// allowedCalls are the calls that need no look at their arguments, sorted: what
// Docker's profile gives to a container without capabilities, as far as this
// architecture has it, less withheld and ruled. Calls that the profile itself
// allows only with some arguments are left out unless argRules names them.
func allowedCalls(native *arch.Info, ruled map[string]bool) ([]string, error) {
	common, err := profile.GetDefaultProfile(&specs.Spec{
		Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}},
	})
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, s := range common.Syscalls {
		if s.Action != specs.ActAllow || len(s.Args) > 0 {
			continue
		}
		for _, name := range s.Names {
			_, known := native.SyscallNames[name]
			if known && !ruled[name] && !slices.Contains(withheld, name) {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}
