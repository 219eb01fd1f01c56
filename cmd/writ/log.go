package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"writ"
	"writ/audit"
	"writ/store"
)

const (
	auditKeyName    = "audit.key"
	auditPublicName = "audit.pub"
)

// openLog opens the audit log that db holds, with the key in the data folder. A new
// log gets a new key. It is Invalid when the log was signed with another key.
func openLog(ctx context.Context, db *store.DB, data string) (*audit.Log, error) {
	path := filepath.Join(data, auditKeyName)
	b, err := os.ReadFile(path)
	private, public := writ.Secret(b), ""
	missing := errors.Is(err, os.ErrNotExist)
	if missing {
		private, public, err = audit.GenerateKey("writ")
	}
	if err != nil {
		return nil, err
	}
	log, err := audit.New(private)
	if err != nil {
		return nil, err
	}
	// Before the new key is written, which would stand in the way of the right one.
	err = db.View(ctx, func(tx *store.Tx) error {
		_, err := audit.Head(ctx, tx, log.Verifier())
		return err
	})
	if errors.Is(err, audit.ErrOtherKey) {
		return nil, otherKey(data, err)
	}
	// What else is wrong with the log does not keep anybody from reading it: "writ
	// audit verify" says what it is. Nothing is added to it, and so nothing runs.
	if !missing {
		return log, nil
	}
	if err := os.WriteFile(filepath.Join(data, auditPublicName), []byte(public+"\n"), 0o644); err != nil {
		return nil, err
	}
	return log, writeSecret(path, private.Reveal())
}

func otherKey(data string, err error) error {
	return &writ.Error{Kind: writ.Invalid, Op: "open audit log", Err: err, Msg: fmt.Sprintf(
		"the audit log of this database is signed with another key than %s: put %s and %s of the gateway that began it into %s",
		filepath.Join(data, auditKeyName), auditKeyName, auditPublicName, data)}
}
