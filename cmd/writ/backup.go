package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"writ"
	"writ/audit"
	"writ/blob"
	"writ/config"
	"writ/store"
)

type backupCmd struct {
	To string `required:"" help:"The folder to make, which must not be there, or be empty." type:"path" placeholder:"DIR"`
}

func (*backupCmd) Help() string {
	return `Copies the data folder as it is at one moment, also while a server works on it: the database, the files of the code interpreter,
the configuration, the policy and the keys. The copy is checked, and is a data folder: to restore it, start the server on it. What is
queued in it runs then. It has all keys: keep it as you keep the data folder.

Not in it are what undoes patches, and what the configuration names elsewhere: keys of tokens, a policy. For a database in PostgreSQL
there is pg_dump.`
}

// Run exits with exitFailed when the copy is not all of what it should be.
func (b *backupCmd) Run(ctx context.Context, c *cli, e env) error {
	s, err := newBackup(c, b.To)
	if err != nil {
		return err
	}
	if err := s.make(ctx); err != nil {
		return &writ.Error{Kind: writ.KindOf(err), Op: "backup", Msg: "nothing was saved: " + writ.Reveal(err), Err: err}
	}
	err = fields(e.stdout, "backup", s.to, "events", fmt.Sprint(s.report.Events), "root", string(s.report.Head.Root),
		"files", fmt.Sprintf("%d, %d bytes", s.files, s.bytes))
	if err != nil {
		return err
	}
	for _, note := range s.notes {
		fmt.Fprintln(e.stderr, "writ:", note)
	}
	for _, f := range s.report.Faults {
		fmt.Fprintf(e.stderr, "writ: the log is not what was signed: event %d: %s\n", f.Seq, f.Fault)
	}
	for _, d := range s.lost {
		fmt.Fprintf(e.stderr, "writ: bytes of files are lost or damaged in %s: those with the digest %s\n", s.blobs, d)
	}
	if len(s.lost) > 0 || !s.report.OK {
		return exit(exitFailed)
	}
	return nil
}

// backup is one backup. It is made beside the folder that it will be, which so is whole or
// not there.
type backup struct {
	data, database, policy, blobs string // what is saved
	to                            string
	step                          func(string) // of tests, called with the name of what was just done

	draft  string           // what to will be
	files  int64            // that were copied, as far as the code interpreter keeps them; equal ones are one
	bytes  int64            // of those
	lost   []writ.Digest    // of bytes that the database names, and the folder has not, or not whole
	report writ.AuditReport // of the log of the copy
	notes  []string         // what a person should know
}

func newBackup(c *cli, to string) (*backup, error) {
	refuse := func(format string, args ...any) (*backup, error) {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "backup", Msg: fmt.Sprintf(format, args...)}
	}
	if c.Server != "" {
		return refuse("writ backup works on this machine: run it where the server at %s runs", c.Server)
	}
	if err := findFolder(c.Data); err != nil {
		return nil, err
	}
	if err := checkPrivate(c.Data); err != nil {
		return nil, err
	}
	cfg, err := loadConfig(c)
	if err != nil {
		return nil, err
	}
	b := &backup{data: c.Data, policy: cfg.PolicyDir(c.Data), blobs: cfg.BlobsDir(c.Data), to: to, step: func(string) {}}
	file, ok := strings.CutPrefix(cfg.DatabaseURL(c.Data).Reveal(), "sqlite:")
	if b.database = file; !ok {
		return refuse("the database is PostgreSQL: end the servers, save it with pg_dump, and copy %s and %s", c.Data, b.blobs)
	}
	entries, err := os.ReadDir(to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return refuse("cannot make %s: %v", to, err)
	}
	if len(entries) > 0 {
		return refuse("%s is not empty: a backup wants a folder of its own", to)
	}
	for _, folder := range []string{b.data, b.blobs} {
		if _, in := beneath(folder, to); in {
			return refuse("%s is in %s, with which it would be lost: name another folder", to, folder)
		}
	}
	return b, nil
}

// beneath is the path of a file in folder, and whether it lies there.
func beneath(folder, file string) (rel string, in bool) {
	resolve := func(path string) string {
		if p, err := filepath.EvalSymlinks(path); err == nil {
			return p
		}
		return path // it is not there
	}
	rel, err := filepath.Rel(resolve(folder), filepath.Join(resolve(filepath.Dir(file)), filepath.Base(file)))
	return rel, err == nil && filepath.IsLocal(rel)
}

// make makes the backup, whole or not at all. One that lacks what was lost before is whole.
func (b *backup) make(ctx context.Context) (err error) {
	if b.draft, err = os.MkdirTemp(filepath.Dir(b.to), ".writ-backup-*"); err != nil { // mode 0700
		return err
	}
	defer os.RemoveAll(b.draft) // after an error; else it has another name
	// The key of the log before the log: a first start may be under way.
	if err := b.settings(); err != nil {
		return err
	}
	db, err := b.records(ctx)
	if err != nil {
		return err
	}
	err = b.verify(ctx, db)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := errors.Join(syncFolder(b.draft), os.Rename(b.draft, b.to)); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(b.to))
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// place is where in the draft something is that lies at path: at the same place, or, from
// elsewhere, under its usual name, where a server on the copy does not look for it.
func (b *backup) place(what, path, usual string) (string, error) {
	rel, in := beneath(b.data, path)
	if !in {
		rel = usual
		b.notes = append(b.notes, fmt.Sprintf("the configuration has the %s at %s: to restore, put there what is at %s", what, path, filepath.Join(b.to, usual)))
	}
	to := filepath.Join(b.draft, rel)
	return to, os.MkdirAll(filepath.Dir(to), 0o700)
}

// settings copies the small files.
func (b *backup) settings() error {
	for _, name := range []string{config.FileName, auditKeyName, auditPublicName, operatorKeyName, operatorKeyName + ".pending", gatewayIDName} {
		if err := copyFile(filepath.Join(b.data, name), filepath.Join(b.draft, name)); err != nil {
			return err
		}
	}
	rel, in := beneath(b.data, b.policy)
	if !in {
		b.notes = append(b.notes, fmt.Sprintf("the policy is not in it, which the configuration has at %s", b.policy))
		return nil
	}
	entries, err := os.ReadDir(b.policy)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err = errors.Join(err, os.MkdirAll(filepath.Join(b.draft, rel), 0o700)); err != nil {
		return err
	}
	for _, e := range entries {
		from := filepath.Join(b.policy, e.Name())
		if is, err := os.Stat(from); err != nil || !is.Mode().IsRegular() { // a link counts as what it leads to
			continue
		}
		if err := copyFile(from, filepath.Join(b.draft, rel, e.Name())); err != nil {
			return err
		}
	}
	return syncFolder(filepath.Join(b.draft, rel))
}

// copyFile copies a small file, if it is there, for its owner alone.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return writeSecret(to, string(data))
}

// rounds bounds how often the database is copied, digestPage how many digests are worked on
// at a time.
const (
	rounds     = 5
	digestPage = 100
)

// records copies the database, then the bytes that it names. A server may remove some of them
// meanwhile, with the rows that name them: then the database is copied anew, and what has
// come since. What two copies name and nobody has is lost, and not for that reason.
func (b *backup) records(ctx context.Context) (db *store.DB, err error) {
	file, err := b.place("database", b.database, "writ.db")
	if err != nil {
		return nil, err
	}
	from, to, err := b.folders()
	if err != nil {
		return nil, err
	}
	if from != nil {
		defer func() { err = errors.Join(err, from.Close(), to.Close()) }()
	}
	for round := 1; ; round++ {
		if db, err = store.Copy(ctx, "sqlite:"+b.database, file); err != nil {
			return nil, err
		}
		b.step("database")
		before := b.lost
		if err := b.bodies(ctx, db, from, to); err != nil {
			return nil, errors.Join(err, db.Close())
		}
		if len(b.lost) == 0 || slices.Equal(b.lost, before) || round == rounds {
			return db, nil
		}
		if err := errors.Join(db.Close(), os.Remove(file)); err != nil {
			return nil, err
		}
	}
}

// folders are the folder with the bytes of files, and the one that they are copied to; nil
// when there never was one. The caller must close them.
func (b *backup) folders() (from, to *blob.Folder, err error) {
	if _, err := os.Stat(b.blobs); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	dir, err := b.place("files", b.blobs, "blobs")
	if err != nil {
		return nil, nil, err
	}
	if from, err = blob.OpenFolder(b.blobs); err != nil {
		return nil, nil, err
	}
	if to, err = blob.OpenFolder(dir); err != nil {
		return nil, nil, errors.Join(err, from.Close())
	}
	owner, err := from.Owner()
	if err == nil && owner != "" {
		err = to.Own(owner)
	}
	if err != nil {
		return nil, nil, errors.Join(err, from.Close(), to.Close())
	}
	return from, to, nil
}

// bodies copies the bytes that db names and are not copied yet, and notes which are lost.
func (b *backup) bodies(ctx context.Context, db *store.DB, from, to *blob.Folder) error {
	b.files, b.bytes, b.lost = 0, 0, nil
	for after := writ.Digest(""); ; {
		var page []writ.Digest
		err := db.View(ctx, func(tx *store.Tx) (err error) { page, err = tx.Digests(ctx, after, digestPage); return err })
		if err != nil || len(page) == 0 {
			return err
		}
		if err := b.copyBlobs(ctx, page, from, to); err != nil {
			return err
		}
		after = page[len(page)-1]
	}
}

func (b *backup) copyBlobs(ctx context.Context, page []writ.Digest, from, to *blob.Folder) error {
	if from == nil {
		b.lost = append(b.lost, page...)
		return nil
	}
	var drafts []writ.Draft
	for _, digest := range page {
		size, err := to.Renew(ctx, digest)
		if writ.KindOf(err) == writ.NotFound {
			var d writ.Draft
			if d, err = copyBlob(ctx, digest, from, to); err == nil {
				drafts, size = append(drafts, d), d.Size
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errLost):
			b.lost = append(b.lost, digest)
		case err != nil:
			return err
		default:
			b.files, b.bytes = b.files+1, b.bytes+size
		}
	}
	return to.Publish(ctx, drafts...)
}

// errLost is in the errors of bytes that cannot be read whole.
var errLost = errors.New("bytes of a file are lost")

func copyBlob(ctx context.Context, digest writ.Digest, from, to *blob.Folder) (writ.Draft, error) {
	r, err := from.Open(ctx, digest, 0, -1)
	if writ.KindOf(err) == writ.NotFound {
		err = errLost
	}
	if err != nil {
		return writ.Draft{}, err
	}
	defer r.Close()
	return to.Draft(ctx, lossy{r}, math.MaxInt64)
}

// lossy is bytes with errLost in the errors of reading them.
type lossy struct{ io.Reader }

func (l lossy) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %w", errLost, err)
	}
	return n, err
}

// verify checks the log of the copy, by the key that is with it.
func (b *backup) verify(ctx context.Context, db *store.DB) error {
	private, err := os.ReadFile(filepath.Join(b.draft, auditKeyName))
	if err != nil {
		return err
	}
	log, err := audit.New(writ.Secret(private))
	if err != nil {
		return err
	}
	return db.View(ctx, func(tx *store.Tx) (err error) {
		b.report, err = audit.Verify(ctx, tx, log.Verifier())
		return err
	})
}
