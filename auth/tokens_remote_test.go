package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"writ"
	"writ/auth"
)

const keysAt = "https://idp.example/keys"

// serve is a Fetch that answers what set says and counts.
func serve(n *int, set func() string) func(context.Context, string) ([]byte, error) {
	return func(_ context.Context, url string) ([]byte, error) {
		if url != keysAt {
			return nil, fmt.Errorf("asked for %s", url)
		}
		*n++
		return []byte(set()), nil
	}
}

func TestJW04_RotationAtAnAddress(t *testing.T) {
	k1, k2 := ed25519Signer(t, "k1"), ed25519Signer(t, "k2")
	set, fetches := jwks(t, k1.jwk), 0
	c := tokens(t, auth.KeySources{URL: keysAt, Fetch: serve(&fetches, func() string { return set })})
	life := map[string]any{"exp": at.Unix() + 290}
	one, two := k1.token(t, life), k2.token(t, life)
	want := func(n int) {
		t.Helper()
		if fetches != n {
			t.Errorf("%d fetches, want %d", fetches, n)
		}
	}
	want(0) // a start needs no answer
	wantReason(t, c, one, at, "")
	want(1)
	set = jwks(t, k1.jwk, k2.jwk)
	wantReason(t, c, two, at.Add(9*time.Second), auth.ReasonUnknownKid)
	want(1)
	wantReason(t, c, two, at.Add(10*time.Second), "")
	wantReason(t, c, one, at.Add(11*time.Second), "")
	want(2)
	set = jwks(t, k2.jwk)
	wantReason(t, c, one, at.Add(39*time.Second), "")
	want(2)
	wantReason(t, c, one, at.Add(40*time.Second), auth.ReasonUnknownKid)
	wantReason(t, c, two, at.Add(40*time.Second), "")
	want(3)
}

func TestJW05_FloodOfUnknownKids(t *testing.T) {
	k1, k2 := ed25519Signer(t, "k1"), ed25519Signer(t, "k2")
	set, fetches := jwks(t, k1.jwk), 0
	c := tokens(t, auth.KeySources{URL: keysAt, Fetch: serve(&fetches, func() string { return set })})
	life := map[string]any{"exp": at.Unix() + 290}
	one, two := k1.token(t, life), k2.token(t, life)
	forged := signer{alg: "EdDSA", sign: func([]byte) []byte { return make([]byte, 64) }}
	accepted := time.Duration(0)
	const rotated = 25 * time.Second
	for i := range 1000 { // 50 s
		since := time.Duration(i) * 50 * time.Millisecond
		forged.kid = fmt.Sprintf("kid-%d", i)
		wantReason(t, c, forged.token(t, nil), at.Add(since), auth.ReasonUnknownKid)
		wantReason(t, c, one, at.Add(since), "")
		if since == rotated {
			set = jwks(t, k1.jwk, k2.jwk)
		}
		if since >= rotated && accepted == 0 {
			if _, err := c.Verify(t.Context(), two, at.Add(since)); err == nil {
				accepted = since
			}
		}
	}
	if fetches > 6 {
		t.Errorf("%d fetches in 50 s, want at most 6", fetches)
	}
	if accepted == 0 || accepted > rotated+10*time.Second {
		t.Errorf("the new key is known %v after the start, want it within 10 s of %v", accepted, rotated)
	}
}

func TestAddressThatFails(t *testing.T) {
	k1 := ed25519Signer(t, "k1")
	good := jwks(t, k1.jwk)
	var fail error
	answer, fetches := good, 0
	fetch := func(context.Context, string) ([]byte, error) {
		fetches++
		return []byte(answer), fail
	}
	at := at
	later := func(d time.Duration) string {
		at = at.Add(d)
		return k1.token(t, map[string]any{"iat": at.Unix(), "nbf": at.Unix(), "exp": at.Unix() + 300})
	}
	fail = errors.New("connection refused")
	c := tokens(t, auth.KeySources{URL: keysAt, Fetch: fetch})
	wantReason(t, c, later(0), at, auth.ReasonKeysUnavailable)
	wantReason(t, c, later(9*time.Second), at, auth.ReasonKeysUnavailable)
	if fetches != 1 {
		t.Errorf("%d fetches of what fails, want 1 in 10 s", fetches)
	}
	fail = nil
	wantReason(t, c, later(time.Second), at, "")

	// The last good set serves, whatever comes instead, for an hour.
	for name, bad := range map[string]string{
		"nonsense":    "<html>",
		"empty":       "",
		"private key": jwks(t, with(k1.jwk, "d", "AAAA")),
		"huge":        strings.Repeat(" ", auth.MaxKeySet+1),
	} {
		answer = bad
		t.Run(name, func(t *testing.T) { wantReason(t, c, later(5*time.Minute), at, "") })
	}
	fail = errors.New("connection refused")
	wantReason(t, c, later(40*time.Minute-time.Second), at, "")
	wantReason(t, c, later(time.Second), at, auth.ReasonKeysUnavailable)
	answer, fail = good, nil
	wantReason(t, c, later(10*time.Second), at, "")
	// A set that has no key for tokens is an answer.
	answer = `{"keys":[]}`
	wantReason(t, c, later(30*time.Second), at, auth.ReasonUnknownKid)
}

// Of two keys of one id the later counts, as in every source; bound, neither is known to
// be the right one, and the set is none.
func TestTwoKeysOfOneIDAtAnAddress(t *testing.T) {
	first, later := ed25519Signer(t, "k1"), ed25519Signer(t, "k1")
	set, fetches := jwks(t, first.jwk, later.jwk), 0
	src := auth.KeySources{URL: keysAt, Fetch: serve(&fetches, func() string { return set })}
	c := tokens(t, src)
	wantReason(t, c, first.token(t, nil), at, auth.ReasonBadSignature)
	wantReason(t, c, later.token(t, nil), at, "")
	for _, bound := range []map[string]any{with(first.jwk, "tenants", []string{"acme"}), with(with(first.jwk, "use", "enc"), "tenants", []string{"acme"})} {
		set = jwks(t, bound, later.jwk)
		wantReason(t, tokens(t, src), later.token(t, nil), at, auth.ReasonKeysUnavailable)
		wantReason(t, c, later.token(t, nil), at.Add(30*time.Second), "") // by the last good set
	}
}

func TestClockThatGoesBackLocksNobodyOut(t *testing.T) {
	k1, k2 := ed25519Signer(t, "k1"), ed25519Signer(t, "k2")
	set, fetches := jwks(t, k1.jwk), 0
	c := tokens(t, auth.KeySources{URL: keysAt, Fetch: serve(&fetches, func() string { return set })})
	future := at.Add(24 * time.Hour)
	wantReason(t, c, k1.token(t, map[string]any{"iat": future.Unix(), "nbf": future.Unix(), "exp": future.Unix() + 300}), future, "")
	set = jwks(t, k2.jwk)
	wantReason(t, c, k2.token(t, nil), at, "")
	wantReason(t, c, k1.token(t, nil), at, auth.ReasonUnknownKid)
}

// While one fetch is under way all who need it wait for it, and those who do not,
// do not; who gives up is let go, and takes nobody along.
func TestOneFetchForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k1, k2 := ed25519Signer(t, "k1"), ed25519Signer(t, "k2")
		var fetches atomic.Int32
		release := make(chan struct{})
		fetch := func(ctx context.Context, _ string) ([]byte, error) {
			if fetches.Add(1) == 1 {
				return []byte(jwks(t, k1.jwk)), nil
			}
			select {
			case <-release:
				return []byte(jwks(t, k1.jwk, k2.jwk)), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		c := tokens(t, auth.KeySources{URL: keysAt, Fetch: fetch})
		one, two := k1.token(t, nil), k2.token(t, nil)
		wantReason(t, c, one, at, "")
		now := at.Add(10 * time.Second)

		first, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		errs := make([]error, 20)
		for i := range errs {
			ctx := t.Context()
			if i == 0 {
				ctx = first
			}
			wg.Go(func() { _, errs[i] = c.Verify(ctx, two, now) })
			synctest.Wait()
		}
		wantReason(t, c, one, now, "") // does not wait

		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Verify(gone, two, now); !errors.Is(err, context.Canceled) || writ.KindOf(err) != writ.Internal {
			t.Errorf("who gave up gets %v", err)
		}
		leave()
		synctest.Wait()
		close(release)
		wg.Wait()
		for i, err := range errs {
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		}
		if n := fetches.Load(); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
	})
}

// TestJW04_ASlowAddressKeepsNobodyLong has an address that does not answer any more. Who
// has the fetch made waits until it is given up; others whose key was there the last time
// wait a moment, and not at all while it is known to fail; it is told each time.
func TestJW04_ASlowAddressKeepsNobodyLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k1, k2 := ed25519Signer(t, "k1"), ed25519Signer(t, "k2")
		hangs := false
		var told []string
		c := tokens(t, auth.KeySources{URL: keysAt, Fetch: func(ctx context.Context, _ string) ([]byte, error) {
			if !hangs {
				return []byte(jwks(t, k1.jwk)), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}, Failed: func(_ context.Context, err error) { told = append(told, err.Error()) }})
		life := map[string]any{"exp": at.Unix() + 290}
		one, two := k1.token(t, life), k2.token(t, life)
		wantReason(t, c, one, at, "")
		hangs = true
		var wg sync.WaitGroup
		waited := func(token string, now time.Time, want auth.Reason, long time.Duration) {
			wg.Go(func() {
				began := time.Now()
				_, err := c.Verify(t.Context(), token, now)
				if took := time.Since(began); auth.ReasonOf(err) != want || took != long {
					t.Errorf("after %v: %v, want %q after %v", took, err, want, long)
				}
			})
			synctest.Wait()
		}
		now := at.Add(31 * time.Second)
		waited(one, now, "", 5*time.Second)
		waited(one, now, "", time.Second)
		waited(two, now, auth.ReasonUnknownKid, 5*time.Second)
		wg.Wait()
		waited(one, now.Add(9*time.Second), "", 0) // no fetch is due
		now = now.Add(10 * time.Second)
		waited(one, now, "", 5*time.Second)
		waited(one, now, "", 0)
		waited(two, now, auth.ReasonUnknownKid, 5*time.Second)
		wg.Wait()
		if len(told) != 2 || !strings.Contains(told[0], "deadline exceeded") {
			t.Errorf("told %q", told)
		}
	})
}

func TestFetchThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k1 := ed25519Signer(t, "k1")
		fetch := func(ctx context.Context, _ string) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		c := tokens(t, auth.KeySources{URL: keysAt, Fetch: fetch})
		wantReason(t, c, k1.token(t, nil), at, auth.ReasonKeysUnavailable)
	})
}

func TestFetchThatPanicsLeavesNobodyWaiting(t *testing.T) {
	k1 := ed25519Signer(t, "k1")
	broken := true
	c := tokens(t, auth.KeySources{URL: keysAt, Fetch: func(context.Context, string) ([]byte, error) {
		if broken {
			panic("a bug")
		}
		return []byte(jwks(t, k1.jwk)), nil
	}})
	func() {
		defer func() { _ = recover() }()
		_, _ = c.Verify(t.Context(), k1.token(t, nil), at)
		t.Error("the panic was swallowed")
	}()
	wantReason(t, c, k1.token(t, nil), at, auth.ReasonKeysUnavailable)
	broken = false
	wantReason(t, c, k1.token(t, nil), at.Add(10*time.Second), "")
}

// What was configured here goes before what an address says, but not when either
// binds the key: then nobody knows for whom it signs.
func TestAddressOverridesNothing(t *testing.T) {
	own, theirs, new := ed25519Signer(t, "k1"), ed25519Signer(t, "k1"), ed25519Signer(t, "k2")
	set, fetches := jwks(t, theirs.jwk, new.jwk), 0
	fetch := serve(&fetches, func() string { return set })
	c := tokens(t, auth.KeySources{JWKS: jwks(t, own.jwk), URL: keysAt, Fetch: fetch})
	wantReason(t, c, own.token(t, nil), at, "")
	if fetches != 0 {
		t.Errorf("%d fetches for a key that is here", fetches)
	}
	wantReason(t, c, new.token(t, nil), at, "")
	wantReason(t, c, theirs.token(t, nil), at, auth.ReasonBadSignature)
	wantReason(t, c, own.token(t, nil), at, "")

	for name, sets := range map[string][2]string{
		"bound here":  {jwks(t, with(own.jwk, "tenants", []any{"acme"})), jwks(t, theirs.jwk, new.jwk)},
		"bound there": {jwks(t, own.jwk), jwks(t, with(theirs.jwk, "tenants", []any{"acme"}), new.jwk)},
	} {
		t.Run(name, func(t *testing.T) {
			set = sets[1]
			c := tokens(t, auth.KeySources{JWKS: sets[0], URL: keysAt, Fetch: fetch})
			wantReason(t, c, new.token(t, nil), at, "")
			wantReason(t, c, own.token(t, nil), at, auth.ReasonConfig)
			wantReason(t, c, theirs.token(t, nil), at, auth.ReasonConfig)
		})
	}
	set = jwks(t, with(new.jwk, "tenants", []any{"globex"}))
	bound := tokens(t, auth.KeySources{URL: keysAt, Fetch: fetch})
	wantReason(t, bound, new.token(t, nil), at, auth.ReasonTenantNotAllowed)
	wantReason(t, bound, new.token(t, map[string]any{"tenant_id": "globex"}), at, "")
}

func TestNET05_AddressesOfKeys(t *testing.T) {
	for raw, ok := range map[string]bool{
		"https://idp.example/keys":           true,
		"https://idp.example:8443/keys?v=2":  true,
		"https://10.0.0.7/keys":              true,
		"http://127.0.0.1:9000/keys":         true,
		"http://[::1]/keys":                  true,
		"http://[::ffff:127.0.0.1]/keys":     true,
		"http://localhost/keys":              true,
		"http://idp.example/keys":            false,
		"http://localhost.evil.example/keys": false,
		"http://127.0.0.1.evil.example/keys": false,
		"http://0.0.0.0/keys":                false,
		"http://10.0.0.7/keys":               false,
		"https://a:b@idp.example/keys":       false,
		"https://idp.example/keys#x":         false,
		"https:///keys":                      false,
		"https:idp.example":                  false,
		"file:///etc/passwd":                 false,
		"ftp://127.0.0.1/keys":               false,
		"idp.example/keys":                   false,
		"/keys":                              false,
		"https://idp.example\n/keys":         false,
		"":                                   false,
	} {
		if err := auth.CheckKeyURL(raw); (err == nil) != ok {
			t.Errorf("CheckKeyURL(%q) = %v, want it accepted: %t", raw, err, ok)
		}
	}
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{"https://idp.example/a", "https://idp.example/b?c", true},
		{"https://idp.example/a", "https://IDP.example/b", true},
		{"https://idp.example/a", "https://evil.example/a", false},
		{"https://idp.example/a", "https://idp.example:444/a", false},
		{"https://idp.example/a", "http://idp.example/a", false},
		{"http://127.0.0.1:1/a", "http://127.0.0.1:2/a", false},
		{"https://idp.example/a", "https://x@idp.example/a", false},
		{"https://idp.example/a", "http://169.254.169.254/", false},
	} {
		from, err := url.Parse(tt.from)
		if err != nil {
			t.Fatal(err)
		}
		to, err := url.Parse(tt.to)
		if err != nil {
			t.Fatal(err)
		}
		if err := auth.CheckKeyRedirect(from, to); (err == nil) != tt.ok {
			t.Errorf("from %s to %s: %v, want it followed: %t", tt.from, tt.to, err, tt.ok)
		}
	}
}
