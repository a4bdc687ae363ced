package workload

import (
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redact"
)

// database is what a data source name names. Errors of drivers quote that name, which is the
// content of a Secret: hide removes it from them.
type database struct {
	*sql.DB
	user    string
	secrets []string // passwords, and the values of parameters
}

// openDatabase parses the data source name. Connections are established on demand, within timeout
// unless dsn sets another.
func openDatabase(driver, dsn string, timeout time.Duration) (*database, error) {
	open, form := openMySQL, "user:password@tcp(host:3306)/database"
	if driver == plan.DriverPostgres {
		open, form = openPostgres, "postgres://user:password@host:5432/database"
	}
	db, err := open(dsn, timeout)
	if err != nil {
		return nil, fmt.Errorf("%s; its form is %s", unquoted(err, dsn), form)
	}
	return db, nil
}

func openPostgres(dsn string, timeout time.Duration) (*database, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = timeout
	}
	secrets := append(slices.Collect(maps.Values(config.RuntimeParams)), config.Password)
	return &database{stdlib.OpenDB(*config), config.User, secrets}, nil
}

func openMySQL(dsn string, timeout time.Duration) (*database, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	// without an @ it is user and password
	if !slices.Contains([]string{"tcp", "tcp4", "tcp6", "unix"}, config.Net) {
		return nil, fmt.Errorf("unknown network %s", config.Net)
	}
	if config.Timeout == 0 {
		config.Timeout = timeout
	}
	// it would log each broken connection; these are part of the results
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	secrets := append(slices.Collect(maps.Values(config.Params)), config.Passwd,
		config.ConnectionAttributes)
	return &database{sql.OpenDB(connector), config.User, secrets}, nil
}

// hide removes what belongs to the login from an error.
func (d *database) hide(err error) error {
	text := redact.Word(redact.Text(err.Error(), d.secrets...), d.user)
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// ErrRefused is part of the error of a backend that has answered, and whose answer waiting does not
// change.
var ErrRefused = errors.New("refused")

// refused adds ErrRefused to an error, but not to its text.
type refused struct{ error }

func (r refused) Unwrap() []error {
	return []error{r.error, ErrRefused}
}

// explain hides the login in an error, and adds ErrRefused to what does not pass by waiting.
func (d *database) explain(err error) error {
	if answersForGood(err) {
		return refused{d.hide(err)}
	}
	return d.hide(err)
}

// answersForGood reports whether a database has answered with an error that does not pass by
// waiting. A server that starts, is a standby, or lacks resources, and a database or a table that
// is not there yet, pass. The codes are those of the servers' manuals: PostgreSQL's appendix A,
// MySQL's error reference.
func answersForGood(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if ok {
		return true
	}
	if e, is := errors.AsType[*pgconn.PgError](err); is {
		class := e.Code[:min(2, len(e.Code))]
		return !slices.Contains([]string{
			"08", // connection exceptions
			"40", // transaction_rollback: deadlocks
			"53", // insufficient_resources: connections, memory, disk
			"57", // operator_intervention: it starts up, shuts down, crashed, or cancels a statement
			"58", // system errors
		}, class) && !slices.Contains([]string{
			"25006", // read_only_sql_transaction: a standby
			"55P03", // lock_not_available
			"3D000", // invalid_catalog_name: no such database
			"3F000", // invalid_schema_name
			"42P01", // undefined_table
		}, e.Code)
	}
	if e, is := errors.AsType[*mysql.MySQLError](err); is {
		return !slices.Contains([]uint16{
			1040, // ER_CON_COUNT_ERROR: too many connections
			1053, // ER_SERVER_SHUTDOWN
			1203, // ER_TOO_MANY_USER_CONNECTIONS
			1205, // ER_LOCK_WAIT_TIMEOUT
			1213, // ER_LOCK_DEADLOCK
			1290, // ER_OPTION_PREVENTS_STATEMENT: it is read-only
			1836, // ER_READ_ONLY_MODE
			1049, // ER_BAD_DB_ERROR: no such database
			1146, // ER_NO_SUCH_TABLE
		}, e.Number)
	}
	return false
}

// name is the name of a parameter in a data source name.
var name = regexp.MustCompile(`[a-z_]+ *=`)

// unquoted is why a data source name cannot be parsed, unless that quotes a word of it: what is
// what in a malformed one cannot be known.
func unquoted(err error, dsn string) string {
	parse, ok := errors.AsType[*pgconn.ParseConfigError](err)
	if ok {
		parse.ConnString = ""
	}
	reason := strings.TrimPrefix(err.Error(), "cannot parse ``: ")
	values := name.ReplaceAllString(dsn, " ")
	if decoded, err := url.QueryUnescape(values); err == nil {
		values += " " + decoded
	}
	quoted := wordsOf(values)
	if slices.ContainsFunc(wordsOf(reason), func(word string) bool {
		return slices.Contains(quoted,
			word)
	}) {
		return "it is not valid"
	}
	return reason
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	})
}
