package result

// Objective is one objective and the measured value. Actual is not set if there is no figure,
// AtLeast and AtMost only for a figure with bounds.
type Objective struct {
	Name    string   `json:"name"` // as in the spec, such as maxLatencyP99
	Unit    Unit     `json:"unit"` // of the following figures
	Limit   float64  `json:"limit"`
	Actual  *float64 `json:"actual,omitempty"`
	AtLeast *float64 `json:"atLeast,omitempty"`
	AtMost  *float64 `json:"atMost,omitempty"`
	Met     *bool    `json:"met,omitempty"`     // not set if it could not be evaluated
	Message string   `json:"message,omitempty"` // why it is missed, or could not be evaluated
}

// Unit is the unit of an Objective's figures.
type Unit string

// The units.
const (
	UnitCount     Unit = "count"
	UnitShare     Unit = "share" // from 0 to 1
	UnitSeconds   Unit = "seconds"
	UnitPerSecond Unit = "perSecond"
	UnitCores     Unit = "cores"
	UnitBytes     Unit = "bytes"
)
