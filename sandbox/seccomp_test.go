package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	profile "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// judge runs the very bytes that bwrap gets in the BPF interpreter, which loads
// big-endian words where the kernel loads its own: so the data is laid out in
// big-endian words, each argument's low word first.
func judge(t interface{ Fatal(...any) }, auditArch, number uint32, args ...uint64) verdict {
	b, _, err := seccompPrograms()
	if err != nil {
		t.Fatal(err)
	}
	return judgeBy(t, b, auditArch, number, args...)
}

// judgeBy is judge with any program.
func judgeBy(t interface{ Fatal(...any) }, b []byte, auditArch, number uint32, args ...uint64) verdict {
	raw := make([]bpf.RawInstruction, len(b)/8)
	for i := range raw {
		w := b[8*i:]
		raw[i] = bpf.RawInstruction{Op: binary.LittleEndian.Uint16(w), Jt: w[2], Jf: w[3], K: binary.LittleEndian.Uint32(w[4:])}
	}
	insns, all := bpf.Disassemble(raw)
	if !all {
		t.Fatal("the program has instructions that are not classic BPF")
	}
	vm, err := bpf.NewVM(insns)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, dataSize)
	binary.BigEndian.PutUint32(data[dataNumber:], number)
	binary.BigEndian.PutUint32(data[dataArch:], auditArch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[dataArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[dataArgs+8*i+4:], uint32(a>>32))
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return verdict(got)
}

func native(t interface{ Fatal(...any) }) *arch.Info {
	a, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (v verdict) String() string {
	switch v {
	case allow:
		return "allow"
	case killProcess:
		return "kill process"
	}
	if uint32(v)&unix.SECCOMP_RET_ACTION_FULL == unix.SECCOMP_RET_ERRNO {
		return fmt.Sprintf("errno %d (%v)", uint32(v)&unix.SECCOMP_RET_DATA, unix.Errno(uint32(v)&unix.SECCOMP_RET_DATA))
	}
	return fmt.Sprintf("%#x", uint32(v))
}

func TestSeccompVerdicts(t *testing.T) {
	eperm, enosys := refuse(unix.EPERM), refuse(unix.ENOSYS)
	const high = 1 << 32 // bits that the kernel drops
	for _, tc := range []struct {
		call string
		args []uint64
		want verdict
	}{
		// What programs need.
		{"read", nil, allow}, {"write", nil, allow}, {"execve", nil, allow}, {"mmap", nil, allow},
		{"openat", nil, allow}, {"exit_group", nil, allow}, {"futex", nil, allow}, {"epoll_wait", nil, allow},
		{"memfd_create", nil, allow}, {"prctl", nil, allow}, {"seccomp", nil, allow}, {"wait4", nil, allow},
		{"rseq", nil, allow}, {"getrandom", nil, allow}, {"statx", nil, allow}, {"kill", nil, allow},

		// PR-01, PR-02, PR-14: namespaces and mounts.
		{"unshare", []uint64{unix.CLONE_NEWUSER}, eperm}, {"setns", nil, eperm},
		{"clone", []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, allow},
		{"clone", []uint64{uint64(unix.SIGCHLD)}, allow},
		{"clone", []uint64{unix.CLONE_NEWUSER}, eperm}, {"clone", []uint64{high | unix.CLONE_NEWNS}, eperm},
		{"clone", []uint64{unix.CLONE_NEWNET | uint64(unix.SIGCHLD)}, eperm}, {"clone", []uint64{unix.CLONE_NEWPID}, eperm},
		{"clone", []uint64{unix.CLONE_NEWIPC}, eperm}, {"clone", []uint64{unix.CLONE_NEWUTS}, eperm}, {"clone", []uint64{unix.CLONE_NEWCGROUP}, eperm},
		{"clone3", nil, enosys},
		{"mount", nil, eperm}, {"umount2", nil, eperm}, {"pivot_root", nil, eperm}, {"chroot", nil, eperm},
		{"fsopen", nil, eperm}, {"fsmount", nil, eperm}, {"fsconfig", nil, eperm}, {"fspick", nil, eperm},
		{"open_tree", nil, eperm}, {"open_tree_attr", nil, eperm}, {"move_mount", nil, eperm}, {"mount_setattr", nil, eperm},

		// PR-04, PR-06, PR-07: other processes, keys, wide kernel interfaces.
		{"ptrace", nil, eperm}, {"process_vm_readv", nil, eperm}, {"process_vm_writev", nil, eperm},
		{"pidfd_getfd", nil, eperm}, {"kcmp", nil, eperm}, {"process_madvise", nil, eperm},
		{"keyctl", nil, eperm}, {"add_key", nil, eperm}, {"request_key", nil, eperm},
		{"bpf", nil, eperm}, {"perf_event_open", nil, eperm}, {"userfaultfd", nil, eperm},
		{"io_uring_setup", nil, eperm}, {"io_uring_enter", nil, eperm}, {"io_uring_register", nil, eperm},

		// PR-10.
		{"personality", []uint64{0}, allow}, {"personality", []uint64{0xffffffff}, allow},
		{"personality", []uint64{0x0040000}, eperm}, {"personality", []uint64{0x0400000}, eperm}, {"personality", []uint64{8}, eperm},
		{"personality", []uint64{high | 0x0040000}, eperm},

		// PR-11, BW-18: an ioctl's number is 32 bits to the kernel.
		{"ioctl", []uint64{0, unix.TIOCGWINSZ}, allow}, {"ioctl", []uint64{0, unix.TCGETS}, allow},
		{"ioctl", []uint64{0, 0x5412}, eperm}, {"ioctl", []uint64{0, 0x100005412}, eperm}, {"ioctl", []uint64{0, 0xffffffff00005412}, eperm},
		{"ioctl", []uint64{0, 0x541c}, eperm}, {"ioctl", []uint64{0, high | 0x541c}, eperm}, {"ioctl", []uint64{0, unix.TIOCSETD}, eperm},

		// Sockets: local ones, TCP and UDP.
		{"socket", []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, allow}, {"socket", []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, allow},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, allow},
		{"socket", []uint64{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK, unix.IPPROTO_UDP}, allow},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, eperm},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, refuse(unix.EPROTONOSUPPORT)},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, refuse(unix.EPROTONOSUPPORT)},
		{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW}, refuse(unix.EAFNOSUPPORT)},
		{"socket", []uint64{high | unix.AF_PACKET, unix.SOCK_RAW}, refuse(unix.EAFNOSUPPORT)},
		{"socket", []uint64{unix.AF_ALG}, refuse(unix.EAFNOSUPPORT)}, {"socket", []uint64{unix.AF_VSOCK}, refuse(unix.EAFNOSUPPORT)},
		{"socketpair", []uint64{unix.AF_UNIX}, allow}, {"socketpair", []uint64{unix.AF_TIPC}, refuse(unix.EAFNOSUPPORT)},

		// Administration of the host.
		{"kexec_load", nil, eperm}, {"init_module", nil, eperm}, {"finit_module", nil, eperm}, {"delete_module", nil, eperm},
		{"quotactl", nil, eperm}, {"swapon", nil, eperm}, {"reboot", nil, eperm}, {"settimeofday", nil, eperm}, {"clock_settime", nil, eperm},
		{"mbind", nil, eperm}, {"migrate_pages", nil, eperm}, {"move_pages", nil, eperm}, {"lookup_dcookie", nil, eperm}, {"acct", nil, eperm}, {"syslog", nil, eperm},
		{"name_to_handle_at", nil, eperm}, {"open_by_handle_at", nil, eperm}, {"fanotify_init", nil, eperm}, {"fanotify_mark", nil, eperm},
		// RS-13.
		{"setrlimit", []uint64{unix.RLIMIT_CORE, 1 << 20}, eperm}, {"setrlimit", []uint64{high | unix.RLIMIT_CORE, 1 << 20}, eperm},
		{"setrlimit", []uint64{unix.RLIMIT_NOFILE, 1 << 20}, allow}, {"getrlimit", []uint64{unix.RLIMIT_CORE}, allow},
		{"prlimit64", []uint64{0, unix.RLIMIT_CORE, 1 << 20}, eperm}, {"prlimit64", []uint64{1, high | unix.RLIMIT_CORE, high}, eperm},
		{"prlimit64", []uint64{0, unix.RLIMIT_CORE, 0, 1 << 20}, allow}, {"prlimit64", []uint64{0, unix.RLIMIT_DATA, 1 << 20}, allow},
		{"vmsplice", nil, enosys}, {"sync", nil, refuse(0)}, {"syncfs", nil, refuse(0)},
	} {
		n, ok := native(t).SyscallNames[tc.call]
		if !ok {
			t.Errorf("%s: not a call of %s", tc.call, native(t).Name)
			continue
		}
		if got := judge(t, uint32(native(t).ID), uint32(n), tc.args...); got != tc.want {
			t.Errorf("%s%#x: %v, want %v", tc.call, tc.args, got, tc.want)
		}
	}
}

// Where files are the host's, none is made that runs as its owner; else the filter is
// the same.
func TestSeccompOfWorkspaces(t *testing.T) {
	eperm := refuse(unix.EPERM)
	const high = 1 << 32
	_, disk, err := seccompPrograms()
	if err != nil {
		t.Fatal(err)
	}
	own := native(t)
	for _, tc := range []struct {
		call string
		args []uint64
		want verdict
	}{
		{"chmod", []uint64{0, 0o755}, allow}, {"chmod", []uint64{0, 0o2775}, allow}, {"chmod", []uint64{0, 0o4755}, eperm}, {"chmod", []uint64{0, high | 0o4000}, eperm},
		{"fchmod", []uint64{3, 0o644}, allow}, {"fchmod", []uint64{3, 0o6755}, eperm}, {"fchmodat", []uint64{3, 0, 0o4711}, eperm}, {"fchmodat", []uint64{0o4000, 0o4000, 0o711}, allow},
		{"fchmodat2", []uint64{3, 0, 0o4711}, eperm}, {"creat", []uint64{0, 0o4755}, eperm}, {"creat", []uint64{0o4000, 0o644}, allow},
		{"mknod", []uint64{0, 0o104755}, eperm}, {"mknod", []uint64{0, unix.S_IFIFO | 0o600}, allow}, {"mknodat", []uint64{0, 0, 0o104755}, eperm},
		{"open", []uint64{0, unix.O_RDWR, 0o4755}, allow}, {"open", []uint64{0, unix.O_RDWR | unix.O_CREAT, 0o4755}, eperm}, {"open", []uint64{0, unix.O_CREAT, 0o755}, allow},
		{"openat", []uint64{0, 0, unix.O_DIRECTORY, 0o4755}, allow}, {"openat", []uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o4600}, eperm},
		{"openat", []uint64{0, 0, unix.O_CREAT, 0o644}, allow}, {"openat", []uint64{0, 0, high | unix.O_CREAT, high | 0o4000}, eperm},
		{"openat2", nil, refuse(unix.ENOSYS)},
	} {
		if n, ok := own.SyscallNames[tc.call]; ok {
			if got := judgeBy(t, disk, uint32(own.ID), uint32(n), tc.args...); got != tc.want {
				t.Errorf("%s%#o: %v, want %v", tc.call, tc.args, got, tc.want)
			}
		}
	}
	for name, n := range own.SyscallNames {
		if slices.ContainsFunc(diskRules, func(r argRule) bool { return r.call == name }) {
			continue
		}
		for _, a := range []uint64{0, 1, 41, 56, 0o4755, ^uint64(0)} {
			memory, disk := judge(t, uint32(own.ID), uint32(n), a, a, a, a, a, a), judgeBy(t, disk, uint32(own.ID), uint32(n), a, a, a, a, a, a)
			if memory != disk {
				t.Errorf("%s(%#x, ...): %v in memory, %v in a workspace", name, a, memory, disk)
			}
		}
	}
}

// Every number of the native ABI gets one verdict whatever the arguments, unless
// a rule names it: allowed when it is on the list, else EPERM. This walks the
// whole list, which is longer than a BPF jump reaches.
func TestSeccompListIsExact(t *testing.T) {
	ruled := map[string]bool{}
	for _, r := range argRules {
		ruled[r.call] = true
	}
	names, err := allowedCalls(native(t), ruled)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range native(t).SyscallNames {
		want := refuse(unix.EPERM)
		if slices.Contains(names, name) {
			want = allow
		}
		if ruled[name] {
			continue
		}
		// The arguments look like calls that a rule allows.
		for _, a := range []uint64{0, 1, 41, 56, ^uint64(0)} {
			if got := judge(t, uint32(native(t).ID), uint32(n), a, a, a, a, a, a); got != want {
				t.Errorf("%s(%#x, ...): %v, want %v", name, a, got, want)
			}
		}
	}
}

func TestPR09_ForeignABIs(t *testing.T) {
	own := uint32(native(t).ID)
	rapid.Check(t, func(t *rapid.T) {
		number, other := rapid.Uint32().Draw(t, "number"), rapid.Uint32().Draw(t, "arch")
		arg := rapid.Uint64().Draw(t, "arg")
		if other != own {
			if got := judge(t, other, number, arg, arg, arg); got != killProcess {
				t.Fatalf("arch %#x number %d: %v, want it killed", other, number, got)
			}
		}
		if got := judge(t, own, x32Bit|number, arg, arg, arg); got != refuse(unix.ENOSYS) {
			t.Fatalf("number %#x: %v, want ENOSYS", x32Bit|number, got)
		}
	})
	for _, other := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM} {
		if got := judge(t, other, 1); got != killProcess {
			t.Errorf("arch %#x: %v, want it killed", other, got)
		}
	}
}

// For any call and any arguments: the high halves of what rules look at do not
// matter, but for pointers, and no rule falls out of its block.
func TestSeccompRulesSeeThirtyTwoBits(t *testing.T) {
	own := native(t)
	_, disk, err := seccompPrograms()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(slices.Concat(argRules, diskRules)).Draw(t, "rule")
		n, ok := own.SyscallNames[r.call]
		if !ok {
			return
		}
		var low, full [6]uint64
		for i := range low {
			v := uint64(rapid.OneOf(rapid.Uint32(), rapid.SampledFrom([]uint32{
				0, 1, 2, 10, 16, 17, 38, 40, 41, 56, unix.TIOCSTI, tioclinux, unix.CLONE_NEWUSER, unix.CLONE_THREAD,
			})).Draw(t, "arg"))
			low[i], full[i] = v, v|uint64(rapid.Uint32().Draw(t, "high"))<<32
		}
		got, same := judgeBy(t, disk, uint32(own.ID), uint32(n), full[:]...), judgeBy(t, disk, uint32(own.ID), uint32(n), low[:]...)
		// A pointer is the one thing that is looked at as a whole.
		pointer := slices.ContainsFunc(r.tests, func(t argTest) bool { return t.high })
		if got != same && !pointer {
			t.Fatalf("%s%#x: %v, without high halves %v", r.call, full, got, same)
		}
		if want := r.verdict(full); got != want {
			t.Fatalf("%s%#x: %v, want %v", r.call, full, got, want)
		}
	})
}

// verdict is what the rule means, without instructions.
func (r argRule) verdict(args [6]uint64) verdict {
	for _, t := range r.tests {
		v := uint32(args[t.arg])
		if t.high {
			v = uint32(args[t.arg] >> 32)
		}
		if t.mask != 0 {
			v &= t.mask
		}
		got := t.miss
		if slices.Contains(t.values, v) {
			got = t.hit
		}
		if got != next {
			return got
		}
	}
	return r.otherwise
}

// A call that the common profile allows only with some arguments needs a rule of
// ours, or a box would be refused what programs need.
func TestSeccompConditionsAreCovered(t *testing.T) {
	common, err := profile.GetDefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range common.Syscalls {
		for _, name := range s.Names {
			if len(s.Args) > 0 && !slices.ContainsFunc(argRules, func(r argRule) bool { return r.call == name }) {
				t.Errorf("the profile looks at the arguments of %s and no rule of ours does", name)
			}
		}
	}
}

// The kernel takes at most 4096 instructions, and compiling is done once.
func TestSeccompProgramSize(t *testing.T) {
	b, _, err := seccompPrograms()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(b) / 8; n == 0 || n > 4096 || len(b)%8 != 0 {
		t.Fatalf("%d bytes, %d instructions", len(b), n)
	}
	if again, _, _ := seccompPrograms(); &again[0] != &b[0] {
		t.Error("compiled twice")
	}
}
