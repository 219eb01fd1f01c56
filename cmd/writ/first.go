package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"writ"
	"writ/admin"
)

// operatorKeyName is where a first start leaves the first operator's key.
const operatorKeyName = "operator.key"

// firstOperatorID is who a first start adds.
const firstOperatorID = "admin"

// firstOperator adds an operator to a store that has none, with its key in a file
// of the data folder.
//
// The key exists once the operator is committed and is known to nobody until the
// file is written. So a marker stands from before the one to after the other: a
// start that finds it makes another key. Without a marker nothing is made anew: who
// took operator.key off the machine meant that. And where that file is there and no operator
// is, the store is not the one that it was made with: all records are gone, which is not to
// pass in silence.
func firstOperator(ctx context.Context, s *system) error {
	local := localAs("first-start")
	marker := filepath.Join(s.folder.path, operatorKeyName+".pending")
	ops, err := s.admin.Operators(ctx, local)
	path := filepath.Join(s.folder.path, operatorKeyName)
	switch begun := fileExists(marker); {
	case err != nil || len(ops) > 0 && !begun:
		return err
	case !begun && fileExists(path): // which is written when there is one
		return &writ.Error{Kind: writ.Unavailable, Op: "find operators", Msg: fmt.Sprintf(
			"the database has no operators, and %s is the key of one: it was emptied, or is another one than that of this data folder: restore a backup, or, to begin anew, move that file away", path)}
	}
	if err := writeSecret(marker, ""); err != nil {
		return err
	}
	var key writ.NewKey
	if len(ops) == 0 {
		key, err = s.admin.AddOperator(ctx, local, writ.Operator{ID: firstOperatorID, Roles: []string{admin.RoleAdmin}})
	} else {
		key, err = s.admin.CreateKey(ctx, local, writ.KeyRequest{Kind: writ.KindOperator, Subject: firstOperatorID})
	}
	if err != nil {
		return err
	}
	if err := writeSecret(path, key.Token+"\n"); err != nil {
		return err
	}
	s.slog.Info("first operator added", "operator", firstOperatorID, "key_file", path)
	if err := os.Remove(marker); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// localAs is the server itself as one who asks, doing what.
func localAs(what string) writ.Principal {
	return writ.Principal{Kind: writ.KindLocal, ID: what, Tenant: writ.DefaultTenant}
}
