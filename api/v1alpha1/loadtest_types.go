package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RedisLoadTestSpec defines a load test.
// +kubebuilder:validation:XValidation:rule="!has(self.load.search) || (has(self.objectives) && (has(self.objectives.maxLatencyP50) || has(self.objectives.maxLatencyP99) || has(self.objectives.maxLatencyP999) || has(self.objectives.maxErrorRate)))",message="load.search needs one of objectives.maxLatencyP50, maxLatencyP99, maxLatencyP999 and maxErrorRate: it looks for the highest rate that meets them"
// +kubebuilder:validation:XValidation:rule="!has(self.load.search) || !has(self.pods) || !has(self.pods.lost) || self.pods.lost == 'Fail'",message="load.search needs pods.lost: Fail: the load of a lost pod would be missing from every rate"
// +kubebuilder:validation:XValidation:rule="has(self.target) || has(self.workload.http) || (has(self.workload.cacheAside) && self.workload.cacheAside.mode == 'DatabaseOnly')",message="set target: only workload.http, and workload.cacheAside in mode DatabaseOnly, load no Redis"
// +kubebuilder:validation:XValidation:rule="!has(self.load.search) || !has(self.workload.benchmark) || self.workload.benchmark.tests.size() == 1 || self.workload.benchmark.order == 'Mixed'",message="load.search needs all tests of workload.benchmark in each trial: set order: Mixed, or one test"
// +kubebuilder:validation:XValidation:rule="!has(self.objectives) || !has(self.objectives.maxLostWrites) || (has(self.verify) && self.verify.acknowledgedWrites)",message="objectives.maxLostWrites needs verify.acknowledgedWrites: without it no lost write is found"
// +kubebuilder:validation:XValidation:rule="!has(self.target) || !has(self.target.topology) || self.target.topology != 'Standalone' || !has(self.client) || !has(self.client.readFrom) || self.client.readFrom == 'Primary'",message="client.readFrom Replica and Any need replicas: a target of topology Standalone has none"
// +kubebuilder:validation:XValidation:rule="!has(self.client) || !has(self.client.driver) || self.client.driver == 'Native' || !(has(self.workload.http) || has(self.workload.cacheAside))",message="client.driver: a library sends Redis commands: workload.http and workload.cacheAside have clients of their own"
// +kubebuilder:validation:XValidation:rule="!has(self.workload.lock) || !(has(self.load.rate) || has(self.load.search) || has(self.load.stages) || has(self.load.thinkTime))",message="workload.lock needs load.users, without thinkTime: its users wait for one another"
// +kubebuilder:validation:XValidation:rule="!has(self.workload.lock) || !has(self.workload.lock.waitReplicas) || self.workload.lock.waitReplicas == 0 || !has(self.client) || !has(self.client.driver) || self.client.driver == 'Native'",message="workload.lock.waitReplicas: a library may send WAIT over another connection: set client.driver Native"
// +kubebuilder:validation:XValidation:rule="!has(self.objectives) || !has(self.objectives.maxLockOverlap) || has(self.workload.lock)",message="objectives.maxLockOverlap needs workload.lock"
type RedisLoadTestSpec struct {
	// target is the Redis to load. It may be absent with workload.http, and with workload.cacheAside
	// in mode DatabaseOnly: then nothing is sent to a Redis or read from one, there is no probe, and a
	// fault on this load names its own target.
	// +optional
	Target RedisTarget `json:"target,omitzero"`

	// client is how load pods connect to Redis.
	// +optional
	// +kubebuilder:default={}
	Client LoadClient `json:"client,omitzero"`

	// load is the amount of load and its duration.
	// +required
	Load LoadShape `json:"load,omitzero"`

	// workload defines the requests.
	// +required
	Workload Workload `json:"workload,omitzero"`

	// pods are the load pods.
	// +optional
	// +kubebuilder:default={}
	Pods LoadPods `json:"pods,omitzero"`

	// probe is a low-rate open-loop stream of requests in parallel with the load, over separate
	// connections that are re-established after an error.
	// It measures the outage of the server independently of the load's connections.
	// +optional
	// +kubebuilder:default={}
	Probe LoadProbe `json:"probe,omitzero"`

	// observe is what is recorded, and at which resolution.
	// +optional
	// +kubebuilder:default={}
	Observe LoadObserve `json:"observe,omitzero"`

	// verify reads acknowledged writes back after the load, to find lost ones. Disabled if it is not
	// set.
	// +optional
	Verify *LoadVerify `json:"verify,omitempty"`

	// objectives determine the verdict. Without objectives a run with reliable figures passes.
	// +optional
	Objectives *Objectives `json:"objectives,omitempty"`

	// abort ends the load immediately; the results are kept. It cannot be reset.
	// +optional
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="self || !oldSelf",message="an abort cannot be taken back: create a new object"
	Abort bool `json:"abort,omitempty"`

	// suspend keeps the load from starting, or stops it and discards its results, as for a Job. If it
	// is reset, the load starts from the beginning.
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`

	// ttlSecondsAfterFinished is the time after which the finished object is deleted. It is not
	// deleted if this is not set.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// LoadShape is the amount of load and its duration. users makes a closed loop: a user sends its
// next request after the reply to the previous one. rate makes an open loop: the arrival times are
// fixed in advance and latency counts from them.
// +kubebuilder:validation:XValidation:rule="!(has(self.stages) && (has(self.users) || has(self.rate)))",message="stages say users or rate themselves: set stages, or users and rate"
// +kubebuilder:validation:XValidation:rule="!has(self.search) || !(has(self.rate) || has(self.stages) || has(self.requests))",message="search decides the rates itself: rate, stages and requests must be absent"
// +kubebuilder:validation:XValidation:rule="!has(self.search) || !has(self.thinkTime) || duration(self.thinkTime) == duration('0s')",message="thinkTime belongs to users (closed loop); search is an open loop"
// +kubebuilder:validation:XValidation:rule="!(has(self.stages) && (has(self.duration) || has(self.requests)))",message="with stages the length is their sum: duration and requests must be absent"
// +kubebuilder:validation:XValidation:rule="!has(self.untilFaultsSettle) || (has(self.duration) && !has(self.requests) && !has(self.search))",message="untilFaultsSettle extends duration: set duration, and neither stages, requests nor search"
// +kubebuilder:validation:XValidation:rule="!has(self.stages) || (!has(self.rampUp) && !has(self.warmUp))",message="stages are the whole course of the load: rampUp and warmUp must be absent"
// +kubebuilder:validation:XValidation:rule="!has(self.stages) || self.stages.all(s, has(s.users)) || !has(self.thinkTime) || duration(self.thinkTime) == duration('0s')",message="thinkTime belongs to users (closed loop); with rates the arrival times are fixed"
// +kubebuilder:validation:XValidation:rule="!has(self.rate) || !has(self.thinkTime) || duration(self.thinkTime) == duration('0s')",message="thinkTime belongs to users (closed loop); with rate the arrival times are fixed"
// +kubebuilder:validation:XValidation:rule="!has(self.stages) || self.stages.all(s, has(s.users)) || self.stages.all(s, has(s.rate))",message="all stages must set users, or all must set rate"
// +kubebuilder:validation:XValidation:rule="!has(self.ratePer) || has(self.rate) || (has(self.stages) && self.stages.exists(s, has(s.rate)))",message="ratePer belongs to rate and to stages with rates: users have none, and search counts per second"
// +kubebuilder:validation:XValidation:rule="!has(self.arrivals) || self.arrivals != 'Poisson' || has(self.rate) || has(self.search) || (has(self.stages) && self.stages.exists(s, has(s.rate)))",message="arrivals Poisson belongs to rate, search and stages with rates (open loop): users send after a reply"
type LoadShape struct {
	// users is the number of virtual users over all pods (closed loop). With rate and search, the
	// maximum number of requests in flight.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Users *int32 `json:"users,omitempty"`

	// rate is the number of requests per second, or per ratePer, over all pods (open loop).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	Rate *int32 `json:"rate,omitempty"`

	// ratePer is the unit of rate and of the rates of stages: 30 per Minute is one request each two
	// seconds. All figures are per second.
	// Second: requests per second.
	// Minute: requests per minute.
	// Hour: requests per hour.
	// Defaults to Second.
	// +optional
	RatePer RateUnit `json:"ratePer,omitempty"`

	// arrivals is how requests of rate, stages with rates, and search follow each other (open loop).
	// Even: at equal distances, so that queues have their least length.
	// Poisson: at random, as from many independent users: distances are distributed exponentially, the
	// number of requests in a second varies, and rate is its mean.
	// Above 4,000/s of each event loop of a load pod those of either within half a millisecond follow
	// each other after 10 us.
	// Defaults to Even.
	// +optional
	Arrivals LoadArrivals `json:"arrivals,omitempty"`

	// thinkTime is a user's pause between a reply and its next request (closed loop). At most 1h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="must be between 0s and 1h"
	// +kubebuilder:validation:Type=string
	ThinkTime *metav1.Duration `json:"thinkTime,omitempty"`

	// rampUp is the time over which users or rate grow linearly from 0. It is excluded from all
	// figures. At most 1h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="must be between 0s and 1h"
	// +kubebuilder:validation:Type=string
	RampUp *metav1.Duration `json:"rampUp,omitempty"`

	// stages are executed in order; users or rate change linearly from the end value of the previous
	// stage (from 0 in the first).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Stages []LoadStage `json:"stages,omitempty"`

	// search searches for the highest rate that meets the objectives (open loop), instead of a fixed
	// rate.
	// +optional
	Search *LoadSearch `json:"search,omitempty"`

	// warmUp follows rampUp; it is recorded but excluded from all figures. At most 1h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="must be between 0s and 1h"
	// +kubebuilder:validation:Type=string
	WarmUp *metav1.Duration `json:"warmUp,omitempty"`

	// duration is the measured time, after rampUp and warmUp. Between 1s and 168h. With requests it is
	// the upper bound.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be between 1s and 168h"
	// +kubebuilder:validation:Type=string
	Duration *metav1.Duration `json:"duration,omitempty"`

	// untilFaultsSettle is the maximum time for which the load continues after duration, until every
	// RedisFault on it is reverted and its recovery evaluated. Between 1s and 24h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be between 1s and 24h"
	// +kubebuilder:validation:Type=string
	UntilFaultsSettle *metav1.Duration `json:"untilFaultsSettle,omitempty"`

	// requests is the number of requests over all pods, including ramp-up and warm-up, after which the
	// load ends.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	Requests *int64 `json:"requests,omitempty"`
}

// RateUnit is the time that a rate counts the requests of.
// +kubebuilder:validation:Enum=Second;Minute;Hour
type RateUnit string

// The units of rates.
const (
	PerSecond RateUnit = "Second"
	PerMinute RateUnit = "Minute"
	PerHour   RateUnit = "Hour"
)

// LoadArrivals is how the arrivals of an open loop follow each other.
// +kubebuilder:validation:Enum=Even;Poisson
type LoadArrivals string

// The arrivals.
const (
	ArrivalsEven    LoadArrivals = "Even"    // at equal distances
	ArrivalsPoisson LoadArrivals = "Poisson" // at random, independent of each other
)

// LoadStage is a part of a LoadShape.
// +kubebuilder:validation:XValidation:rule="has(self.users) != has(self.rate)",message="set users or rate"
type LoadStage struct {
	// duration of the stage. Between 1s and 24h.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be between 1s and 24h"
	// +kubebuilder:validation:Type=string
	Duration metav1.Duration `json:"duration,omitzero"`

	// users at the end of the stage.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Users *int32 `json:"users,omitempty"`

	// rate at the end of the stage, in requests per second, or per ratePer, over all pods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000000
	Rate *int32 `json:"rate,omitempty"`
}

// LostPodPolicy is how the loss of a load pod during the run is handled.
// +kubebuilder:validation:Enum=Fail;Continue
type LostPodPolicy string

// The policies.
const (
	LostPodFail LostPodPolicy = "Fail" // the test fails
	// the other pods continue; the loss is reported and the verdict is Inconclusive if it affects a
	// figure
	LostPodContinue LostPodPolicy = "Continue"
)

// LoadPods are the load pods: one Indexed Job, spread over the nodes, under the restricted Pod
// Security Standard.
type LoadPods struct {
	// count of pods. users and rate are divided among them.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count int32 `json:"count,omitempty"`

	// lost is how the loss of a pod during the run is handled.
	// Fail: the test fails.
	// Continue: the other pods continue; the loss is reported, and the verdict is Inconclusive.
	// +optional
	// +kubebuilder:default=Fail
	Lost LostPodPolicy `json:"lost,omitempty"`

	// startDeadline is how long it may take until all pods are ready, including the time until Redis
	// can be reached and the prefill.
	// While something, such as a queue, holds their Job suspended, it does not pass. Between 5s and
	// 24h.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('24h')",message="must be between 5s and 24h"
	// +kubebuilder:validation:Type=string
	StartDeadline metav1.Duration `json:"startDeadline,omitzero"`

	LoadPodTemplate `json:",inline"`
}

// ProbeOperation is what a probe sends.
// +kubebuilder:validation:Enum=Auto;Write;Read
type ProbeOperation string

// The operations of a probe.
const (
	ProbeAuto  ProbeOperation = "Auto"  // Read if all operations of the load only read
	ProbeWrite ProbeOperation = "Write" // SET of a key that expires
	ProbeRead  ProbeOperation = "Read"  // GET of that key
)

// LoadProbe is a low-rate stream of requests in parallel with the load.
type LoadProbe struct {
	// rate in requests per second of the whole run, in a cluster for each shard; 0 disables the probe.
	// The load pods share it, at most one pod for each 25 requests per second.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Rate *int32 `json:"rate,omitempty"`

	// operation is what the probe sends, for the key {prefix}probe:{pod} of the keyspace's prefix.
	// Auto: Read if commands, benchmark or ranking have operations that only read, otherwise Write.
	// Write: SET, with an expiry of one minute: a Redis that only serves reads is an outage.
	// Read: GET, which changes nothing; the key need not exist. A Redis that refuses writes is none.
	// +optional
	// +kubebuilder:default=Auto
	Operation ProbeOperation `json:"operation,omitempty"`
}

// LoadObserve is what is recorded.
type LoadObserve struct {
	// interval is the step of the recording grid: 50ms, 100ms, 200ms, 500ms or 1s.
	// +optional
	// +kubebuilder:default="100ms"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) in [duration('50ms'), duration('100ms'), duration('200ms'), duration('500ms'), duration('1s')]",message="must be 50ms, 100ms, 200ms, 500ms or 1s"
	// +kubebuilder:validation:Type=string
	Interval metav1.Duration `json:"interval,omitzero"`

	// redisInfo is about how often INFO is read from Redis; 0s disables it: status.servers is then empty,
	// and the bottleneck is found without Redis' own limits.
	// Otherwise between 100ms and 1h.
	// +optional
	// +kubebuilder:default="1s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || (duration(self) >= duration('100ms') && duration(self) <= duration('1h'))",message="must be 0s, or between 100ms and 1h"
	// +kubebuilder:validation:Type=string
	RedisInfo *metav1.Duration `json:"redisInfo,omitempty"`

	// pods are further pods whose CPU and memory is observed through the metrics API: those of an
	// application or a database. For the workloads http and cacheAside they are named as the
	// bottleneck if their CPU is exhausted. They need metrics-server; without it, status.pods says so.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Pods []ObservedPods `json:"pods,omitempty"`
}

// ObservedPods are pods in the object's namespace whose CPU and memory is observed.
type ObservedPods struct {
	// name of the pods in the status, such as api.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// selector of the pods; of more than 64 pods, the first 64 by name are observed.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) || has(self.matchExpressions)",message="must not be empty: an empty selector is every pod of the namespace"
	Selector metav1.LabelSelector `json:"selector,omitzero"`
}

// LoadVerify is what is read back after the load.
// +kubebuilder:validation:XValidation:rule="self.acknowledgedWrites || !((has(self.staleReads) && self.staleReads) || (has(self.dualPrimary) && self.dualPrimary))",message="staleReads and dualPrimary go with acknowledgedWrites"
type LoadVerify struct {
	// acknowledgedWrites makes a share of the requests ledger writes: they are numbered, recorded by
	// the load pods, and read back from the primary and each replica after the load. A write that was
	// acknowledged and is absent is lost. With the driver of a library the server also counts how often
	// it executed each.
	// +optional
	// +kubebuilder:default=false
	AcknowledgedWrites bool `json:"acknowledgedWrites,omitempty"`

	// share of all requests that are ledger writes, above 0%, at most 100%. A larger share detects
	// smaller losses and displaces more of the workload.
	// +optional
	// +kubebuilder:default="1%"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)%$`
	// +kubebuilder:validation:XValidation:rule="double(self.replace('%', '')) > 0.0",message="must be above 0%"
	Share string `json:"share,omitempty"`

	// staleReads reads a register from the replicas during the load, to measure by how many writes and
	// how much time they are behind.
	// +optional
	// +kubebuilder:default=false
	StaleReads bool `json:"staleReads,omitempty"`

	// dualPrimary sends a write to every node during the load: two nodes that accept it at the same
	// time are two primaries.
	// +optional
	// +kubebuilder:default=false
	DualPrimary bool `json:"dualPrimary,omitempty"`
}

// RedisLoadTest generates load on Redis from pods and reports throughput, latency and errors.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:shortName=rlt,categories=redquake
// +kubebuilder:selectablefield:JSONPath=`.status.verdict`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].reason`,description="State of the test"
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.display.progress`,description="Part of the run that has passed"
// +kubebuilder:printcolumn:name="TPS",type=string,JSONPath=`.status.display.tps`,description="Mean successes per second over the measured time"
// +kubebuilder:printcolumn:name="P99",type=string,JSONPath=`.status.display.p99`,description="99th percentile of latency over the measured time"
// +kubebuilder:printcolumn:name="Errors",type=string,JSONPath=`.status.display.errors`,description="Share of failed, unknown and dropped requests"
// +kubebuilder:printcolumn:name="Trend",type=string,JSONPath=`.status.display.trend`,description="Throughput so far"
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict`,description="Pass, Fail or Inconclusive"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Bottleneck",type=string,priority=1,JSONPath=`.status.bottleneck.component`,description="What limited the load"
// +kubebuilder:printcolumn:name="Faults",type=string,priority=1,JSONPath=`.status.display.faults`,description="Faults on this load, with their verdicts"
// +kubebuilder:printcolumn:name="LostWrites",type=string,priority=1,JSONPath=`.status.display.lostWrites`,description="Acknowledged ledger writes that were lost"
// +kubebuilder:printcolumn:name="Redis",type=string,priority=1,JSONPath=`.status.target.version`,description="Version of the server"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Complete")].message`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(self.spec.target) == has(oldSelf.spec.target) && (!has(self.spec.target) || self.spec.target == oldSelf.spec.target) && self.spec.client == oldSelf.spec.client && self.spec.load == oldSelf.spec.load && self.spec.workload == oldSelf.spec.workload && self.spec.pods == oldSelf.spec.pods && self.spec.probe == oldSelf.spec.probe && self.spec.observe == oldSelf.spec.observe && has(self.spec.verify) == has(oldSelf.spec.verify) && (!has(self.spec.verify) || self.spec.verify == oldSelf.spec.verify) && has(self.spec.objectives) == has(oldSelf.spec.objectives) && (!has(self.spec.objectives) || self.spec.objectives == oldSelf.spec.objectives))",message="the spec cannot change once the test has started (only abort, suspend and ttlSecondsAfterFinished can): create a new object to run again"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52 && !self.metadata.name.contains('.')",fieldPath=".metadata",message="the name must be at most 52 characters long and hold no dot: its children's names and labels are made from it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.load.users) || self.spec.load.users >= self.spec.pods.count",message="spec.load.users must be at least spec.pods.count: a load pod without a user has nothing to do"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.load.requests) || self.spec.load.requests >= self.spec.pods.count",message="spec.load.requests must be at least spec.pods.count: a load pod without a request has nothing to do"
// +kubebuilder:validation:XValidation:rule="has(self.spec.load.stages) || has(self.spec.load.users) || has(self.spec.load.rate) || has(self.spec.load.search)",message="set users (closed loop), rate (open loop), stages or search: without one of them there is no load",fieldPath=".spec.load"
// +kubebuilder:validation:XValidation:rule="has(self.spec.load.stages) || has(self.spec.load.duration) || has(self.spec.load.requests)",message="set duration or requests: the load must end",fieldPath=".spec.load"
type RedisLoadTest struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired load test.
	// +required
	Spec RedisLoadTestSpec `json:"spec,omitzero"`

	// status is the observed state and the results.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status RedisLoadTestStatus `json:"status,omitzero"`
}

// RedisLoadTestList is a list of RedisLoadTests.
// +kubebuilder:object:root=true
type RedisLoadTestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []RedisLoadTest `json:"items"`
}
