package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/auth"
)

// directory is keys and subjects in memory, with a way to fail.
type directory struct {
	mu         sync.Mutex
	keys       map[writ.KeyID]writ.Key
	identities map[writ.IdentityID]writ.Identity
	operators  map[string]writ.Operator
	keyErr     error
	subjectErr error
	lookups    int
}

func newDirectory() *directory {
	return &directory{
		keys: map[writ.KeyID]writ.Key{},
		identities: map[writ.IdentityID]writ.Identity{
			"coder": {ID: "coder", Tenant: "acme", Roles: []string{"builder"}, Scopes: []writ.Scope{"python"}},
		},
		operators: map[string]writ.Operator{"alice": {ID: "alice", Tenant: "acme", Roles: []string{"security"}}},
	}
}

func (d *directory) Key(_ context.Context, id writ.KeyID) (writ.Key, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lookups++
	if d.keyErr != nil {
		return writ.Key{}, d.keyErr
	}
	k, ok := d.keys[id]
	if !ok {
		return writ.Key{}, &writ.Error{Kind: writ.NotFound, Msg: fmt.Sprintf("there is no key %q", id)}
	}
	return k, nil
}

func (d *directory) Subject(_ context.Context, k writ.Key) (writ.Principal, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.subjectErr != nil {
		return writ.Principal{}, d.subjectErr
	}
	if id, ok := d.identities[writ.IdentityID(k.Subject)]; ok && k.Kind == writ.KindAgent {
		return id.Principal(), nil
	}
	if o, ok := d.operators[k.Subject]; ok && k.Kind == writ.KindOperator && o.Disabled == nil {
		return o.Principal(), nil
	}
	return writ.Principal{}, &writ.Error{Kind: writ.NotFound, Msg: "gone"}
}

func (d *directory) add(t *testing.T, kind writ.PrincipalKind, subject string, expires *time.Time) writ.NewKey {
	t.Helper()
	k, err := auth.NewKey(kind, subject, "acme", expires, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	d.keys[k.ID] = k.Key
	return k
}

func TestBearerIsTheLiveSubject(t *testing.T) {
	d := newDirectory()
	a := auth.New(d, d)
	agent, operator := d.add(t, writ.KindAgent, "coder", nil), d.add(t, writ.KindOperator, "alice", nil)
	for token, want := range map[string]writ.Principal{
		agent.Token:    {Kind: writ.KindAgent, ID: "coder", Tenant: "acme", Roles: []string{"builder"}, Scopes: []writ.Scope{"python"}},
		operator.Token: {Kind: writ.KindOperator, ID: "alice", Tenant: "acme", Roles: []string{"security"}},
	} {
		got, err := a.Bearer(t.Context(), token, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	// Rights are those of now, not those of when the key was made.
	d.identities["coder"] = writ.Identity{ID: "coder", Tenant: "acme"}
	if p, err := a.Bearer(t.Context(), agent.Token, time.Now()); err != nil || len(p.Scopes) != 0 || len(p.Roles) != 0 {
		t.Errorf("after the identity lost its rights: %+v, %v", p, err)
	}
}

func TestCP03_NewKeyKeepsNoSecret(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		k, err := auth.NewKey(writ.KindAgent, "coder", "acme", nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		id, secret, ok := strings.Cut(strings.TrimPrefix(k.Token, "writ_"), "_")
		if !ok || id != string(k.ID) || len(secret) != 43 || !writ.ValidName(id) {
			t.Fatalf("token is %q of key %q", k.Token, k.ID)
		}
		if kept := fmt.Sprintf("%+v", k.Key); strings.Contains(kept, secret) {
			t.Fatalf("the stored key has the secret: %s", kept)
		}
		if k.Hash != writ.DigestOf([]byte(secret)) {
			t.Fatal("the hash is not of the secret")
		}
		if seen[id] || seen[secret] {
			t.Fatal("an id or a secret came twice")
		}
		seen[id], seen[secret] = true, true
	}
}

func TestNewKeyRefusesWhatIsNoKey(t *testing.T) {
	now := time.Now()
	past := now.Add(-time.Second)
	for name, call := range map[string]func() (writ.NewKey, error){
		"kind":         func() (writ.NewKey, error) { return auth.NewKey(writ.KindLocal, "coder", "acme", nil, now) },
		"no kind":      func() (writ.NewKey, error) { return auth.NewKey("", "coder", "acme", nil, now) },
		"subject":      func() (writ.NewKey, error) { return auth.NewKey(writ.KindAgent, "a b", "acme", nil, now) },
		"tenant":       func() (writ.NewKey, error) { return auth.NewKey(writ.KindAgent, "coder", "", nil, now) },
		"expires":      func() (writ.NewKey, error) { return auth.NewKey(writ.KindAgent, "coder", "acme", &past, now) },
		"expires just": func() (writ.NewKey, error) { return auth.NewKey(writ.KindAgent, "coder", "acme", &now, now) },
	} {
		if k, err := call(); writ.KindOf(err) != writ.Invalid || k.Token != "" {
			t.Errorf("%s: %+v, %v, want Invalid", name, k, err)
		}
	}
}

// Whatever is wrong with a token, the caller reads one message, and no error has a
// part of the secret in it.
func TestCP03_OneMessageForAllCausesAndNoTokenInIt(t *testing.T) {
	at := time.Now()
	soon := at.Add(time.Hour)
	const message = "the API key is not valid: it is malformed, unknown, revoked or expired, or its owner is gone"
	tests := map[string]struct {
		change func(d *directory, k *writ.NewKey)
		cause  string
	}{
		"empty":          {func(_ *directory, k *writ.NewKey) { k.Token = "" }, "malformed"},
		"no prefix":      {func(_ *directory, k *writ.NewKey) { k.Token = k.Token[5:] }, "malformed"},
		"other prefix":   {func(_ *directory, k *writ.NewKey) { k.Token = "WRIT_" + k.Token[5:] }, "malformed"},
		"no secret":      {func(_ *directory, k *writ.NewKey) { k.Token = k.Token[:22] }, "malformed"},
		"secret cut":     {func(_ *directory, k *writ.NewKey) { k.Token = k.Token[:64] }, "malformed"},
		"longer":         {func(_ *directory, k *writ.NewKey) { k.Token += "A" }, "malformed"},
		"space behind":   {func(_ *directory, k *writ.NewKey) { k.Token += " " }, "malformed"},
		"newline inside": {func(_ *directory, k *writ.NewKey) { k.Token = k.Token[:64] + "\n" }, "malformed"},
		"padded":         {func(_ *directory, k *writ.NewKey) { k.Token = k.Token[:64] + "=" }, "malformed"},
		"other alphabet": {func(_ *directory, k *writ.NewKey) { k.Token = k.Token[:40] + "+/" + k.Token[42:] }, "malformed"},
		"bits to spare":  {func(_ *directory, k *writ.NewKey) { k.Token = k.Token[:64] + "B" }, "malformed"},
		"capital id":     {func(_ *directory, k *writ.NewKey) { k.Token = "writ_" + strings.ToUpper(k.Token[5:21]) + k.Token[21:] }, "malformed"},
		"NUL":            {func(_ *directory, k *writ.NewKey) { k.Token = k.Token[:30] + "\x00" + k.Token[31:] }, "malformed"},
		"huge":           {func(_ *directory, k *writ.NewKey) { k.Token = strings.Repeat(k.Token, 10_000) }, "malformed"},

		"unknown id": {func(d *directory, k *writ.NewKey) { delete(d.keys, k.ID) }, "no key has this id"},
		"another's id": {func(d *directory, k *writ.NewKey) {
			o := d.add(t, writ.KindAgent, "coder", nil)
			k.Token = o.Token[:22] + k.Token[22:]
		}, "the secret is wrong"},
		"wrong secret":  {func(_ *directory, k *writ.NewKey) { k.Token = k.Token[:30] + flip(k.Token[30]) + k.Token[31:] }, "the secret is wrong"},
		"no hash kept":  {func(d *directory, k *writ.NewKey) { x := k.Key; x.Hash = ""; d.keys[k.ID] = x }, "the secret is wrong"},
		"revoked":       {func(d *directory, k *writ.NewKey) { x := k.Key; x.Revoked = &at; d.keys[k.ID] = x }, "was revoked"},
		"revoked later": {func(d *directory, k *writ.NewKey) { x := k.Key; x.Revoked = &soon; d.keys[k.ID] = x }, "was revoked"},
		"expired":       {func(d *directory, k *writ.NewKey) { x := k.Key; x.Expires = &at; d.keys[k.ID] = x }, "expired at"},
		"identity gone": {func(d *directory, _ *writ.NewKey) { delete(d.identities, "coder") }, "is gone or disabled"},
		"identity moved": {func(d *directory, _ *writ.NewKey) {
			d.identities["coder"] = writ.Identity{ID: "coder", Tenant: "other"}
		}, "of tenant"},
		"operator disabled": {func(d *directory, k *writ.NewKey) {
			*k = d.add(t, writ.KindOperator, "alice", nil)
			d.operators["alice"] = writ.Operator{ID: "alice", Tenant: "acme", Disabled: &at}
		}, "is gone or disabled"},
		"operator's key for an identity's name": {func(d *directory, k *writ.NewKey) { x := k.Key; x.Kind = writ.KindOperator; d.keys[k.ID] = x }, "is gone or disabled"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDirectory()
			k := d.add(t, writ.KindAgent, "coder", nil)
			tt.change(d, &k)
			p, err := auth.New(d, d).Bearer(t.Context(), k.Token, at)
			if writ.KindOf(err) != writ.Unauthenticated || writ.Message(err) != message {
				t.Fatalf("Bearer = %+v, %v, want Unauthenticated with the one message", p, err)
			}
			if diff := cmp.Diff(writ.Principal{}, p); diff != "" {
				t.Errorf("a principal came with the error:\n%s", diff)
			}
			cause := errors.Unwrap(err)
			if cause == nil || !strings.Contains(cause.Error(), tt.cause) {
				t.Errorf("cause is %v, want %q in it", cause, tt.cause)
			}
			noToken(t, err, k.Token)
		})
	}
}

func flip(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

// noToken fails when a piece of token's secret stands anywhere in err.
func noToken(t *testing.T, err error, token string) {
	t.Helper()
	secret := token[min(len(token), 22):]
	for ; err != nil; err = errors.Unwrap(err) {
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
			for i := 0; i+6 <= len(secret) && i < 100; i++ {
				if strings.Contains(text, secret[i:i+6]) {
					t.Fatalf("%q has a piece of the secret in it", text)
				}
			}
		}
	}
}

func TestUnknownIdAndWrongSecretTakeOnePath(t *testing.T) {
	d := newDirectory()
	k := d.add(t, writ.KindAgent, "coder", nil)
	gone := d.add(t, writ.KindAgent, "coder", nil)
	delete(d.keys, gone.ID)
	a := auth.New(d, d)
	for name, token := range map[string]string{"unknown": gone.Token, "wrong": k.Token[:64] + "A", "right": k.Token} {
		before := d.lookups
		_, _ = a.Bearer(t.Context(), token, time.Now())
		if n := d.lookups - before; n != 1 {
			t.Errorf("%s: %d lookups, want 1", name, n)
		}
	}
}

func TestBearerPassesOnThatItCouldNotAsk(t *testing.T) {
	down := &writ.Error{Kind: writ.Unavailable, Msg: "the database does not answer"}
	for name, set := range map[string]func(d *directory){
		"keys":     func(d *directory) { d.keyErr = down },
		"subjects": func(d *directory) { d.subjectErr = down },
	} {
		d := newDirectory()
		k := d.add(t, writ.KindAgent, "coder", nil)
		set(d)
		_, err := auth.New(d, d).Bearer(t.Context(), k.Token, time.Now())
		if writ.KindOf(err) != writ.Unavailable {
			t.Errorf("%s: %v, want Unavailable", name, err)
		}
		noToken(t, err, k.Token)
	}
}

func TestKeysExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDirectory()
		a := auth.New(d, d)
		end := time.Now().Add(time.Hour)
		k := d.add(t, writ.KindAgent, "coder", &end)
		time.Sleep(time.Hour - time.Nanosecond)
		if _, err := a.Bearer(t.Context(), k.Token, time.Now()); err != nil {
			t.Errorf("just before: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if _, err := a.Bearer(t.Context(), k.Token, time.Now()); writ.KindOf(err) != writ.Unauthenticated {
			t.Errorf("at its end: %v", err)
		}
	})
}

func TestCP03_FailuresAreLimitedAndTheRightKeyIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDirectory()
		a := auth.New(d, d)
		k, other := d.add(t, writ.KindAgent, "coder", nil), d.add(t, writ.KindOperator, "alice", nil)
		guess := k.Token[:64] + "A"
		if guess == k.Token {
			guess = k.Token[:64] + "E"
		}
		kinds := func(token string, n int) map[writ.Kind]int {
			count := map[writ.Kind]int{}
			for range n {
				_, err := a.Bearer(t.Context(), token, time.Now())
				noToken(t, err, token)
				count[writ.KindOf(err)]++
			}
			return count
		}
		if diff := cmp.Diff(map[writ.Kind]int{writ.Unauthenticated: 10, writ.Exhausted: 90}, kinds(guess, 100)); diff != "" {
			t.Errorf("100 guesses at once:\n%s", diff)
		}
		for name, token := range map[string]string{"its own": k.Token, "another": other.Token} {
			if _, err := a.Bearer(t.Context(), token, time.Now()); err != nil {
				t.Errorf("%s right key is refused while guesses are limited: %v", name, err)
			}
		}
		time.Sleep(12 * time.Second)
		if diff := cmp.Diff(map[writ.Kind]int{writ.Unauthenticated: 2, writ.Exhausted: 8}, kinds(guess, 10)); diff != "" {
			t.Errorf("12 seconds later:\n%s", diff)
		}
		time.Sleep(time.Hour)
		if diff := cmp.Diff(map[writ.Kind]int{writ.Unauthenticated: 10, writ.Exhausted: 1}, kinds(guess, 11)); diff != "" {
			t.Errorf("an hour later:\n%s", diff)
		}
		// The clock is set back: stricter for a moment, never for good.
		past := time.Now().Add(-24 * time.Hour)
		if _, err := a.Bearer(t.Context(), guess, past); writ.KindOf(err) != writ.Exhausted {
			t.Errorf("just after the clock went back: %v", err)
		}
		if _, err := a.Bearer(t.Context(), guess, past.Add(time.Minute)); writ.KindOf(err) != writ.Unauthenticated {
			t.Errorf("a minute after the clock went back: %v", err)
		}
	})
}

func TestBearerInParallel(t *testing.T) {
	d := newDirectory()
	a := auth.New(d, d)
	k := d.add(t, writ.KindAgent, "coder", nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				token, want := k.Token, error(nil)
				if i%2 == 1 {
					token = "writ_nonsense"
				}
				_, err := a.Bearer(context.Background(), token, time.Now())
				if (err == nil) != (i%2 == 0) {
					t.Errorf("token %d: %v, want %v", i, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestPeerUID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	uid, pid, err := auth.PeerUID(server.(*net.UnixConn))
	if err != nil || uid != uint32(os.Getuid()) || pid != int32(os.Getpid()) {
		t.Errorf("PeerUID = %d, %d, %v, want %d, %d", uid, pid, err, os.Getuid(), os.Getpid())
	}
	server.Close()
	if _, _, err := auth.PeerUID(server.(*net.UnixConn)); err == nil {
		t.Error("a closed connection has a peer")
	}
}

func TestPeerUIDRefusesTCP(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if uid, pid, err := auth.PeerUID(client.(*net.TCPConn)); err == nil || uid != 0 || pid != 0 {
		t.Errorf("PeerUID of a TCP connection = %d, %d, %v, want an error", uid, pid, err)
	}
}

func TestLocal(t *testing.T) {
	for name, want := range map[string]string{"": "uid-1000", "1000": "uid-1000", "alice": "uid-1000.alice", "a b": "uid-1000", strings.Repeat("x", 60): "uid-1000"} {
		got := auth.Local(1000, name)
		if diff := cmp.Diff(writ.Principal{Kind: writ.KindLocal, ID: want, Tenant: writ.DefaultTenant}, got); diff != "" {
			t.Errorf("Local(1000, %q):\n%s", name, diff)
		}
	}
}

func FuzzBearer(f *testing.F) {
	k, err := auth.NewKey(writ.KindAgent, "coder", "acme", nil, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	d := newDirectory()
	d.keys[k.ID] = k.Key
	f.Add(k.Token)
	f.Add("")
	f.Add("writ_" + strings.Repeat("a", 16) + "_" + strings.Repeat("A", 43))
	f.Fuzz(func(t *testing.T, token string) {
		_, err := auth.New(d, d).Bearer(t.Context(), token, time.Now())
		if (err == nil) != (token == k.Token) {
			t.Errorf("Bearer(%q) = %v", token, err)
		}
	})
}
