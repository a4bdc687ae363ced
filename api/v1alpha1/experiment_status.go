package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RedisExperimentStatus is the state and the results of an experiment. Rates and shares are
// decimals, as in the other kinds.
type RedisExperimentStatus struct {
	// conditions are the state of the experiment: Accepted, Regressed, ObjectivesMet, Complete,
	// Failed, Suspended, Reconciling, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions refer to; -1 before the operator has
	// processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// startTime is when the order of the runs was drawn. From then on the spec is frozen.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// completionTime is when the experiment was complete or had failed.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`

	// display is formatted text for the columns of kubectl get. Programs should read the other fields.
	// +optional
	Display *ExperimentDisplay `json:"display,omitempty"`

	// seed of the order of the runs, and of the random delays of faults.
	// +optional
	Seed *int64 `json:"seed,omitempty"`

	// progress counts the runs.
	// +optional
	Progress *ExperimentProgress `json:"progress,omitempty"`

	// expectedEnd is when the experiment ends if the remaining runs take as long as those before.
	// +optional
	ExpectedEnd *metav1.Time `json:"expectedEnd,omitempty"`

	// run is the run that is under way.
	// +optional
	Run *ExperimentRun `json:"run,omitempty"`

	// warnings are what will keep figures from being told, or is known to disturb them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	Warnings []string `json:"warnings,omitempty"`

	// cells are the combinations of the matrix, in its order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Cells []ExperimentCell `json:"cells,omitempty"`

	// comparison is each cell against its baseline, in the figures of spec.compare. Until the
	// experiment is complete it has no verdicts.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Comparison []ComparisonResult `json:"comparison,omitempty"`

	// earlier is each cell against itself in the run of spec.compareTo.
	// +optional
	Earlier *EarlierComparison `json:"earlier,omitempty"`

	// notes are how the runs differ from what the comparison assumes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	Notes []string `json:"notes,omitempty"`

	// verdict of the finished experiment.
	// Pass: every objective is met.
	// Fail: an objective of a run, of the comparison or of the experiment is missed.
	// Inconclusive: the runs do not show which.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`

	// results is the name of the ConfigMap with the figures of all runs.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Results string `json:"results,omitempty"`
}

// ExperimentDisplay is formatted text about an experiment.
type ExperimentDisplay struct {
	// progress is the number of runs that have ended, of all, such as 12/48.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Progress string `json:"progress,omitempty"`
	// cells is the number of cells.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	Cells string `json:"cells,omitempty"`
	// worse is the number of comparisons in which a cell is worse than its baseline, of all, such as
	// 4/8.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Worse string `json:"worse,omitempty"`
	// next is the cell that runs.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Next string `json:"next,omitempty"`
}

// ExperimentProgress counts the runs of an experiment.
type ExperimentProgress struct {
	// runs is how many there are to be.
	// +required
	// +kubebuilder:validation:Minimum=0
	Runs int32 `json:"runs"`
	// finished is how many have ended, however.
	// +required
	// +kubebuilder:validation:Minimum=0
	Finished int32 `json:"finished"`
	// inconclusive is how many of those have no figures to compare.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Inconclusive int32 `json:"inconclusive,omitempty"`
	// failed is how many of those missed an objective or could not complete.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failed int32 `json:"failed,omitempty"`
}

// ExperimentRunStage is what a run is doing.
// +kubebuilder:validation:Enum=Settings;Load;Reverting
type ExperimentRunStage string

// The stages.
const (
	// RunSettings is that the settings are applied.
	RunSettings ExperimentRunStage = "Settings"
	// RunLoad is that the load test runs, with its faults.
	RunLoad ExperimentRunStage = "Load"
	// RunReverting is that faults and settings are reverted.
	RunReverting ExperimentRunStage = "Reverting"
)

// ExperimentRun is the run that is under way.
type ExperimentRun struct {
	// number of the run, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int32 `json:"number,omitempty"`
	// round that it belongs to, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Round int32 `json:"round,omitempty"`
	// cell that it is a run of.
	// +required
	// +kubebuilder:validation:MaxLength=640
	Cell string `json:"cell,omitempty"`
	// loadTest is the name of its RedisLoadTest.
	// +required
	// +kubebuilder:validation:MaxLength=63
	LoadTest string `json:"loadTest,omitempty"`
	// stage of the run.
	// Settings: the settings are applied.
	// Load: the load test runs, with its faults.
	// Reverting: faults and settings are reverted.
	// +required
	Stage ExperimentRunStage `json:"stage,omitempty"`
	// message is why the run will not be measured, in stage Reverting; not set if it will.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// startTime is when it began.
	// +required
	StartTime metav1.Time `json:"startTime,omitzero"`
}

// ExperimentCell is a combination of the matrix.
type ExperimentCell struct {
	// name of the cell, such as appendfsync=always,users=1000.
	// +required
	// +kubebuilder:validation:MaxLength=640
	Name string `json:"name,omitempty"`
	// baseline is the name of the cell that it is compared with; absent if it is a baseline itself.
	// +optional
	// +kubebuilder:validation:MaxLength=640
	Baseline string `json:"baseline,omitempty"`
	// finished is how many of its runs have ended.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Finished int32 `json:"finished"`
	// inconclusive is how many of those have no figures to compare.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Inconclusive int32 `json:"inconclusive,omitempty"`
	// failed is how many of those missed an objective or could not complete.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failed int32 `json:"failed,omitempty"`
	// message is why the last of those was inconclusive or has failed.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// ComparisonVerdict is what a comparison says.
// +kubebuilder:validation:Enum=Better;Worse;Same;Inconclusive;Improved;Regressed
type ComparisonVerdict string

// The verdicts of a comparison.
const (
	// ComparisonBetter is that there is a difference, and the cell is better.
	ComparisonBetter ComparisonVerdict = "Better"
	// ComparisonWorse is that there is a difference, and the cell is worse.
	ComparisonWorse ComparisonVerdict = "Worse"
	// ComparisonSame is that any difference is within the margin.
	ComparisonSame ComparisonVerdict = "Same"
	// ComparisonInconclusive is that the runs do not show which.
	ComparisonInconclusive ComparisonVerdict = "Inconclusive"
	// ComparisonImproved is that it is better than in an earlier run by more than the margin.
	ComparisonImproved ComparisonVerdict = "Improved"
	// ComparisonRegressed is that it is worse than in an earlier run by more than the margin.
	ComparisonRegressed ComparisonVerdict = "Regressed"
)

// ComparisonResult is one figure of a cell, compared.
type ComparisonResult struct {
	// cell that is compared.
	// +required
	// +kubebuilder:validation:MaxLength=640
	Cell string `json:"cell,omitempty"`
	// figure that is compared, as in spec.compare.figures.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Figure string `json:"figure,omitempty"`
	// verdict of the comparison; absent until the experiment is complete.
	// Better: there is a difference, and the cell is better.
	// Worse: there is a difference, and the cell is worse.
	// Same: any difference is within the margin.
	// Inconclusive: the runs do not show which; message says how many would.
	// Improved: it is better than in an earlier run by more than the margin.
	// Regressed: it is worse than in an earlier run by more than the margin.
	// +optional
	Verdict ComparisonVerdict `json:"verdict,omitempty"`
	// reason of the verdict, in one word.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Reason string `json:"reason,omitempty"`
	// message is the comparison in a sentence.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// change of the median, relative, such as -0.05 for 5 % less; of counts the difference.
	// +optional
	Change Decimal `json:"change,omitempty"`
	// atLeast is the lower limit of the change; absent if it is not bounded.
	// +optional
	AtLeast Decimal `json:"atLeast,omitempty"`
	// atMost is the upper limit of the change; absent if it is not bounded.
	// +optional
	AtMost Decimal `json:"atMost,omitempty"`
	// confidence of these limits, from 0 to 1.
	// +optional
	Confidence Decimal `json:"confidence,omitempty"`
	// median of the cell: durations in seconds, rates per second, errors as a share, CPU in cores,
	// memory in bytes.
	// +optional
	Median Decimal `json:"median,omitempty"`
	// baselineMedian is that of what it is compared with.
	// +optional
	BaselineMedian Decimal `json:"baselineMedian,omitempty"`
	// repeats is how many runs of the cell have this figure.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Repeats int32 `json:"repeats"`
	// baselineRepeats is how many runs of what it is compared with have it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	BaselineRepeats int32 `json:"baselineRepeats"`
	// needs is how many repeats would tell.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Needs int32 `json:"needs,omitempty"`
}

// EarlierComparison is an experiment against an earlier run of it.
type EarlierComparison struct {
	// run is the name of the RedisExperiment of the earlier run.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Run string `json:"run,omitempty"`
	// comparison is each cell against itself in that run.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Comparison []ComparisonResult `json:"comparison,omitempty"`
	// notes are what all cells have in common, and what else has changed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	Notes []string `json:"notes,omitempty"`
}
