package plan

import (
	"fmt"
	"strings"
)

// Command is one operation of the workload commands. Its words may contain the placeholders
// {key} (a key of the keyspace; the same key if it occurs twice in one command), {value} (random
// bytes), {int} (a random integer in [0, Keyspace.Keys)), {user} (the virtual user's number), {seq}
// (a number that no other request of the run has; it increases from request to request of a
// source).
type Command struct {
	Name   string   `json:"name"`
	Weight int      `json:"weight"` // > 0, relative to the other commands
	Words  []string `json:"words"`
}

// commandList is the spec of the workload commands.
type commandList []Command

func (l commandList) check(*Keyspace) string {
	for i, c := range l {
		if problem := CommandProblem(c.Words); problem != "" {
			return fmt.Sprintf("[%d].command: %s", i, problem)
		}
	}
	return ""
}

// CommandProblem returns why the words of a command cannot be an operation of a load; "" = they can.
func CommandProblem(words []string) string {
	if len(words) == 0 || words[0] == "" {
		return "must begin with the name of a command of Redis"
	}
	if problem := connectionProblem(words); problem != "" {
		return problem
	}
	for _, word := range words {
		if problem := placeholderProblem(word, Placeholders); problem != "" {
			return problem
		}
	}
	return ""
}

func (l commandList) operations() []Operation {
	operations := make([]Operation, len(l))
	for i, c := range l {
		operations[i] = Operation{
			Name:     c.Name,
			Weight:   c.Weight,
			ReadOnly: onlyReads(c.Words),
		}
	}
	return operations
}

func (l commandList) tallies() []string {
	return nil
}

// reads are the commands that only read, and those subcommands of others that do: the flag readonly
// of COMMAND in Redis 7 and 8 and Valkey 9, the documented ones of Redis' modules, and those
// without a key.
var reads = func() map[string]bool {
	known := map[string]bool{}
	for _, list := range [...]string{
		`
		BITCOUNT BITFIELD_RO BITPOS CLUSTERSCAN DBSIZE DUMP EVALSHA_RO EVAL_RO EXISTS EXPIRETIME FCALL_RO GEODIST
		GEOHASH GEOPOS GEORADIUSBYMEMBER_RO
		GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE HEXISTS HEXPIRETIME HGET HGETALL HKEYS HLEN HMGET HPEXPIRETIME
		HPTTL HRANDFIELD HSCAN HSTRLEN HTTL HVALS
		KEYS LCS LINDEX LLEN LOLWUT LPOS LRANGE MEMORY|USAGE MGET OBJECT|ENCODING OBJECT|FREQ OBJECT|IDLETIME
		OBJECT|REFCOUNT PEXPIRETIME PFCOUNT PTTL
		RANDOMKEY SCAN SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SORT_RO SRANDMEMBER SSCAN STRLEN
		SUBSTR SUNION TOUCH TTL TYPE VCARD VDIM
		VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VSIM XINFO|CONSUMERS XINFO|GROUPS XINFO|STREAM XLEN
		XPENDING XRANGE XREAD XREVRANGE ZCARD ZCOUNT
		ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE
		ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN
		ZSCORE ZUNION`,
		`JSON.ARRINDEX JSON.ARRLEN JSON.GET JSON.MGET JSON.OBJKEYS JSON.OBJLEN JSON.RESP JSON.STRLEN JSON.TYPE`,
		`FT.AGGREGATE FT.CURSOR|READ FT.DICTDUMP FT.EXPLAIN FT.EXPLAINCLI FT.HYBRID FT.INFO FT.PROFILE FT.SEARCH FT.SPELLCHECK FT.SUGGET FT.SUGLEN
		FT.SYNDUMP FT.TAGVALS FT._LIST`,
		`TS.GET TS.INFO TS.MGET TS.MRANGE TS.MREVRANGE TS.QUERYINDEX TS.RANGE TS.REVRANGE`,
		`BF.CARD BF.EXISTS BF.INFO BF.MEXISTS BF.SCANDUMP CF.COUNT CF.EXISTS CF.INFO CF.MEXISTS CF.SCANDUMP
		CMS.INFO CMS.QUERY TOPK.COUNT TOPK.INFO TOPK.LIST
		TOPK.QUERY TDIGEST.BYRANK TDIGEST.BYREVRANK TDIGEST.CDF TDIGEST.INFO TDIGEST.MAX TDIGEST.MIN TDIGEST.QUANTILE TDIGEST.RANK TDIGEST.REVRANK
		TDIGEST.TRIMMED_MEAN`,
		keyless,
	} {
		for word := range strings.FieldsSeq(list) {
			known[word] = true
		}
	}
	return known
}()

// keyless are commands that do not have the flag, and change nothing.
const keyless = "PING ECHO TIME"

func onlyReads(words []string) bool {
	if len(words) == 0 {
		return false
	}
	name := strings.ToUpper(words[0])
	return reads[name] || len(words) > 1 && reads[name+"|"+strings.ToUpper(words[1])]
}

// Operation is one kind of request, with separate figures in every record.
type Operation struct {
	Name     string
	Weight   int  // > 0, relative to the other operations
	ReadOnly bool // it may be sent to a replica
}

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
