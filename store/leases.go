package store

import (
	"context"
	"time"
)

// Beat says that the gateway owner is alive until then. A gateway beats before it
// claims its first task and again well before until, and stops claiming when it
// cannot: until must leave room for the clocks of the machines to differ.
func (tx *Tx) Beat(ctx context.Context, owner string, until time.Time) error {
	_, err := tx.exec(ctx, "renew lease", `
		INSERT INTO leases (owner, until) VALUES ($1, $2) ON CONFLICT (owner) DO UPDATE SET until = excluded.until`,
		owner, millis(until))
	return err
}

// Leave ends the lease of owner, if it has one.
func (tx *Tx) Leave(ctx context.Context, owner string) error {
	_, err := tx.exec(ctx, "end lease", `DELETE FROM leases WHERE owner = $1`, owner)
	return err
}

// Alive is the set of gateways whose lease has not ended by now. A running task
// and an unfinished operation of any other owner were interrupted. On SQLite
// opening the store ends all leases, since the process that opens it is the only
// one.
func (tx *Tx) Alive(ctx context.Context, now time.Time) (map[string]bool, error) {
	owners, err := all(ctx, tx, "leases", `SELECT owner FROM leases WHERE until > $1`,
		func(row scanner) (owner string, err error) { return owner, row.Scan(&owner) }, millis(now))
	alive := make(map[string]bool, len(owners))
	for _, o := range owners {
		alive[o] = true
	}
	return alive, err
}
