package v1alpha1

// Verdict is the outcome of a finished test. Complete and verdict are different things: a test can complete with the verdict Fail.
// +kubebuilder:validation:Enum=Pass;Fail;Inconclusive
type Verdict string

// The verdicts.
const (
	VerdictPass         Verdict = "Pass"
	VerdictFail         Verdict = "Fail"
	VerdictInconclusive Verdict = "Inconclusive" // the figures cannot be trusted, or an objective had nothing to be judged by
)

// Unit is the unit of a figure: Count (of whatever its name says), Share (from 0 to 1), Microseconds, or PerSecond.
// +kubebuilder:validation:Enum=Count;Share;Microseconds;PerSecond
type Unit string

// The units.
const (
	UnitCount        Unit = "Count"
	UnitShare        Unit = "Share"
	UnitMicroseconds Unit = "Microseconds"
	UnitPerSecond    Unit = "PerSecond"
)

// ObjectiveResult is one objective and what was measured.
type ObjectiveResult struct {
	// name of the objective, as in the spec.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name,omitempty"`
	// unit of limit, actual, atLeast and atMost.
	// Count: a number of what the name says.
	// Share: from 0 to 1.
	// Microseconds: a length of time.
	// PerSecond: a rate.
	// +required
	Unit Unit `json:"unit,omitempty"`
	// limit that was set.
	// +required
	Limit Decimal `json:"limit,omitempty"`
	// actual value; absent where there was nothing to judge by.
	// +optional
	Actual Decimal `json:"actual,omitempty"`
	// atLeast is the lower bound of actual, where it has one.
	// +optional
	AtLeast Decimal `json:"atLeast,omitempty"`
	// atMost is the upper bound of actual, where it has one.
	// +optional
	AtMost Decimal `json:"atMost,omitempty"`
	// met says whether the limit was kept; absent where that cannot be told: message says why.
	// +optional
	Met *bool `json:"met,omitempty"`
	// message says why the objective was missed, or could not be judged.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}
