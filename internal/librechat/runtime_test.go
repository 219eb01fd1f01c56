package librechat

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestRuntimeSession: with affinity, what a run leaves is there for the next of the same
// user and hint, also after the server was killed, one run at a time (spec/03 §12).
func TestRuntimeSession(t *testing.T) {
	s := serve(t, setup{mode: signed, env: []string{"CODEAPI_RUNTIME_SESSION_MODE=affinity", "CODEAPI_RUNTIME_SESSION_LOCK_WAIT_MS=200"}})
	one, other := s.user("one").in(t), s.user("other").in(t)
	exec := func(c tester, hint, code string) (a answer, r run) {
		t.Helper()
		a, err := c.sendJSON(t.Context(), "/exec", map[string]any{"lang": "bash", "code": code, "runtime_session_hint": hint})
		c.took(http.StatusOK, "exec", a, err, &r)
		return a, r
	}
	if a, r := exec(one, "v2:user:1", "mkdir -p deep; echo kept > deep/a.bin; echo 1 > n.txt"); r.file("n.txt").ID == "" || !strings.Contains(string(a.body), `"runtime_status":"new"`) {
		t.Errorf("the first run: %s", a)
	}
	for what, c := range map[string]func() run{
		"another user":  func() run { _, r := exec(other, "v2:user:1", "ls"); return r },
		"another hint":  func() run { _, r := exec(one, "v2:user:2", "ls"); return r },
		"none":          func() run { _, r := exec(one, "", "ls"); return r },
		"a user's twin": func() run { _, r := exec(tester{user{s, "one", "elsewhere"}, t}, "v2:user:1", "ls"); return r },
	} {
		if r := c(); r.Stdout != "script.sh\n" {
			t.Errorf("%s finds %q", what, r.Stdout)
		}
	}
	s.kill()
	s.start()
	if a, r := exec(one, "v2:user:1", "cat deep/a.bin n.txt"); r.Stdout != "kept\n1\n" || !strings.Contains(string(a.body), `"runtime_status":"reused"`) {
		t.Errorf("the run after the server was killed: %s", a)
	}

	var over sync.WaitGroup
	over.Go(func() {
		a, err := one.sendJSON(t.Context(), "/exec", map[string]any{"lang": "bash", "code": "sleep " + seconds(15) + "; echo 2 > n.txt", "runtime_session_hint": "v2:user:1"})
		if err != nil || a.status != http.StatusOK {
			t.Errorf("the run that has the session: %v %s", err, a)
		}
	})
	running(t, seconds(15))
	a, err := one.sendJSON(t.Context(), "/exec", map[string]any{"lang": "bash", "code": "cat n.txt", "runtime_session_hint": "v2:user:1"})
	if one.took(http.StatusConflict, "exec in a session that is busy", a, err, nil); string(a.body) != `{"error":"runtime_session_busy","message":"Runtime session is busy"}` {
		t.Errorf("a session that is busy: %s", a)
	}
	over.Wait()
	if _, r := exec(one, "v2:user:1", "cat n.txt"); r.Stdout != "2\n" {
		t.Errorf("after the run that had the session: %+v", r)
	}
}
