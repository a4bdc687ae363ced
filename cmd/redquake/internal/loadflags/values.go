package loadflags

import "time"

// Flags are the flags of `redquake load`.
type Flags struct {
	file   string
	Output string // text or json
	Record string // the file; "" = none
	Report string // the file; "" = none

	addresses                 []string
	username, passwordFile    string
	dsnFile                   string
	tls, insecure             bool
	ca, cert, key, serverName string
	database                  int32

	topology, masterName   string
	sentinels              []string
	sentinelUsername       string
	sentinelPasswordFile   string
	sentinelTLS            bool
	readFrom, mode, driver string
	poolSize, maxRetries   int32
	dialTimeout, timeout   time.Duration
	wait                   time.Duration
	stateReloadInterval    time.Duration
	connectionMaxAge       time.Duration
	retries                int32
	addedLatency           time.Duration

	users, rate               int32
	thinkTime, rampUp, warmUp time.Duration
	duration                  time.Duration
	requests                  int64
	connections, pipeline     int32
	resp2                     bool
	commands                  []string
	keys                      int64
	valueBytes                int32
	prefill                   bool
	interval                  time.Duration
	verify, staleReads        bool
	verifyShare               string
	search, searchPrecision   string
	searchTrial               time.Duration
	dualPrimary               bool

	minThroughput, maxErrorRate string
	maxP50, maxP99, maxP999     time.Duration
	maxLostWrites               int64

	unrecorded bool

	changed func(name string) bool // whether a flag was given
}

// PasswordVariable is the environment variable of the password, the same as for redis-cli: all
// users of the machine can read a command line.
const PasswordVariable = "REDISCLI_AUTH"

// Defaults without a file.
const (
	defaultAddress  = "127.0.0.1:6379"
	defaultUsers    = 50
	defaultDuration = 30 * time.Second
)
