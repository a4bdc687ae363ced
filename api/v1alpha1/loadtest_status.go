package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RedisLoadTestStatus is the result of a load test. Durations are exact to
// the microsecond (62.041286s, 5.003ms, 74us); rates and shares are decimals with the unit given by
// the field. Only display is rounded.
type RedisLoadTestStatus struct {
	// conditions are the state of the test: Accepted, LoadReady, ObjectivesMet, Complete, Failed,
	// Suspended, Reconciling, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions refer to; -1 before the operator has
	// processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// startTime is the instant at which all pods started the load, on the operator's clock.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// completionTime is when the test was complete or had failed.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`

	// startSkew is the time between the first and the last pod's start.
	// +optional
	StartSkew *Duration `json:"startSkew,omitempty"`

	// clockUncertainty is the maximum error of startSkew: the sum of the errors of two pods' clocks
	// after alignment with the operator's.
	// +optional
	ClockUncertainty *Duration `json:"clockUncertainty,omitempty"`

	// display is the main figures as formatted text, for the columns of kubectl get. Programs should
	// read the other fields.
	// +optional
	Display *LoadTestDisplay `json:"display,omitempty"`

	// progress is the part of the run that has passed, in percent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Progress int32 `json:"progress,omitempty"`

	// loadPods counts the load pods.
	// +optional
	LoadPods *LoadPodsStatus `json:"loadPods,omitempty"`

	// seed is the number that determined the random draws of the requests: that of spec.workload.seed,
	// or one of this object. The same number as spec.workload.seed repeats them.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	Seed *int64 `json:"seed,omitempty"`

	// target is the discovered Redis deployment.
	// +optional
	Target *TargetStatus `json:"target,omitempty"`

	// summary is the figures over the measured time.
	// +optional
	Summary *LoadSummary `json:"summary,omitempty"`

	// search is the state of the search for a rate, with spec.load.search.
	// +optional
	Search *SearchStatus `json:"search,omitempty"`

	// verification is the result of reading back the acknowledged writes after the load. Not set
	// before, and without spec.verify.
	// +optional
	Verification *Verification `json:"verification,omitempty"`

	// guarantees are what applications count on that use Redis as the workload does, with how often
	// that was false. Not set before the end of the load, and for workloads without any.
	// +optional
	Guarantees *Guarantees `json:"guarantees,omitempty"`

	// redis is data reported by the Redis servers.
	// +optional
	Redis *RedisFacts `json:"redis,omitempty"`

	// servers are what each Redis server used over the measured time: by shard, primaries first; at
	// most the first 64; target.message says if there are more.
	// +optional
	// +listType=map
	// +listMapKey=address
	// +kubebuilder:validation:MaxItems=64
	Servers []ServerUse `json:"servers,omitempty"`

	// exits are the containers of Redis that ended during the load, apart from its faults, in pods
	// that spec.target selects; the first 64.
	// +optional
	// +listType=map
	// +listMapKey=pod
	// +kubebuilder:validation:MaxItems=64
	Exits []ContainerExit `json:"exits,omitempty"`

	// roundTrip is the time of a round trip between the load pods and Redis, apart from the time that
	// Redis takes.
	// +optional
	RoundTrip *RoundTrip `json:"roundTrip,omitempty"`

	// pods are what the pods of spec.observe.pods used over the measured time.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Pods []PodsUse `json:"pods,omitempty"`

	// bottleneck is what limited the load in the measured time without the faults. Not set until the
	// test is complete.
	// +optional
	Bottleneck *Bottleneck `json:"bottleneck,omitempty"`

	// warnings are what explains errors of the load, or makes the target another one than was meant,
	// and is for its user to change: a Service that leads to replicas, or a replica that receives all
	// data again and again. Not set until the test is complete.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	Warnings []string `json:"warnings,omitempty"`

	// faults are the faults that were injected during this load. Each RedisFault has its own figures,
	// objectives and verdict.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Faults []FaultSummary `json:"faults,omitempty"`

	// anomalies are drops of the throughput that no fault explains.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Anomalies []Anomaly `json:"anomalies,omitempty"`

	// objectives and the measured value of each.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Objectives []ObjectiveResult `json:"objectives,omitempty"`

	// doubts are reasons why the figures are not reliable; the verdict is then Inconclusive, unless they
	// cannot change it.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=32
	Doubts []Doubt `json:"doubts,omitempty"`

	// verdict of the finished test.
	// Pass: every objective is met, and the figures are reliable.
	// Fail: an objective is missed.
	// Inconclusive: the figures are not reliable, or an objective could not be evaluated.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`

	// results refers to the full record.
	// +optional
	Results *ResultsReference `json:"results,omitempty"`
}

// LoadTestDisplay is the main figures of a load test as formatted text.
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
	// errors is the share of failed, unknown and dropped requests, such as 0.1%.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Errors string `json:"errors,omitempty"`
	// trend is a chart of the throughput so far.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Trend string `json:"trend,omitempty"`
	// faults are the faults on this load with their verdicts, such as kill-primary Pass.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Faults string `json:"faults,omitempty"`
	// lostWrites is the number of acknowledged ledger writes that were lost, such as 7; 3-7 if it is
	// only known to be between the two.
	// +optional
	// +kubebuilder:validation:MaxLength=48
	LostWrites string `json:"lostWrites,omitempty"`
}

// LoadPodsStatus counts the load pods.
type LoadPodsStatus struct {
	// desired is the desired number of load pods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Desired int32 `json:"desired"`

	// ready is the number of load pods that have connected to Redis and wait for the start, or are
	// running.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`

	// lost is the number of load pods that were lost during the run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Lost int32 `json:"lost,omitempty"`

	// cpu of one load pod over the measured time.
	// +optional
	CPU *CPUUse `json:"cpu,omitempty"`
}

// TargetStatus is the discovered Redis deployment.
type TargetStatus struct {
	// topology that was detected.
	// Auto: not detected yet.
	// Standalone: one server, or a Service in front of one.
	// Replication: a primary and its replicas.
	// Sentinel: a primary and its replicas, monitored by sentinels.
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

	// sentinels are host:port of the sentinels that the load was given.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=300
	Sentinels []string `json:"sentinels,omitempty"`

	// addresses of the load, as in the spec. Empty if the load was given sentinels only.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=300
	Addresses []string `json:"addresses,omitempty"`

	// message is why servers, or all of them, were not observed, such as a missing permission for
	// INFO: status.redis and status.servers lack them.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// LatencySummary is a set of quantiles. With rate, latency counts from the intended arrival, with
// users from the send.
type LatencySummary struct {
	// p50 is the median.
	// +optional
	P50 Duration `json:"p50"`
	// p90 is the 90th percentile.
	// +optional
	P90 Duration `json:"p90"`
	// p95 is the 95th percentile.
	// +optional
	P95 Duration `json:"p95,omitzero"`
	// p99 is the 99th percentile.
	// +optional
	P99 Duration `json:"p99"`
	// p999 is the 99.9th percentile.
	// +optional
	P999 Duration `json:"p999"`
	// p9999 is the 99.99th percentile: of fewer than 10,000 requests the maximum.
	// +optional
	P9999 Duration `json:"p9999,omitzero"`
	// max is the maximum.
	// +optional
	Max Duration `json:"max"`
}

// RedisFacts is data reported by the Redis servers during the run.
type RedisFacts struct {
	// maxCPU is the maximum CPU use of a server process over 5 s, in millicores, from INFO cpu.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxCPU int64 `json:"maxCPU"`
	// maxMainThreadCPU is the same for the main thread, in millicores; not set if the server does not
	// report it.
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
	// restarts is the number of observed server restarts: by another process at an address, or by the
	// restarts of containers if those are more, as after a server that ended before it could be asked.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarts int32 `json:"restarts"`
}

// ContainerExit is a container of Redis that ended while the load ran.
type ContainerExit struct {
	// pod of the container.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod,omitempty"`
	// container is its name.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`
	// times is how often it ended.
	// +required
	// +kubebuilder:validation:Minimum=1
	Times int32 `json:"times,omitempty"`
	// at is when it ended last.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// exitCode with which it ended last.
	// +optional
	ExitCode int32 `json:"exitCode"`
	// reason of that, such as OOMKilled or Error.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
	// restartCount of the container when it was last looked at.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RestartCount int32 `json:"restartCount"`
	// message says all of that in a sentence, with the memory limit, and whether the container waits
	// to be started again.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// FaultSummary refers to a RedisFault that was injected during the load, with its main figures.
type FaultSummary struct {
	// name of the RedisFault.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// type of the fault, as spec.action.type of the RedisFault.
	// +optional
	Type FaultType `json:"type,omitempty"`
	// verdict of the fault; not set until it is complete.
	// Pass: every objective is met, and the figures are reliable.
	// Fail: an objective is missed.
	// Inconclusive: the figures are not reliable, or an objective could not be evaluated.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// outage is the longest period without a success.
	// +optional
	Outage *Duration `json:"outage,omitempty"`
	// recoveryTime is the time from the injection to sustained recovery; not set if
	// there was none.
	// +optional
	RecoveryTime *Duration `json:"recoveryTime,omitempty"`
}

// Anomaly is a drop of the throughput that no fault explains.
type Anomaly struct {
	// at is when it began.
	// +optional
	At *metav1.MicroTime `json:"at,omitempty"`
	// length of the drop.
	// +optional
	Length Duration `json:"length"`
	// dip is the depth of the drop as a share of the running median, from 0 to 1.
	// +optional
	Dip Decimal `json:"dip,omitempty"`
}

// ResultsReference refers to the full record.
type ResultsReference struct {
	// configMap in the object's namespace; its key series contains the compressed record of every
	// interval.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap,omitempty"`
	// interval of the stored record.
	// +optional
	Interval Duration `json:"interval"`
	// note is what was coarsened to fit the record, and what is missing.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Note string `json:"note,omitempty"`
}
