//go:build integration

package workload

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/databasetest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// dsnFile is a file with a data source name.
func dsnFile(t *testing.T, dsn string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(file, []byte(dsn+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// articles is a spec that reads the table.
func articles(t *testing.T, d *databasetest.Database, mode plan.CacheAsideMode) plan.Workload {
	t.Helper()
	return plan.Workload{
		CacheAside: &plan.CacheAside{Mode: mode, Database: plan.Database{
			Driver: d.Driver, DSNFile: dsnFile(t, d.DSN), Query: "SELECT title, stock FROM articles WHERE id = " + d.Parameter,
		}},
		Keyspace: plan.Keyspace{Prefix: "rq:", Keys: 100, Distribution: plan.Sequential, TTL: time.Hour},
	}
}

// cacheOf returns a client that returns errors instead of retrying.
func cacheOf(t *testing.T, address string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr:                  address,
		MaxRetries:            -1,
		DialTimeout:           10 * time.Second,
		ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func prepared(t *testing.T, s plan.Workload, o RemoteOptions) (Caller, []uint64) {
	t.Helper()
	w := remote(t, s, o)
	if err := w.Prepare(context.Background()); err != nil {
		t.Fatal(err)
	}
	return w.Caller(0, 1), make([]uint64, len(w.Tallies()))
}

// calls makes n reads that must succeed.
func calls(t *testing.T, c Caller, n int, tally []uint64) Result {
	t.Helper()
	var last Result
	for range n {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		last = c.Call(ctx, c.Pick(), 1, tally)
		cancel()
		if last.Outcome != OK {
			t.Fatalf("a read is %+v", last)
		}
	}
	return last
}

func TestCacheAside(t *testing.T) {
	for driver, start := range map[string]func(*testing.T) *databasetest.Database{
		plan.DriverPostgres: databasetest.Postgres,
		plan.DriverMySQL:    databasetest.MariaDB,
	} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			testCacheAside(t, start(t))
		})
	}
}

func testCacheAside(t *testing.T, database *databasetest.Database) {
	address := redistest.Start(t).Address()
	cache := cacheOf(t, address)
	ctx := context.Background()

	t.Run("first the database, then the cache", func(t *testing.T) {
		c, tally := prepared(t, articles(t, database, plan.ThroughCache), RemoteOptions{Cache: cache})
		calls(t, c, 100, tally)
		if tally[plan.TallyHits] != 0 || tally[plan.TallyMisses] != 100 || tally[plan.TallyDatabaseMicros] == 0 {
			t.Errorf("tally %v of the first 100 reads", tally)
		}
		last := calls(t, c, 150, tally)
		if tally[plan.TallyHits] != 150 || tally[plan.TallyMisses] != 100 || tally[plan.TallyCacheMicros] == 0 {
			t.Errorf("tally %v after 150 more", tally)
		}
		want := strings.Repeat("x", 100) + "\t14\n"
		if got := cache.Get(ctx, "rq:7").Val(); got != want || last.BytesIn < len(want)-1 {
			t.Errorf("the cache holds %q, want %q; the last read brought %d bytes", got, want, last.BytesIn)
		}
		if ttl := cache.TTL(ctx, "rq:7").Val(); ttl < 50*time.Minute || ttl > time.Hour {
			t.Errorf("its TTL is %s", ttl)
		}
	})
	t.Run("a given hit ratio", func(t *testing.T) {
		spec := articles(t, database, plan.ThroughCache)
		spec.CacheAside.HitRatio = 0.75
		c, tally := prepared(t, spec, RemoteOptions{Cache: cache})
		calls(t, c, 2000, tally)
		// The cache is warm. 5 standard deviations are 97.
		if hits := tally[plan.TallyHits]; hits < 1400 || hits > 1600 || hits+tally[plan.TallyMisses] != 2000 {
			t.Errorf("tally %v of 2000 reads, want 1500 hits", tally)
		}
	})
	t.Run("the database only", func(t *testing.T) {
		c, tally := prepared(t, articles(t, database, plan.DatabaseOnly), RemoteOptions{})
		calls(t, c, 20, tally)
		if tally[plan.TallyHits] != 0 || tally[plan.TallyMisses] != 20 || tally[plan.TallyCacheMicros] != 0 {
			t.Errorf("tally %v", tally)
		}
	})
	t.Run("no such row", func(t *testing.T) {
		spec := articles(t, database, plan.ThroughCache)
		spec.Keyspace.Prefix, spec.CacheAside.Database.Query = "none:", "SELECT title FROM articles WHERE id = 1000 + "+
			database.Parameter
		c, tally := prepared(t, spec, RemoteOptions{Cache: cache})
		calls(t, c, 5, tally)
		if n := cache.Exists(ctx, "none:0").Val(); n != 0 || tally[plan.TallyMisses] != 5 {
			t.Errorf("what is not in the database is in the cache, tally %v", tally)
		}
	})
	t.Run("refusals before the start", func(t *testing.T) {
		closed := map[string]string{
			plan.DriverPostgres: "postgres://shop@" + closedAddress + "/x",
			plan.DriverMySQL:    "shop@tcp(" + closedAddress + ")/x",
		}
		for name, change := range map[string]func(*plan.CacheAside){
			"prepare the query at the database": func(c *plan.CacheAside) {
				c.Database.Query = "SELECT nothing FROM articles WHERE id = " + database.Parameter
			},
			"connect to the database": func(c *plan.CacheAside) {
				c.Database.DSNFile = dsnFile(t, closed[c.Database.Driver])
			},
		} {
			spec := articles(t, database, plan.DatabaseOnly)
			change(spec.CacheAside)
			if err := remote(t, spec, RemoteOptions{}).Prepare(ctx); err == nil || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("%s: the error is %v", name, err)
			}
		}
	})
	t.Run("the server's error without the login", func(t *testing.T) {
		spec := articles(t, database, plan.DatabaseOnly)
		login := map[string]string{plan.DriverPostgres: "shop@", plan.DriverMySQL: "root@"}[database.Driver]
		spec.CacheAside.Database.DSNFile = dsnFile(t, strings.Replace(database.DSN, login, "pLaNtEd:pLaNtEd-password@", 1))
		err := remote(t, spec, RemoteOptions{}).Prepare(ctx)
		if err == nil || strings.Contains(err.Error(), "pLaNtEd") || !strings.Contains(err.Error(), "(redacted)") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("the cache fails", func(t *testing.T) {
		c, tally := prepared(t, articles(t, database, plan.ThroughCache), RemoteOptions{Cache: cache})
		for refusal, want := range map[string]record.Class{"oom": record.ClassOOM, "readonly": record.ClassReadOnly} {
			before := tally[plan.TallyMisses]
			cache.FlushAll(ctx)
			undo := map[string]func(){"oom": func() {
				cache.ConfigSet(ctx, "maxmemory",
					"0")
			}, "readonly": func() { cache.Do(ctx, "REPLICAOF", "NO", "ONE") }}[refusal]
			if refusal == "oom" {
				cache.ConfigSet(ctx, "maxmemory", "1")
			} else {
				cache.Do(ctx, "REPLICAOF", "127.0.0.1", "1")
			}
			got := c.Call(ctx, 0, 1, tally)
			undo()
			if got.Outcome != Fail || got.Class != want || tally[plan.TallyMisses] != before+1 {
				t.Errorf("%s: the result is %+v", refusal, got)
			}
		}
		unreachable := cacheOf(t, closedAddress)
		w := remote(t, articles(t, database, plan.ThroughCache), RemoteOptions{Cache: unreachable})
		if got := w.Caller(0, 1).Call(ctx, 0, 1, tally); got.Outcome != Fail || got.Class != record.ClassRefused {
			t.Errorf("without a cache the result is %+v", got)
		}
	})
	t.Run("the cache hangs", func(t *testing.T) {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = silent.Close() }()
		w := remote(t, articles(t, database, plan.ThroughCache), RemoteOptions{Cache: cacheOf(t, silent.Addr().String())})
		timed, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if got := w.Caller(0, 1).Call(timed, 0, 1, make([]uint64, 4)); got.Outcome != Unknown ||
			got.Class != record.ClassTimeout {
			t.Errorf("the result is %+v", got)
		}
	})
	t.Run("the database fails", func(t *testing.T) {
		c, tally := prepared(t, articles(t, database, plan.DatabaseOnly), RemoteOptions{})
		calls(t, c, 1, tally)
		database.Stop()
		for range 2 { // on the connection that broke, then on a new one
			timed, cancel := context.WithTimeout(ctx, 10*time.Second)
			got := c.Call(timed, 0, 1, tally)
			cancel()
			if got.Outcome == OK || got.Class != record.ClassReset && got.Class != record.ClassRefused {
				t.Errorf("without a database the result is %+v", got)
			}
		}
	})
}

func TestNoDataSourceName(t *testing.T) {
	for driver, dsn := range map[string]string{
		"postgres": "postgres://shop:secret@127.0.0.1:port/x",
		"mysql":    "shop:secret@127.0.0.1",
	} {
		spec := articles(t, &databasetest.Database{Driver: driver, DSN: dsn}, plan.DatabaseOnly)
		_, err := NewRemote(&spec, RemoteOptions{Connections: 1, Timeout: 10 * time.Second})
		if err == nil || !strings.HasPrefix(err.Error(), "parse the data source name") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error is %v", driver, err)
		}
	}
}
