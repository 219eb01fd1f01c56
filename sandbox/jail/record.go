package jail

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"time"
)

// Kind says what a record reports.
type Kind uint32

const (
	Ready   Kind = 1
	Started Kind = 2
	Failed  Kind = 3
	Exited  Kind = 4
)

// Step names what failed before the program was executed.
type Step uint32

const (
	StepCommand  Step = 1 // reading the command and checking its seals
	StepFile     Step = 2 // placing file Record.Index
	StepDir      Step = 3 // entering the working directory
	StepLimits   Step = 4 // setting limit Record.Index
	StepExec     Step = 5 // executing the program
	StepTerminal Step = 6 // making its terminal
)

func (s Step) String() string {
	switch s {
	case StepCommand:
		return "read the command"
	case StepFile:
		return "place a file"
	case StepDir:
		return "enter the working directory"
	case StepLimits:
		return "set the limits"
	case StepExec:
		return "execute the program"
	case StepTerminal:
		return "make a terminal"
	}
	return fmt.Sprintf("step %d", uint32(s))
}

// Descriptors that a jail starts with, beside standard input, output and error.
const (
	SocketFD     = 3
	ExecutableFD = 4 // what bwrap executes as /proc/self/fd/4; closed by the jail
)

// Arg is the first argument of a process that must call Main.
const Arg = "jail"

// Dirs are the writable file systems of a box that works in memory alone, all of them, if
// it works in the first. READY brings a descriptor of each, unless the jail's arguments
// name others.
var Dirs = [...]string{"/workspace", "/tmp", "/dev/shm", "/home/agent", "/run/writ"}

// Namespaces are the kinds of namespace whose identity READY reports.
var Namespaces = [...]string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}

// RecordBytes is the size of every message from a jail.
const RecordBytes = 24 + 8*8

// Record is one message from a jail. Which fields count depends on Kind; the
// others are zero.
type Record struct {
	Kind   Kind
	Step   Step
	Errno  syscall.Errno
	Index  uint32
	Status syscall.WaitStatus
	Values [8]uint64
}

// Namespace is the inode number of the i-th of Namespaces (ready).
func (r Record) Namespace(i int) uint64 { return r.Values[i] }

// ProgramCPU is the time used by the program and the children it waited for
// (exited). Like all times here it is what the kernel counted.
func (r Record) ProgramCPU() time.Duration { return time.Duration(r.Values[0]) }

// TotalCPU is the time used by all processes that have been reaped (exited).
func (r Record) TotalCPU() time.Duration { return time.Duration(r.Values[1]) }

// MaxRSS is the resident set of the largest process in bytes (exited).
func (r Record) MaxRSS() int64 { return int64(r.Values[2]) }

func (r Record) encode() []byte {
	b := make([]byte, 0, RecordBytes)
	for _, v := range []uint32{uint32(r.Kind), uint32(r.Step), uint32(r.Errno), r.Index, uint32(r.Status), 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, v := range r.Values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// ParseRecord decodes one message from a jail. Nothing in it can be relied on but
// its shape.
func ParseRecord(b []byte) (Record, error) {
	if len(b) != RecordBytes {
		return Record{}, fmt.Errorf("record of %d bytes, want %d", len(b), RecordBytes)
	}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	r := Record{
		Kind: Kind(u32(0)), Step: Step(u32(4)), Errno: syscall.Errno(u32(8)),
		Index: u32(12), Status: syscall.WaitStatus(u32(16)),
	}
	for i := range r.Values {
		r.Values[i] = binary.LittleEndian.Uint64(b[24+8*i:])
	}
	if r.Kind < Ready || r.Kind > Exited {
		return Record{}, fmt.Errorf("record of unknown kind %d", r.Kind)
	}
	return r, nil
}
