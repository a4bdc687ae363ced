package record

// Server is one reading of a Redis server: INFO, and what SLOWLOG and LATENCY add. Counters are since the server's start.
type Server struct {
	At            int64  // nanoseconds since T
	Address       string // host:port that was asked
	RunID         string
	Name          string // redis | valkey
	Version       string
	Mode          string // standalone | sentinel | cluster
	Role          string // master | slave
	UptimeSeconds int64
	Loading       bool

	CPUSeconds           float64 // used_cpu_sys + used_cpu_user: whole process, without children
	CPUMainThreadSeconds float64 // main thread only; 0 where the server does not tell
	UsedMemory           int64   // bytes
	UsedMemoryRSS        int64   // bytes
	MaxMemory            int64   // bytes, 0 = no limit
	MaxMemoryPolicy      string
	ConnectedClients     int64
	RejectedConnections  int64
	EvictedKeys          int64
	ExpiredKeys          int64
	CommandsProcessed    int64
	AOFEnabled           bool
	AOFDelayedFsync      int64
	AOFFsync             string // appendfsync: always | everysec | no; empty where CONFIG GET is not allowed

	BlockedClients   int64 // now, in blocking commands
	MaxClients       int64 // the limit
	OOMErrors        int64 // commands refused for want of memory
	TotalReads       int64 // reads from clients' connections, by all threads
	TotalWrites      int64
	IOThreadedReads  int64 // those of the above that I/O threads made
	IOThreadedWrites int64
	InstantaneousOps int64 // commands/s, the server's own short average
	LatestForkMicros int64 // how long the last fork stopped the server
	SlowLog          SlowLog
	Latency          []LatencyEvent // of LATENCY LATEST, at most MaxLatencyEvents; empty while latency-monitor-threshold is 0
}

// SlowLog is what SLOWLOG told since the reading before: commands that ran longer than slowlog-log-slower-than.
type SlowLog struct {
	Total       int64  // slow commands since the server's start; counters count on from reading to reading
	WorstMicros int64  // the longest of those that are new in this reading; 0 = none is new
	Command     string // its first word, in upper case
}

// MaxLatencyEvents bounds Server.Latency; Redis knows about twenty events.
const MaxLatencyEvents = 32

// LatencyEvent is one line of LATENCY LATEST: aof-fsync-always, aof-write, fork, command and so on.
type LatencyEvent struct {
	Name         string
	Unix         int64 // of the latest occurrence, seconds by the server's clock
	LatestMillis int64 // how long that one lasted
	MaxMillis    int64 // the longest since the server's start
}
