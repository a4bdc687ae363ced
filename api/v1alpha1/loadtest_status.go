package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RedisLoadTestStatus is what a load test did. Every figure is a number: lengths of time are integers in microseconds, rates and shares are
// decimals whose unit the field says. Text for people stands in display alone.
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

	// startSkew is how far the pods' first instants lay apart, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartSkew *Microseconds `json:"startSkew,omitempty"`

	// clockUncertainty is by how much, at most, startSkew may be wrong: the sum of what two pods' clocks may be off the operator's after alignment, all in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ClockUncertainty *Microseconds `json:"clockUncertainty,omitempty"`

	// display is the main figures as text, with units and few digits, as the columns of kubectl get show them. Programs read the fields below.
	// +optional
	Display *LoadTestDisplay `json:"display,omitempty"`

	// progress is the part of the run that has passed, in percent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Progress int32 `json:"progress,omitempty"`

	// loadPods count the pods that make the load.
	// +optional
	LoadPods *LoadPodsStatus `json:"loadPods,omitempty"`

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

	// faults are the faults that hit this load. Each RedisFault holds its own figures, objectives and verdict.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Faults []FaultSummary `json:"faults,omitempty"`

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
	// Pass: every objective is met, and no figure is in doubt.
	// Fail: an objective is missed.
	// Inconclusive: the figures cannot be trusted, or an objective could not be judged.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`

	// results say where the full record lies.
	// +optional
	Results *ResultsReference `json:"results,omitempty"`
}

// LoadTestDisplay is the main figures of a load test as text.
type LoadTestDisplay struct {
	// progress is the part of the run that has passed, such as 42%.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	Progress string `json:"progress,omitempty"`
	// tps is the mean of successes per second.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	TPS string `json:"tps,omitempty"`
	// p99 is the 99th percentile of latency, such as 1.2ms.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	P99 string `json:"p99,omitempty"`
	// errors is the share of requests that were not answered well, such as 0.1%.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Errors string `json:"errors,omitempty"`
	// trend draws the throughput so far.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Trend string `json:"trend,omitempty"`
	// faults are the faults on this load with their verdicts, such as kill-primary Pass.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Faults string `json:"faults,omitempty"`
}

// LoadPodsStatus counts the load pods.
type LoadPodsStatus struct {
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
	// Auto: not found yet.
	// Standalone: one server, or a Service that leads to one.
	// Replication: a primary and its replicas.
	// Sentinel: a primary and its replicas, watched by sentinels.
	// Cluster: Redis Cluster.
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
	// p50 is the median, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	P50 Microseconds `json:"p50"`
	// p90 is the 90th percentile, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	P90 Microseconds `json:"p90"`
	// p99 is the 99th percentile, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	P99 Microseconds `json:"p99"`
	// p999 is the 99.9th percentile, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	P999 Microseconds `json:"p999"`
	// max is the highest, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Max Microseconds `json:"max"`
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

	// errorRate is errors as a share of requests, from 0 to 1.
	// +optional
	ErrorRate Decimal `json:"errorRate,omitempty"`

	// errorsByClass counts failed and unknown requests by what the client saw.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +kubebuilder:validation:MaxItems=32
	ErrorsByClass []ErrorCount `json:"errorsByClass,omitempty"`

	// throughput is the mean of successes per second.
	// +optional
	Throughput Decimal `json:"throughput,omitempty"`

	// latency of successes.
	// +optional
	Latency *LatencySummary `json:"latency,omitempty"`

	// maxLag is the longest time by which a request was sent after its intended arrival (open loop), in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxLag *Microseconds `json:"maxLag,omitempty"`

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
	Throughput Decimal `json:"throughput,omitempty"`

	// errors are failed and unknown requests.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`

	// longestGap is the longest stretch without a success, of those that were logged, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LongestGap *Microseconds `json:"longestGap,omitempty"`
}

// WorkloadFigure is one of a workload's own figures.
type WorkloadFigure struct {
	// name, such as hitRatio.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// value in the unit.
	// +required
	Value Decimal `json:"value,omitempty"`

	// unit of the value.
	// Count: a number of what the name says.
	// Share: from 0 to 1.
	// Microseconds: a length of time.
	// PerSecond: a rate.
	// +required
	Unit Unit `json:"unit,omitempty"`
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
	Throughput Decimal `json:"throughput,omitempty"`
	// latency of successes.
	// +optional
	Latency *LatencySummary `json:"latency,omitempty"`
}

// RedisFacts is what Redis said of itself during the run.
type RedisFacts struct {
	// maxCPU of the server process, in millicores, from deltas of INFO cpu.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxCPU int64 `json:"maxCPU"`
	// maxMainThreadCPU is the same for the main thread, in millicores; absent where the server does not report it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxMainThreadCPU *int64 `json:"maxMainThreadCPU,omitempty"`
	// maxMemory is the highest used_memory, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxMemory int64 `json:"maxMemory"`
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
	// component that was at its limit.
	// LoadGenerator: the load pods themselves: the figures say more of them than of Redis.
	// Network: the path between load and Redis.
	// CPULimit: the CPU limit of Redis' container.
	// RedisMainThread: the one thread that runs commands.
	// Disk: fsync of the append-only file.
	// Memory: maxmemory: evictions, or refused writes.
	// Clients: maxclients, or blocked clients.
	// Backend: what lies behind the workload: a database, an API.
	// None: nothing reached its limit.
	// +required
	Component BottleneckComponent `json:"component,omitempty"`
	// evidence is one sentence with the figures that say so.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Evidence string `json:"evidence,omitempty"`
}

// FaultSummary refers to a RedisFault that hit the load, with the figures that a reader wants at a glance.
type FaultSummary struct {
	// name of the RedisFault.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// type of the fault, as spec.action.type of the RedisFault.
	// +optional
	Type FaultType `json:"type,omitempty"`
	// verdict of the fault; absent until it is complete.
	// Pass: every objective is met, and no figure is in doubt.
	// Fail: an objective is missed.
	// Inconclusive: the figures cannot be trusted, or an objective could not be judged.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// outage is the longest stretch without a success, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Outage *Microseconds `json:"outage,omitempty"`
	// recoveryTime is from the injection to sustained recovery, in microseconds; absent if there was none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RecoveryTime *Microseconds `json:"recoveryTime,omitempty"`
}

// Anomaly is a fall of the throughput that no fault explains.
type Anomaly struct {
	// at is when it began.
	// +optional
	At *metav1.MicroTime `json:"at,omitempty"`
	// length of it, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Length Microseconds `json:"length"`
	// dip is its depth as a share of the running median, from 0 to 1.
	// +optional
	Dip Decimal `json:"dip,omitempty"`
}

// ResultsReference says where the full record lies.
type ResultsReference struct {
	// configMap of the object's own namespace: its key series holds the record of every interval, compressed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap,omitempty"`
	// interval of the stored record, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Interval Microseconds `json:"interval"`
	// note says what was coarsened so that the record fits, and what is missing.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Note string `json:"note,omitempty"`
}
