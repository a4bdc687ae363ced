package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Verdict is the outcome of a finished test. Complete and verdict are different things: a test can complete with the verdict Fail.
// +kubebuilder:validation:Enum=Pass;Fail;Inconclusive
type Verdict string

// The verdicts.
const (
	VerdictPass         Verdict = "Pass"
	VerdictFail         Verdict = "Fail"
	VerdictInconclusive Verdict = "Inconclusive" // the figures cannot be trusted, or an objective had nothing to be judged by
)

// RedisLoadTestStatus is what a load test did. Durations are text such as 4.12s or 0.41ms, shares text such as 99.2%.
type RedisLoadTestStatus struct {
	// conditions say where the test stands: Accepted, LoadReady, ObjectivesMet, Complete, Failed, Suspended, Reconciling, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions speak of; -1 before the operator saw the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// startTime is the instant at which all pods began, on the operator's clock.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// completionTime is when the test was complete or had failed.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`

	// startSkew is how far the pods' first instants lay apart.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	StartSkew string `json:"startSkew,omitempty"`

	// clockUncertainty is by how much, at most, startSkew may be wrong: the sum of what two pods' clocks may be off the operator's after alignment.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	ClockUncertainty string `json:"clockUncertainty,omitempty"`

	// progress is the share of the run that has passed.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	Progress string `json:"progress,omitempty"`

	// trend draws the throughput so far.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Trend string `json:"trend,omitempty"`

	// agents are the load pods.
	// +optional
	Agents *AgentsStatus `json:"agents,omitempty"`

	// target is the Redis that was found.
	// +optional
	Target *TargetStatus `json:"target,omitempty"`

	// summary is the figures over the measured time.
	// +optional
	Summary *LoadSummary `json:"summary,omitempty"`

	// search is how far the search for a rate has come, with spec.load.search.
	// +optional
	Search *SearchStatus `json:"search,omitempty"`

	// verification is what the read after the load found of the acknowledged writes. Absent until then, and without spec.verify.
	// +optional
	Verification *Verification `json:"verification,omitempty"`

	// redis is what Redis said of itself.
	// +optional
	Redis *RedisFacts `json:"redis,omitempty"`

	// bottleneck is what limited the load in its steady part: the measured time without the faults. Absent until the test is complete.
	// +optional
	Bottleneck *Bottleneck `json:"bottleneck,omitempty"`

	// impacts are what the faults did that hit this test, one each.
	// +optional
	// +listType=map
	// +listMapKey=fault
	// +kubebuilder:validation:MaxItems=64
	Impacts []FaultImpact `json:"impacts,omitempty"`

	// anomalies are falls of the throughput outside any fault's window.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Anomalies []Anomaly `json:"anomalies,omitempty"`

	// objectives, each with what was measured.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Objectives []ObjectiveResult `json:"objectives,omitempty"`

	// verdict of the finished test.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`

	// results say where the full record lies.
	// +optional
	Results *ResultsReference `json:"results,omitempty"`
}

// AgentsStatus counts the load pods.
type AgentsStatus struct {
	// desired is how many there shall be.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Desired int32 `json:"desired"`

	// ready is how many have connected to Redis and wait for the start, or run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`

	// lost is how many were lost during the run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Lost int32 `json:"lost,omitempty"`
}

// TargetStatus is the Redis that was found.
type TargetStatus struct {
	// topology that was found.
	// +optional
	Topology Topology `json:"topology,omitempty"`

	// server is redis or valkey.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Server string `json:"server,omitempty"`

	// version of the server.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// primaries are host:port of the primaries when the load began, in the order of the shards.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=300
	Primaries []string `json:"primaries,omitempty"`

	// replicas are host:port of the replicas when the load began.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=300
	Replicas []string `json:"replicas,omitempty"`

	// addresses that the load goes to, as the spec says them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=300
	Addresses []string `json:"addresses,omitempty"`
}

// LatencySummary is a few quantiles. With rate they count from the intended arrival, with users from the send.
type LatencySummary struct {
	// p50 is the median.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	P50 string `json:"p50,omitempty"`
	// p90 is the 90th percentile.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	P90 string `json:"p90,omitempty"`
	// p99 is the 99th percentile.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	P99 string `json:"p99,omitempty"`
	// p999 is the 99.9th percentile.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	P999 string `json:"p999,omitempty"`
	// max is the highest.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Max string `json:"max,omitempty"`
}

// LoadSummary is the figures over the measured time: without ramp-up and warm-up.
type LoadSummary struct {
	// requests that had an outcome, or were dropped.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Requests int64 `json:"requests"`

	// errors are the requests that were not answered well: failed, unknown or dropped.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`

	// failed surely had no effect: an error reply, or no connection.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failed int64 `json:"failed"`

	// unknown may or may not have had an effect: sent, then timed out or the connection broke.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unknown int64 `json:"unknown"`

	// dropped were never sent, as their time had passed (open loop).
	// +optional
	// +kubebuilder:validation:Minimum=0
	Dropped int64 `json:"dropped"`

	// errorRate is errors as a share of requests.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	ErrorRate string `json:"errorRate,omitempty"`

	// errorsByClass counts failed and unknown requests by what the client saw.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +kubebuilder:validation:MaxItems=32
	ErrorsByClass []ErrorCount `json:"errorsByClass,omitempty"`

	// throughput is the mean of successes per second.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Throughput string `json:"throughput,omitempty"`

	// latency of successes.
	// +optional
	Latency *LatencySummary `json:"latency,omitempty"`

	// maxLag is the longest time by which a request was sent after its intended arrival (open loop).
	// +optional
	// +kubebuilder:validation:MaxLength=32
	MaxLag string `json:"maxLag,omitempty"`

	// tpsDip is the deepest of the impacts.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	TPSDip string `json:"tpsDip,omitempty"`

	// recoveryTime is the longest of the impacts; NotRecovered if one did not recover.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	RecoveryTime string `json:"recoveryTime,omitempty"`

	// lostWrites are the acknowledged ledger writes that the read after the load did not find: a lower bound of what was lost. Absent where nothing was verified.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWrites *int64 `json:"lostWrites,omitempty"`

	// operations are the same figures for each command of the workload.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Operations []OperationSummary `json:"operations,omitempty"`

	// shards are the figures of each shard where there are several, of the first 64.
	// +optional
	// +listType=map
	// +listMapKey=shard
	// +kubebuilder:validation:MaxItems=64
	Shards []ShardSummary `json:"shards,omitempty"`

	// workload are the workload's own figures: requests allowed and denied, hits and misses, status classes, and what they lead to.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Workload []WorkloadFigure `json:"workload,omitempty"`
}

// ShardSummary is the figures of one shard of a cluster.
type ShardSummary struct {
	// shard is its number, from 0, in the order of the slots that the shards served when the load began.
	// +required
	// +kubebuilder:validation:Minimum=0
	Shard int32 `json:"shard"`

	// throughput is the mean of successes per second.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Throughput string `json:"throughput,omitempty"`

	// errors are failed and unknown requests.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`

	// longestGap is the longest stretch without a success, of those that were logged.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	LongestGap string `json:"longestGap,omitempty"`
}

// WorkloadFigure is one of a workload's own figures.
type WorkloadFigure struct {
	// name, such as hitRatio.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// value is a count, a share such as 99.2%, or a mean duration such as 0.41ms.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`
}

// ErrorCount is how often one class of error was seen.
type ErrorCount struct {
	// class of the error.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Class string `json:"class,omitempty"`
	// count of requests.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count int64 `json:"count"`
}

// OperationSummary is the figures of one command.
type OperationSummary struct {
	// name of the command.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// requests that had an outcome, or were dropped.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Requests int64 `json:"requests"`
	// errors of them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`
	// throughput is the mean of successes per second.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Throughput string `json:"throughput,omitempty"`
	// latency of successes.
	// +optional
	Latency *LatencySummary `json:"latency,omitempty"`
}

// RedisFacts is what Redis said of itself during the run.
type RedisFacts struct {
	// maxCPU of the server process, in millicores, from deltas of INFO cpu.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	MaxCPU string `json:"maxCPU,omitempty"`
	// maxMainThreadCPU is the same for the main thread, where the server tells.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	MaxMainThreadCPU string `json:"maxMainThreadCPU,omitempty"`
	// maxMemory is the highest used_memory.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	MaxMemory string `json:"maxMemory,omitempty"`
	// evictedKeys during the run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	EvictedKeys int64 `json:"evictedKeys"`
	// rejectedConnections during the run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RejectedConnections int64 `json:"rejectedConnections"`
	// restarts seen: changes of run_id.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarts int32 `json:"restarts"`
}

// BottleneckComponent is what limited a load: the first in this order that was at its limit.
// +kubebuilder:validation:Enum=LoadGenerator;Network;CPULimit;RedisMainThread;Disk;Memory;Clients;Backend;None
type BottleneckComponent string

// Bottleneck is what limited the load.
type Bottleneck struct {
	// component that was at its limit; None if nothing was.
	// +required
	Component BottleneckComponent `json:"component,omitempty"`
	// evidence is one sentence with the figures that say so.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Evidence string `json:"evidence,omitempty"`
}

// FaultImpact is the impact of one RedisFault.
type FaultImpact struct {
	// fault is the RedisFault's name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Fault string `json:"fault,omitempty"`
	// type of the fault.
	// +optional
	Type FaultType `json:"type,omitempty"`
	// injectedAt is t0.
	// +optional
	InjectedAt *metav1.MicroTime `json:"injectedAt,omitempty"`
	// effect of the fault.
	// +optional
	Effect Effect `json:"effect,omitempty"`
	// impact is what clients lived through.
	// +optional
	Impact *Impact `json:"impact,omitempty"`
}

// Anomaly is a fall of the throughput that no fault explains.
type Anomaly struct {
	// at is when it began.
	// +optional
	At *metav1.MicroTime `json:"at,omitempty"`
	// length of it.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Length string `json:"length,omitempty"`
	// dip is its depth as a share of the running median.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Dip string `json:"dip,omitempty"`
}

// ObjectiveResult is one objective and what was measured.
type ObjectiveResult struct {
	// name of the objective, as in the spec.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name,omitempty"`
	// limit that was set.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Limit string `json:"limit,omitempty"`
	// actual value; empty where there was nothing to judge by.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Actual string `json:"actual,omitempty"`
	// met says whether the limit was kept; absent where there was nothing to judge by.
	// +optional
	Met *bool `json:"met,omitempty"`
}

// ResultsReference says where the full record lies.
type ResultsReference struct {
	// configMap of the object's own namespace: its key series holds the record of every interval, compressed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap,omitempty"`
	// interval of the stored record.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Interval string `json:"interval,omitempty"`
	// note says what was coarsened so that the record fits, and what is missing.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Note string `json:"note,omitempty"`
}
