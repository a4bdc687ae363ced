package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/resp"
	"github.com/redquake/redquake/internal/sample"
)

// CacheAsideMode says where reads go.
type CacheAsideMode string

// The modes.
const (
	ThroughCache CacheAsideMode = "CacheAside"   // GET; where that finds nothing the database, then SET
	DatabaseOnly CacheAsideMode = "DatabaseOnly" // always the database: what there was before the cache
)

// CacheAside is reads of an application that keeps rows of a database in Redis. A key of the keyspace is looked up in the cache as
// {prefix}{n}; where it is not there, the query is made with n and its rows are set, with the keyspace's TTL. An error of the cache fails the read:
// there is no way around the cache that would hide it. A query that finds no row is a success that leaves nothing in the cache.
//
// The cache is reached through go-redis, as an application reaches it.
type CacheAside struct {
	Database Database       `json:"database"`
	Mode     CacheAsideMode `json:"mode"`
	// HitRatio, in (0, 1], is the share of reads that look for the row's own key. The others look for a key that is never there, and so miss: a cache
	// of that hit ratio, once it is warm. 0 = all reads look for the row's own key, and the ratio is what keyspace, TTL and eviction make it.
	HitRatio float64 `json:"hitRatio,omitempty"`
}

// Database is a MySQL, MariaDB or PostgreSQL.
type Database struct {
	Driver  string `json:"driver"`  // mysql | postgres
	DSNFile string `json:"dsnFile"` // holds the data source name, as the driver takes it
	Query   string `json:"query"`   // SELECT with one parameter, the key's number: ? for mysql, $1 for postgres
}

// The drivers.
const (
	driverMySQL    = "mysql"
	driverPostgres = "postgres"
)

// The tallies of cacheAside. In mode DatabaseOnly every read is a miss.
const (
	tallyHits = iota
	tallyMisses
	tallyCacheMicros    // time in GET and SET
	tallyDatabaseMicros // time in the query, its rows read
)

func (c *CacheAside) check(*Spec) string {
	switch {
	case c.Database.Driver != driverMySQL && c.Database.Driver != driverPostgres:
		return fmt.Sprintf("database.driver: %q is neither mysql nor postgres", c.Database.Driver)
	case c.Database.DSNFile == "":
		return "database.dsnFile: is empty"
	case strings.TrimSpace(c.Database.Query) == "":
		return "database.query: is empty"
	case c.Mode != ThroughCache && c.Mode != DatabaseOnly:
		return fmt.Sprintf("mode: %q is neither %s nor %s", c.Mode, ThroughCache, DatabaseOnly)
	case !(c.HitRatio >= 0 && c.HitRatio <= 1):
		return fmt.Sprintf("hitRatio: is %v, must be 0 to 1", c.HitRatio)
	}
	return ""
}

func (c *CacheAside) mix() mix {
	return newMix([]Operation{{Name: "read", Weight: 1}}, "hits", "misses", "cacheMicros", "databaseMicros")
}

type cacheAside struct {
	mix
	spec     *CacheAside
	keyspace Keyspace
	db       *sql.DB
	query    *sql.Stmt // nil until Prepare
	cache    redis.Cmdable
	timeout  time.Duration
}

func newCacheAside(s *Spec, o RemoteOptions) (*cacheAside, error) {
	spec := s.CacheAside
	if spec.Mode == ThroughCache && o.Cache == nil {
		return nil, errors.New("cacheAside needs a client of the cache")
	}
	dsn, err := os.ReadFile(spec.Database.DSNFile)
	if err != nil {
		return nil, fmt.Errorf("the data source name of the database cannot be read: %w", err)
	}
	db, err := openDatabase(spec.Database.Driver, strings.TrimSpace(string(dsn)), o.Timeout)
	if err != nil {
		return nil, fmt.Errorf("the data source name of the database is not one of %s: %w", spec.Database.Driver, err)
	}
	db.SetMaxOpenConns(o.Connections)
	db.SetMaxIdleConns(o.Connections)
	return &cacheAside{mix: spec.mix(), spec: spec, keyspace: s.Keyspace, db: db, cache: o.Cache, timeout: o.Timeout}, nil
}

// openDatabase parses the data source name; connections are made when they are needed, each within timeout where dsn sets no other.
func openDatabase(driver, dsn string, timeout time.Duration) (*sql.DB, error) {
	if driver == driverPostgres {
		config, err := pgx.ParseConfig(dsn) // its errors leave the password out
		if err != nil {
			return nil, err
		}
		if config.ConnectTimeout == 0 {
			config.ConnectTimeout = timeout
		}
		return stdlib.OpenDB(*config), nil
	}
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	if config.Timeout == 0 {
		config.Timeout = timeout
	}
	config.Logger = &mysql.NopLogger{} // it would write a line for each connection that breaks; those are results here
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// Prepare connects, and makes the database parse the query.
func (c *cacheAside) Prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := c.db.PingContext(ctx); err != nil {
		return fmt.Errorf("the database cannot be reached: %w", err)
	}
	query, err := c.db.PrepareContext(context.WithoutCancel(ctx), c.spec.Database.Query)
	if err != nil {
		return fmt.Errorf("the database refuses the query: %w", err)
	}
	c.query = query
	if c.spec.Mode == DatabaseOnly {
		return nil
	}
	if err := c.cache.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("the cache cannot be reached: %w", err)
	}
	return nil
}

// Close ends the connections to the database.
func (c *cacheAside) Close() error { return c.db.Close() }

// Caller makes one goroutine's reads.
func (c *cacheAside) Caller(number, of int64) Caller {
	chance := newChance(&c.mix, number)
	return &cacheAsideCaller{chance: chance, load: c, draws: newKeyDraw(c.keyspace, number, of, chance)}
}

type cacheAsideCaller struct {
	chance
	load  *cacheAside
	draws *keyDraw
}

// Call reads one row, through the cache or not.
func (c *cacheAsideCaller) Call(ctx context.Context, _ int, _ int64, tally []uint64) Result {
	l, n := c.load, c.draws.draw()
	key := l.keyspace.Prefix + strconv.FormatInt(n, 10)
	if l.spec.Mode == DatabaseOnly {
		tally[tallyMisses]++
		rows, result := c.ask(ctx, n, tally)
		result.BytesIn = len(rows)
		return result
	}
	looked := key
	if l.spec.HitRatio > 0 && c.rng.Float64() >= l.spec.HitRatio {
		looked = l.keyspace.Prefix + "absent:" + strconv.FormatInt(n, 10)
	}
	begin := time.Now()
	found, err := l.cache.Get(ctx, looked).Bytes()
	tally[tallyCacheMicros] += uint64(time.Since(begin).Microseconds())
	switch {
	case err == nil:
		tally[tallyHits]++
		return Result{BytesIn: len(found), BytesOut: len(looked)}
	case !errors.Is(err, redis.Nil):
		return failure(err)
	}
	tally[tallyMisses]++
	rows, result := c.ask(ctx, n, tally)
	result.BytesIn, result.BytesOut = len(rows), len(looked)
	if result.Outcome != OK || len(rows) == 0 {
		return result
	}
	begin = time.Now()
	err = l.cache.Set(ctx, key, rows, l.keyspace.TTL).Err()
	tally[tallyCacheMicros] += uint64(time.Since(begin).Microseconds())
	if err != nil {
		return failure(err)
	}
	result.BytesOut += len(rows)
	return result
}

// ask makes the query and returns its rows as text.
func (c *cacheAsideCaller) ask(ctx context.Context, n int64, tally []uint64) ([]byte, Result) {
	begin := time.Now()
	rows, err := read(ctx, c.load.query, n)
	tally[tallyDatabaseMicros] += uint64(time.Since(begin).Microseconds())
	if err != nil {
		return nil, failure(err)
	}
	return rows, Result{}
}

// read is the query's rows: columns with tabs between, each row a line.
func read(ctx context.Context, query *sql.Stmt, n int64) ([]byte, error) {
	rows, err := query.QueryContext(ctx, n)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var out []byte
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		for i, v := range values {
			if i > 0 {
				out = append(out, '\t')
			}
			out = append(out, v...)
		}
		out = append(out, '\n')
	}
	return out, rows.Err()
}

// failure names what became of a read that failed. A read changes nothing but the cache; yet what has no answer is unknown, as everywhere.
func failure(err error) Result {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return Result{Outcome: Fail, Class: sample.ClassRefused}
	}
	var answered redis.Error
	if errors.As(err, &answered) {
		return Result{Outcome: Fail, Class: resp.Classify([]byte(answered.Error()))}
	}
	if class := brokenClass(err); class != sample.ClassProtocol {
		return Result{Outcome: Unknown, Class: class}
	}
	return Result{Outcome: Fail, Class: sample.ClassOther} // the database's own errors
}
