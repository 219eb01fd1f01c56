// Package admin is what operators do beside deciding approvals: keys and
// operators, reading and verifying the audit log, and asking why policy decides as
// it does. What it changes it records in the same transaction.
//
// The owner of the data folder may do all of it for every tenant; an operator for
// its own tenant, and change who has access only with the role "admin". An agent
// may read the events of its own tasks, ask what would be decided about a request of
// its own, and nothing else here.
package admin

import (
	"context"
	"fmt"
	"slices"

	"writ"
	"writ/audit"
	"writ/gateway"
	"writ/store"
)

// RoleAdmin is the role with which an operator may change who has access.
const RoleAdmin = "admin"

// Prober says what the sandbox enforces.
type Prober interface {
	Probe(ctx context.Context) (writ.Enforcement, error)
}

// Service is safe for concurrent use.
type Service struct {
	db     *store.DB
	log    *audit.Log
	gw     *gateway.Gateway
	prober Prober
}

// New is a service on the gateway's own store and log.
func New(gw *gateway.Gateway, db *store.DB, log *audit.Log, prober Prober) *Service {
	return &Service{db: db, log: log, gw: gw, prober: prober}
}

// Status says what the sandbox enforces on this host.
func (s *Service) Status(ctx context.Context) (writ.Enforcement, error) { return s.prober.Probe(ctx) }

// mayRead answers why who may not read what belongs to all of its tenant.
func mayRead(op string, who writ.Principal) error {
	if who.Administers() {
		return nil
	}
	return &writ.Error{Op: op, Kind: writ.Denied, Msg: fmt.Sprintf("%s may not do that: it takes an operator", who.Ref())}
}

// mayChange answers why who may not change who has access to tenant t.
func mayChange(op string, who writ.Principal, t writ.Tenant) error {
	switch {
	case who.Kind == writ.KindLocal:
		return nil
	case who.Kind != writ.KindOperator || who.Tenant != t:
		return &writ.Error{Op: op, Kind: writ.Denied, Msg: fmt.Sprintf("%s may not change who has access to tenant %q", who.Ref(), t)}
	case !slices.Contains(who.Roles, RoleAdmin):
		return &writ.Error{Op: op, Kind: writ.Denied, Msg: fmt.Sprintf("%s may not change who has access: it takes the role %q", who.Ref(), RoleAdmin)}
	}
	return nil
}

// tenantOf narrows a list to what who may see; empty is all tenants.
func tenantOf(who writ.Principal) writ.Tenant {
	t, _ := who.Narrow("", "")
	return t
}
