package audit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"writ"
)

// Prove makes the proof that event seq is in the log that the stored head signs. It
// is NotFound when there is no such event, and Unavailable when the head is not
// signed by the log's key or the stored log does not bear the proof out.
func Prove(ctx context.Context, src Source, verifier string, seq int64) (writ.AuditProof, error) {
	const op = "prove an event of the audit log"
	head, signed, err := storedHead(ctx, src, verifier)
	if err != nil {
		return writ.AuditProof{}, err
	}
	if seq < 0 || seq >= head.size {
		return writ.AuditProof{}, &writ.Error{Kind: writ.NotFound, Op: op,
			Msg: fmt.Sprintf("there is no event %d: the log has events 0 to %d", seq, head.size-1)}
	}
	records, err := src.Records(ctx, seq-1, 1)
	if err != nil {
		return writ.AuditProof{}, fmt.Errorf("read event %d of the audit log: %w", seq, err)
	}
	if len(records) != 1 || records[0].Seq != seq {
		return writ.AuditProof{}, damaged(op, fmt.Errorf("event %d is missing", seq))
	}
	path, err := tlog.ProveRecord(head.size, seq, hashReader(ctx, src))
	if writ.KindOf(err) == writ.NotFound {
		return writ.AuditProof{}, damaged(op, err)
	}
	if err != nil {
		return writ.AuditProof{}, fmt.Errorf("prove event %d: %w", seq, err)
	}
	if err := tlog.CheckRecord(path, head.size, head.root, seq, tlog.RecordHash(records[0].Data)); err != nil {
		return writ.AuditProof{}, damaged(op, err)
	}
	p := writ.AuditProof{Seq: seq, Record: string(records[0].Data), Checkpoint: head.public(signed), Hashes: make([]writ.Digest, len(path))}
	for i, h := range path {
		p.Hashes[i] = writ.Digest(hex.EncodeToString(h[:]))
	}
	return p, nil
}

// CheckProof checks p offline, against nothing but the log's public key: that the
// key signed the checkpoint, that the record is event Seq of the log it describes,
// and that the other fields say what record and note say. Nil means all of it. The
// error is of kind Invalid and says what does not hold.
func CheckProof(p writ.AuditProof, verifier string) error {
	const op = "check a proof"
	bad := func(format string, args ...any) error {
		return &writ.Error{Kind: writ.Invalid, Op: op, Msg: fmt.Sprintf(format, args...)}
	}
	v, err := newVerifier(verifier)
	if err != nil {
		return err
	}
	head, err := openCheckpoint(p.Checkpoint.Note, v)
	if err != nil {
		return bad("the checkpoint does not hold: %v", err)
	}
	if want := head.public(p.Checkpoint.Note); p.Checkpoint != want {
		return bad("the checkpoint's size and root are not those that its note signs: %d and %s", want.Size, want.Root)
	}
	if p.Seq < 0 || p.Seq >= head.size {
		return bad("event %d is not among the %d that the checkpoint signs", p.Seq, head.size)
	}
	path := make(tlog.RecordProof, len(p.Hashes))
	for i, d := range p.Hashes {
		h, err := parseDigest(d)
		if err != nil {
			return bad("hashes[%d]: %v", i, err)
		}
		path[i] = h
	}
	if err := tlog.CheckRecord(path, head.size, head.root, p.Seq, tlog.RecordHash([]byte(p.Record))); err != nil {
		return bad("the record is not event %d of the log that the checkpoint signs, or was changed", p.Seq)
	}
	e, err := decode([]byte(p.Record))
	if err != nil {
		return bad("%v", err)
	}
	if e.Seq != p.Seq {
		return bad("the record says that it is event %d, not %d", e.Seq, p.Seq)
	}
	return nil
}

func newVerifier(public string) (note.Verifier, error) {
	v, err := note.NewVerifier(strings.TrimSpace(public))
	if err != nil {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "read the public key of the audit log", Err: err,
			Msg: "the public key is malformed: want NAME+HASH+KEY, as it was printed when the log was made"}
	}
	return v, nil
}

// parseDigest reads a digest in its only spelling: 64 lower-case hexadecimal digits.
func parseDigest(d writ.Digest) (tlog.Hash, error) {
	raw, err := hex.DecodeString(string(d))
	if err != nil || len(raw) != tlog.HashSize || hex.EncodeToString(raw) != string(d) {
		return tlog.Hash{}, errors.New("want 64 lower-case hexadecimal digits")
	}
	return tlog.Hash(raw), nil
}
