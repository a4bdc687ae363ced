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

	"github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
)

type cacheAside struct {
	mix
	spec     *plan.CacheAside
	keyspace plan.Keyspace
	db       *database
	query    *sql.Stmt // nil until Prepare
	cache    redis.Cmdable
	timeout  time.Duration
}

func newCacheAside(s *plan.Workload, o RemoteOptions) (*cacheAside, error) {
	spec := s.CacheAside
	if spec.Mode == plan.ThroughCache && o.Cache == nil {
		return nil, errors.New("cacheAside needs a client for the cache")
	}
	dsn, err := os.ReadFile(spec.Database.DSNFile)
	if err != nil {
		return nil, fmt.Errorf("read the data source name of the database: %w", err)
	}
	db, err := openDatabase(spec.Database.Driver, strings.TrimSpace(string(dsn)), o.Timeout)
	if err != nil {
		return nil, fmt.Errorf("parse the data source name of the database for driver %s: %w",
			spec.Database.Driver, err)
	}
	db.SetMaxOpenConns(o.Connections)
	db.SetMaxIdleConns(o.Connections)
	return &cacheAside{
		mix:      mixOf(s),
		spec:     spec,
		keyspace: s.Keyspace,
		db:       db,
		cache:    o.Cache,
		timeout:  o.Timeout,
	}, nil
}

// Prepare connects to database and cache, and prepares the query.
func (c *cacheAside) Prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := c.db.PingContext(ctx); err != nil {
		return fmt.Errorf("connect to the database: %w", c.db.explain(err))
	}
	query, err := c.db.PrepareContext(ctx, c.spec.Database.Query)
	if err != nil {
		return fmt.Errorf("prepare the query at the database: %w", c.db.explain(err))
	}
	c.query = query
	if c.spec.Mode == plan.DatabaseOnly {
		return nil
	}
	if err := c.cache.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("connect to the cache: %w", err)
	}
	return nil
}

// Close ends the connections to the database.
func (c *cacheAside) Close() error {
	return c.db.Close()
}

// Caller returns the caller of one goroutine's reads.
func (c *cacheAside) Caller(number, of int64) Caller {
	chance := newChance(&c.mix, number)
	return &cacheAsideCaller{
		chance: chance,
		load:   c,
		draws:  newKeyDraw(c.keyspace, number, of, chance),
	}
}

type cacheAsideCaller struct {
	chance
	load  *cacheAside
	draws *keyDraw
}

// Call reads one row, through the cache or directly from the database.
func (c *cacheAsideCaller) Call(ctx context.Context, _ int, _ int64, tally []uint64) Result {
	l, n := c.load, c.draws.draw()
	key := l.keyspace.Prefix + strconv.FormatInt(n, 10)
	if l.spec.Mode == plan.DatabaseOnly {
		tally[plan.TallyMisses]++
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
	tally[plan.TallyCacheMicros] += uint64(time.Since(begin).Microseconds())
	switch {
	case err == nil:
		tally[plan.TallyHits]++
		return Result{BytesIn: len(found), BytesOut: len(looked)}
	case !errors.Is(err, redis.Nil):
		return failure(err)
	}
	tally[plan.TallyMisses]++
	rows, result := c.ask(ctx, n, tally)
	result.BytesIn, result.BytesOut = len(rows), len(looked)
	if result.Outcome != OK || len(rows) == 0 {
		return result
	}
	begin = time.Now()
	err = l.cache.Set(ctx, key, rows, l.keyspace.TTL).Err()
	tally[plan.TallyCacheMicros] += uint64(time.Since(begin).Microseconds())
	if err != nil {
		return failure(err)
	}
	result.BytesOut += len(rows)
	return result
}

// ask runs the query and returns its rows as text.
func (c *cacheAsideCaller) ask(ctx context.Context, n int64, tally []uint64) ([]byte, Result) {
	begin := time.Now()
	rows, err := read(ctx, c.load.query, n)
	tally[plan.TallyDatabaseMicros] += uint64(time.Since(begin).Microseconds())
	if err != nil {
		return nil, failure(err)
	}
	return rows, Result{}
}

// read returns the query's rows as lines of tab-separated columns.
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

// failure returns the result of a failed read. A read without a reply is unknown, as in all
// workloads, although it changes at most the cache.
func failure(err error) Result {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return Result{Outcome: Fail, Class: record.ClassRefused}
	}
	var answered redis.Error
	if errors.As(err, &answered) {
		return Result{Outcome: Fail, Class: resp.Classify([]byte(answered.Error()))}
	}
	class := brokenClass(err)
	if class != record.ClassProtocol {
		return Result{Outcome: Unknown, Class: class}
	}
	return Result{Outcome: Fail, Class: record.ClassOther} // the database's own errors
}
