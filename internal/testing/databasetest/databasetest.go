// Package databasetest starts real databases for tests.
package databasetest

import (
	"bytes"
	"database/sql"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver mysql
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/installed"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Database is a server on loopback with the table articles: id from 0 to 99, title and stock.
type Database struct {
	Driver, DSN string // as in a plan
	Parameter   string // of a query
	cmd         *exec.Cmd
}

// Postgres makes a database and starts its server, which ends with the test. It needs the Debian
// package postgresql.
func Postgres(t *testing.T) *Database {
	t.Helper()
	server, err := filepath.EvalSymlinks(installed.Program(t, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	home := newHome(t, "postgres")
	data := filepath.Join(home.dir, "data")
	home.run(t, filepath.Join(filepath.Dir(server), "initdb"), "-D", data, "-U", "shop", "-A", "trust",
		"--no-sync")
	port := strconv.Itoa(redistest.FreePort(t))
	d := &Database{
		Driver:    plan.DriverPostgres,
		Parameter: "$1",
		DSN:       "postgres://shop@127.0.0.1:" + port + "/postgres?sslmode=disable",
	}
	d.cmd = home.command(server, "-D", data, "-p", port, "-k", home.dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=off")
	d.serve(t, "pgx",
		`CREATE TABLE articles AS SELECT n AS id, repeat('x', 100) AS title, n * 2 AS stock FROM generate_series(0, 99) AS n`)
	return d
}

// MariaDB does the same with MariaDB. It needs the Debian package mariadb-server.
func MariaDB(t *testing.T) *Database {
	t.Helper()
	home := newHome(t, "mysql")
	data := filepath.Join(home.dir, "data")
	home.run(t, installed.Program(t, "mariadb-install-db"), "--no-defaults",
		"--auth-root-authentication-method=normal",
		"--skip-test-db", "--skip-name-resolve", "--force", "--datadir="+data, "--tmpdir="+home.dir)
	port := strconv.Itoa(redistest.FreePort(t))
	d := &Database{
		Driver:    plan.DriverMySQL,
		Parameter: "?",
		DSN:       "root@tcp(127.0.0.1:" + port + ")/test",
	}
	d.cmd = home.command(installed.Program(t, "mariadbd"), "--no-defaults", "--datadir="+data,
		"--tmpdir="+home.dir,
		"--socket="+filepath.Join(home.dir, "socket"), "--pid-file="+filepath.Join(home.dir, "pid"),
		"--bind-address=127.0.0.1", "--port="+port, "--innodb-buffer-pool-size=32M", "--skip-log-bin")
	d.serve(t, "mysql", "CREATE DATABASE test",
		"CREATE TABLE test.articles AS SELECT seq AS id, repeat('x', 100) AS title, seq * 2 AS stock FROM test.seq_0_to_99")
	return d
}

// serve starts the server and executes the statements as soon as it is up.
func (d *Database) serve(t *testing.T, driver string, statements ...string) {
	t.Helper()
	var log bytes.Buffer
	d.cmd.Stdout, d.cmd.Stderr = &log, &log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	db, err := sql.Open(driver, strings.TrimSuffix(d.DSN, "test")) // before MariaDB has that database
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for deadline := time.Now().Add(60 * time.Second); len(statements) > 0; {
		_, err := db.Exec(statements[0])
		if err == nil {
			statements = statements[1:]
			continue
		}
		if time.Now().After(deadline) {
			d.Stop()
			t.Fatalf("the database does not serve: %v: %s", err, log.String())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Stop ends the server at once. PostgreSQL's immediate shutdown ends its children, too; MariaDB has
// none.
func (d *Database) Stop() {
	if d.cmd == nil {
		return
	}
	signal := map[string]os.Signal{
		plan.DriverPostgres: syscall.SIGQUIT,
		plan.DriverMySQL:    syscall.SIGKILL,
	}[d.Driver]
	_ = d.cmd.Process.Signal(signal)
	_ = d.cmd.Wait()
	d.cmd = nil
}

// home is a server's folder and the user that it runs as: not root, which databases refuse.
type home struct {
	dir        string
	attributes *syscall.SysProcAttr
}

func newHome(t *testing.T, name string) home {
	t.Helper()
	// not t.TempDir, whose parents another user may not enter
	dir, err := os.MkdirTemp("", "redquake-"+name+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := home{dir: dir, attributes: &syscall.SysProcAttr{}}
	if os.Getuid() == 0 {
		h.attributes.Credential = ownedBy(t, dir, name)
	}
	return h
}

func (h home) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr, cmd.Dir = h.attributes, h.dir
	return cmd
}

func (h home) run(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := h.command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// ownedBy gives dir to a user, and returns what a process needs to run as that user.
func ownedBy(t *testing.T, dir, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
