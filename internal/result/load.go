// Package result defines the results of a run as numbers: one type for a load, one for a fault. The
// status of an object, the JSON and text of the command line and the verdict are made from them; no
// figure is parsed from text.
package result

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
)

// LoadVersion is the version of Load's JSON: it increases when a field is renamed, removed or means
// something else.
const LoadVersion = 1

// Load is the result of one load. Its JSON is an API, described in docs/record.md: the name of a
// number contains its unit, and a figure that was not measured is absent.
type Load struct {
	Version int     `json:"version"`
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message,omitempty"` // why a run was interrupted or failed

	Verdict    string      `json:"verdict,omitempty"`        // Pass, Fail or Inconclusive
	Why        string      `json:"verdictMessage,omitempty"` // the reasons for the verdict, in words
	Objectives []Objective `json:"objectives,omitempty"`

	Start   time.Time `json:"start"`          // when the load began, UTC
	Elapsed Seconds   `json:"elapsedSeconds"` // duration including ramp-up and warm-up
	// planned duration; 0 if only a number of requests ends the load
	Planned Seconds `json:"plannedSeconds"`
	// duration of the measured part, without ramp-up and warm-up
	Measured Seconds `json:"measuredSeconds"`

	Target Target `json:"target,omitzero"` // absent if the load has no Redis
	Asked
	Latency Latency `json:"latencyFrom"` // the instant from which all latencies count

	Total Operation `json:"total"` // all operations together
	// OutsideFaults is Total without the time from each fault's injection to its recovery. Absent
	// without faults.
	OutsideFaults *Operation   `json:"outsideFaults,omitempty"`
	Operations    []Operation  `json:"operations"` // in the order of the workload
	Errors        []ErrorCount `json:"errorsByClass"`
	// the workload's own figures, such as its hit ratio
	Workload []Figure `json:"workload,omitempty"`
	Shards   []Shard  `json:"shards,omitempty"` // of a deployment with several
	// open loop: the longest time from an intended arrival to its send
	MaxLag Seconds `json:"maxLagSeconds,omitempty"`

	Search *Search `json:"search,omitempty"` // the trials of a search

	// LongestGap is the longest recorded time without a success: of the load, or of its reads or
	// writes, if theirs is provably longer.
	LongestGap *Gap `json:"longestGap,omitempty"`
	// the longest in which a read waited in vain, of a load that reads and writes
	ReadGap  *Gap `json:"longestReadGap,omitempty"`
	WriteGap *Gap `json:"longestWriteGap,omitempty"` // the same of its writes
	// the same as LongestGap for the probe, which opens new connections
	ProbeGap *Gap `json:"longestProbeGap,omitempty"`
	// LongestShardGap is the longest time without a success at one of several shards. Its bounds are
	// the greatest of any shard: one with a shorter gap may have been down for longer.
	LongestShardGap *ShardGap `json:"longestShardGap,omitempty"`
	Anomalies       []Anomaly `json:"anomalies,omitempty"`
	Redis           *Redis    `json:"redis,omitempty"`

	// use of each server in the measured time: by shard, primaries first
	Servers    []ServerUse `json:"servers,omitempty"`
	RoundTrip  *RoundTrip  `json:"roundTrip,omitempty"`  // between the load and Redis
	LoadPodCPU *CPU        `json:"loadPodCPU,omitempty"` // of one load pod, or of this process
	Pods       []PodsUse   `json:"pods,omitempty"`       // of the observed pods

	Checked
	// Bottleneck is what limited the load in the measured time.
	Bottleneck *Bottleneck `json:"bottleneck,omitempty"`
	Trend      string      `json:"trend,omitempty"` // the throughput from the start to the end, drawn

	// what explains errors of the load and is for its user to change
	Warnings []string `json:"warnings,omitempty"`

	// reasons why the figures are inconclusive; empty = conclusive
	Doubts []impact.Doubt `json:"doubts,omitempty"`
	// how the run differed from its plan, and limits of the figures
	Notes []string `json:"notes,omitempty"`
}

// Asked is what a load was to send.
type Asked struct {
	Shape string `json:"load"`           // in words
	Seed  uint64 `json:"seed,omitempty"` // of the random draws
}

// Run is what is kept of a run beside its record: the results of its load, nil = it was not kept,
// and of its faults.
type Run struct {
	Load   *Load
	Faults []Fault
}

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Finished    Outcome = "Finished"    // ran to its planned end
	Interrupted Outcome = "Interrupted" // ended early by the user; the figures are valid until then
	Failed      Outcome = "Failed"      // could not continue
)

// Latency is the kind of latency that a run measured.
type Latency string

// The kinds of latency, see docs/measuring.md.
const (
	ServiceTime  Latency = "send"            // closed loop
	ResponseTime Latency = "intendedArrival" // open loop: waiting for a free connection counts
)

// Target is the loaded Redis.
type Target struct {
	Topology string `json:"topology"` // Standalone | Replication | Sentinel | Cluster
	// those that the load was given; absent if only sentinels were
	Addresses []string `json:"addresses,omitempty"`
	Sentinels []string `json:"sentinels,omitempty"` // those that the load was given
	Server    string   `json:"server,omitempty"`    // redis | valkey, by INFO
	Version   string   `json:"version,omitempty"`
	// Servers are all servers of the deployment when the load began, primaries first within each
	// shard. Of a Standalone target, every server that replied to INFO behind its addresses.
	Servers []Server `json:"servers,omitempty"`
	// NotObserved is why servers, or all of them, have no readings; absent if all have.
	NotObserved string `json:"notObserved,omitempty"`
}

// Server is one server of a deployment.
type Server struct {
	Address string `json:"address"`
	Role    string `json:"role,omitempty"`  // primary | replica
	Shard   *int   `json:"shard,omitempty"` // of a cluster
}

// Operation is the figures of one operation over the measured time.
type Operation struct {
	Name     string `json:"name"`
	Requests uint64 `json:"requests"` // that had an outcome, or were dropped
	OK       uint64 `json:"ok"`
	// of OK, those answered after the planned end, which are no throughput
	Drained uint64 `json:"drained,omitempty"`
	Failed  uint64 `json:"failed"`  // without effect
	Unknown uint64 `json:"unknown"` // with or without effect
	// never sent, because they would have been too late
	Dropped uint64 `json:"dropped"`
	// of OK, reads that were answered by null, as GET of a key that does not exist
	Misses uint64 `json:"misses,omitempty"`
	// redirections of a cluster (MOVED, ASK) that were followed
	Redirected uint64  `json:"redirected,omitempty"`
	Throughput float64 `json:"throughputPerSecond"`
	// how long it was sent, if operations were sent one after the other; Throughput counts this time
	Sent *Seconds `json:"sentSeconds,omitempty"`
	// failed, unknown and dropped as a share of requests
	ErrorRate float64    `json:"errorRate"`
	Latency   *Quantiles `json:"latencySeconds,omitempty"` // of successes; absent without any
	Service   *Quantiles `json:"serviceSeconds,omitempty"` // open loop: the same from the send
	// of all operations together: absent if the load generator always ran
	Stalled *Stalled `json:"generatorStalled,omitempty"`
	// Unaccounted is the share of the time of a closed loop's users that neither requests nor think
	// time took; absent where unknown.
	Unaccounted *float64 `json:"unaccountedShare,omitempty"`
	// Unexplained is the part of Unaccounted in which the load generator neither ran nor waited for a
	// CPU: why is not known.
	Unexplained *float64 `json:"unexplainedShare,omitempty"`
	// of one operation of several: the longest time in which a request waited in vain
	LongestGap *Gap `json:"longestGap,omitempty"`
}

// HitRatio is the share of an operation's successes that found what they read; nil if nothing was
// missed, as by an operation that writes.
func (o *Operation) HitRatio() *float64 {
	if o.Misses == 0 || o.OK == 0 {
		return nil
	}
	return new(float64(o.OK-min(o.OK, o.Misses)) / float64(o.OK))
}

// ErrorCount is how often one class of error occurred.
type ErrorCount struct {
	Class string `json:"class"`
	Count uint64 `json:"count"`
	// the server's first message of this class; only of redquake load, as records keep none
	Sample string `json:"sample,omitempty"`
}

// Shard is the figures of one shard of a cluster.
type Shard struct {
	Shard      int     `json:"shard"`  // in the order of the slots that they served at the start
	OK         uint64  `json:"ok"`     // within the planned time
	Errors     uint64  `json:"errors"` // failed and unknown
	Throughput float64 `json:"throughput"`
	LongestGap Seconds `json:"longestGapSeconds"` // recorded; 0 = none
	AtLeast    Seconds `json:"atLeastSeconds"`    // the bounds of LongestGap
	AtMost     Seconds `json:"atMostSeconds"`
}

// Anomaly is a dip of the throughput without a fault.
type Anomaly struct {
	At     Seconds `json:"atSeconds"` // from the load's start
	Length Seconds `json:"lengthSeconds"`
	Dip    float64 `json:"dip"` // as a share of the running median
}

// Bottleneck is what limited the load: LoadGenerator, Network, Application, CPULimit,
// RedisMainThread, Disk, Memory, Clients, Backend or None.
type Bottleneck struct {
	Component string `json:"component"`
	Pods      string `json:"pods,omitempty"` // Application: the name of the observed pods
	Evidence  string `json:"evidence"`       // one sentence with figures

	// Stalled: the load generator did not run for a part of the time, which concerns only figures that
	// hang on it.
	Stalled bool `json:"-"`
}

// Redis is a summary of Redis' INFO during the run.
type Redis struct {
	MaxCPU int64 `json:"maxCPUMillicores"`
	// absent if the server does not report it
	MaxMainThreadCPU    int64 `json:"maxMainThreadCPUMillicores,omitempty"`
	MaxMemory           int64 `json:"maxMemoryBytes"`
	EvictedKeys         int64 `json:"evictedKeys"`
	RejectedConnections int64 `json:"rejectedConnections"`
	Restarts            int   `json:"restarts"`
}

// Errors is the number of requests without success.
func (o *Operation) Errors() uint64 {
	return o.Failed + o.Unknown + o.Dropped
}
