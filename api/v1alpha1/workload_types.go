package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Workload defines the requests: exactly one of commands, benchmark, ranking, rateLimiter, lock,
// cacheAside and http.
// +kubebuilder:validation:XValidation:rule="[has(self.commands), has(self.benchmark), has(self.ranking), has(self.rateLimiter), has(self.lock), has(self.cacheAside), has(self.http)].filter(x, x).size() == 1",message="set exactly one of commands, benchmark, ranking, rateLimiter, lock, cacheAside and http"
type Workload struct {
	// commands are a weighted mix. Each is an operation with separate figures.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Commands []WorkloadCommand `json:"commands,omitempty"`

	// benchmark is the tests of redis-benchmark, one after the other or mixed.
	// +optional
	Benchmark *BenchmarkWorkload `json:"benchmark,omitempty"`

	// ranking is a leaderboard in a sorted set.
	// +optional
	Ranking *RankingWorkload `json:"ranking,omitempty"`

	// rateLimiter counts requests of users in fixed windows.
	// +optional
	RateLimiter *RateLimiterWorkload `json:"rateLimiter,omitempty"`

	// lock is users that compete for locks, and counts when two of them hold one at the same time.
	// +optional
	Lock *LockWorkload `json:"lock,omitempty"`

	// cacheAside reads rows of a database with Redis as a cache, or directly.
	// +optional
	CacheAside *CacheAsideWorkload `json:"cacheAside,omitempty"`

	// http sends requests to the API of an application that uses the Redis.
	// +optional
	HTTP *HTTPWorkload `json:"http,omitempty"`

	// keyspace is the set of keys for {key}, and of users, rows and members of the other workloads.
	// +optional
	// +kubebuilder:default={}
	Keyspace Keyspace `json:"keyspace,omitzero"`

	// values is the size of {value}.
	// +optional
	// +kubebuilder:default={}
	Values ValueSizes `json:"values,omitzero"`

	// seed determines the random draws of the requests: keys, values, operations and arrivals. Two
	// loads with the same seed, spec and number of event loops draw the same. Between 1 and
	// 9007199254740991. By default each object, and each process of redquake load, has another one;
	// status.seed tells it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	Seed *int64 `json:"seed,omitempty"`
}

// WorkloadCommand is one operation of a mix.
// +kubebuilder:validation:XValidation:rule="!(self.command[0].upperAscii() in ['MULTI', 'EXEC', 'DISCARD', 'WATCH', 'UNWATCH', 'SUBSCRIBE', 'PSUBSCRIBE', 'SSUBSCRIBE', 'UNSUBSCRIBE', 'PUNSUBSCRIBE', 'SUNSUBSCRIBE', 'MONITOR', 'SELECT', 'HELLO', 'AUTH', 'READONLY', 'READWRITE', 'ASKING', 'QUIT', 'RESET', 'SYNC', 'PSYNC', 'REPLCONF']) && !(self.command.size() > 1 && self.command[0].upperAscii() == 'CLIENT' && self.command[1].upperAscii() in ['REPLY', 'TRACKING', 'CACHING', 'SETNAME', 'SETINFO', 'NO-EVICT', 'NO-TOUCH', 'CAPA', 'IMPORT-SOURCE'])",fieldPath=".command",messageExpression="self.command[0] + ' changes the connection that it is sent over, which requests of all operations share'"
type WorkloadCommand struct {
	// name of the operation in every result.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`
	Name string `json:"name,omitempty"`

	// weight relative to the other commands.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Weight int32 `json:"weight,omitempty"`

	// command and its arguments. Placeholders: {key} a key of the keyspace, {value} random bytes,
	// {int} a random number below keyspace.keys, {user} the virtual user's number (with rate, that of
	// an event loop), {seq} a number that no other request of the run has, over all connections and
	// load pods; it increases within each event loop, not from request to request of the run. Other
	// words in braces are refused, as they would be one hot key; \{ is a brace that begins none.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	Command []string `json:"command,omitempty"`
}

// BenchmarkTest is a test of redis-benchmark.
// +kubebuilder:validation:Enum=ping;set;get;incr;lpush;rpush;lpop;rpop;sadd;hset;spop;zadd;zpopmin;lrange_100;lrange_300;lrange_500;lrange_600;mset;xadd
type BenchmarkTest string

// BenchmarkOrder is how the tests of a benchmark follow each other.
// +kubebuilder:validation:Enum=Sequential;Mixed
type BenchmarkOrder string

// The orders.
const (
	BenchmarkSequential BenchmarkOrder = "Sequential" // one after the other
	BenchmarkMixed      BenchmarkOrder = "Mixed"      // all at the same time, with equal weights
)

// BenchmarkWorkload is tests of redis-benchmark.
type BenchmarkWorkload struct {
	// tests to send. Each is an operation with separate figures.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=19
	Tests []BenchmarkTest `json:"tests,omitempty"`

	// order is how the tests follow each other.
	// Sequential: one after the other, as redis-benchmark does, each for an equal part of the measured
	// time, or of load.requests if that is set. The throughput of a test counts its own part. The
	// first test also covers rampUp and warmUp.
	// Mixed: all at the same time, with equal weights: a closed loop then sends all tests at the pace
	// of the slowest.
	// +optional
	// +kubebuilder:default=Sequential
	Order BenchmarkOrder `json:"order,omitempty"`
}

// RankingWorkload is a sorted set {prefix}ranking, filled before the start.
// +kubebuilder:validation:XValidation:rule="self.findCount <= self.members",message="findCount must not be above members"
type RankingWorkload struct {
	// members of the sorted set, written before the start. 10 million take about 1.2 GB of memory in
	// Redis.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	Members int64 `json:"members,omitempty"`

	// scoreSpread is the number of different scores: integers from 0, drawn uniformly.
	// +optional
	// +kubebuilder:default=100000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000000
	ScoreSpread int64 `json:"scoreSpread,omitempty"`

	// findCount is how many members find and findByOrder look up.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	FindCount int32 `json:"findCount,omitempty"`

	// weights of the operations. Defaults to 1 for all.
	// +optional
	// +kubebuilder:default={set: 1, get: 1, find: 1, findByOrder: 1}
	Weights *RankingWeights `json:"weights,omitempty"`
}

// RankingWeights are relative to each other. An operation of weight 0 is not sent.
// +kubebuilder:validation:XValidation:rule="[has(self.set) && self.set > 0, has(self.get) && self.get > 0, has(self.find) && self.find > 0, has(self.findByOrder) && self.findByOrder > 0].exists(x, x)",message="at least one weight must be above 0"
type RankingWeights struct {
	// set gives a member a new score: ZADD.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Set int32 `json:"set,omitempty"`

	// get reads a member's score and rank: ZSCORE, then ZCOUNT.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Get int32 `json:"get,omitempty"`

	// find reads the scores and ranks of findCount members: ZSCOREs in one batch, then ZCOUNTs in one
	// batch.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Find int32 `json:"find,omitempty"`

	// findByOrder reads findCount members from a random rank on: ZREVRANGE, then ZCOUNT for the rank
	// of the first.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	FindByOrder int32 `json:"findByOrder,omitempty"`
}

// RateLimiterWorkload sends INCR for a user's counter {prefix}limit:{n}, and PEXPIRE for the first
// request of a window.
type RateLimiterWorkload struct {
	// limit is how many requests of a user are allowed in a window.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	Limit int64 `json:"limit,omitempty"`

	// window is the length of a window. Between 1ms and 24h.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('24h')",message="must be between 1ms and 24h"
	// +kubebuilder:validation:Type=string
	Window metav1.Duration `json:"window,omitzero"`
}

// LockWorkload is locks {prefix}lock:{n} for which users compete, as applications build them: SET NX
// PX with a token of the holder's own, a script that extends the TTL if the token is still there, and
// one that deletes it if it is. A user takes a lock, holds it, gives it up, and tries again. Each
// load pod has locks of its own, as only the instants of its own users can be compared.
// +kubebuilder:validation:XValidation:rule="!has(self.renewEvery) || duration(self.renewEvery) < duration(self.ttl)",message="renewEvery must be below ttl: the lock would expire before it is renewed"
type LockWorkload struct {
	// locks of each load pod. Its users are dealt to them in turn: there must be two or more for each.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Locks int32 `json:"locks,omitempty"`

	// ttl after which Redis frees a lock that is not renewed. Between 10ms and 1h.
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10ms') && duration(self) <= duration('1h')",message="must be between 10ms and 1h"
	// +kubebuilder:validation:Type=string
	TTL metav1.Duration `json:"ttl,omitzero"`

	// hold is how long a user holds a lock before it gives it up. Between 0s and 1h.
	// +optional
	// +kubebuilder:default="1s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="must be between 0s and 1h"
	// +kubebuilder:validation:Type=string
	Hold metav1.Duration `json:"hold,omitzero"`

	// renewEvery is how often a holder extends the TTL. Defaults to a third of ttl.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms')",message="must be at least 1ms"
	// +kubebuilder:validation:Type=string
	RenewEvery *metav1.Duration `json:"renewEvery,omitempty"`

	// retryEvery is how long a user waits before it tries again to take a lock, or to renew it after an
	// error. Between 1ms and 1m.
	// +optional
	// +kubebuilder:default="50ms"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1m')",message="must be between 1ms and 1m"
	// +kubebuilder:validation:Type=string
	RetryEvery metav1.Duration `json:"retryEvery,omitzero"`

	// waitReplicas is how many replicas must have a lock before its holder counts on it: WAIT, for at
	// most half of ttl and of client.requestTimeout. A lock that fewer have in time is given up.
	// client.driver Native, mode Dedicated only.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	WaitReplicas int32 `json:"waitReplicas,omitempty"`

	// fencing gives each holder a token that grows, INCR of {prefix}lock:{n}:fence, by which a resource
	// could refuse an earlier holder.
	// +optional
	Fencing bool `json:"fencing,omitempty"`
}

// CacheAsideMode is where reads go.
// +kubebuilder:validation:Enum=CacheAside;DatabaseOnly
type CacheAsideMode string

// The modes of a cacheAside workload.
const (
	CacheAsideThroughCache CacheAsideMode = "CacheAside"
	CacheAsideDatabaseOnly CacheAsideMode = "DatabaseOnly"
)

// CacheAsideWorkload reads rows, each cached under {prefix}{n}.
type CacheAsideWorkload struct {
	// database contains the rows.
	// +required
	Database WorkloadDatabase `json:"database,omitzero"`

	// mode is where reads go.
	// CacheAside: to Redis first, then to the database.
	// DatabaseOnly: to the database only, as without a cache.
	// +optional
	// +kubebuilder:default=CacheAside
	Mode CacheAsideMode `json:"mode,omitempty"`

	// hitRatio is the hit ratio of the warm cache, above 0%, at most 100%: the other reads use a key
	// that does not exist.
	// If it is not set, the ratio depends on keyspace, ttl and eviction.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)%$`
	// +kubebuilder:validation:XValidation:rule="double(self.replace('%', '')) > 0.0",message="must be above 0%"
	HitRatio string `json:"hitRatio,omitempty"`
}

// DatabaseDriver is the protocol of a database.
// +kubebuilder:validation:Enum=mysql;postgres
type DatabaseDriver string

// The drivers.
const (
	DatabaseMySQL    DatabaseDriver = "mysql"
	DatabasePostgres DatabaseDriver = "postgres"
)

// WorkloadDatabase is a database and the query that reads a row.
type WorkloadDatabase struct {
	// driver of the database.
	// mysql: MySQL and MariaDB.
	// postgres: PostgreSQL.
	// +required
	Driver DatabaseDriver `json:"driver,omitempty"`

	// dsnSecretRef is the data source name including the password: for mysql
	// user:password@tcp(host:3306)/database, for postgres postgres://user:password@host:5432/database.
	// +required
	DSNSecretRef SecretKeyReference `json:"dsnSecretRef,omitzero"`

	// query reads a row by the key's number, from 0 to keyspace.keys - 1: its one parameter, ? for
	// mysql, $1 for postgres.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query,omitempty"`
}

// HTTPMethod is a method of HTTP.
// +kubebuilder:validation:Enum=GET;HEAD;POST;PUT;PATCH;DELETE
type HTTPMethod string

// HTTPWorkload sends requests to an API. A response with status 400 or above is a failure.
type HTTPWorkload struct {
	// url of the requests. It, body and header values may contain the placeholders {key}, {int},
	// {user} and {seq}, as in a command.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^/{}]+`
	URL string `json:"url,omitempty"`

	// method of each request.
	// +optional
	// +kubebuilder:default=GET
	Method HTTPMethod `json:"method,omitempty"`

	// body of each request.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Body string `json:"body,omitempty"`

	// headers of each request. They are stored in a ConfigMap: do not put secrets here.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Headers []HTTPHeader `json:"headers,omitempty"`

	// keepAlive reuses connections. If false, each request opens a new one.
	// +optional
	// +kubebuilder:default=true
	KeepAlive *bool `json:"keepAlive,omitempty"`
}

// HTTPHeader is one header.
type HTTPHeader struct {
	// name of the header. Host sets the request's host.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	Name string `json:"name,omitempty"`

	// value of the header.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// KeyDistribution is how keys are drawn.
// +kubebuilder:validation:Enum=Uniform;Zipf;Gaussian;Sequential
type KeyDistribution string

// KeyCleanup is what happens to the keys of a load after it.
// +kubebuilder:validation:Enum=Keep;Delete
type KeyCleanup string

// What happens to the keys.
const (
	CleanupKeep   KeyCleanup = "Keep"
	CleanupDelete KeyCleanup = "Delete"
)

// ZipfKeys is how hot the hottest keys are.
type ZipfKeys struct {
	// exponent s: key k is drawn with a frequency proportional to (k+1)^-s. Between 0.01 and 10; the
	// higher, the more of all requests go to the first keys. YCSB uses 0.99.
	// +optional
	// +kubebuilder:default="1.1"
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +kubebuilder:validation:XValidation:rule="double(self) >= 0.01 && double(self) <= 10.0",message="must be between 0.01 and 10"
	Exponent string `json:"exponent,omitempty"`
}

// GaussianKeys is which keys are hot, and how many. Numbers outside of the keyspace are drawn
// again.
type GaussianKeys struct {
	// centre is where the most frequent keys are, as a share of the keyspace from 0% to 100%.
	// +optional
	// +kubebuilder:default="50%"
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)%$`
	Centre string `json:"centre,omitempty"`

	// deviation is the standard deviation as a share of the keyspace, above 0%, at most 100%: two of
	// three requests go to the keys that are at most so far from the centre. Defaults to a sixth.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)%$`
	// +kubebuilder:validation:XValidation:rule="double(self.replace('%', '')) > 0.0",message="must be above 0%"
	Deviation string `json:"deviation,omitempty"`
}

// Keyspace is the set of keys from {prefix}0 to {prefix}{keys-1}.
// +kubebuilder:validation:XValidation:rule="!has(self.cleanup) || self.cleanup != 'Delete' || (has(self.prefix) && size(self.prefix) > 0)",message="cleanup Delete needs a prefix, which sets the keys of the test apart"
// +kubebuilder:validation:XValidation:rule="!has(self.zipf) || self.distribution == 'Zipf'",message="zipf belongs to distribution Zipf"
// +kubebuilder:validation:XValidation:rule="!has(self.gaussian) || self.distribution == 'Gaussian'",message="gaussian belongs to distribution Gaussian"
type Keyspace struct {
	// prefix of every key. The default keeps the test's keys apart from the application's.
	// +optional
	// +kubebuilder:default="rq:"
	// +kubebuilder:validation:MaxLength=128
	Prefix string `json:"prefix,omitempty"`

	// keys is the number of keys.
	// +optional
	// +kubebuilder:default=100000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	Keys int64 `json:"keys,omitempty"`

	// distribution is how keys are drawn.
	// Uniform: all keys with the same frequency.
	// Zipf: some are hot, as zipf says; key 0 is the most frequent.
	// Gaussian: around the middle, or as gaussian says.
	// Sequential: one after the other.
	// +optional
	// +kubebuilder:default=Uniform
	Distribution KeyDistribution `json:"distribution,omitempty"`

	// zipf has the parameter of distribution Zipf.
	// +optional
	Zipf *ZipfKeys `json:"zipf,omitempty"`

	// gaussian has the parameters of distribution Gaussian.
	// +optional
	Gaussian *GaussianKeys `json:"gaussian,omitempty"`

	// scattered spreads hot keys over the key numbers, by a permutation that is the same for every
	// run. Otherwise they are neighbours, as keys of the same time or user are.
	// +optional
	// +kubebuilder:default=false
	Scattered bool `json:"scattered,omitempty"`

	// prefill sets every key before the start.
	// +optional
	// +kubebuilder:default=false
	Prefill bool `json:"prefill,omitempty"`

	// cleanup is what happens after the load to the keys that it can have created.
	// Keep: they stay, until ttl if that covers them.
	// Delete: the load pods remove, at no more than 50,000 a second, the keys of the keyspace, of the
	// workload and of the probe that begin with prefix, once all of them have ended, and before the
	// test is complete. Keys outside of prefix and of commands with {seq} or {user} stay.
	// Defaults to Keep.
	// +optional
	Cleanup KeyCleanup `json:"cleanup,omitempty"`

	// ttl of the keys that prefill and plain SET commands write. No TTL if it is not set. Between 1s
	// and 8760h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be between 1s and 8760h"
	// +kubebuilder:validation:Type=string
	TTL *metav1.Duration `json:"ttl,omitempty"`
}

// ValueSizes is the size of {value}: bytes, or a range drawn uniformly.
// +kubebuilder:validation:XValidation:rule="has(self.minBytes) == has(self.maxBytes)",message="set both minBytes and maxBytes, or bytes"
// +kubebuilder:validation:XValidation:rule="!(has(self.bytes) && has(self.minBytes))",message="set bytes, or minBytes and maxBytes"
// +kubebuilder:validation:XValidation:rule="!has(self.minBytes) || self.minBytes <= self.maxBytes",message="minBytes must not be above maxBytes"
type ValueSizes struct {
	// bytes of every value. Defaults to 32 if minBytes and maxBytes are not set either.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16777216
	Bytes *int32 `json:"bytes,omitempty"`

	// minBytes is the smallest value.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16777216
	MinBytes *int32 `json:"minBytes,omitempty"`

	// maxBytes is the largest value.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16777216
	MaxBytes *int32 `json:"maxBytes,omitempty"`
}
