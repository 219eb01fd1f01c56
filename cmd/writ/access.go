package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"writ"
	"writ/client"
)

type keysCmd struct {
	List   keysListCmd   `cmd:"" help:"List API keys."`
	Create keysCreateCmd `cmd:"" help:"Create a key; it is shown once."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key."`
}

type keysListCmd struct {
	JSON bool `name:"json" help:"One JSON object a line."`
}

func (l *keysListCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		keys, err := cl.Keys(ctx)
		if err != nil {
			return err
		}
		return list(e.stdout, l.JSON, keys, "KEY KIND SUBJECT TENANT CREATED STATE", func(k writ.Key) []string {
			return []string{string(k.ID), string(k.Kind), k.Subject, string(k.Tenant), when(k.Created), keyState(k)}
		})
	})
}

func keyState(k writ.Key) string {
	switch {
	case k.Revoked != nil:
		return "revoked " + when(*k.Revoked)
	case k.Expires != nil && k.Expires.Before(time.Now()):
		return "expired " + when(*k.Expires)
	case k.Expires != nil:
		return "until " + when(*k.Expires)
	}
	return "active"
}

type keysCreateCmd struct {
	Identity string        `xor:"subject" required:"" help:"The registered identity that the key is for."`
	Operator string        `xor:"subject" required:"" help:"The operator that the key is for."`
	Expires  time.Duration `help:"How long it is good; by default for ever." placeholder:"720h"`
}

func (k *keysCreateCmd) Run(ctx context.Context, c *cli, e env) error {
	req := writ.KeyRequest{Kind: writ.KindAgent, Subject: k.Identity}
	if k.Operator != "" {
		req = writ.KeyRequest{Kind: writ.KindOperator, Subject: k.Operator}
	}
	if k.Expires > 0 {
		at := writ.Now().Add(k.Expires)
		req.Expires = &at
	}
	return withNew(ctx, c, e, func(cl *client.Client) error {
		key, err := cl.CreateKey(ctx, req)
		if err != nil {
			return err
		}
		return showKey(e, key)
	})
}

// withNew is withTask for what may be the first that is done on a new data folder.
func withNew(ctx context.Context, c *cli, e env, fn func(*client.Client) error) error {
	cl, done, err := connectToAdd(ctx, c, e)
	if err != nil {
		return err
	}
	defer done()
	return fn(cl)
}

// showKey prints the token alone to stdout, for a pipe.
func showKey(e env, k writ.NewKey) error {
	fmt.Fprintf(e.stderr, "key %s of %s %s; it is not shown again:\n", k.ID, k.Kind, k.Subject)
	_, err := fmt.Fprintln(e.stdout, k.Token)
	return err
}

type keysRevokeCmd struct {
	ID writ.KeyID `arg:"" name:"key" help:"Id of the key."`
}

// Validate is as that of taskArg.
func (k *keysRevokeCmd) Validate() error { return named("key", k.ID) }

func (k *keysRevokeCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error { return cl.RevokeKey(ctx, k.ID) })
}

type operatorsCmd struct {
	List    operatorsListCmd    `cmd:"" help:"List operators."`
	Add     operatorsAddCmd     `cmd:"" help:"Add an operator; the first key is shown once."`
	Disable operatorsDisableCmd `cmd:"" help:"Take an operator's rights away."`
}

type operatorsListCmd struct {
	JSON bool `name:"json" help:"One JSON object a line."`
}

func (l *operatorsListCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		ops, err := cl.Operators(ctx)
		if err != nil {
			return err
		}
		return list(e.stdout, l.JSON, ops, "OPERATOR TENANT ROLES CREATED STATE", func(o writ.Operator) []string {
			state := "active"
			if o.Disabled != nil {
				state = "disabled " + when(*o.Disabled)
			}
			return []string{o.ID, string(o.Tenant), strings.Join(o.Roles, ","), when(o.Created), state}
		})
	})
}

type operatorsAddCmd struct {
	ID     string      `arg:"" name:"operator" help:"Name of the operator."`
	Tenant writ.Tenant `help:"Its tenant." default:"default"`
	Role   []string    `help:"A role; \"admin\" may change who has access."`
}

func (a *operatorsAddCmd) Run(ctx context.Context, c *cli, e env) error {
	return withNew(ctx, c, e, func(cl *client.Client) error {
		key, err := cl.AddOperator(ctx, writ.OperatorRequest{ID: a.ID, Tenant: a.Tenant, Roles: a.Role})
		if err != nil {
			return err
		}
		return showKey(e, key)
	})
}

type operatorsDisableCmd struct {
	ID string `arg:"" name:"operator" help:"Name of the operator."`
}

// Validate is as that of taskArg.
func (d *operatorsDisableCmd) Validate() error { return named("operator", d.ID) }

func (d *operatorsDisableCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error { return cl.DisableOperator(ctx, d.ID) })
}
