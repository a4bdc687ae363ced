package record

import (
	"cmp"
	"slices"

	"github.com/redquake/redquake/internal/record/codec"
)

// Server is one reading of a Redis server: INFO, SLOWLOG and LATENCY. Counters count from the
// server's start.
type Server struct {
	At            int64  // nanoseconds since T
	Address       string // host:port of the query
	RunID         string
	Name          string // redis | valkey
	Version       string
	Mode          string // standalone | sentinel | cluster
	Role          string // master | slave
	Shard         int64  // of a cluster: the number of its shard plus one; 0 = none, or unknown
	UptimeSeconds int64
	Loading       bool

	CPUSeconds           float64 // used_cpu_sys + used_cpu_user: whole process, without children
	CPUMainThreadSeconds float64 // main thread only; 0 if the server does not report it
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
	// appendfsync: always | everysec | no; empty if CONFIG GET is not permitted
	AOFFsync string
	AOFSize  int64 // bytes
	// the main thread's time in writes and fsyncs of the append-only file; 0 if the server does not
	// report it, as before Redis 7.2
	AOFFlushMicros int64

	BlockedClients int64 // now, in blocking commands
	MaxClients     int64 // the limit
	OOMErrors      int64 // commands rejected because of maxmemory
	MisconfErrors  int64 // commands rejected because the server cannot save its data
	EvictedClients int64 // disconnected because of maxmemory-clients
	// disconnected because of client-output-buffer-limit, replicas included; 0 before Redis 8 and
	// Valkey 8
	BufferedClients  int64
	QueryingClients  int64 // disconnected because of client-query-buffer-limit; likewise
	TotalReads       int64 // reads from clients' connections, by all threads
	TotalWrites      int64
	IOThreadedReads  int64 // of the above, those by I/O threads
	IOThreadedWrites int64
	NetInput         int64 // bytes read from clients, replicas and primaries
	NetOutput        int64 // bytes written to them
	FullSyncs        int64 // full resynchronizations of replicas that this server has started
	PartialSyncs     int64 // of replicas that lacked little
	Replicas         int64 // connected now
	SyncedReplicas   int64 // of these, those that have the data and follow
	PrimaryLink      int64 // of a replica: see LinkUp; 0 = it is a primary
	InstantaneousOps int64 // commands/s, the server's own short-term average
	LatestForkMicros int64 // how long the last fork blocked the server
	SlowLog          SlowLog
	// of LATENCY LATEST, at most MaxLatencyEvents; empty while latency-monitor-threshold is 0
	Latency []LatencyEvent

	// Of a reading of a Series: the stretches with the highest CPU usage of the process and of its
	// main thread, of those that end with this reading or with one that was merged into it.
	Busiest, BusiestMainThread Busy
}

// The states of a replica's link to its primary.
const (
	LinkUp   = 1 // it follows
	LinkDown = 2 // it has no connection, or receives all data
)

// SlowLog is the SLOWLOG: commands that ran longer than slowlog-log-slower-than.
type SlowLog struct {
	// slow commands since the server's start, cumulative; -1 = unknown, as SLOWLOG is not permitted
	Total int64
	// since the previous reading that is kept, the longest first; at most MaxSlowCommands
	Commands []SlowCommand
}

// SlowCommand are the executions of one command.
type SlowCommand struct {
	Command     string // its first word, in upper case
	Count       int64  // executions that were read; the server may have had more, see SlowLog.Total
	WorstMicros int64  // the longest
	At          int64  // of the reading that found the longest, nanoseconds since T
}

// MaxSlowCommands bounds SlowLog.Commands.
const MaxSlowCommands = 16

// MergeSlow returns the commands of two lists with the sum of their executions and the longest one
// of each. Of many commands, those with the longest executions stay.
func MergeSlow(a, b []SlowCommand) []SlowCommand {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b SlowCommand) int {
		return cmp.Or(cmp.Compare(a.Command, b.Command), cmp.Compare(b.WorstMicros, a.WorstMicros),
			cmp.Compare(a.At, b.At))
	})
	var merged []SlowCommand
	for _, c := range all {
		n := len(merged)
		if n > 0 && merged[n-1].Command == c.Command {
			merged[n-1].Count += c.Count
			continue
		}
		merged = append(merged, c)
	}
	slices.SortStableFunc(merged, func(a, b SlowCommand) int {
		return cmp.Compare(b.WorstMicros,
			a.WorstMicros)
	})
	return merged[:min(len(merged), MaxSlowCommands)]
}

// MaxLatencyEvents bounds Server.Latency; Redis has about twenty events.
const MaxLatencyEvents = 32

// LatencyEvent is one line of LATENCY LATEST: aof-fsync-always, aof-write, fork, command and so on.
type LatencyEvent struct {
	Name         string
	Unix         int64 // of the latest occurrence, in seconds on the server's clock
	LatestMillis int64 // how long that one lasted
	MaxMillis    int64 // the longest since the server's start
}

// PodUse is what one container of an observed pod used, as the metrics API reports it.
type PodUse struct {
	At        int64  // end of the window that CPU is about, nanoseconds since T; may be negative
	Window    int64  // its length, nanoseconds
	Name      string // of the observed pods
	Pod       string
	Container string

	CPU      float64 // cores, mean over the window
	MaxCPU   float64 // cores, the highest of the readings that were merged into this one
	CPULimit float64 // cores; 0 = no limit
	Memory   int64   // bytes of the working set, the highest
}

// minPodUseSize is the length of an empty PodUse: 3 texts, 3 numbers, 3 floats.
const minPodUseSize = 3 + 3 + 3*8

func appendPodUse(dst []byte, u *PodUse) []byte {
	for _, v := range [...]int64{u.At, u.Window, u.Memory} {
		dst = codec.AppendInt(dst, v)
	}
	for _, v := range [...]string{u.Name, u.Pod, u.Container} {
		dst = codec.AppendText(dst, v)
	}
	for _, v := range [...]float64{u.CPU, u.MaxCPU, u.CPULimit} {
		dst = codec.AppendFloat(dst, v)
	}
	return dst
}

// AppendPodUses writes readings of observed pods.
func AppendPodUses(dst []byte, list []PodUse) []byte {
	return codec.AppendList(dst, list, appendPodUse)
}

// ReadPodUses reads the output of AppendPodUses.
func ReadPodUses(r *codec.Reader) []PodUse {
	return codec.ReadList(r, minPodUseSize, func(u *PodUse) {
		*u = PodUse{
			At:        r.Int(),
			Window:    r.Int(),
			Memory:    r.Int(),
			Name:      r.Text(),
			Pod:       r.Text(),
			Container: r.Text(),
			CPU:       r.Float(),
			MaxCPU:    r.Float(),
			CPULimit:  r.Float(),
		}
	})
}

// Unobserved is a Redis server that cannot be read.
type Unobserved struct {
	Address string // host:port; "" = that of the target, which was not reached
	Reason  string // the error of the last attempt; "" = it could be read after all
}

// AppendUnobserved writes servers that cannot be read.
func AppendUnobserved(dst []byte, list []Unobserved) []byte {
	return codec.AppendList(dst, list, func(dst []byte, u *Unobserved) []byte {
		return codec.AppendText(codec.AppendText(dst, u.Address), u.Reason)
	})
}

// ReadUnobserved reads the output of AppendUnobserved.
func ReadUnobserved(r *codec.Reader) []Unobserved {
	return codec.ReadList(r, 2, func(u *Unobserved) { *u = Unobserved{r.Text(), r.Text()} })
}
