package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"writ"
)

// JobKind says what a job is about.
type JobKind string

const (
	JobDispatch JobKind = "dispatch" // start the task, if nobody did
	JobExpire   JobKind = "expire"   // expire the approval, if nobody decided
)

// Job is a reminder that survives a crash. It may come late, and more than once:
// whoever handles it looks at the task or the approval for what is left to do.
type Job struct {
	Kind     JobKind         `json:"kind"`
	Task     writ.TaskID     `json:"task,omitempty"`
	Approval writ.ApprovalID `json:"approval,omitempty"`
	At       time.Time       `json:"at,omitzero"` // not before; zero means now
}

// jobArgs is a Job as River keeps it: one kind of River's, since all jobs have one
// handler.
type jobArgs struct{ Job }

// Kind is River's name of a job.
func (jobArgs) Kind() string { return "writ" }

const (
	jobAttempts  = 12               // about six minutes by the pauses of retryPolicy
	jobPauseMax  = time.Minute      //
	jobSnooze    = 2 * time.Second  // until capacity is looked for again
	jobWorkers   = 16               // handlers at a time; they mostly wait
	jobRetention = 10 * time.Minute // of jobs that are over: the audit log has the history
	jobRescue    = time.Minute      // after which a job of a dead process is handed out again
)

// Enqueue adds a job to this transaction: it exists once that commits, and never
// if it does not. It is handled at about j.At, within some seconds.
func (tx *Tx) Enqueue(ctx context.Context, j Job) error {
	if !tx.writing {
		return errors.New("enqueue: the transaction only reads")
	}
	if _, err := tx.jobs.InsertTx(ctx, tx.sql, jobArgs{j}, &river.InsertOpts{MaxAttempts: jobAttempts, ScheduledAt: j.At}); err != nil {
		return tx.fail(ctx, "enqueue", err)
	}
	return nil
}

// Work hands every job that is due to handle, several at a time, until stop is
// called; ctx bounds only the start. A job whose handler fails is handed out again
// after a growing pause, a bounded number of times; one that fails for want of
// capacity (kinds Exhausted and Unavailable) as long as that lasts. A job of a
// process that died is handed out again, on SQLite when the store is opened, on
// PostgreSQL after a minute or two.
//
// stop stops fetching and waits for the handlers that run. When its own context
// ends first it cancels theirs, waits for them to return, and reports the context's
// error. It must be called once, before Close.
func (db *DB) Work(ctx context.Context, handle func(context.Context, Job) error) (stop func(context.Context) error, err error) {
	driver, release, err := db.workDriver(ctx)
	if err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[jobArgs]) error {
		err := handle(ctx, job.Args.Job)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil: // stopped, not failed: as soon as there is a worker again
			return river.JobSnooze(0)
		case writ.KindOf(err) == writ.Exhausted, writ.KindOf(err) == writ.Unavailable:
			return river.JobSnooze(jobSnooze)
		}
		return err
	}))
	client, err := river.NewClient(driver, &river.Config{
		Logger:                      db.log,
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: jobWorkers}},
		Workers:                     workers,
		FetchPollInterval:           db.poll,
		FetchCooldown:               min(db.poll, river.FetchCooldownDefault),
		PollOnly:                    db.engine == sqlite, // its listener polls the one writing connection every 50 ms
		JobTimeout:                  -1,                  // a handler may run a task, which has a limit of its own
		RescueStuckJobsAfter:        jobRescue,           // a handler that is slow, not dead, meets its own claim
		CompletedJobRetentionPeriod: jobRetention,
		CancelledJobRetentionPeriod: jobRetention,
		RetryPolicy:                 retryPolicy{},
	})
	if err == nil {
		err = client.Start(context.WithoutCancel(ctx)) // its lifetime is stop's business
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("start the job queue: %w", err)
	}
	return func(ctx context.Context) error {
		defer release()
		err := client.Stop(ctx)
		if err != nil {
			err = cmp.Or(client.StopAndCancel(context.WithoutCancel(ctx)), err)
		}
		return err
	}, nil
}

// retryPolicy doubles the pause from one second up to a minute.
type retryPolicy struct{}

// NextRetry is when a job that failed is tried again.
func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	pause := time.Second << min(max(len(job.Errors), 0), 6)
	return time.Now().Add(min(pause, jobPauseMax))
}

// adopt ends what earlier processes left in a SQLite store: their leases, and their
// hold on jobs and runtime sessions. The folder lock says that none of them lives, so nobody needs to
// wait until River or a clock finds out.
func adopt(ctx context.Context, db *sql.DB, file string) error {
	for _, q := range []string{
		`DELETE FROM leases`,
		`UPDATE runtimes SET holder = '' WHERE holder <> ''`,
		`DELETE FROM river_leader`,
		`UPDATE river_job SET state = 'available' WHERE state = 'running'`,
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return failure(ctx, file, "take over from the process before", err)
		}
	}
	return nil
}
