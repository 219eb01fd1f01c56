package audit

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"writ"
)

// Log appends events and signs heads with one key. It holds no other state, so one
// Log may be used by many goroutines at once, and many processes may have one each.
type Log struct {
	signer   note.Signer
	check    note.Verifier
	verifier string
}

// GenerateKey makes the key pair of a new log. The origin names the log in every
// checkpoint: not empty, no space, no plus sign. Both keys are one line of text, in
// the encoding of golang.org/x/mod/sumdb/note; the public one is not secret and is
// what Verify and CheckProof take.
func GenerateKey(origin string) (private writ.Secret, public string, err error) {
	if origin == "" || strings.ContainsFunc(origin, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '+' }) {
		return "", "", &writ.Error{Kind: writ.Invalid, Op: "make the key of the audit log",
			Msg: fmt.Sprintf("origin %q: want printable ASCII without space and plus sign", origin)}
	}
	s, v, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return "", "", fmt.Errorf("make the key of the audit log: %w", err)
	}
	return writ.Secret(s), v, nil
}

// New is the log that private signs. A malformed key is an error, which never
// quotes it.
func New(private writ.Secret) (*Log, error) {
	malformed := &writ.Error{Kind: writ.Invalid, Op: "read the key of the audit log",
		Msg: "the private key is malformed: want the line that GenerateKey made (PRIVATE+KEY+...)"}
	line := strings.TrimSpace(private.Reveal()) // as it comes from a file
	signer, err := note.NewSigner(line)
	if err != nil {
		return nil, malformed // note's error says no more
	}
	// NewSigner has checked the shape: PRIVATE+KEY+name+hash+base64 of algorithm
	// byte and seed.
	parts := strings.SplitN(line, "+", 5)
	key, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(key) != 1+ed25519.SeedSize {
		return nil, malformed
	}
	public := ed25519.NewKeyFromSeed(key[1:]).Public().(ed25519.PublicKey)
	verifier, err := note.NewEd25519VerifierKey(signer.Name(), public)
	if err != nil {
		return nil, malformed
	}
	check, err := note.NewVerifier(verifier)
	if err != nil {
		return nil, malformed
	}
	return &Log{signer: signer, check: check, verifier: verifier}, nil
}

// Verifier is the public key of the log.
func (l *Log) Verifier() string { return l.verifier }

// Append adds events to the log in the caller's transaction and signs the new head.
// It returns them as they were recorded: Seq set, Time set where it was zero, in
// UTC and whole milliseconds. Without events it does nothing.
//
// A head that is not signed by this log's key, or does not fit the stored hashes,
// is not extended: the error is of kind Unavailable. After any error the caller
// must roll the transaction back.
func (l *Log) Append(ctx context.Context, tx Tx, events ...writ.Event) ([]writ.Event, error) {
	if len(events) == 0 {
		return nil, nil
	}
	edge, err := l.edge(ctx, tx)
	if err != nil {
		return nil, err
	}
	at := tlog.StoredHashCount(edge.size)
	done := make([]writ.Event, len(events))
	records := make([]writ.Record, len(events))
	hashes := make([][32]byte, 0, 2*len(events))
	for i, e := range events {
		e.Seq = edge.size
		if e.Time.IsZero() {
			e.Time = writ.Now()
		}
		e.Time = e.Time.UTC().Truncate(timeUnit)
		data, err := encode(e)
		if err != nil {
			return nil, err
		}
		done[i] = e
		records[i] = writ.Record{Seq: e.Seq, Type: e.Type, Tenant: e.Tenant, Task: e.Task, Data: data}
		for _, h := range edge.add(tlog.RecordHash(data)) {
			hashes = append(hashes, h)
		}
	}
	head := checkpoint{origin: l.signer.Name(), size: edge.size, root: edge.root()}
	signed, err := note.Sign(&note.Note{Text: head.text()}, l.signer)
	if err != nil {
		return nil, fmt.Errorf("sign the head of the audit log: %w", err)
	}
	if err := tx.AppendLog(ctx, records, at, hashes, head.size, string(signed)); err != nil {
		return nil, fmt.Errorf("append to the audit log: %w", err)
	}
	return done, nil
}

// edge is the right edge of the stored tree, once it was found to be what the
// signed head says. Without that check a log that somebody cut or changed would be
// signed anew with the next event.
func (l *Log) edge(ctx context.Context, tx Tx) (*frontier, error) {
	const op = "append to the audit log"
	size, signed, err := tx.LogHead(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the head of the audit log: %w", err)
	}
	if size == 0 && signed == "" {
		return &frontier{}, nil
	}
	head, err := openCheckpoint(signed, l.check)
	if err != nil {
		return nil, damaged(op, err)
	}
	if head.size != size {
		return nil, damaged(op, fmt.Errorf("the head signs %d records, the store says %d", head.size, size))
	}
	edge, err := loadFrontier(ctx, tx, size)
	if writ.KindOf(err) == writ.NotFound {
		return nil, damaged(op, err)
	}
	if err != nil {
		return nil, err
	}
	if edge.root() != head.root {
		return nil, damaged(op, errors.New("the stored hashes do not make the root that the head signs"))
	}
	return edge, nil
}
