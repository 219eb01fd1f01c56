package patch

import "slices"

// Bounds of one patch. What exceeds one is refused as InvalidPatch.
const (
	MaxPatchBytes = 8 << 20   // of the text
	MaxPatchLines = 500_000   // of the text
	MaxSections   = 4096      // files named, each time counted
	MaxFileBytes  = 16 << 20  // of a file that is edited, before and after
	MaxTotalBytes = 256 << 20 // of all contents that the patch reads and makes together
	MaxNameBytes  = 255       // of one name in a path
	MaxPathDepth  = 64        // names in a path; deeper, no file is found either (spec/02 §3.3)
)

// maxWork bounds what Apply spends on finding lines and joining files, in bytes and
// lines looked at. It is a second or two, and far above what a real patch needs.
const maxWork = 1 << 29

// Kind is what happens to a file.
type Kind string

const (
	Add    Kind = "add"
	Update Kind = "update"
	Delete Kind = "delete"
	Move   Kind = "move" // of changes only: a section that moves is an Update with MoveTo
)

// Patch is a parsed patch. The zero Patch has no section and cannot be applied.
type Patch struct {
	Sections []Section
}

// Section is what a patch says about one file. Lines are counted in the text of the
// patch, where *** Begin Patch is line 1.
type Section struct {
	Kind    Kind   // Add, Update or Delete
	Line    int    // of its header
	Path    string // relative, clean
	Content []byte // of Add: the whole file
	// MoveTo is where an Update puts the file, relative and clean. Empty: it stays.
	MoveTo string
	Chunks []Chunk // of Update, in the order of the file; none only with MoveTo
}

// Chunk is one place of a file that changes.
type Chunk struct {
	Line    int      // of its @@, or of its first line when it has none
	Anchors []Anchor // lines of the file to find first, each below the one before
	Lines   []Line   // at least one
	AtEnd   bool     // *** End of File: Lines are the end of the file
}

// Anchor is an @@ line with text.
type Anchor struct {
	Line int
	Text string
}

// Line is one line of a chunk.
type Line struct {
	Op   Op
	Text string // without Op and line ending
	// Bare is a context line written as an empty line, without its leading space. At
	// the end of a chunk it may be no more than a separator.
	Bare bool
}

// Op is the first byte of a chunk's line.
type Op byte

const (
	Context Op = ' '
	Plus    Op = '+'
	Minus   Op = '-'
)

// Paths lists every path that the patch names, each once, in order: for a move the
// source and then the destination.
func (p Patch) Paths() []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range p.Sections {
		for _, name := range []string{s.Path, s.MoveTo} {
			if name != "" && !seen[name] {
				seen[name] = true
				out = append(out, name)
			}
		}
	}
	return slices.Clip(out)
}
