package workload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redquake/redquake/internal/plan"
)

// Errors of a database become the message of a load pod, and the condition of the load test. What the Secret holds
// beside the address is not in them, whatever its format and however it was mistyped.
func TestErrorsOfADataSourceHoldNoSecret(t *testing.T) {
	t.Parallel()
	const planted = "pLaNtEd"
	for dsn, test := range map[string]struct{ driver, want string }{
		"postgres://pLaNtEd-u:pLaNtEd-p@127.0.0.1:1/shop?sslmode=disable": {
			plan.DriverPostgres,
			"connection refused",
		},
		"postgres://127.0.0.1:1/shop?sslmode=disable&user=pLaNtEd-u&password=pLaNtEd-p": {
			plan.DriverPostgres,
			"connection refused",
		},
		"host=127.0.0.1 port=1 sslmode=disable user=pLaNtEd-u password='x\\'pLaNtEd-p'": {
			plan.DriverPostgres,
			"connection refused",
		},
		"postgres://u:pLaNtEd-p@127.0.0.1:1/shop?sslmode=bogus&application_name=pLaNtEd-a": {
			plan.DriverPostgres,
			"sslmode is invalid",
		},
		"postgres://127.0.0.1:1/shop?password=pLaNtEd-p&sslmode=bogus": {
			plan.DriverPostgres,
			"sslmode is invalid",
		},
		"postgres://u:pLaNtEd/p@127.0.0.1:1/shop": {
			plan.DriverPostgres,
			"postgres://",
		},
		"postgres://u:pLaNtEd%zz@127.0.0.1:1/shop": {
			plan.DriverPostgres,
			"postgres://",
		},
		"host=127.0.0.1 password = 'pLaNtEd-p' port=x": {plan.DriverPostgres, "port"},
		"user=u password=p pLaNtEd-p host=127.0.0.1": {
			plan.DriverPostgres,
			"postgres://",
		},
		"host=127.0.0.1 connect_timeout=pLaNtEd-p": {
			plan.DriverPostgres,
			"postgres://",
		},
		"pLaNtEd-p": {plan.DriverPostgres, "postgres://"},
		"pLaNtEd-u:pLaNtEd-p@tcp(127.0.0.1:1)/shop?pLaNtEd=pLaNtEd-a": {plan.DriverMySQL, "connection refused"},
		"u:pLaNtEd-p(127.0.0.1:1)/shop": {
			plan.DriverMySQL,
			"user:password@tcp(host:3306)/database",
		},
		"u:pLaNtEd-p/shop": {
			plan.DriverMySQL,
			"user:password@tcp(host:3306)/database",
		},
		"u:pLaNtEd-p@tcp(127.0.0.1:1)": {plan.DriverMySQL, "missing the slash"},
		"u:p@tcp(127.0.0.1:1)/shop?tls=pLaNtEd-a": {
			plan.DriverMySQL,
			"user:password@tcp(host:3306)/database",
		},
		"u:p@tcp(127.0.0.1:1)/shop?parseTime=pLaNtEd-a": {
			plan.DriverMySQL,
			"user:password@tcp(host:3306)/database",
		},
		"u:p@tcp(127.0.0.1:1)/shop?timeout=pLaNtEd-a": {
			plan.DriverMySQL,
			"user:password@tcp(host:3306)/database",
		},
		"mysql://u:pLaNtEd-p@127.0.0.1:1/shop": {
			plan.DriverMySQL,
			"user:password@tcp(host:3306)/database",
		},
		"u:p@tcp(127.0.0.1:1)/shop?tls=custom&serverPubKey=pLaNtEd-a&connectionAttributes=pLaNtEd:x,": {
			plan.DriverMySQL,
			"user:password@tcp(host:3306)/database",
		},
	} {
		t.Run(dsn, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "dsn")
			if err := os.WriteFile(file, []byte(dsn+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			spec := &plan.Workload{
				CacheAside: &plan.CacheAside{
					Mode:     plan.DatabaseOnly,
					Database: plan.Database{Driver: test.driver, DSNFile: file, Query: "SELECT 1"},
				},
			}
			w, err := newCacheAside(spec, RemoteOptions{Connections: 1, Timeout: 5 * time.Second})
			if err == nil {
				defer func() { _ = w.Close() }()
				err = w.Prepare(context.Background())
			}
			if err == nil || strings.Contains(err.Error(), planted) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// What a database answers passes by waiting, or is for good.
func TestAnswersOfADatabase(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"PostgreSQL starts":                 {&pgconn.PgError{Code: "57P03"}, false},
		"PostgreSQL crashed":                {&pgconn.PgError{Code: "57P02"}, false},
		"PostgreSQL cancels":                {&pgconn.PgError{Code: "57014"}, false},
		"PostgreSQL is a standby":           {&pgconn.PgError{Code: "25006"}, false},
		"PostgreSQL has no connection left": {&pgconn.PgError{Code: "53300"}, false},
		"PostgreSQL has no such table yet":  {&pgconn.PgError{Code: "42P01"}, false},
		"PostgreSQL rejects the password":   {&pgconn.PgError{Code: "28P01"}, true},
		"PostgreSQL rejects the query":      {&pgconn.PgError{Code: "42601"}, true},
		"PostgreSQL without a code":         {&pgconn.PgError{}, true},
		"MySQL shuts down":                  {&mysql.MySQLError{Number: 1053}, false},
		"MySQL is read-only":                {&mysql.MySQLError{Number: 1290}, false},
		"MySQL had a deadlock":              {&mysql.MySQLError{Number: 1213}, false},
		"MySQL rejects the password":        {&mysql.MySQLError{Number: 1045}, true},
		"MySQL rejects the query":           {&mysql.MySQLError{Number: 1064}, true},
		"another authority":                 {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true},
		"nobody listens":                    {syscall.ECONNREFUSED, false},
	} {
		if got := answersForGood(fmt.Errorf("connect: %w", test.err)); got != test.want {
			t.Errorf("%s: for good is %t, want %t", name, got, test.want)
		}
	}
}
