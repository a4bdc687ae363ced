package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ExperimentParameter is a parameter of the matrix: values of a field of the load test or of a
// fault, or settings of the servers.
// +kubebuilder:validation:XValidation:rule="has(self.values) != has(self.settings)",message="set path and values (of a field of the load test or of a fault), or settings (of the servers)"
// +kubebuilder:validation:XValidation:rule="has(self.path) == has(self.values)",message="path and values belong together: values of which field?"
// +kubebuilder:validation:XValidation:rule="!has(self.valueNames) || (has(self.values) && size(self.valueNames) == size(self.values))",message="valueNames must be as many as values"
// +kubebuilder:validation:XValidation:rule="has(self.settings) || !(has(self.select) || has(self.allow))",message="select and allow belong to settings"
type ExperimentParameter struct {
	// name of the parameter, such as users or appendfsync.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name,omitempty"`

	// path of the field that is set, in the spec of the load test, such as load.users; or in that of a
	// fault, after faults and the fault's name, such as faults.kill.action.podKill.gracePeriodSeconds.
	// An item of a list is named by its position: workload.benchmark.tests.0.
	// What a fault is (its action as a whole, type and engine) is no parameter: list both faults, and
	// choose by settings with faults.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][-A-Za-z0-9]*(\.[A-Za-z0-9][-A-Za-z0-9]*)*$`
	// +kubebuilder:validation:XValidation:rule="!self.lowerAscii().matches('^faults[.][^.]+([.](engine|action([.]type)?))?$')",message="what a fault is cannot be a parameter: list each of the faults in spec.faults, and choose among them by a parameter with settings, each with faults"
	// +kubebuilder:validation:XValidation:rule="!self.lowerAscii().matches('^(faults[.][^.]+[.](loadtestref|probepods|setting|dryrun)|(faults[.][^.]+[.])?(abort|suspend|ttlsecondsafterfinished))([.]|$)')",message="loadTestRef, probePods, setting, dryRun, abort, suspend and ttlSecondsAfterFinished are decided by the experiment, and cannot be parameters"
	Path string `json:"path,omitempty"`

	// values of the field: numbers and texts. They are not secret: cells are named after them. For a
	// field that takes neither, the text is JSON: "true", '["set", "get"]', '{"count": 2}'; "null"
	// removes the field.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Values []intstr.IntOrString `json:"values,omitempty"`

	// valueNames are how the values are called, in their order. Defaults to the values themselves;
	// those with other characters than letters, digits, '-', '_', '+' and '.' need names.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ValueNames []ValueName `json:"valueNames,omitempty"`

	// settings of the servers. They are in force before the load test of a run begins, and reverted
	// after it, by RedisFaults with spec.setting.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Settings []ExperimentSetting `json:"settings,omitempty"`

	// select is the servers to which the settings apply. Defaults to all servers of the target; to one
	// primary for replicaScale.
	// +optional
	Select *FaultSelector `json:"select,omitempty"`

	// allow lifts guards that would reject a setting, as for a RedisFault.
	// AllCopies: permits disabling all copies of a slot at once, although there are several.
	// DataLoss: permits ending a primary that would come back without its data while others replicate
	// from it: they copy its empty data set.
	// MajorityOfSentinels: permits disabling so many sentinels that the others cannot elect a primary.
	// MajorityOfPrimaries: permits disabling so many primaries of a cluster that the others cannot
	// elect a replica.
	// TooFewCores: permits more I/O threads than the container's CPU limit has cores.
	// Eviction: permits a maxmemory at which the server evicts data, which cannot be restored.
	// Expiry: permits setting the clock of a server forward that has keys with an expiry: those expire
	// early, and cannot be restored.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Allow []Allowance `json:"allow,omitempty"`
}

// ExperimentSetting is a value of a parameter: settings of the servers, and which faults its runs
// have. One without members leaves the servers as they are.
// +kubebuilder:validation:XValidation:rule="!self.noFaults || !has(self.faults)",message="set faults or noFaults"
type ExperimentSetting struct {
	// name of the value, such as always.
	// +required
	Name ValueName `json:"name,omitempty"`

	// config is settings of the server, by name, as for a RedisFault of type Config.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 64 && k.matches('^[a-z0-9-]+$'))",message="a parameter's name has lower-case letters, digits and dashes"
	Config map[string]ParameterValue `json:"config,omitempty"`

	// ioThreads is the number of I/O threads.
	// +optional
	IOThreads *IOThreads `json:"ioThreads,omitempty"`

	// resources are the limits of the Redis container, resized in place.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// replicaScale adds or removes replicas.
	// +optional
	ReplicaScale *ReplicaScale `json:"replicaScale,omitempty"`

	// podTemplate changes the pod template of the StatefulSet, and replaces its pods one by one.
	// +optional
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`

	// faults are the names of those of spec.faults that the runs with this value have. Defaults to
	// all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=12
	Faults []string `json:"faults,omitempty"`

	// noFaults is whether the runs with this value have no faults.
	// +optional
	// +kubebuilder:default=false
	NoFaults bool `json:"noFaults,omitempty"`
}

// SettingTypes are the types of the members of a setting, in the order in which settings are
// applied, whatever the parameter: new servers get the others, too, and what replaces pods comes
// before what a new process would lose.
var SettingTypes = []FaultType{
	FaultReplicaScale, FaultPodTemplate, FaultIOThreads, FaultResources,
	FaultConfig,
}

// Actions are the members of the setting as actions of faults, in the order of SettingTypes.
func (s *ExperimentSetting) Actions() (all []Action) {
	if s.ReplicaScale != nil {
		all = append(all, Action{Type: FaultReplicaScale, ReplicaScale: s.ReplicaScale})
	}
	if s.PodTemplate != nil {
		all = append(all, Action{Type: FaultPodTemplate, PodTemplate: s.PodTemplate})
	}
	if s.IOThreads != nil {
		all = append(all, Action{Type: FaultIOThreads, IOThreads: s.IOThreads})
	}
	if s.Resources != nil {
		all = append(all, Action{Type: FaultResources, Resources: s.Resources})
	}
	if s.Config != nil {
		all = append(all, Action{Type: FaultConfig, Config: &Config{Parameters: s.Config}})
	}
	return all
}

// ComparedFigure is a figure that is compared. Durations, and rates of errors, are better if they
// are lower.
// +kubebuilder:validation:Enum=throughput;latencyP50;latencyP99;latencyP999;errorRate;outage;probeOutage;recoveryTime;lostWrites;failedButExecuted;executedTwice;lockOverlaps;lostRequests;maxCPU;maxMemory
type ComparedFigure string

// ComparisonRequirement is what comparisons must show for an experiment to pass.
// +kubebuilder:validation:Enum=None;NotWorse;Same
type ComparisonRequirement string

// The requirements.
const (
	// RequireNone requires nothing.
	RequireNone ComparisonRequirement = "None"
	// RequireNotWorse requires that no figure of a cell is worse than its baseline by more than the
	// margin.
	RequireNotWorse ComparisonRequirement = "NotWorse"
	// RequireSame requires that every figure of each cell is the same as its baseline, within the
	// margin.
	RequireSame ComparisonRequirement = "Same"
)

// ExperimentComparison is what an experiment compares.
type ExperimentComparison struct {
	// figures of which a verdict is reached for each cell; others are shown without one. The more
	// there are, the larger a difference must be to be told.
	// Defaults to outage and recoveryTime with faults, else latencyP99 with throughput (users) or
	// errorRate (rate); and lostWrites with verify.acknowledgedWrites, lockOverlaps with workload.lock.
	// throughput: successes per second.
	// latencyP50: the median of latency.
	// latencyP99: its 99th percentile.
	// latencyP999: its 99.9th percentile.
	// errorRate: the share of requests that failed.
	// outage: the longest time without a success of the load.
	// probeOutage: the longest time without a success of the probe.
	// recoveryTime: the time from the injection to sustained recovery.
	// lostWrites: acknowledged ledger writes that were lost.
	// failedButExecuted: ledger writes of a library that failed, and that the server executed.
	// executedTwice: ledger writes of a library that the server executed more than once.
	// lockOverlaps: how often two users of workload.lock counted on the same lock.
	// lostRequests: requests that the load missed because of the fault.
	// maxCPU: the most CPU that a Redis server used.
	// maxMemory: the most memory that a Redis server used.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Figures []ComparedFigure `json:"figures,omitempty"`

	// margins are up to which relative difference a figure counts as the same, such as throughput:
	// 10%. Those of the other figures are in docs/statistics.md.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=12
	// +kubebuilder:validation:XValidation:rule="self.all(f, f in ['throughput', 'latencyP50', 'latencyP99', 'latencyP999', 'errorRate', 'outage', 'probeOutage', 'recoveryTime', 'lostRequests', 'maxCPU', 'maxMemory'])",message="must be names of figures that have a margin: throughput, latencyP50, latencyP99, latencyP999, errorRate, outage, probeOutage, recoveryTime, lostRequests, maxCPU, maxMemory"
	Margins map[string]Percentage `json:"margins,omitempty"`

	// baselineRepeats is how often a baseline runs in each round. Defaults to 2 if 5 or more cells are
	// compared with it, else 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4
	BaselineRepeats *int32 `json:"baselineRepeats,omitempty"`

	// require is what the comparisons must show for the verdict Pass.
	// None: nothing.
	// NotWorse: no figure of a cell is worse than its baseline by more than the margin.
	// Same: every figure of each cell is the same as its baseline, within the margin.
	// +optional
	// +kubebuilder:default=None
	Require ComparisonRequirement `json:"require,omitempty"`
}
