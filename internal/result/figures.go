package result

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
)

// Seconds is a duration, in JSON a number of seconds.
type Seconds time.Duration

// Seconds is the number of seconds.
func (s Seconds) Seconds() float64 {
	return time.Duration(s).Seconds()
}

// MarshalJSON writes a decimal number of seconds, exact to the nanosecond.
func (s Seconds) MarshalJSON() ([]byte, error) {
	// Not Duration.Seconds, which adds two floats and is inexact in the last digit.
	return strconv.AppendFloat(nil, float64(s)/float64(time.Second), 'f', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fmt.Errorf("%s is not a number of seconds", text)
	}
	*s = Seconds(math.Round(x * float64(time.Second)))
	return nil
}

// Count is a number with its lower and upper bound.
type Count struct{ AtLeast, AtMost uint64 }

// Exact returns the number if it is known exactly.
func (c Count) Exact() (uint64, bool) {
	return c.AtMost, c.AtLeast == c.AtMost
}

// String returns the number, such as 7, or its bounds, such as 3-7; "" if it is not known at all.
func (c *Count) String() string {
	if c == nil {
		return ""
	}
	if n, exact := c.Exact(); exact {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d-%d", c.AtLeast, c.AtMost)
}

// Quantiles of a latency. P95 and P9999 are 0 if an earlier version has written them.
type Quantiles struct {
	P50   Seconds `json:"p50"`
	P90   Seconds `json:"p90"`
	P95   Seconds `json:"p95,omitzero"`
	P99   Seconds `json:"p99"`
	P999  Seconds `json:"p999"`
	P9999 Seconds `json:"p9999,omitzero"`
	Max   Seconds `json:"max"`
	Mean  Seconds `json:"mean"`
}

// each sets each figure to what change makes of it and of the same one of others.
func (q *Quantiles) each(others *Quantiles, change func(own, other Seconds) Seconds) {
	for _, p := range [...][2]*Seconds{
		{&q.P50, &others.P50},
		{&q.P90, &others.P90},
		{&q.P95, &others.P95},
		{&q.P99, &others.P99},
		{&q.P999, &others.P999},
		{&q.P9999, &others.P9999},
		{&q.Max, &others.Max},
		{&q.Mean, &others.Mean},
	} {
		*p[0] = change(*p[0], *p[1])
	}
}

func quantilesOf(l summary.Latency) *Quantiles {
	if l.Count == 0 {
		return nil
	}
	return &Quantiles{
		P50:   Seconds(l.P50),
		P90:   Seconds(l.P90),
		P95:   Seconds(l.P95),
		P99:   Seconds(l.P99),
		P999:  Seconds(l.P999),
		P9999: Seconds(l.P9999),
		Max:   Seconds(l.Max),
		Mean:  Seconds(l.Mean),
	}
}

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
