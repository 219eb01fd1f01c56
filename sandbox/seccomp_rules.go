package sandbox

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// argRule judges one call by its arguments: the tests in order, the first that
// gives a verdict decides, else otherwise does.
type argRule struct {
	call      string
	tests     []argTest
	otherwise verdict
}

// argTest looks at the low 32 bits of one argument: every argument judged here is
// an int, or is cut to 32 bits, by the kernel, but for pointers. Looking at 64 bits
// would let 0x100005412 pass for something else than TIOCSTI (cases BW-18).
type argTest struct {
	arg    int
	high   bool   // look at the other 32 bits, of a pointer
	mask   uint32 // what of it counts; 0 means all
	values []uint32
	hit    verdict // when it is one of values
	miss   verdict // when it is not
}

// next is the verdict of a test that leaves it to the next one. Its value, to
// kill one thread, is not used by any rule.
const next = verdict(unix.SECCOMP_RET_KILL_THREAD)

// newNamespaces are the flags of clone(2) that make namespaces. CLONE_NEWTIME is
// not among them: in clone(2) those bits are the exit signal.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

const (
	tioclinux      = 0x541c // TIOCLINUX; x/sys/unix does not have it
	sockTypeMask   = 0xf    // SOCK_TYPE_MASK: the rest is SOCK_CLOEXEC and SOCK_NONBLOCK
	personaQuery   = 0xffffffff
	personaDefault = 0 // PER_LINUX
)

var argRules = []argRule{
	{call: "clone", tests: []argTest{
		{arg: 0, mask: newNamespaces, values: []uint32{0}, hit: allow, miss: refuse(unix.EPERM)},
	}},
	// Its flags are behind a pointer, where no filter can see them. ENOSYS makes C
	// libraries use clone (attacks PR-14).
	{call: "clone3", otherwise: refuse(unix.ENOSYS)},

	// Typing into a terminal, and setting its line discipline, which loads kernel
	// modules (attacks PR-11).
	{call: "ioctl", tests: []argTest{
		{arg: 1, values: []uint32{unix.TIOCSTI, tioclinux, unix.TIOCSETD, unix.TIOCCONS}, hit: refuse(unix.EPERM)},
	}, otherwise: allow},

	// Local sockets, and TCP and UDP, which meet only the box's own loopback. Every
	// other family and protocol is kernel code that a socket call would load.
	{call: "socket", tests: []argTest{
		{arg: 0, values: []uint32{unix.AF_UNIX}, hit: allow},
		{arg: 0, values: []uint32{unix.AF_INET, unix.AF_INET6}, miss: refuse(unix.EAFNOSUPPORT)},
		{arg: 1, mask: sockTypeMask, values: []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}, miss: refuse(unix.EPERM)},
		{arg: 2, values: []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP}, hit: allow, miss: refuse(unix.EPROTONOSUPPORT)},
	}},
	{call: "socketpair", tests: []argTest{
		{arg: 0, values: []uint32{unix.AF_UNIX}, hit: allow, miss: refuse(unix.EAFNOSUPPORT)},
	}},

	// Programs may ask, or set what they have. Other personalities turn off address
	// randomisation or make all memory executable (attacks PR-10).
	{call: "personality", tests: []argTest{
		{arg: 0, values: []uint32{personaDefault, personaQuery}, hit: allow, miss: refuse(unix.EPERM)},
	}},

	// Splicing memory pages into pipes has a history of kernel faults and only ever
	// saves a copy: programs fall back to write.
	{call: "vmsplice", otherwise: refuse(unix.ENOSYS)},

	// The limit of core dumps, which a box inherits (forbidCores), may be read and not
	// changed: at zero the kernel would start the host's program for dumps (RS-13).
	{call: "setrlimit", tests: []argTest{
		{arg: 0, values: []uint32{unix.RLIMIT_CORE}, hit: refuse(unix.EPERM), miss: allow},
	}},
	{call: "prlimit64", tests: []argTest{
		{arg: 1, values: []uint32{unix.RLIMIT_CORE}, hit: next, miss: allow},
		// Without a new limit it only reads.
		{arg: 2, values: []uint32{0}, hit: next, miss: refuse(unix.EPERM)},
		{arg: 2, high: true, values: []uint32{0}, hit: allow, miss: refuse(unix.EPERM)},
	}},

	// Flushing would make the host write all its disks, as often as a program likes; so it
	// succeeds and does nothing. What a box writes is in memory, and of the files of a
	// workspace it can flush those that it has open.
	{call: "sync", otherwise: refuse(0)},
	{call: "syncfs", otherwise: refuse(0)},
}

// diskRules are for boxes that have a folder of the host: in memory file systems that
// go with the box they would refuse what does no harm. A file that runs as its owner,
// whoever starts it, would lend that user to everybody on the host who can reach it. On
// folders the bit means nothing.
var diskRules = []argRule{
	refuseSetUID("chmod", 1), refuseSetUID("fchmod", 1), refuseSetUID("fchmodat", 2), refuseSetUID("fchmodat2", 2),
	refuseSetUID("creat", 1), refuseSetUID("mknod", 1), refuseSetUID("mknodat", 2),
	// The mode counts only where a file is made.
	refuseSetUID("open", 2, makesNoFile(1)), refuseSetUID("openat", 3, makesNoFile(2)),
	// Its mode is behind a pointer. Programs that know it fall back to openat.
	{call: "openat2", otherwise: refuse(unix.ENOSYS)},
}

func refuseSetUID(call string, modeArg int, before ...argTest) argRule {
	return argRule{call: call, tests: append(before, argTest{
		arg: modeArg, mask: unix.S_ISUID, values: []uint32{0}, hit: allow, miss: refuse(unix.EPERM),
	})}
}

func makesNoFile(flagsArg int) argTest {
	const tmpfile = unix.O_TMPFILE &^ unix.O_DIRECTORY
	return argTest{arg: flagsArg, mask: unix.O_CREAT | tmpfile, values: []uint32{0}, hit: allow, miss: next}
}

// assemble is the rule as a block of instructions for the call with that number.
// It is entered with the call's number loaded. Every path through it that looks
// at an argument ends in a verdict, so whoever comes after finds the number still
// loaded.
func (r argRule) assemble(number uint32) []bpf.Instruction {
	var body []bpf.Instruction
	for _, t := range r.tests {
		body = append(body, t.assemble()...)
	}
	if n := len(r.tests); n == 0 || r.tests[n-1].hit == next || r.tests[n-1].miss == next {
		body = append(body, ret(r.otherwise))
	}
	return append([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(len(body))},
	}, body...)
}

func (t argTest) assemble() []bpf.Instruction {
	at := dataArgs + 8*uint32(t.arg) // little-endian: the low half is first
	if t.high {
		at += 4
	}
	insns := []bpf.Instruction{bpf.LoadAbsolute{Off: at, Size: 4}}
	if t.mask != 0 {
		insns = append(insns, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: t.mask})
	}
	miss := ret(t.miss)
	if t.miss == next {
		miss = bpf.Jump{Skip: 1} // over the hit
	}
	for i, v := range t.values {
		// Over the values that are left, and over the miss.
		insns = append(insns, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(t.values) - i)})
	}
	insns = append(insns, miss)
	if t.hit != next {
		insns = append(insns, ret(t.hit))
	}
	return insns
}

func ret(v verdict) bpf.Instruction { return bpf.RetConstant{Val: uint32(v)} }
