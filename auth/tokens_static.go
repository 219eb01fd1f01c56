package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"writ"
)

const (
	maxKeyFiles = 1000
	// brokenFor is for how long keys that could not be read are not read again.
	brokenFor = time.Second
)

// KeySources is where the keys of tokens come from. Of two keys with one id the
// later source's counts, and all before the address (spec/03 §3.3).
type KeySources struct {
	JWKS string // a JWK set, as text
	File string // path of a JWK set

	// Folder is the path of one key a file, in PEM or as a JWK, whose name without
	// its extension is the key's id. Names that begin with a dot are left out.
	Folder string

	Public   string // one key, in PEM or as a JWK
	PublicID string // its id

	Secret   writ.Secret // of HS256, which must be among the algorithms; at least 32 bytes
	SecretID string      // its id

	URL string // of a JWK set: see CheckKeyURL

	// Fetch is the body of a successful GET of URL; it is called by one goroutine at a
	// time, with a deadline. It reads no more than MaxKeySet and one byte, and follows
	// a redirect only where CheckKeyRedirect lets it.
	Fetch func(ctx context.Context, url string) ([]byte, error)
	// Failed, if it is not nil, is told why URL had no set of keys, at most every ten
	// seconds, by the goroutine that fetched. The last set that it had serves on for an
	// hour; then nobody comes in by it.
	Failed func(ctx context.Context, err error)
}

// validate reports what can be seen without reading anything.
func (s KeySources) validate(algs []string) error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(s.Public != "" && (blank(s.PublicID) || len(s.PublicID) > maxKid), "the public key needs an id of 1 to %d bytes", maxKid)
	if s.Secret != "" {
		fault(len(s.Secret) < minSecret, "the secret of HS256 has %d bytes, want at least %d", len(s.Secret), minSecret)
		fault(blank(s.SecretID) || len(s.SecretID) > maxKid, "the secret of HS256 needs an id of 1 to %d bytes", maxKid)
		fault(!slices.Contains(algs, algHS256), "a secret is given, but HS256 is not among the algorithms: add it, or drop the secret")
	}
	if s.URL != "" {
		if err := CheckKeyURL(s.URL); err != nil {
			errs = append(errs, err)
		}
		fault(s.Fetch == nil, "an address of keys is given, and nothing that fetches it")
	}
	return errors.Join(errs...)
}

// staticKeys are the keys of all sources but the address, read again when they are
// older than refresh. While they cannot be read nobody comes in by them: what was
// taken away would be in force for who broke a file.
type staticKeys struct {
	src     KeySources
	refresh time.Duration

	mu   sync.Mutex
	read time.Time // guarded by mu; when set and err were made
	set  keySet    // guarded by mu
	err  error     // guarded by mu; why there is no set
}

// get is the keys now in force. The lock is held while files are read, since
// whoever comes meanwhile needs what is read.
func (s *staticKeys) get(now time.Time) (keySet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := s.refresh
	if s.err != nil {
		keep = min(keep, brokenFor)
	}
	if s.read.IsZero() || now.Sub(s.read).Abs() >= keep { // or the clock went back
		s.set, s.err = s.src.load()
		s.read = now
	}
	return s.set, s.err
}

// load reads every source, and reports every fault at once.
func (s KeySources) load() (keySet, error) {
	var all []entry
	var errs []error
	add := func(more []entry, err error) {
		all = append(all, more...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	if s.JWKS != "" {
		add(parseKeySet([]byte(s.JWKS), "the configured set of keys"))
	}
	if s.File != "" {
		if data, err := readKeyFile(s.File); err != nil {
			errs = append(errs, err)
		} else {
			add(parseKeySet(data, s.File))
		}
	}
	if s.Folder != "" {
		add(readKeyFolder(s.Folder))
	}
	if s.Public != "" {
		e, err := parsePublic([]byte(s.Public), s.PublicID, "the configured public key")
		add([]entry{e}, err)
	}
	if s.Secret != "" {
		all = append(all, entry{kid: s.SecretID, key: tokenKey{alg: algHS256, key: []byte(s.Secret), from: "the configured secret"}})
	}
	if err := errors.Join(errs...); err != nil {
		return keySet{}, err
	}
	return setOf(all)
}

// readKeyFolder is the keys of a folder's files.
func readKeyFolder(dir string) ([]entry, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read folder of keys: %w", err)
	}
	if len(files) > maxKeyFiles {
		return nil, fmt.Errorf("folder of keys %s has %d entries, at most %d", dir, len(files), maxKeyFiles)
	}
	var out []entry
	var errs []error
	byKid := map[string]string{}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if strings.HasPrefix(f.Name(), ".") { // also what mounted secrets are swapped by
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		kid := strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))
		if twin := byKid[kid]; twin != "" {
			errs = append(errs, fmt.Errorf("folder of keys %s: %s and %s are of one id", dir, twin, f.Name()))
			continue
		}
		byKid[kid] = f.Name()
		data, err := readKeyFile(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		e, err := parsePublic(data, kid, path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, e)
	}
	return out, errors.Join(errs...)
}

// readKeyFile is a file of at most MaxKeySet bytes; what is not a file, such as a
// pipe, is not waited for.
func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read keys: %s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxKeySet+1))
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	if len(data) > MaxKeySet {
		return nil, fmt.Errorf("read keys: %s has more than %d bytes", path, MaxKeySet)
	}
	return data, nil
}

// CheckKeyURL reports why keys may not be fetched from raw: it must be https, or
// http on this machine, by the name localhost or a loopback address, and have no
// user name and no fragment.
func CheckKeyURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("the address of keys is not a URL")
	}
	return checkKeyURL(u)
}

// CheckKeyRedirect reports why the way from one address of keys to another may not
// be followed: both must be of one scheme, host and port.
func CheckKeyRedirect(from, to *url.URL) error {
	if from.Scheme != to.Scheme || !strings.EqualFold(from.Host, to.Host) {
		return fmt.Errorf("the address of keys %s leads to another place, %s: configure the one that answers", from.Redacted(), to.Redacted())
	}
	return checkKeyURL(to)
}

func checkKeyURL(u *url.URL) error {
	switch {
	case u.Opaque != "" || u.Hostname() == "":
		return fmt.Errorf("the address of keys %q has no host", u.Redacted())
	case u.User != nil:
		return fmt.Errorf("the address of keys %q has a user name", u.Redacted())
	case u.Fragment != "":
		return fmt.Errorf("the address of keys %q has a fragment", u.Redacted())
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("the address of keys %q is neither https nor http on this machine", u.Redacted())
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
