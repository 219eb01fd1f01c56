package rest_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"writ"
)

// post sends body without saying how long it is, unless sized, as who has key.
func (s *system) post(t *testing.T, path, key, body string, sized bool) (status int, answer string) {
	t.Helper()
	var r io.Reader = strings.NewReader(body)
	if !sized {
		r = io.MultiReader(r) // of a type whose length nobody knows
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.tcp.URL+path, r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.tcp.Client().Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}

// padded is a request of at least n bytes.
func padded(n int) string {
	return `{"spec":{"language":"sh","code":"` + strings.Repeat("#", n) + `"}}`
}

// TestLargeBodiesAreBounded: what large bodies take together, and what those of one
// caller take, does not grow with the number of requests. Small ones pass by.
func TestLargeBodiesAreBounded(t *testing.T) {
	s := start(t, time.Minute)
	entered, leave := make(chan struct{}, 10), make(chan struct{})
	s.hold = func() { entered <- struct{}{}; <-leave }
	letGo := sync.OnceFunc(func() { close(leave) })
	t.Cleanup(letGo)
	large, small := padded(3<<20), padded(900<<10)
	ended := make(chan int, 10)
	enter := func(path, key, body string, sized bool) {
		go func() { status, _ := s.post(t, path, key, body, sized); ended <- status }()
		select {
		case <-entered:
		case status := <-ended:
			t.Fatalf("%s with %d bytes: %d, want it let in", path, len(body), status)
		}
	}
	refused := func(path, key, body string, sized bool, words string) {
		t.Helper()
		var status int
		var answer string
		over := make(chan struct{})
		go func() { defer close(over); status, answer = s.post(t, path, key, body, sized) }()
		select {
		case <-entered:
			t.Fatalf("%s with %d bytes is let in", path, len(body))
		case <-over:
		}
		if status != http.StatusTooManyRequests || !strings.Contains(answer, words) || !strings.Contains(answer, "exhausted") {
			t.Errorf("%s with %d bytes: %d %.300s", path, len(body), status, answer)
		}
	}

	// Bodies of unknown length count as the largest: two of one caller are all of its room.
	enter("/v1/tasks", token, large, false)
	enter("/v1/policy/explain", token, large, false)
	for _, path := range []string{"/v1/tasks", "/v1/policy/explain"} {
		refused(path, token, large, false, "of yours")
		refused(path, token, large, true, "of yours")
	}
	enter("/v1/tasks", token, small, false)
	enter("/v1/tasks", token, small, true)

	// Another caller is not kept out by the first. Then there is no room for a third.
	enter("/v1/tasks", guestToken, large, false)
	enter("/v1/tasks", guestToken, large, false)
	spec := writ.RunSpec{Language: "sh", Code: large}
	_, _, err := s.overUnix.Submit(t.Context(), writ.TaskRequest{Spec: &spec})
	if writ.KindOf(err) != writ.Exhausted || !strings.Contains(err.Error(), "of others") {
		t.Errorf("a third caller: %v", err)
	}

	calls := s.take()
	for _, c := range calls {
		if c.Method == "Refuse" {
			t.Errorf("a request that was not read is recorded as malformed: %v", c.Args)
		}
	}
	if len(calls) != 6 {
		t.Errorf("%d calls, want those 6 that were let in", len(calls))
	}
	letGo()
	for range 6 {
		if status := <-ended; status != http.StatusCreated && status != http.StatusOK {
			t.Errorf("one that was let in ends with %d", status)
		}
	}
	// What they took is free again, also after faults.
	s.hold = nil
	if _, _, err := s.overUnix.Submit(t.Context(), writ.TaskRequest{Spec: &spec}); err != nil {
		t.Error(err)
	}
	for range 5 {
		if status, answer := s.post(t, "/v1/tasks", token, large+"x", false); status != http.StatusBadRequest {
			t.Errorf("malformed: %d %.300s", status, answer)
		}
		if status, answer := s.post(t, "/v1/tasks", token, large, false); status != http.StatusCreated {
			t.Errorf("afterwards: %d %.300s", status, answer)
		}
	}
}
