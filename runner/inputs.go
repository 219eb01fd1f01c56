package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"writ"
)

// input opens a file input for a box, as often as one asks. What is read is of the
// digest that the spec has: else reading fails, as it does when ctx ends.
func (j job) input(ctx context.Context, f writ.FileInput) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		if j.x.Open == nil {
			return nil, wrongInput(f, errors.New("nobody gives files to this run"))
		}
		body, err := j.x.Open(ctx, f.Digest)
		if err != nil {
			return nil, sourceError(f, err)
		}
		return &inputReader{ctx: ctx, of: f, body: body, sum: sha256.New()}, nil
	}
}

// Errors of inputs have the contract's words, and nothing of err is for the caller.

// wrongInput is the answer when an input is gone, or is not what was approved.
func wrongInput(f writ.FileInput, err error) error {
	return inputError(writ.NotFound, writ.CodeInputUnavailable, "One or more input files are unavailable", f, err)
}

// sourceError is the answer when whoever gives an input ends with err.
func sourceError(f writ.FileInput, err error) error {
	if writ.KindOf(err) == writ.NotFound {
		return wrongInput(f, err)
	}
	return inputError(writ.Unavailable, writ.CodeInputSource, "Input file service is unavailable", f, err)
}

func inputError(kind writ.Kind, code, msg string, f writ.FileInput, err error) error {
	return &writ.Error{Kind: kind, Code: code, Op: "place input", Msg: msg, Err: fmt.Errorf("input %q of digest %.12s: %w", f.Path, f.Digest, err)}
}

// inputReader reads an input and gives its last bytes only when all of them are right.
type inputReader struct {
	ctx  context.Context
	of   writ.FileInput
	body io.ReadCloser
	sum  hash.Hash
	read int64
}

func (r *inputReader) Read(b []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, sourceError(r.of, err)
	}
	n, err := r.body.Read(b)
	_, _ = r.sum.Write(b[:n]) // never fails
	r.read += int64(n)
	switch {
	case r.read > r.of.Size:
		return 0, wrongInput(r.of, fmt.Errorf("it has more than %d bytes", r.of.Size))
	case err != nil && err != io.EOF:
		return 0, sourceError(r.of, err)
	case err == io.EOF && r.read < r.of.Size:
		return 0, wrongInput(r.of, fmt.Errorf("it has %d bytes instead of %d", r.read, r.of.Size))
	case r.read == r.of.Size && writ.Digest(hex.EncodeToString(r.sum.Sum(nil))) != r.of.Digest:
		return 0, wrongInput(r.of, errors.New("its bytes have another digest"))
	}
	return n, err
}

func (r *inputReader) Close() error { return r.body.Close() }
