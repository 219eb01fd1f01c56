package jail

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Bounds of a command. The server's own bounds are lower.
const (
	MaxHeaderBytes  = 16 << 20
	maxStrings      = 4096
	maxFiles        = 1 << 17
	maxLimits       = 32
	maxHolds        = 1 << 20
	commandBytes    = 16
	signalBytes     = 12
	protocolVersion = 3
)

var (
	magic       = [4]byte{'w', 'r', 'i', 't'}
	signalMagic = [4]byte{'s', 'i', 'g', 'n'}
)

// Command is one program to execute, in kernel terms.
type Command struct {
	Argv   []string // Argv[0] without a slash is looked for in PATH of Env
	Env    []string
	Dir    string
	Files  []File  // placed in order, symlinks after all others, before the limits are set
	Limits []Limit // set in order; a hard limit that is lower already stays

	// Rows and Cols are the size of the terminal that the program gets, both zero when
	// it gets the three streams that come with the command.
	Rows, Cols uint16
}

func (c Command) terminal() bool { return c.Rows > 0 && c.Cols > 0 }

// File is something to place, whose content follows the header, in order.
type File struct {
	Path string // absolute; missing parents are made, mode 0755
	Mode uint32 // permission bits, of no symlink
	Size int64
	Kind FileKind
}

// FileKind is what a File is.
type FileKind uint32

const (
	Regular FileKind = 0
	Folder  FileKind = 1 // without content; it may be there already
	Link    FileKind = 2 // a symlink, whose content is where it leads
)

// fault says what is wrong with f, empty when nothing is.
func (f File) fault() string {
	switch {
	case f.Kind > Link:
		return "it is of no kind that there is"
	case f.Size < 0, f.Kind == Folder && f.Size > 0, f.Kind == Link && (f.Size == 0 || f.Size >= unix.PathMax):
		return "nothing of its kind has its size"
	}
	return ""
}

// Limit is one resource limit as setrlimit takes it.
type Limit struct {
	Resource   int
	Soft, Hard uint64
}

// AppendHeader appends the header of c to b.
func (c Command) AppendHeader(b []byte) []byte {
	b = appendStrings(b, c.Argv)
	b = appendStrings(b, c.Env)
	b = appendString(b, c.Dir)
	b = binary.LittleEndian.AppendUint32(b, uint32(c.Rows)<<16|uint32(c.Cols))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Files)))
	for _, f := range c.Files {
		b = appendString(b, f.Path)
		b = binary.LittleEndian.AppendUint32(b, f.Mode)
		b = binary.LittleEndian.AppendUint64(b, uint64(f.Size))
		b = binary.LittleEndian.AppendUint32(b, uint32(f.Kind))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Limits)))
	for _, l := range c.Limits {
		b = binary.LittleEndian.AppendUint32(b, uint32(l.Resource))
		b = binary.LittleEndian.AppendUint64(b, l.Soft)
		b = binary.LittleEndian.AppendUint64(b, l.Hard)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

// ParseHeader is the command whose header is exactly b. It keeps nothing of b.
func ParseHeader(b []byte) (Command, error) {
	d := decoder{rest: b}
	c := Command{Argv: d.strings(), Env: d.strings(), Dir: d.string()}
	size := d.uint32()
	c.Rows, c.Cols = uint16(size>>16), uint16(size)
	for range d.count(maxFiles) {
		f := File{Path: d.string(), Mode: d.uint32(), Size: int64(d.uint64()), Kind: FileKind(d.uint32())}
		if why := f.fault(); d.err == nil && why != "" {
			d.err = fmt.Errorf("command header: file %d, of kind %d with %d bytes: %s", len(c.Files), f.Kind, f.Size, why)
		}
		if d.err != nil {
			break
		}
		c.Files = append(c.Files, f)
	}
	for range d.count(maxLimits) {
		c.Limits = append(c.Limits, Limit{Resource: int(d.uint32()), Soft: d.uint64(), Hard: d.uint64()})
	}
	switch {
	case d.err != nil:
		return Command{}, d.err
	case len(d.rest) > 0:
		return Command{}, fmt.Errorf("command header: %d bytes too many", len(d.rest))
	case len(c.Argv) == 0:
		return Command{}, errors.New("command header: no program")
	case (c.Rows == 0) != (c.Cols == 0):
		return Command{}, fmt.Errorf("command header: a terminal of %d rows and %d columns", c.Rows, c.Cols)
	}
	return c, nil
}

// decoder reads a header. After the first fault every read is zero.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n > len(d.rest) {
		if d.err == nil {
			d.err = errors.New("command header: cut short")
		}
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) count(max int) int {
	n := d.uint32()
	if d.err == nil && n > uint32(max) {
		d.err = fmt.Errorf("command header: %d entries, the most is %d", n, max)
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

func (d *decoder) string() string { return string(d.take(d.count(MaxHeaderBytes))) }

func (d *decoder) strings() []string {
	var list []string
	for range d.count(maxStrings) {
		list = append(list, d.string())
	}
	return list
}

// CommandMessage is the message that goes with the command's descriptors.
func CommandMessage(headerBytes int) []byte {
	b := append([]byte(nil), magic[:]...)
	b = binary.LittleEndian.AppendUint32(b, protocolVersion)
	return binary.LittleEndian.AppendUint64(b, uint64(headerBytes))
}

func parseCommandMessage(b []byte) (headerBytes int, err error) {
	if len(b) != commandBytes || [4]byte(b[:4]) != magic || binary.LittleEndian.Uint32(b[4:]) != protocolVersion {
		return 0, errors.New("not a command message")
	}
	n := binary.LittleEndian.Uint64(b[8:])
	if n > MaxHeaderBytes {
		return 0, fmt.Errorf("command header of %d bytes, the most is %d", n, MaxHeaderBytes)
	}
	return int(n), nil
}

// SignalMessage is the message that sends a signal to the program's process group.
func SignalMessage(number int) []byte {
	b := append([]byte(nil), signalMagic[:]...)
	b = binary.LittleEndian.AppendUint32(b, protocolVersion)
	return binary.LittleEndian.AppendUint32(b, uint32(number))
}

// parseSignalMessage is not ok for anything but a signal message.
func parseSignalMessage(b []byte) (number int, ok bool) {
	if len(b) != signalBytes || [4]byte(b[:4]) != signalMagic || binary.LittleEndian.Uint32(b[4:]) != protocolVersion {
		return 0, false
	}
	return int(binary.LittleEndian.Uint32(b[8:])), true
}
