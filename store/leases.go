package store

import (
	"context"
	"time"
)

// Beat says that the gateway owner is alive for life from now. A gateway beats before it
// claims its first task and again well before that is over, and stops claiming when it
// cannot.
func (tx *Tx) Beat(ctx context.Context, owner string, life time.Duration) error {
	_, err := tx.exec(ctx, "renew lease", `
		INSERT INTO leases (owner, until) VALUES ($1, `+tx.clock()+` + $2) ON CONFLICT (owner) DO UPDATE SET until = excluded.until`,
		owner, life.Milliseconds())
	return err
}

// clock is the SQL of the time by which leases are judged, in milliseconds: the
// database's, which all its gateways share. By their own, one whose clock is ahead by a
// lease would take all others for dead, and record what they run as interrupted.
func (tx *Tx) clock() string {
	if tx.engine == postgres {
		return `CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)`
	}
	return `CAST(unixepoch('subsec') * 1000 AS INTEGER)`
}

// Leave ends the lease of owner, if it has one.
func (tx *Tx) Leave(ctx context.Context, owner string) error {
	_, err := tx.exec(ctx, "end lease", `DELETE FROM leases WHERE owner = $1`, owner)
	return err
}

// Alive is the set of gateways whose lease is not over. A running task
// and an unfinished operation of any other owner were interrupted. On SQLite
// opening the store ends all leases, since the process that opens it is the only
// one.
func (tx *Tx) Alive(ctx context.Context) (map[string]bool, error) {
	owners, err := all(ctx, tx, "leases", `SELECT owner FROM leases WHERE until > `+tx.clock(),
		func(row scanner) (owner string, err error) { return owner, row.Scan(&owner) })
	alive := make(map[string]bool, len(owners))
	for _, o := range owners {
		alive[o] = true
	}
	return alive, err
}
