package librechat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"writ/internal/testkit"
)

// soakers are how many clients work at once.
const soakers = 8

// growth is how much memory server and runner may have more than before: what the
// collector leaves lying differs from one moment to the next.
const growth = 64 << 10 // KiB

// spareFiles is how many descriptors either may have more: the store opens its readers as
// they are needed, and keeps them.
const spareFiles = 8

// TestSoak has clients upload, run, list, download and delete at once, for as long as
// WRIT_SOAK says. No byte may be another one, nothing of a run may be left, and server and
// runner hold at the end what they held after the first part.
func TestSoak(t *testing.T) {
	// Without boxes that wait: what is left is then of runs.
	s := serve(t, setup{mode: signed, config: "interpreter: {warm: 0}\n"})
	d := testkit.NewDice(t)
	all := make([]*soaker, soakers)
	for i := range all {
		all[i] = &soaker{user: s.user(fmt.Sprintf("soaker-%d", i)), dice: d.Fork(), done: map[string]int{}}
	}
	part := func(length time.Duration) held {
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		var group sync.WaitGroup
		for _, k := range all {
			group.Go(func() {
				for ctx.Err() == nil {
					// What has begun is brought to its end: ctx ends the soak, not the deed.
					if err := k.round(context.WithoutCancel(ctx)); err != nil {
						t.Errorf("%s: %v", k.name, err)
						return
					}
				}
			})
		}
		group.Wait()
		if t.Failed() {
			t.FailNow()
		}
		return s.atRest()
	}
	const parts = 3
	length := soakTime(t) / parts
	first := part(length)
	t.Logf("after part 1 of %d: %v", parts, first)
	var last held
	for i := 1; i < parts; i++ {
		last = part(length)
		t.Logf("after part %d of %d: %v", i+1, parts, last)
	}
	done := map[string]int{}
	for _, k := range all {
		for what, n := range k.done {
			done[what] += n
		}
	}
	t.Logf("done: %v", done)
	for i, who := range []string{"server", "runner"} {
		if last.files[i] > first.files[i]+spareFiles {
			t.Errorf("the %s has %d descriptors, and had %d", who, last.files[i], first.files[i])
		}
		if last.memory[i] > first.memory[i]+growth {
			t.Errorf("the %s has %d KiB, and had %d", who, last.memory[i], first.memory[i])
		}
	}
	s.stop()
	s.gone()
}

// soakTime is how long the soak takes.
func soakTime(t *testing.T) time.Duration {
	text := os.Getenv("WRIT_SOAK")
	if text == "" {
		return 9 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		t.Fatalf("WRIT_SOAK=%q: want a time from 1s", text)
	}
	return d
}

// soaker is one client. It is for one goroutine.
type soaker struct {
	user
	dice *testkit.Dice
	done map[string]int // how often it did what
}

// text is one of a length up to most, of letters that no other has.
func (k *soaker) text(most int) string {
	var b strings.Builder
	for n := k.dice.Below(most + 1); b.Len() < n; {
		fmt.Fprintf(&b, "%016x\n", k.dice.Next())
	}
	return b.String()
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// doubler is a program that says the digests of its arguments' files, writes each doubled,
// and adds a letter to the first.
const doubler = `import hashlib, sys
for i, name in enumerate(sys.argv[1:]):
    text = open(name, "rb").read()
    print(name, hashlib.sha256(text).hexdigest())
    open("twice-%d.txt" % i, "wb").write(text + text)
open(sys.argv[1], "ab").write(b"!")
`

// round is one of everything, with files of its own. An error is something that must not
// be.
func (k *soaker) round(ctx context.Context) error {
	texts := map[string]string{}
	var files []upload
	for i := range 1 + k.dice.Below(3) {
		name := fmt.Sprintf("in/%d-%x.txt", i, k.dice.Next())
		texts[name] = k.text(200_000)
		files = append(files, upload{name, texts[name]})
	}
	kind, body := form(mine, files...)
	refs, err := uploaded(k.send(ctx, http.MethodPost, "/upload", kind, body))
	if err != nil || len(refs) != len(files) {
		return fmt.Errorf("%d of %d files: %w", len(refs), len(files), err)
	}
	k.done["upload"]++

	if err := k.listing(ctx, refs[0].Session, texts); err != nil {
		return err
	}
	args, said := []string{}, ""
	for _, f := range files {
		args = append(args, f.name)
		said += f.name + " " + digest(f.text) + "\n"
	}
	var r run
	if err := k.decoded(ctx, "/exec", map[string]any{"lang": "py", "code": doubler, "args": args, "files": refs}, &r); err != nil {
		return err
	}
	if r.Code == nil || *r.Code != 0 || r.Stdout != said || r.Stderr != "" || len(r.Files) != 2*len(files) {
		return fmt.Errorf("the run of %q: %+v", args, r)
	}
	k.done["run"]++

	for i, f := range files {
		if err := k.has(ctx, r.file(fmt.Sprintf("twice-%d.txt", i)).Session, r.file(fmt.Sprintf("twice-%d.txt", i)).ID, f.text+f.text); err != nil {
			return err
		}
		if err := k.has(ctx, refs[i].Session, refs[i].ID, f.text); err != nil {
			return err
		}
	}
	changed := r.file(files[0].name)
	if changed.ModifiedFrom == nil || changed.ModifiedFrom.ID != refs[0].ID {
		return fmt.Errorf("the changed input: %+v", changed)
	}
	if err := k.has(ctx, changed.Session, changed.ID, files[0].text+"!"); err != nil {
		return err
	}
	if !k.dice.OneIn(2) {
		return nil
	}
	for _, at := range []ref{refs[0], changed.ref()} {
		if a, err := k.send(ctx, http.MethodDelete, "/files/"+at.Session+"/"+at.ID+of, "", nil); err != nil || a.status != http.StatusOK {
			return fmt.Errorf("delete: %v %s", err, a)
		}
		if a, err := k.send(ctx, http.MethodGet, downloadPath(at.Session, at.ID), "", nil); err != nil || a.status != http.StatusNotFound {
			return fmt.Errorf("download of what was deleted: %v %s", err, a)
		}
		k.done["delete"]++
	}
	delete(texts, files[0].name)
	return k.listing(ctx, refs[0].Session, texts)
}

// decoded sends v, and decodes an answer of 200.
func (k *soaker) decoded(ctx context.Context, path string, v, out any) error {
	a, err := k.sendJSON(ctx, path, v)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("POST %s: %s", path, a)
	}
	if err == nil {
		err = json.Unmarshal(a.body, out)
	}
	return err
}

// has reports what is wrong with the bytes of an object.
func (u user) has(ctx context.Context, session, id, text string) error {
	a, err := u.send(ctx, http.MethodGet, downloadPath(session, id), "", nil)
	if err != nil || a.status != http.StatusOK || string(a.body) != text {
		return fmt.Errorf("download of %s/%s: %v, status %d, %d bytes with digest %s, want %d with %s",
			session, id, err, a.status, len(a.body), digest(string(a.body)), len(text), digest(text))
	}
	return nil
}

// listing reports what is wrong with the list of a session that has texts.
func (k *soaker) listing(ctx context.Context, session string, texts map[string]string) error {
	a, err := k.send(ctx, http.MethodGet, "/files/"+session+of+"&detail=normalized", "", nil)
	if err != nil || a.status != http.StatusOK {
		return fmt.Errorf("list: %v %s", err, a)
	}
	var objects []listed
	if err := json.Unmarshal(a.body, &objects); err != nil {
		return err
	}
	k.done["list"]++
	for _, o := range objects {
		if text, ok := texts[o.Name]; !ok || o.Size != int64(len(text)) || o.Session != session {
			return fmt.Errorf("the list has %+v", o)
		}
	}
	if len(objects) != len(texts) {
		return fmt.Errorf("the list has %d files, want %d", len(objects), len(texts))
	}
	return nil
}
