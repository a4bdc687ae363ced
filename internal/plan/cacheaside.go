package plan

import "strings"

// CacheAsideMode says where reads go.
type CacheAsideMode string

// The modes of cacheAside.
const (
	ThroughCache CacheAsideMode = "CacheAside"   // GET; where that finds nothing the database, then SET
	DatabaseOnly CacheAsideMode = "DatabaseOnly" // always the database
)

// CacheAside is reads of an application that keeps rows of a database in Redis. A key of the keyspace is looked up in the cache as
// {prefix}{n}; where it is not there, the query is made with n and its rows are set, with the keyspace's TTL. An error of the cache fails the read:
// there is no fallback to the database that would hide it. A query that finds no row is a success that leaves nothing in the cache.
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

// The drivers of a database.
const (
	DriverMySQL    = "mysql"
	DriverPostgres = "postgres"
)

// The tallies of cacheAside. In mode DatabaseOnly every read is a miss.
const (
	TallyHits = iota
	TallyMisses
	TallyCacheMicros    // time in GET and SET
	TallyDatabaseMicros // time in the query, its rows read
)

func (c *CacheAside) check(*Keyspace) string {
	if strings.TrimSpace(c.Database.Query) == "" {
		return "database.query: must be a SELECT with one parameter, the key's number"
	}
	return firstOf(unknown("database.driver", c.Database.Driver, DriverMySQL, DriverPostgres), unknown("mode", c.Mode, ThroughCache, DatabaseOnly))
}

func (c *CacheAside) operations() []Operation { return []Operation{{Name: "read", Weight: 1}} }

func (c *CacheAside) tallies() []string {
	return []string{"hits", "misses", "cacheMicros", "databaseMicros"}
}
