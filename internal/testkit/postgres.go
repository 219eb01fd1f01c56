package testkit

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// server runs a PostgreSQL in folder $2 until its standard input ends, which it
// also does when the test binary is killed. Nothing in it is worth an fsync.
const server = `
"$1/initdb" -D "$2/data" -U postgres -A trust -E UTF8 --locale=C --no-sync || exit 1
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= \
	-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=200 &
read -r _
kill -INT $!
wait $!
`

// Postgres starts a PostgreSQL server of its own for t, reachable through a unix
// socket alone, and stops it when t ends. It returns a function that makes an empty
// database and returns its url. Without PostgreSQL on this machine t is skipped, or
// fails if WRIT_REQUIRE names "postgres".
func Postgres(t testing.TB) (fresh func(testing.TB) string) {
	t.Helper()
	bin := postgresBin()
	if bin == "" {
		Missing(t, "postgres", "no initdb beneath /usr/lib/postgresql: install the package postgresql")
	}
	dir, err := os.MkdirTemp("", "writ-postgres-") // short, for the socket's sake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cmd := exec.Command("sh", "-c", server, "sh", bin, dir)
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		giveTo(t, dir, "postgres")
		cmd = exec.Command("setpriv", append([]string{"--reuid=postgres", "--regid=postgres", "--init-groups", "--"}, cmd.Args...)...)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })

	admin := postgresURL(dir, "postgres")
	var conn *pgx.Conn
	Eventually(t, "PostgreSQL answers", func() bool {
		conn, err = pgx.Connect(context.Background(), admin)
		return err == nil
	}, func() string { b, _ := os.ReadFile(log.Name()); return fmt.Sprintf("%v\n%s", err, b) })
	conn.Close(context.Background())

	var made atomic.Int64
	return func(t testing.TB) string {
		t.Helper()
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, admin)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		name := "test" + strconv.FormatInt(made.Add(1), 10)
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
		return postgresURL(dir, name)
	}
}

func postgresURL(dir, name string) string {
	return "postgres://postgres@/" + name + "?host=" + url.QueryEscape(dir)
}

// postgresBin is the folder of the newest PostgreSQL's programs, or "".
func postgresBin() string {
	newest, at := 0, ""
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well-formed
	for _, initdb := range found {
		bin := filepath.Dir(initdb)
		if v, err := strconv.Atoi(filepath.Base(filepath.Dir(bin))); err == nil && v > newest {
			newest, at = v, bin
		}
	}
	return at
}

func giveTo(t testing.TB, dir, name string) {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err1 != nil || err2 != nil {
		t.Fatalf("user %s has uid %q and gid %q", name, u.Uid, u.Gid)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
}
