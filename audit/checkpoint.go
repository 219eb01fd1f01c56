package audit

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"writ"
)

const (
	maxSize      = 1 << 53 // beyond it a size is not exact in JSON, and no log gets there
	maxNoteBytes = 16 << 10
)

// checkpoint is the text of a signed note: which log, how many records, which root.
type checkpoint struct {
	origin string
	size   int64
	root   tlog.Hash
}

func (c checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.origin, c.size, c.root)
}

// public is c as it is shown, with the note that signs it.
func (c checkpoint) public(signed string) writ.Checkpoint {
	return writ.Checkpoint{Size: c.size, Root: writ.Digest(hex.EncodeToString(c.root[:])), Note: signed}
}

// parseCheckpoint reads the text of a note. Lines after the third are allowed, as
// in every transparency log, and mean nothing here.
func parseCheckpoint(text string) (checkpoint, error) {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) < 4 || lines[0] == "" {
		return checkpoint{}, errors.New("a checkpoint has three lines: origin, size and root")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || size > maxSize || lines[1] != strconv.FormatInt(size, 10) {
		return checkpoint{}, fmt.Errorf("the size of a checkpoint is a number from 0 to 2^53, not %.30q", lines[1])
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return checkpoint{}, fmt.Errorf("the root of a checkpoint is 32 bytes in base64, not %.60q", lines[2])
	}
	return checkpoint{origin: lines[0], size: size, root: tlog.Hash(root)}, nil
}

// unverified is what the text of a signed note says, whoever signed it.
func unverified(signed string) (checkpoint, error) {
	i := strings.LastIndex(signed, "\n\n")
	if i < 0 || len(signed) > maxNoteBytes {
		return checkpoint{}, errors.New("not a signed note")
	}
	return parseCheckpoint(signed[:i+1])
}

// ErrOtherKey is in the errors of Head and Append when another key than the log's own
// signed the head: the log may be good, and is not this one's to extend.
var ErrOtherKey = errors.New("it is of another log: this log's key did not sign it")

// ErrDamaged is in the errors of everything that meets a log that does not hold
// together, or that another key signed.
var ErrDamaged = errors.New("the log is damaged")

// Faults of a signed note that openCheckpoint tells apart, beside ErrOtherKey.
var (
	errMalformed = errors.New("it is not a signed checkpoint")
	errSignature = errors.New("its signature is bad: the text was changed after it was signed")
)

// openCheckpoint reads a signed note and checks that v signed it. Its error wraps
// one of the three.
func openCheckpoint(signed string, v note.Verifier) (checkpoint, error) {
	if len(signed) > maxNoteBytes {
		return checkpoint{}, fmt.Errorf("%w: %d bytes are too many", errMalformed, len(signed))
	}
	n, err := note.Open([]byte(signed), note.VerifierList(v))
	if err != nil {
		if _, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
			return checkpoint{}, ErrOtherKey
		}
		if _, ok := errors.AsType[*note.InvalidSignatureError](err); ok {
			return checkpoint{}, errSignature
		}
		return checkpoint{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	for _, s := range n.Sigs {
		// note decodes leniently, and one signature must have one spelling.
		if _, err := base64.StdEncoding.Strict().DecodeString(s.Base64); err != nil {
			return checkpoint{}, fmt.Errorf("%w: %w", errSignature, err)
		}
	}
	c, err := parseCheckpoint(n.Text)
	if err != nil {
		return checkpoint{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if c.origin != v.Name() {
		return checkpoint{}, fmt.Errorf("%w (it says %.80q)", ErrOtherKey, c.origin)
	}
	return c, nil
}

// Head is the log's signed head. It is NotFound when nothing was ever appended, and
// Unavailable when the key with the given public half did not sign it. Whether the
// log is what the head says, only Verify tells.
func Head(ctx context.Context, src Source, verifier string) (writ.Checkpoint, error) {
	c, signed, err := storedHead(ctx, src, verifier)
	if err != nil {
		return writ.Checkpoint{}, err
	}
	return c.public(signed), nil
}

func storedHead(ctx context.Context, src Source, verifier string) (checkpoint, string, error) {
	const op = "read the head of the audit log"
	v, err := newVerifier(verifier)
	if err != nil {
		return checkpoint{}, "", err
	}
	size, signed, err := src.LogHead(ctx)
	if err != nil {
		return checkpoint{}, "", fmt.Errorf("%s: %w", op, err)
	}
	if size == 0 && signed == "" {
		return checkpoint{}, "", &writ.Error{Kind: writ.NotFound, Op: op, Msg: "the audit log is empty: there is no checkpoint yet"}
	}
	c, err := openCheckpoint(signed, v)
	if err == nil && c.size != size {
		err = fmt.Errorf("the head signs %d records, the store says %d", c.size, size)
	}
	if err != nil {
		return checkpoint{}, "", damaged(op, err)
	}
	return c, signed, nil
}

func damaged(op string, err error) error {
	return &writ.Error{Kind: writ.Unavailable, Op: op, Err: fmt.Errorf("%w: %w", ErrDamaged, err),
		Msg: "the audit log is damaged: run \"writ audit verify\" to see where"}
}
