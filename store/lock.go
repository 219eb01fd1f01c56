package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"writ"
)

// folderLock keeps other processes off a SQLite store. It is an exclusive
// transaction on an empty database beside it, so that the kernel drops it with its
// holder, whatever that died of. Who holds it stands in a text file next to it,
// which proves nothing and only serves the message.
type folderLock struct {
	db     *sql.DB
	conn   *sql.Conn
	holder string // the text file
}

// lockFolder takes the lock of the store at path, or says who has it.
func lockFolder(ctx context.Context, path string) (*folderLock, error) {
	if err := private(path + ".lock"); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(path+".lock", url.Values{"_busy_timeout": {"0"}}))
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	l := &folderLock{db: db, holder: path + ".holder"}
	if l.conn, err = db.Conn(ctx); err == nil {
		_, err = l.conn.ExecContext(ctx, "BEGIN EXCLUSIVE")
	}
	if err != nil {
		switch {
		case sqliteCode(err)&0xff == sqlite3.SQLITE_BUSY:
			err = &writ.Error{Kind: writ.Unavailable, Op: "open store", Err: err,
				Msg: fmt.Sprintf("data folder %s is in use by %s: stop it, or use another folder", filepath.Dir(path), readHolder(l.holder))}
		case isDamaged(err):
			err = &writ.Error{Kind: writ.Unavailable, Op: "open store", Err: err,
				Msg: fmt.Sprintf("%s.lock is not what writ made: remove it, while no writ works on that folder", path)}
		default:
			err = failure(ctx, path, "lock the data folder", err)
		}
		return nil, errors.Join(err, l.close())
	}
	text := fmt.Sprintf("%d %s\n", os.Getpid(), writ.Now().Format(time.RFC3339))
	if err := os.WriteFile(l.holder, []byte(text), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the data folder: %w", err), l.close())
	}
	return l, nil
}

func readHolder(file string) string {
	b, err := os.ReadFile(file)
	pid, since, ok := strings.Cut(strings.TrimSpace(string(b)), " ")
	if err != nil || !ok {
		return "another writ that has just started"
	}
	return "writ pid " + pid + " since " + since
}

// release removes the text file first: once the lock is gone it may be another's.
func (l *folderLock) release() error { return errors.Join(os.Remove(l.holder), l.close()) }

func (l *folderLock) close() error {
	var err error
	if l.conn != nil {
		err = l.conn.Close()
	}
	return errors.Join(err, l.db.Close())
}
