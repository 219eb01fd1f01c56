package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"writ"
	"writ/auth"
	"writ/config"
	"writ/store"
)

// tokensOf checks the tokens of in's front end. It reads all keys but those at an
// address; failed, unless it is nil, is told when those could not be fetched.
func tokensOf(in config.Interpreter, now time.Time, failed func(context.Context, error)) (*auth.Tokens, error) {
	k := in.JWT.Keys
	src := auth.KeySources{
		JWKS: k.JWKS, File: k.File, Folder: k.Folder, Public: k.Public, PublicID: k.PublicID,
		Secret: k.Secret, URL: k.URL, Fetch: fetchKeys, Failed: failed,
	}
	if k.Secret != "" {
		src.SecretID = k.SecretID
	}
	tokens, err := auth.NewTokens(src, auth.TokenOptions{
		Issuer: in.JWT.Issuer, Audience: in.JWT.Audience, Algs: in.JWT.Algs,
		Skew: in.JWT.Skew, MaxTTL: in.JWT.MaxTTL, Refresh: in.JWT.Refresh,
		Strict: in.StrictTenants, SingleTenant: in.JWT.SingleTenant, Scopes: in.Scopes,
	}, now)
	if err != nil {
		return nil, &writ.Error{Op: "read keys of tokens", Kind: writ.Invalid, Err: err,
			Msg: "interpreter.jwt.keys, in the configuration or a CODEAPI_JWT_ variable: " + err.Error()}
	}
	return tokens, nil
}

// newFront is who the users of the code interpreter's API are.
func (s *system) newFront(in config.Interpreter) (*auth.Front, error) {
	opt := auth.FrontOptions{
		Provider: auth.Provider(in.Auth), Scopes: in.Scopes, Refused: s.refusedUser,
		Synthetic: auth.Synthetic{Secret: in.Synthetic.Token.Reveal(), User: in.Synthetic.User, Tenant: in.Synthetic.Tenant},
	}
	if in.Auth == config.AuthJWT {
		var err error
		if opt.Tokens, err = tokensOf(in, time.Now(), s.keysFailed); err != nil {
			return nil, err
		}
	}
	return auth.NewFront(opt)
}

// keysFailed tells the operator, before the last keys that were fetched are too old and
// nobody comes in any more.
func (s *system) keysFailed(ctx context.Context, err error) {
	s.slog.WarnContext(ctx, "the keys of tokens cannot be fetched; the last ones serve on for a while", "err", err, "see", "interpreter.jwt.keys.url")
}

// refusedUser records, within bounds, that somebody was refused.
func (s *system) refusedUser(ctx context.Context, why auth.Reason, detail string) {
	ctx = context.WithoutCancel(ctx) // also of a client that hangs up
	switch why {
	case auth.ReasonConfig, auth.ReasonKeysUnavailable: // no fault of who came
		if _, due := s.refusals.Due(string(why), time.Now()); due {
			s.slog.ErrorContext(ctx, "tokens of the code interpreter cannot be checked", "reason", string(why), "detail", detail)
		}
		return
	}
	s.record(ctx, string(why), writ.Event{Type: writ.EventAuthRefused, Data: writ.EventData{Reason: fmt.Sprintf("code interpreter: %s: %s", why, detail)}})
}

// foreign records, within bounds, that p asked for what is another's. what has ids alone.
// It does not keep p waiting, who could tell by that what there is (case IO-11).
func (s *system) foreign(ctx context.Context, p writ.Principal, what string) {
	s.work.Go(func() {
		s.record(context.WithoutCancel(ctx), string(p.Tenant)+"\x00"+p.Ref().String(), writ.Event{
			Type: writ.EventAuthRefused, Tenant: p.Tenant, Actor: p.Ref(),
			Data: writ.EventData{Reason: "code interpreter: it asked for " + what + ", which is not its own"},
		})
	})
}

// recordTime bounds the wait for a store that does not answer: who is refused waits for it,
// and so does a server that is told to stop.
const recordTime = 5 * time.Second

// record appends a refusal to the log, if those of caller are not too many. One that cannot
// be recorded is logged, and is still a refusal.
func (s *system) record(ctx context.Context, caller string, e writ.Event) {
	dropped, due := s.refusals.Due(caller, time.Now())
	if !due {
		return
	}
	e.Data.Count = dropped
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	err := s.db.Update(ctx, func(tx *store.Tx) error {
		_, err := s.log.Append(ctx, tx, e)
		return err
	})
	if err != nil {
		s.slog.ErrorContext(ctx, "a refusal of the code interpreter was not recorded", "err", err)
	}
}

const maxKeyRedirects = 3

// fetchKeys is the body of a GET of url, as auth.KeySources wants it.
func fetchKeys(ctx context.Context, url string) ([]byte, error) {
	c := &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ResponseHeaderTimeout: 5 * time.Second},
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			if len(via) > maxKeyRedirects {
				return errors.New("too many redirects")
			}
			return auth.CheckKeyRedirect(via[len(via)-1].URL, to.URL)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", req.URL.Redacted(), resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, auth.MaxKeySet+1))
}
