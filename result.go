package writ

import (
	"strings"
	"unicode/utf8"
)

// Outcome is how a run ended. It rests on evidence: TimedOut means that we fired
// the timer, OutOfMemory that the kernel counted an OOM kill or, on a host where it
// counts none, that we saw the run over its limit.
type Outcome string

const (
	Succeeded   Outcome = "succeeded"     // exit code 0
	Failed      Outcome = "failed"        // another exit code, a death by its own signal, or never started: Reason says which
	TimedOut    Outcome = "timed_out"     // wall or CPU time; Reason says which
	OutOfMemory Outcome = "out_of_memory" // the kernel killed it for memory, or we did; Reason says which
	Killed      Outcome = "killed"        // we ended it: cancelled, or over a limit that is not time or memory
	Interrupted Outcome = "interrupted"   // contact was lost after it may have started; it is not started again
)

// Outcomes lists every outcome, for tables that must cover them all.
var Outcomes = []Outcome{Succeeded, Failed, TimedOut, OutOfMemory, Killed, Interrupted}

// Stream is one of the two outputs of a run.
type Stream string

const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Output is what a run wrote to one stream: a prefix of it, exact, of at most the
// limit, cut on a character boundary.
type Output struct {
	// Text is the kept prefix. Where that is not UTF-8 each bad byte is replaced by
	// U+FFFD, and Raw has the exact bytes (base64 in JSON); else Raw is nil.
	Text string `json:"text"`
	Raw  []byte `json:"raw,omitempty"`
	// Bytes counts all that the run wrote, Kept what is kept of it. Counting ends
	// when the run does.
	Bytes     int64  `json:"bytes"`
	Kept      int64  `json:"kept"`
	Truncated bool   `json:"truncated,omitempty"`
	SHA256    Digest `json:"sha256"` // of the kept bytes
}

// NewOutput describes kept, of total bytes that were written. When more was
// written than is kept, a character that the cut left incomplete goes too.
func NewOutput(kept []byte, total int64) Output {
	if total > int64(len(kept)) {
		kept = CutRune(kept)
	}
	o := Output{Bytes: total, Kept: int64(len(kept)), Truncated: total > int64(len(kept)), SHA256: DigestOf(kept)}
	if utf8.Valid(kept) {
		o.Text = string(kept)
	} else {
		o.Text = strings.ToValidUTF8(string(kept), "\uFFFD")
		o.Raw = kept
	}
	return o
}

// Data is the kept bytes, exactly.
func (o Output) Data() []byte {
	if o.Raw != nil {
		return o.Raw
	}
	return []byte(o.Text)
}

// CutRune is b without an incomplete UTF-8 sequence at its end.
func CutRune(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// Enforcement says what held a run, or what a host can hold: never more than was
// really set up (spec/01 §2 rule 7).
type Enforcement struct {
	Provider string   `json:"provider"`          // "bubblewrap 0.8.0"
	Active   []string `json:"active"`            // layers in force
	Missing  []string `json:"missing,omitempty"` // layers that this host does not give
}

// Result is what is known of a run that ended.
type Result struct {
	Outcome Outcome `json:"outcome"`
	// Started is false when it is certain that no code of the run was executed.
	Started  bool   `json:"started"`
	ExitCode *int   `json:"exit_code,omitempty"` // nil when it died by a signal or did not start
	Signal   string `json:"signal,omitempty"`    // "SIGKILL"
	Reason   string `json:"reason,omitempty"`    // why, when the exit code does not say
	// Code is the Code of the error for which the run was not started, where it is one of
	// those for inputs: CodeInputUnavailable and its neighbours. Else empty.
	Code   string `json:"code,omitempty"`
	Stdout Output `json:"stdout"`
	Stderr Output `json:"stderr"`

	WallMS    int64       `json:"wall_ms"`
	CPUMS     int64       `json:"cpu_ms"`     // user and system, of all processes where a cgroup counts it
	PeakBytes int64       `json:"peak_bytes"` // of all processes where a cgroup counts it, else the largest process
	Sandbox   Enforcement `json:"sandbox"`

	// Compiled is set when the compile step ended the run: then Outcome, outputs and the
	// rest are that step's, and the program was not started.
	Compiled bool `json:"compiled,omitempty"`
	// Files are those of the workspace that RunSpec.Collect keeps, by path: the new, then
	// the changed, then the same.
	Files []OutputFile `json:"files,omitempty"`
	// Dropped are files that are not kept, of DroppedFiles the first MaxDropped.
	Dropped      []DroppedFile `json:"dropped,omitempty"`
	DroppedFiles int64         `json:"dropped_files,omitempty"`
}

// MaxUnitBytes is the most bytes that a UTF-16 code unit takes in UTF-8, and 1/MaxUnitBytes
// of Limits.OutputBytes the most units that a run of kind interpreter may write to stdout
// (spec/03 §6.2): one more ends it. What is kept has as many units, or more.
const MaxUnitBytes = 3

// ReasonStdout is the Reason of a run of kind interpreter that wrote more to stdout. Its
// Outcome is Killed and its Signal SIGKILL, also if it came to its end by itself before it
// could be ended: so the answer does not depend on who was faster.
const ReasonStdout = "limit of stdout reached"

// Codes of errors of a run that was not started for its inputs (spec/03 §6.3).
const (
	// CodeInputUnavailable is that of file inputs which are gone, or are not what their
	// digests say.
	CodeInputUnavailable = "session_input_unavailable"
	// CodeInputTooLarge is that of inputs which do not fit in the workspace.
	CodeInputTooLarge = "session_input_too_large"
	// CodeInputSource is that of a file input which whoever has it cannot read now.
	CodeInputSource = "session_input_source_failed"
)

// IsInputCode reports whether code is one of those.
func IsInputCode(code string) bool {
	return code == CodeInputUnavailable || code == CodeInputTooLarge || code == CodeInputSource
}
