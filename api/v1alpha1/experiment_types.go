package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RedisExperimentSpec defines an experiment: a matrix of load tests, each run several times, and
// compared.
// +kubebuilder:validation:XValidation:rule="!has(self.baseline) || self.baseline.all(name, self.matrix.exists(p, p.name == name))",message="each key must be the name of a parameter of matrix",fieldPath=".baseline"
// +kubebuilder:validation:XValidation:rule="!has(self.baseline) || self.baseline.all(name, self.matrix.all(p, p.name != name || (has(p.settings) ? p.settings.exists(s, s.name == self.baseline[name]) : has(p.valueNames) ? p.valueNames.exists(v, v == self.baseline[name]) : p.values.exists(v, type(v) == int ? string(v + 0) == self.baseline[name] : v == self.baseline[name]))))",message="each member must be the name of one of the parameter's values",fieldPath=".baseline"
// +kubebuilder:validation:XValidation:rule="[self.matrix.map(p, has(p.settings) ? size(p.settings) : has(p.values) ? size(p.values) : 1) + [1, 1, 1, 1, 1]].all(n, n[0] * n[1] * n[2] * n[3] * n[4] * n[5] <= 128)",message="the combinations of all values are more than 128 cells: leave out values, or split the experiment",fieldPath=".matrix"
// +kubebuilder:validation:XValidation:rule="[self.matrix.map(p, has(p.settings) ? size(p.settings) : has(p.values) ? size(p.values) : 1) + [1, 1, 1, 1, 1]].all(n, n[0] * n[1] * n[2] * n[3] * n[4] * n[5] * self.repeat <= 2000)",message="the cells, repeated that often, are more than 2000 runs: lower repeat, or leave out values of matrix",fieldPath=".repeat"
// +kubebuilder:validation:XValidation:rule="self.matrix.all(p, !has(p.path) || self.matrix.exists_one(q, has(q.path) && (q.path + '.').startsWith(p.path + '.')))",message="two parameters set the same field, or one sets a field within that of another: put them into one parameter",fieldPath=".matrix"
// +kubebuilder:validation:XValidation:rule="self.matrix.all(p, !has(p.path) || !(p.path + '.').startsWith('faults.') || (has(self.faults) && self.faults.exists(f, p.path.startsWith('faults.' + f.name + '.'))))",message="a path that begins with faults goes on with the name of one of spec.faults, and a field of it, such as faults.kill.action.podKill.gracePeriodSeconds",fieldPath=".matrix"
// +kubebuilder:validation:XValidation:rule="self.matrix.all(p, !has(p.settings) || p.settings.all(s, !has(s.faults) || s.faults.all(name, has(self.faults) && self.faults.exists(f, f.name == name))))",message="a setting's faults must be names of spec.faults",fieldPath=".matrix"
// +kubebuilder:validation:XValidation:rule="!has(self.faults) || self.faults.all(f, !has(f.spec.beside) || f.spec.beside.all(name, self.faults.exists(g, g.name == name)))",message="a fault's beside must be names of spec.faults",fieldPath=".faults"
// +kubebuilder:validation:XValidation:rule="!has(self.compare.figures) || has(self.faults) || !self.compare.figures.exists(f, f in ['recoveryTime', 'lostRequests'])",message="recoveryTime and lostRequests are figures of faults: set faults, or compare others",fieldPath=".compare.figures"
type RedisExperimentSpec struct {
	// template is the load test of which every cell is a variant. What a parameter of matrix sets may
	// be absent.
	// +required
	Template LoadTestTemplate `json:"template,omitzero"`

	// faults are injected in every run, on its load test.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Faults []ExperimentFault `json:"faults,omitempty"`

	// matrix is the parameters that differ. Every combination of their values is a cell; there may be
	// at most 128.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	Matrix []ExperimentParameter `json:"matrix,omitempty"`

	// repeat is how often each cell runs. With 2 repeats hardly any difference can be told, with 6 one
	// of 20 % where runs differ by 5 %; see docs/statistics.md. All runs together may be at most 2000.
	// +optional
	// +kubebuilder:default=6
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	Repeat int32 `json:"repeat,omitempty"`

	// order of the cells. Each round runs every cell once.
	// Shuffled: at random in each round, so that a drift of the environment affects all cells alike.
	// The seed is in the status.
	// Sequential: in the order of matrix, the last parameter changing fastest.
	// +optional
	// +kubebuilder:default=Shuffled
	Order ExperimentOrder `json:"order,omitempty"`

	// baseline is the cell that the others are compared with: a value's name for some or all
	// parameters. A cell is compared with the baseline that has the same values of the other
	// parameters. Defaults to the first value of each parameter.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=6
	Baseline map[string]ValueName `json:"baseline,omitempty"`

	// compare is what is compared, and how.
	// +optional
	// +kubebuilder:default={}
	Compare ExperimentComparison `json:"compare,omitzero"`

	// compareTo is an earlier run with which each cell is compared as well.
	// +optional
	CompareTo *EarlierRun `json:"compareTo,omitempty"`

	// objectives determine the verdict, together with compare.require and the objectives of template
	// and faults.
	// +optional
	Objectives *ExperimentObjectives `json:"objectives,omitempty"`

	// stopOnFailure ends the experiment after the first run that cannot complete, or whose verdict is
	// Fail.
	// +optional
	// +kubebuilder:default=false
	StopOnFailure bool `json:"stopOnFailure,omitempty"`

	// loadTestsHistoryLimit is how many finished RedisLoadTests are kept, with their faults. Older
	// ones are deleted: the figures of all runs are in the ConfigMap that status.results names.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2000
	LoadTestsHistoryLimit *int32 `json:"loadTestsHistoryLimit,omitempty"`

	// abort ends the experiment: the run that is under way is aborted and its settings and faults are
	// reverted; the figures so far are kept. It cannot be reset.
	// +optional
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="self || !oldSelf",message="an abort cannot be taken back: create a new object"
	Abort bool `json:"abort,omitempty"`

	// suspend keeps the next run from starting until it is reset. The run that is under way ends
	// first.
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

// LoadTestTemplate is the load test of an experiment's runs.
type LoadTestTemplate struct {
	// spec of the load test. abort, suspend and ttlSecondsAfterFinished must be absent: the experiment
	// has its own.
	// +required
	// +kubebuilder:validation:XValidation:rule="!self.abort && !self.suspend && !has(self.ttlSecondsAfterFinished)",message="leave abort, suspend and ttlSecondsAfterFinished out, and use those of the experiment; loadTestsHistoryLimit is how many load tests are kept"
	Spec RedisLoadTestSpec `json:"spec,omitzero"`
}

// ExperimentFault is a fault of an experiment's runs.
// +kubebuilder:validation:XValidation:rule="!has(self.spec.beside) || !(self.name in self.spec.beside)",message="a fault cannot act beside itself",fieldPath=".spec.beside"
type ExperimentFault struct {
	// name of the fault, for parameters and in names of objects.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// randomDelay is added to trigger.after or trigger.steadyFor: a time at random up to this one,
	// drawn for each run, so that faults do not always hit the same phase of what Redis does
	// periodically. At most 1h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="must be between 0s and 1h"
	// +kubebuilder:validation:Type=string
	RandomDelay *metav1.Duration `json:"randomDelay,omitempty"`

	// spec of the fault. loadTestRef must be absent: it is the load test of the run. So must be
	// probePods, setting, dryRun, abort, suspend and ttlSecondsAfterFinished.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.loadTestRef)",message="leave loadTestRef out: it is the load test of the run"
	// +kubebuilder:validation:XValidation:rule="!self.dryRun",message="leave dryRun out: an experiment checks its faults by dry runs before the first run"
	// +kubebuilder:validation:XValidation:rule="!has(self.probePods)",message="leave probePods out: the load test of the run measures the fault"
	// +kubebuilder:validation:XValidation:rule="!self.setting",message="leave setting out: settings of the servers are values of matrix"
	// +kubebuilder:validation:XValidation:rule="!self.abort && !self.suspend && !has(self.ttlSecondsAfterFinished)",message="leave abort, suspend and ttlSecondsAfterFinished out, and use those of the experiment; loadTestsHistoryLimit is how many load tests are kept, with their faults"
	Spec RedisFaultSpec `json:"spec,omitzero"`
}

// ExperimentOrder is the order of an experiment's cells.
// +kubebuilder:validation:Enum=Shuffled;Sequential
type ExperimentOrder string

// The orders.
const (
	// OrderShuffled is at random in each round.
	OrderShuffled ExperimentOrder = "Shuffled"
	// OrderSequential is the order of the matrix.
	OrderSequential ExperimentOrder = "Sequential"
)

// ValueName is the name of a parameter's value.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.+]*[A-Za-z0-9])?$`
type ValueName string

// EarlierRun is a run of the same experiment that has ended.
type EarlierRun struct {
	// run is the name of a finished RedisExperiment in this namespace with the same cells.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self != 'last'",message="an experiment has no last run: name a RedisExperiment; last is of a RedisExperimentSchedule"
	Run string `json:"run,omitempty"`
}

// ExperimentObjectives determine the verdict of an experiment.
type ExperimentObjectives struct {
	// noRegression is whether the verdict is Fail if a figure of a cell has regressed against the run
	// of compareTo.
	// +optional
	// +kubebuilder:default=false
	NoRegression bool `json:"noRegression,omitempty"`
}

// RedisExperiment runs a matrix of load tests with settings and faults several times, and compares
// them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:shortName=rexp,categories=redquake
// +kubebuilder:selectablefield:JSONPath=`.status.verdict`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].reason`,description="State of the experiment"
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.display.progress`,description="Runs that have ended, of all"
// +kubebuilder:printcolumn:name="Cells",type=string,JSONPath=`.status.display.cells`,description="Number of combinations"
// +kubebuilder:printcolumn:name="Worse",type=string,JSONPath=`.status.display.worse`,description="Comparisons in which a cell is worse than its baseline, of all"
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict`,description="Pass, Fail or Inconclusive"
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.display.next`,description="The cell that runs"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Regressed",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Regressed")].status`,description="Whether something is worse than in an earlier run"
// +kubebuilder:printcolumn:name="ExpectedEnd",type=string,priority=1,JSONPath=`.status.expectedEnd`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Complete")].message`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (self.spec.template == oldSelf.spec.template && self.spec.matrix == oldSelf.spec.matrix && self.spec.repeat == oldSelf.spec.repeat && self.spec.order == oldSelf.spec.order && self.spec.compare == oldSelf.spec.compare && self.spec.stopOnFailure == oldSelf.spec.stopOnFailure && has(self.spec.faults) == has(oldSelf.spec.faults) && (!has(self.spec.faults) || self.spec.faults == oldSelf.spec.faults) && has(self.spec.baseline) == has(oldSelf.spec.baseline) && (!has(self.spec.baseline) || self.spec.baseline == oldSelf.spec.baseline) && has(self.spec.compareTo) == has(oldSelf.spec.compareTo) && (!has(self.spec.compareTo) || self.spec.compareTo == oldSelf.spec.compareTo) && has(self.spec.objectives) == has(oldSelf.spec.objectives) && (!has(self.spec.objectives) || self.spec.objectives == oldSelf.spec.objectives))",message="the spec cannot change once the experiment has started (only abort, suspend, loadTestsHistoryLimit and ttlSecondsAfterFinished can): create a new object to run again"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 28 && !self.metadata.name.contains('.')",fieldPath=".metadata",message="the name must be at most 28 characters long and hold no dot: its children's names and labels are made from it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.objectives) || !self.spec.objectives.noRegression || has(self.spec.compareTo)",message="noRegression needs compareTo: it is about an earlier run",fieldPath=".spec.objectives"
type RedisExperiment struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired experiment.
	// +required
	Spec RedisExperimentSpec `json:"spec,omitzero"`

	// status is the observed state and the results.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status RedisExperimentStatus `json:"status,omitzero"`
}

// RedisExperimentList is a list of RedisExperiments.
// +kubebuilder:object:root=true
type RedisExperimentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []RedisExperiment `json:"items"`
}
