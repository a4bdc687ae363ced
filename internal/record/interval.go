// Package record defines what a load pod records: its types, their bounds and their encoding.
// Package merged merges the records of several pods.
//
// Time is counted in nanoseconds since the run's start instant T. The grid is common to all pods of
// a run: interval i covers [T+i*step, T+(i+1)*step). Counts add, histograms add, gaps intersect;
// nothing is averaged.
package record

import (
	"time"

	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/histogram"
)

// Counts are the requests of one operation during one interval.
//
// A request is counted under OK, Fail or Unknown in the interval in which its outcome was known,
// under Sent in the interval in which it was written, under Due in the interval for which it was
// scheduled.
type Counts struct {
	Due     uint64 // open loop: arrivals scheduled for this interval; closed loop: equals Sent
	Sent    uint64 // written to a connection
	OK      uint64 // replied to in time, without an error
	Drained uint64 // of OK, those replied to after the load's planned end: not part of a rate
	Fail    uint64 // certainly not applied: an error reply, or no connection could be established
	Unknown uint64 // sent, then timed out, replied to too late, or the connection broke
	Dropped uint64 // open loop: never sent, because requestTimeout had passed since its arrival
	// of OK, those of a read that were answered by null: what was to be read does not exist
	Missed uint64
	// redirections (MOVED, ASK, TRYAGAIN) that were followed, in the interval of their arrival; a
	// request may have several
	Redirected uint64
	BytesOut   uint64
	BytesIn    uint64
	Errors     [NumClasses]uint64 // Fail and Unknown by class; sums to Fail+Unknown
}

// Op is one operation (a named command of the workload) during one interval.
type Op struct {
	Counts
	// Latency of OK requests: response time from the arrival (open loop), service time from the send
	// (closed loop).
	Latency histogram.Buckets
	// Service time of OK requests from the send. Open loop only, empty otherwise.
	Service histogram.Buckets
	// Waited is how long Fail and Unknown requests had waited when their outcome was known.
	Waited histogram.Buckets
}

// ShardCounts are the requests to one shard of a Redis Cluster during one interval.
type ShardCounts struct {
	OK     uint64 // as Counts.OK, without those replied to after the load's planned end
	Errors uint64 // Fail and Unknown together
}

// ShardGap is a period without a success at one shard, 0 <= Shard < MaxShards.
type ShardGap struct {
	Shard int
	Gap
}

// MaxShards bounds the number of shards in a record: Redis Cluster is designed for up to 1,000
// nodes.
const MaxShards = 1000

// MaxParts bounds the number of shards, and of parts, that a record is decoded with.
const MaxParts = 2000

// Interval is the record of one step of the grid, of one pod or, after merging, of all pods.
type Interval struct {
	Index int64 // position on the grid, from 0
	Pods  int   // pods that delivered this interval: 1 at a pod, the sum after merging
	Ops   []Op  // in the order of the plan's operations
	Probe Op    // the low-rate open-loop stream in parallel with the load

	// FirstError and LastError are the instants of the load's first and last non-OK outcome in this
	// interval, FirstOK and LastOK the same for successes, in nanoseconds since T; -1 where there was
	// none.
	FirstError, LastError int64
	FirstOK, LastOK       int64

	// of the load, in the interval in which they ended; empty after merging (Series keeps them)
	Gaps      []Gap
	ProbeGaps []Gap // of the probe, in the same way; empty for a target with several shards
	// of reads and of writes, and of each operation, in the same way; empty for a load with a single
	// operation
	PartGaps []PartGap
	Stalls   []Stall // of the load generator: one list from a pod; empty after merging
	// Stalled is for how long each pod's load generator did not run in this interval, nanoseconds by
	// the pod's number: all stalls, also those that the record does not keep. It may be shorter than
	// the number of pods; empty from a pod, as is a list without any.
	Stalled []int64
	// gaps that ended in this interval, or before, can still follow: an event loop of the pod has not
	// run since
	Unsettled bool

	// open loop: the longest time from an arrival's due time to its send, nanoseconds
	MaxLag      int64
	Connections int // load connections established at the end of the interval

	// Tallies are the workload's own counters, e.g. requests allowed and denied, in the order of
	// Series.Tallies. Empty if it has none.
	Tallies []uint64
	// Shards are the requests by shard; its length may grow during a run. Empty for a target with one
	// shard, and before the first request.
	Shards []ShardCounts
	// ShardGaps are like Gaps, for each shard separately: in the interval in which they ended, the
	// first one from 0. Empty after merging.
	ShardGaps []ShardGap
	// ProbeShards and ProbeShardGaps are the same for the probe, which has a stream for each of
	// several shards. Empty after merging.
	ProbeShards    []ShardCounts
	ProbeShardGaps []ShardGap
	// Lost are the acknowledged ledger writes that were found absent in this interval for the first
	// time, by shard; empty if there are none.
	Lost []uint64
	// LedgerChecks are those of this pod's ledger that ended in this interval, at most the last one;
	// empty after merging.
	LedgerChecks []LedgerCheck

	Servers []Server // readings of the Redis servers by this pod in this interval
	// what this pod learned in this interval about servers that it cannot read; empty after merging
	Unobserved []Unobserved
	// the load generator's own resource use: one reading from a pod; empty after merging
	Agents []AgentUse
}

// BusyStretch is the shortest time over which the highest use of a process is taken: a process that
// is at its limit for so long limits the load.
const BusyStretch = 5 * time.Second

// Busy is what a process used over BusyStretch, or little more where its readings are further
// apart. The zero value stands for none.
type Busy struct {
	From, To   int64 // nanoseconds since T
	CPU        int64 // of the whole process, microseconds
	MainThread int64 // of a server's main thread, microseconds; 0 if it does not report it
	Throttled  int64 // time that the cgroup throttled a load generator, microseconds
	Commands   int64 // processed by a server
}

// Length is that of the stretch.
func (b *Busy) Length() time.Duration {
	return time.Duration(b.To - b.From)
}

// appendBusy appends a stretch that ends at an instant or before it.
func appendBusy(dst []byte, b *Busy, at int64) []byte {
	dst = codec.AppendUint(dst, uint64(b.To-b.From))
	if b.To == b.From {
		return dst
	}
	for _, v := range [...]int64{at - b.To, b.CPU, b.MainThread, b.Throttled, b.Commands} {
		dst = codec.AppendInt(dst, v)
	}
	return dst
}

func readBusy(r *codec.Reader, at int64) (b Busy) {
	length := int64(r.Uint())
	if length == 0 {
		return b
	}
	b.To = at - r.Int()
	b.From = b.To - length
	b.CPU = r.Int()
	b.MainThread = r.Int()
	b.Throttled = r.Int()
	b.Commands = r.Int()
	if b.From > b.To {
		r.Fail("a stretch of %d ns", length)
	}
	return b
}

// Class is the kind of an error, from the client's perspective. The order is part of the encoding:
// only append.
type Class uint8

// The error classes: what made the request fail, independently of the client library's error.
const (
	ClassTimeout Class = iota // sent, no reply within requestTimeout
	// the connection could not be made: refused, unreachable, dial timed out, name not found
	ClassRefused
	// the connection broke while the request was in flight: reset, EOF, broken pipe
	ClassReset
	ClassReadOnly    // -READONLY
	ClassMoved       // -MOVED, -ASK, -TRYAGAIN, -CROSSSLOT that could not be followed
	ClassClusterDown // -CLUSTERDOWN
	ClassLoading     // -LOADING
	ClassMasterDown  // -MASTERDOWN
	ClassAuth        // -NOAUTH, -WRONGPASS, -NOPERM
	ClassOOM         // -OOM
	ClassBusy        // -BUSY
	ClassMisconf     // -MISCONF
	ClassProtocol    // not a RESP reply
	ClassOther       // any other error reply
	ClassNoReplicas  // -NOREPLICAS
	NumClasses       = iota
)

var classNames = [NumClasses]string{
	"timeout", "refused", "reset", "readonly", "moved", "clusterdown", "loading",
	"masterdown", "auth", "oom", "busy", "misconf", "protocol", "other", "noreplicas",
}

// String returns the class's name in lower case, as reports and metrics label it.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "other"
}
