package testkit

import (
	"context"
	"errors"
	"testing"
	"time"

	"writ"
	"writ/store"
)

// doJobs starts to work jobs and stops with t, before the store closes.
func doJobs(t *testing.T, db *store.DB, handle func(context.Context, store.Job) error) (stop func()) {
	t.Helper()
	halt, err := db.Work(context.Background(), handle)
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := halt(ctx); err != nil {
			t.Errorf("stop the job queue: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// collect is a handler that sends every job it gets.
func collect() (handle func(context.Context, store.Job) error, got chan store.Job) {
	got = make(chan store.Job, 100)
	return func(_ context.Context, j store.Job) error { got <- j; return nil }, got
}

func enqueue(t testing.TB, db *store.DB, jobs ...store.Job) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		for _, j := range jobs {
			if err := tx.Enqueue(ctx, j); err != nil {
				return err
			}
		}
		return nil
	})
}

func dispatch(task writ.TaskID) store.Job { return store.Job{Kind: store.JobDispatch, Task: task} }

func jobRolledBack(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	err := db.Update(ctx, func(tx *store.Tx) error { return errors.Join(tx.Enqueue(ctx, dispatch("never")), errChanged) })
	if !errors.Is(err, errChanged) {
		t.Fatal(err)
	}
	enqueue(t, db, dispatch("after")) // jobs are handed out in order: once this came, the other would have
	handle, got := collect()
	stop := doJobs(t, db, handle)
	if j := Receive(t, "the job after", got); j.Task != "after" {
		t.Errorf("job of the rolled back transaction came: %+v", j)
	}
	stop()
	if len(got) > 0 {
		t.Errorf("one more job: %+v", <-got)
	}
}

func jobOnce(t *testing.T, s storeSuite) {
	db := s.open(t)
	handle, got := collect()
	stop := doJobs(t, db, handle)
	want := map[store.Job]bool{}
	for _, j := range []store.Job{dispatch("t1"), {Kind: store.JobExpire, Task: "t2", Approval: "a2"}, dispatch("t3")} {
		want[j] = true
		enqueue(t, db, j)
	}
	for range len(want) {
		j := Receive(t, "a job", got)
		if !want[j] {
			t.Errorf("job came twice or was never enqueued: %+v", j)
		}
		delete(want, j)
	}
	enqueue(t, db, dispatch("last"))
	if j := Receive(t, "the last job", got); j.Task != "last" {
		t.Errorf("a second time: %+v", j)
	}
	stop()
	if len(got) > 0 {
		t.Errorf("came again: %+v", <-got)
	}
}

func jobScheduled(t *testing.T, s storeSuite) {
	db := s.open(t)
	handle, got := collect()
	doJobs(t, db, handle)
	enqueue(t, db, dispatch("before"))
	Receive(t, "a job", got) // so that the start of the queue is over
	at := writ.Now().Add(1500 * time.Millisecond)
	enqueue(t, db, store.Job{Kind: store.JobExpire, Approval: "a1", At: at}, dispatch("now"))
	j := Receive(t, "the job that is due", got)
	switch {
	case j.Task == "now":
		j = Receive(t, "the scheduled job", got)
	case time.Until(at) > 0:
		t.Errorf("first came %+v", j)
	default: // the host stood still until both were due
		Receive(t, "the other job", got)
	}
	if early := time.Until(at); early > 0 || j.Approval != "a1" || !j.At.Equal(at) {
		t.Errorf("scheduled job %+v came %v early", j, early)
	}
}

func jobRestart(t *testing.T, s storeSuite) {
	url := s.fresh(t)
	first, err := store.Open(context.Background(), url, store.Options{Poll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, first, dispatch("kept"))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	handle, got := collect()
	doJobs(t, OpenStore(t, url), handle)
	if j := Receive(t, "the job of the time before", got); j.Task != "kept" {
		t.Errorf("came %+v", j)
	}
}

func jobRetried(t *testing.T, s storeSuite) {
	db := s.open(t)
	tries := make(chan store.Job, 100)
	var failed, full bool // each only touched by its own job, one attempt at a time
	doJobs(t, db, func(_ context.Context, j store.Job) error {
		tries <- j
		switch {
		case j.Task == "fails" && !failed:
			failed = true
			return errors.New("it broke")
		case j.Task == "full" && !full:
			full = true
			return &writ.Error{Kind: writ.Exhausted, Msg: "all slots are taken"}
		}
		return nil
	})
	enqueue(t, db, dispatch("fails"), dispatch("full"))
	times := map[writ.TaskID]int{}
	for range 4 {
		times[Receive(t, "four attempts at two jobs", tries).Task]++
	}
	if times["fails"] != 2 || times["full"] != 2 {
		t.Errorf("attempts: %v, want two each", times)
	}
}

func jobStop(t *testing.T, s storeSuite) {
	db := s.open(t)
	began, ended := make(chan store.Job, 10), make(chan error, 10)
	halt, err := db.Work(context.Background(), func(ctx context.Context, j store.Job) error {
		began <- j
		<-ctx.Done() // as long as it may
		ended <- ctx.Err()
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, db, dispatch("slow"))
	Receive(t, "the slow job to begin", began)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // no patience at all
	if err := halt(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("stop answers %v, want that it was cut short", err)
	}
	select {
	case <-ended:
	default:
		t.Error("stop returned before the handler did")
	}
	handle, got := collect()
	doJobs(t, db, handle)
	if j := Receive(t, "the job that was cut short, again", got); j.Task != "slow" {
		t.Errorf("came %+v", j)
	}
}
