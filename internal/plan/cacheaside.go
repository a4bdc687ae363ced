package plan

import "strings"

// CacheAsideMode is where reads go.
type CacheAsideMode string

// The modes of cacheAside.
const (
	// GET; if the key does not exist, the database, then SET
	ThroughCache CacheAsideMode = "CacheAside"
	DatabaseOnly CacheAsideMode = "DatabaseOnly" // always the database
)

// CacheAside is reads of an application that caches rows of a database in Redis. A read looks up
// {prefix}{n} in the cache. If it does not exist, the read executes the query with n and stores the
// rows in the cache, with the keyspace's TTL. An error of the cache fails the read: a fallback to
// the database would hide it. A query without rows is a success, and nothing is cached.
//
// The cache is accessed through go-redis, as in an application.
type CacheAside struct {
	Database Database       `json:"database"`
	Mode     CacheAsideMode `json:"mode"`
	// HitRatio, in (0, 1], is the share of reads with the key of an existing row. The others read a
	// key that never exists, to simulate a cache with this hit ratio once it is warm. 0 = all reads
	// use existing keys, and the ratio depends on keyspace, TTL and eviction.
	HitRatio float64 `json:"hitRatio,omitempty"`
}

// Database is a MySQL, MariaDB or PostgreSQL database.
type Database struct {
	Driver  string `json:"driver"`  // mysql | postgres
	DSNFile string `json:"dsnFile"` // contains the data source name in the format of the driver
	// SELECT with one parameter, the key's number: ? for mysql, $1 for postgres
	Query string `json:"query"`
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
	return firstOf(unknown("database.driver", c.Database.Driver, DriverMySQL, DriverPostgres),
		unknown("mode", c.Mode, ThroughCache, DatabaseOnly))
}

func (c *CacheAside) operations() []Operation {
	return []Operation{{Name: "read", Weight: 1}}
}

func (c *CacheAside) tallies() []string {
	return []string{"hits", "misses", "cacheMicros", "databaseMicros"}
}
