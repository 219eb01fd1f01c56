package admin

import (
	"context"
	"errors"
	"fmt"

	"writ"
	"writ/auth"
	"writ/store"
)

// CreateKey makes a key for a registered identity or an operator. Its token is in
// the answer and nowhere else.
func (s *Service) CreateKey(ctx context.Context, who writ.Principal, r writ.KeyRequest) (writ.NewKey, error) {
	const op = "create key"
	if err := r.Validate(); err != nil {
		return writ.NewKey{}, &writ.Error{Op: op, Kind: writ.Invalid, Msg: err.Error()}
	}
	// Before the subject is looked up: who may do nothing must not learn who there is.
	if err := mayChange(op, who, who.Tenant); err != nil {
		return writ.NewKey{}, err
	}
	var key writ.NewKey
	err := s.db.Update(ctx, func(tx *store.Tx) error {
		tenant, err := s.tenantOfSubject(ctx, tx, who, r)
		if err != nil {
			return err
		}
		key, err = s.addKey(ctx, tx, who, r, tenant)
		return err
	})
	return key, err
}

// tenantOfSubject is the tenant of the identity or operator that a key is for.
// NotFound when there is none in a tenant that who may see.
func (s *Service) tenantOfSubject(ctx context.Context, tx *store.Tx, who writ.Principal, r writ.KeyRequest) (writ.Tenant, error) {
	sees := func(t writ.Tenant) bool { return tenantOf(who) == "" || who.Tenant == t }
	missing := &writ.Error{Op: "create key", Kind: writ.NotFound, Msg: fmt.Sprintf("there is no %s %q", r.Kind, r.Subject)}
	if r.Kind == writ.KindAgent {
		id, ok := s.gw.Identity(writ.IdentityID(r.Subject))
		if !ok || !sees(id.Tenant) {
			missing.Msg += ": register it under `identities` in the configuration"
			return "", missing
		}
		return id.Tenant, nil
	}
	o, err := tx.Operator(ctx, r.Subject)
	if err != nil && writ.KindOf(err) != writ.NotFound {
		return "", err
	}
	if err != nil || o.Disabled != nil || !sees(o.Tenant) {
		return "", missing
	}
	return o.Tenant, nil
}

func (s *Service) addKey(ctx context.Context, tx *store.Tx, who writ.Principal, r writ.KeyRequest, t writ.Tenant) (writ.NewKey, error) {
	key, err := auth.NewKey(r.Kind, r.Subject, t, r.Expires, writ.Now())
	if err != nil {
		return writ.NewKey{}, err
	}
	if err := tx.InsertKey(ctx, key.Key); err != nil {
		return writ.NewKey{}, err
	}
	return key, s.record(ctx, tx, who, t, writ.EventKeyCreated, fmt.Sprintf("%s %s %s", key.ID, r.Kind, r.Subject))
}

// Keys lists the keys that who may see, without their secrets.
func (s *Service) Keys(ctx context.Context, who writ.Principal) (keys []writ.Key, err error) {
	if err := mayRead("list keys", who); err != nil {
		return nil, err
	}
	err = s.db.View(ctx, func(tx *store.Tx) error {
		keys, err = tx.Keys(ctx, tenantOf(who))
		return err
	})
	return keys, err
}

// RevokeKey ends a key at once. Revoking one that is revoked is no error.
func (s *Service) RevokeKey(ctx context.Context, who writ.Principal, id writ.KeyID) error {
	const op = "revoke key"
	return s.db.Update(ctx, func(tx *store.Tx) error {
		key, err := tx.Key(ctx, id)
		if err != nil && writ.KindOf(err) != writ.NotFound {
			return err
		}
		if err != nil || tenantOf(who) != "" && key.Tenant != who.Tenant {
			return &writ.Error{Op: op, Kind: writ.NotFound, Msg: fmt.Sprintf("there is no key %q", id), Err: err}
		}
		if err := mayChange(op, who, key.Tenant); err != nil {
			return err
		}
		done, err := tx.RevokeKey(ctx, id, writ.Now())
		if err != nil || !done {
			return err
		}
		return s.record(ctx, tx, who, key.Tenant, writ.EventKeyRevoked, string(id))
	})
}

// AddOperator adds a person who may decide and administer, and answers its first
// key. Only ID, Tenant and Roles of o are used; an empty tenant means who's.
func (s *Service) AddOperator(ctx context.Context, who writ.Principal, o writ.Operator) (writ.NewKey, error) {
	const op = "add operator"
	if o.Tenant == "" {
		o.Tenant = who.Tenant
	}
	req := writ.OperatorRequest{ID: o.ID, Tenant: o.Tenant, Roles: o.Roles}
	if err := req.Validate(); err != nil {
		return writ.NewKey{}, &writ.Error{Op: op, Kind: writ.Invalid, Msg: err.Error()}
	}
	if err := mayChange(op, who, o.Tenant); err != nil {
		return writ.NewKey{}, err
	}
	o.Created, o.Disabled = writ.Now(), nil
	var key writ.NewKey
	err := s.db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.InsertOperator(ctx, o); err != nil {
			return err
		}
		if err := s.record(ctx, tx, who, o.Tenant, writ.EventOperatorAdded, o.ID); err != nil {
			return err
		}
		var err error
		key, err = s.addKey(ctx, tx, who, writ.KeyRequest{Kind: writ.KindOperator, Subject: o.ID}, o.Tenant)
		return err
	})
	return key, err
}

// Operators lists the operators that who may see.
func (s *Service) Operators(ctx context.Context, who writ.Principal) (list []writ.Operator, err error) {
	if err := mayRead("list operators", who); err != nil {
		return nil, err
	}
	err = s.db.View(ctx, func(tx *store.Tx) error {
		list, err = tx.Operators(ctx, tenantOf(who))
		return err
	})
	return list, err
}

// DisableOperator takes an operator's rights and keys out of force at once. Its
// votes stand.
func (s *Service) DisableOperator(ctx context.Context, who writ.Principal, id string) error {
	const op = "disable operator"
	return s.db.Update(ctx, func(tx *store.Tx) error {
		o, err := tx.Operator(ctx, id)
		if err != nil && writ.KindOf(err) != writ.NotFound {
			return err
		}
		if err != nil || tenantOf(who) != "" && o.Tenant != who.Tenant {
			return &writ.Error{Op: op, Kind: writ.NotFound, Msg: fmt.Sprintf("there is no operator %q", id), Err: err}
		}
		if err := mayChange(op, who, o.Tenant); err != nil {
			return err
		}
		done, err := tx.DisableOperator(ctx, id, writ.Now())
		if err != nil || !done {
			return err
		}
		return s.record(ctx, tx, who, o.Tenant, writ.EventOperatorDisabled, id)
	})
}

func (s *Service) record(ctx context.Context, tx *store.Tx, who writ.Principal, t writ.Tenant, typ writ.EventType, subject string) error {
	_, err := s.log.Append(ctx, tx, writ.Event{Type: typ, Tenant: t, Actor: who.Ref(), Data: writ.EventData{Subject: subject}})
	return err
}

// Key is the key of that id: what authentication looks up.
func (s *Service) Key(ctx context.Context, id writ.KeyID) (key writ.Key, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		key, err = tx.Key(ctx, id)
		return err
	})
	return key, err
}

// Subject is the principal that a key speaks for, with the rights now in force; an
// error of kind NotFound when it has none any more.
func (s *Service) Subject(ctx context.Context, key writ.Key) (writ.Principal, error) {
	gone := &writ.Error{Op: "authenticate", Kind: writ.NotFound, Msg: "the key's subject is gone", Err: errors.New("subject " + key.Subject)}
	if key.Kind == writ.KindAgent {
		id, ok := s.gw.Identity(writ.IdentityID(key.Subject))
		if !ok || id.Tenant != key.Tenant {
			return writ.Principal{}, gone
		}
		return id.Principal(), nil
	}
	var o writ.Operator
	err := s.db.View(ctx, func(tx *store.Tx) (err error) {
		o, err = tx.Operator(ctx, key.Subject)
		return err
	})
	if err != nil {
		return writ.Principal{}, err
	}
	if o.Disabled != nil || o.Tenant != key.Tenant {
		return writ.Principal{}, gone
	}
	return o.Principal(), nil
}
