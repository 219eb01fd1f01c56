package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"writ"
)

// InsertProcess stores a new process. It is a Conflict when the id is taken. Its
// Started is the time of the record, by which lists are sorted.
func (tx *Tx) InsertProcess(ctx context.Context, p writ.Process) error {
	doc, err := processDoc(p)
	if err != nil {
		return err
	}
	n, err := tx.exec(ctx, "insert process", `
		INSERT INTO processes (id, tenant, workspace, root, requester_kind, requester, fingerprint, owner, state, created, ended, doc)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING`,
		string(p.ID), string(p.Tenant), string(p.Workspace), p.Root, string(p.By.Kind), p.By.ID,
		string(p.Fingerprint), p.Owner, string(p.State), millis(p.Started), nullMillis(p.Ended), doc)
	if err == nil && n == 0 {
		return &writ.Error{Kind: writ.Conflict, Op: "insert process", Msg: fmt.Sprintf("there is a process %s", p.ID)}
	}
	return err
}

const processColumns = `SELECT doc, id, tenant, workspace, root, requester_kind, requester, fingerprint, owner, state, created, ended FROM processes`

// Process reads one process. In a writing transaction it stays as it is until that
// ends.
func (tx *Tx) Process(ctx context.Context, id writ.ProcessID) (writ.Process, error) {
	return one(ctx, tx, "process", processColumns+` WHERE id = $1`+tx.locked(), scanProcess, string(id))
}

// UpdateProcess replaces the stored process by p if the stored one has not ended, and
// reports whether it did: false also when there is none. What identifies a process
// (tenant, workspace, root, requester, fingerprint, owner, start) is not changed, and
// once it has ended nothing is.
func (tx *Tx) UpdateProcess(ctx context.Context, p writ.Process) (bool, error) {
	doc, err := processDoc(p)
	if err != nil {
		return false, err
	}
	n, err := tx.exec(ctx, "update process", `UPDATE processes SET state = $1, ended = $2, doc = $3 WHERE id = $4 AND ended IS NULL`,
		string(p.State), nullMillis(p.Ended), doc, string(p.ID))
	return n > 0, err
}

// Processes lists processes, newest first, page by page as Tasks does.
func (tx *Tx) Processes(ctx context.Context, f writ.ProcessFilter) (ps []writ.Process, next string, err error) {
	var c conditions
	c.equal("tenant", string(f.Tenant))
	c.equal("requester_kind", string(f.By.Kind))
	c.equal("requester", f.By.ID)
	c.equal("workspace", string(f.Workspace))
	in(&c, "state", f.States)
	if f.Kept {
		c.terms = append(c.terms, "(ended IS NULL OR EXISTS (SELECT 1 FROM process_outputs o WHERE o.process = processes.id))")
	}
	return page(ctx, tx, "processes", processColumns, &c, f.Page, scanProcess,
		func(p writ.Process) cursor { return cursorOf(p.Started, string(p.ID)) })
}

// RunningProcesses lists the processes of owner that have not ended, or all of them
// when owner is empty, oldest first.
func (tx *Tx) RunningProcesses(ctx context.Context, owner string) ([]writ.Process, error) {
	c := conditions{terms: []string{"ended IS NULL"}}
	c.equal("owner", owner)
	return all(ctx, tx, "running processes", processColumns+c.where()+` ORDER BY created, id`, scanProcess, c.args...)
}

// PutProcessOutput stores the last output of a process that is stored, in place of
// what was there.
func (tx *Tx) PutProcessOutput(ctx context.Context, id writ.ProcessID, out writ.StoredOutput) error {
	data := out.Data
	if data == nil {
		data = []byte{} // empty, not NULL
	}
	_, err := tx.exec(ctx, "store process output", `
		INSERT INTO process_outputs (process, retained, data) VALUES ($1, $2, $3)
		ON CONFLICT (process) DO UPDATE SET retained = excluded.retained, data = excluded.data`, string(id), out.Retained, data)
	return err
}

// ProcessOutput reads the last output of a process. It is NotFound when it was never
// stored or was deleted.
func (tx *Tx) ProcessOutput(ctx context.Context, id writ.ProcessID) (writ.StoredOutput, error) {
	return one(ctx, tx, "process output", `SELECT retained, data FROM process_outputs WHERE process = $1`,
		func(row scanner) (out writ.StoredOutput, err error) { return out, row.Scan(&out.Retained, &out.Data) }, string(id))
}

// DeleteProcessOutputs deletes what is stored of the output of processes that ended
// before a time, and of those that ended but for the keep that did so last among those
// whose output is stored (spec/02 §3.3). It returns how many there were. The processes
// stay.
func (tx *Tx) DeleteProcessOutputs(ctx context.Context, endedBefore time.Time, keep int) (int64, error) {
	return tx.deleteBodies(ctx, `
		DELETE FROM process_outputs WHERE process IN (
			SELECT id FROM (
				SELECT p.id, p.ended, row_number() OVER (ORDER BY p.ended DESC, p.id DESC) AS place
				FROM process_outputs o JOIN processes p ON p.id = o.process WHERE p.ended IS NOT NULL
			) AS stored WHERE ended < $1 OR place > $2)`, millis(endedBefore), keep)
}

func processDoc(p writ.Process) (string, error) {
	if (p.State == writ.ProcessExited) != (p.Ended != nil) {
		return "", fmt.Errorf("store process %s: it is %q, and when it ended is %v", p.ID, p.State, p.Ended)
	}
	b, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("encode process: %w", err)
	}
	return string(b), nil
}

// scanProcess believes the columns before the document.
func scanProcess(row scanner) (writ.Process, error) {
	var doc string
	var col writ.Process
	var created int64
	var ended sql.Null[int64]
	if err := row.Scan(&doc, &col.ID, &col.Tenant, &col.Workspace, &col.Root, &col.By.Kind, &col.By.ID,
		&col.Fingerprint, &col.Owner, &col.State, &created, &ended); err != nil {
		return writ.Process{}, err
	}
	var p writ.Process
	if err := json.Unmarshal([]byte(doc), &p); err != nil {
		return writ.Process{}, fmt.Errorf("decode process: %w", err)
	}
	p.ID, p.Tenant, p.Workspace, p.Root, p.By = col.ID, col.Tenant, col.Workspace, col.Root, col.By
	p.Fingerprint, p.Owner, p.State, p.Started, p.Ended = col.Fingerprint, col.Owner, col.State, fromMillis(created), fromNullMillis(ended)
	return p, nil
}
