package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"writ"
	"writ/admin"
	"writ/config"
	"writ/policy"
)

// operatorKeyName is where a first start leaves the first operator's key.
const operatorKeyName = "operator.key"

// firstOperatorID is who a first start adds.
const firstOperatorID = "admin"

// makeData makes the data folder when it is not there, with a commented
// configuration and the default policy, and says so on w. What exists is kept.
func makeData(data string, w io.Writer) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return &writ.Error{Kind: writ.Unavailable, Op: "make data folder", Err: err, Msg: fmt.Sprintf("cannot make %s: %v (choose another with --data)", data, err)}
	}
	path := filepath.Join(data, config.FileName)
	if made, err := writeNew(path, config.Example()); err != nil {
		return err
	} else if made {
		fmt.Fprintln(w, "configuration:", path)
	}
	// Only beside a new folder: a file of ours that an operator removed stays removed.
	dir := filepath.Join(data, "policy")
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, f := range slices.Concat(policy.Default(), policy.DefaultExamples()) {
		if _, err := writeNew(filepath.Join(dir, f.Name), f.Content); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "policy:       ", dir)
	return nil
}

func writeNew(path string, content []byte) (made bool, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.Write(content)
	return true, errors.Join(err, f.Close())
}

// firstOperator adds an operator to a store that has none, with its key in a file
// of the data folder.
func firstOperator(ctx context.Context, s *system) error {
	local := writ.Principal{Kind: writ.KindLocal, ID: "first-start", Tenant: writ.DefaultTenant}
	ops, err := s.admin.Operators(ctx, local)
	if err != nil || len(ops) > 0 {
		return err
	}
	key, err := s.admin.AddOperator(ctx, local, writ.Operator{ID: firstOperatorID, Roles: []string{admin.RoleAdmin}})
	if err != nil {
		return err
	}
	path := filepath.Join(s.data, operatorKeyName)
	if err := writeSecret(path, key.Token+"\n"); err != nil {
		return err
	}
	s.slog.Info("first operator added", "operator", firstOperatorID, "key_file", path)
	return nil
}

// loadConfig reads the data folder's configuration and puts the flags over it.
func loadConfig(c *cli) (config.Config, error) {
	cfg, err := config.Load(filepath.Join(c.Data, config.FileName))
	if err != nil {
		return cfg, err
	}
	if c.Listen != "" {
		cfg.Listen = c.Listen
	}
	return cfg, cfg.Validate()
}
