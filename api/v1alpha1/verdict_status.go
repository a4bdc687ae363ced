package v1alpha1

// Verdict is the outcome of a finished test. It is independent of the condition Complete: a test
// can complete with the verdict Fail.
// +kubebuilder:validation:Enum=Pass;Fail;Inconclusive
type Verdict string

// The verdicts.
const (
	VerdictPass Verdict = "Pass"
	VerdictFail Verdict = "Fail"
	// the figures are not reliable, or an objective could not be evaluated
	VerdictInconclusive Verdict = "Inconclusive"
)

// Unit is the unit of a figure: Count, Share (from 0 to 1), Seconds, or PerSecond.
// +kubebuilder:validation:Enum=Count;Share;Seconds;PerSecond
type Unit string

// The units.
const (
	UnitCount     Unit = "Count"
	UnitShare     Unit = "Share"
	UnitSeconds   Unit = "Seconds"
	UnitPerSecond Unit = "PerSecond"
)

// ObjectiveResult is one objective and the measured value.
type ObjectiveResult struct {
	// name of the objective, as in the spec.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name,omitempty"`
	// unit of limit, actual, atLeast and atMost.
	// Count: a number, of requests for example.
	// Share: from 0 to 1.
	// Seconds: a duration.
	// PerSecond: a rate.
	// +required
	Unit Unit `json:"unit,omitempty"`
	// limit that was set.
	// +required
	Limit Decimal `json:"limit,omitempty"`
	// actual value; not set if it could not be determined.
	// +optional
	Actual Decimal `json:"actual,omitempty"`
	// atLeast is the lower bound of actual, if it has one.
	// +optional
	AtLeast Decimal `json:"atLeast,omitempty"`
	// atMost is the upper bound of actual, if it has one.
	// +optional
	AtMost Decimal `json:"atMost,omitempty"`
	// met is whether the objective was met; not set if it could not be evaluated, with the reason in
	// message.
	// +optional
	Met *bool `json:"met,omitempty"`
	// message is why the objective was missed, or could not be evaluated.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}
