// Package result holds what a run came to, as numbers: one type for a load, one for a fault. The status of an object, the JSON and text of the
// command line and the verdict are all made from them; no figure is ever read back from text.
package result

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
)

// Load is what one load measured. Its JSON is a contract for programs: names are only ever added, every
// number says its unit, and a figure that was not measured is absent.
type Load struct {
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message,omitempty"` // why a run was interrupted or failed

	Start    time.Time `json:"start"`           // when the load began, UTC
	Elapsed  Seconds   `json:"elapsedSeconds"`  // how long it ran, ramp-up and warm-up included
	Planned  Seconds   `json:"plannedSeconds"`  // how long it was meant to; 0 where only a number of requests ends it
	Measured Seconds   `json:"measuredSeconds"` // the part that the figures are of: without ramp-up and warm-up

	Target  Target  `json:"target"`
	Shape   string  `json:"load"`        // how much was meant to be sent, in words
	Latency Latency `json:"latencyFrom"` // what every latency counts from

	Total Operation `json:"total"` // all operations together
	// OutsideFaults is Total without the stretches from each fault's injection to its recovery. Absent where no fault hit the load.
	OutsideFaults *Operation   `json:"outsideFaults,omitempty"`
	Operations    []Operation  `json:"operations"` // in the order of the workload
	Errors        []ErrorCount `json:"errorsByClass"`
	Workload      []Figure     `json:"workload,omitempty"`      // the workload's own figures, such as its hit ratio
	Shards        []Shard      `json:"shards,omitempty"`        // where there are several
	MaxLag        Seconds      `json:"maxLagSeconds,omitempty"` // open loop: the latest that a request was sent after its intended arrival

	Search *Search `json:"search,omitempty"` // how the rate was found, where the run searched

	LongestGap *Gap `json:"longestGap,omitempty"`      // longest stretch without a success, of those that were logged
	ProbeGap   *Gap `json:"longestProbeGap,omitempty"` // the same for the probe beside the load, which dials afresh
	// LongestShardGap is the longest stretch without a success at one of several shards, while others may have had some.
	LongestShardGap *ShardGap `json:"longestShardGap,omitempty"`
	Anomalies       []Anomaly `json:"anomalies,omitempty"`
	Redis           *Redis    `json:"redis,omitempty"`
	// Verification is what became of the acknowledged writes, where the run was to verify them.
	Verification *Verification `json:"verification,omitempty"`
	// Bottleneck is what limited the load in the measured time.
	Bottleneck *Bottleneck `json:"bottleneck,omitempty"`
	Trend      string      `json:"trend,omitempty"` // the throughput from the start to the end, drawn

	Doubts []impact.Doubt `json:"doubts,omitempty"` // why the figures should not be trusted; empty = conclusive
	Notes  []string       `json:"notes,omitempty"`  // what to know before trusting the figures
}

// Outcome says how a run ended.
type Outcome string

// The outcomes.
const (
	Finished    Outcome = "Finished"    // ran to its planned end
	Interrupted Outcome = "Interrupted" // ended early by the user; what was measured stands
	Failed      Outcome = "Failed"      // could not go on
)

// Latency says which latency a run measured.
type Latency string

// The latencies. docs/measuring.md says why they differ.
const (
	ServiceTime  Latency = "send"            // closed loop
	ResponseTime Latency = "intendedArrival" // open loop: waiting for a free connection counts
)

// Target is the Redis that was loaded, as it described itself.
type Target struct {
	Addresses []string `json:"addresses"`
	Server    string   `json:"server,omitempty"` // redis | valkey
	Version   string   `json:"version,omitempty"`
	Mode      string   `json:"mode,omitempty"` // standalone | sentinel | cluster
	Role      string   `json:"role,omitempty"` // master | slave
}

// Operation is the figures of one operation over the measured time.
type Operation struct {
	Name       string     `json:"name"`
	Requests   uint64     `json:"requests"` // that had an outcome, or were dropped
	OK         uint64     `json:"ok"`
	Failed     uint64     `json:"failed"`  // surely without effect
	Unknown    uint64     `json:"unknown"` // with or without effect
	Dropped    uint64     `json:"dropped"` // never sent, as their time had passed
	Throughput float64    `json:"throughputPerSecond"`
	ErrorRate  float64    `json:"errorRate"`                // failed, unknown and dropped as a share of requests
	Latency    *Quantiles `json:"latencySeconds,omitempty"` // of successes; absent where there were none
	Service    *Quantiles `json:"serviceSeconds,omitempty"` // open loop: the same from the send
}

// ErrorCount is how often one class of error was seen.
type ErrorCount struct {
	Class string `json:"class"`
	Count uint64 `json:"count"`
}

// Shard is the figures of one shard of a cluster.
type Shard struct {
	Shard      int     `json:"shard"` // numbered by the slots that they served at first
	OK         uint64  `json:"ok"`
	Errors     uint64  `json:"errors"` // failed and unknown
	Throughput float64 `json:"throughput"`
	LongestGap Seconds `json:"longestGapSeconds"` // of those that were logged; 0 = none
}

// Gap is a stretch without a success.
type Gap struct {
	At     Seconds `json:"atSeconds"` // from the load's start
	Length Seconds `json:"lengthSeconds"`
	Open   bool    `json:"open,omitempty"` // no success had come when the run ended
}

// ShardGap is a Gap of one shard.
type ShardGap struct {
	Shard int `json:"shard"` // numbered by the slots that they served at first
	Gap
}

// Anomaly is a fall of the throughput that nothing explains.
type Anomaly struct {
	At     Seconds `json:"atSeconds"` // from the load's start
	Length Seconds `json:"lengthSeconds"`
	Dip    float64 `json:"dip"` // depth as a share of the running median
}

// Bottleneck is what limited the load: LoadGenerator, Network, RedisMainThread, Disk, Memory, Clients, Backend or None.
type Bottleneck struct {
	Component string `json:"component"`
	Evidence  string `json:"evidence"` // one sentence with its figures
}

// Redis is what Redis said of itself during the run.
type Redis struct {
	MaxCPU              int64 `json:"maxCPUMillicores"`
	MaxMainThreadCPU    int64 `json:"maxMainThreadCPUMillicores,omitempty"` // absent where the server does not tell
	MaxMemory           int64 `json:"maxMemoryBytes"`
	EvictedKeys         int64 `json:"evictedKeys"`
	RejectedConnections int64 `json:"rejectedConnections"`
	Restarts            int   `json:"restarts"`
}

// Errors are the requests that were not answered well.
func (o *Operation) Errors() uint64 { return o.Failed + o.Unknown + o.Dropped }
