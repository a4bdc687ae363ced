// Package compare tells whether a figure of one cell of an experiment is better or worse than that
// of another, the same within a margin, or whether the repeats are inconclusive; and whether an
// experiment has become better or worse than an earlier one. It is pure: runs come in, comparisons
// go out.
//
// The methods and their sources: docs/statistics.md.
package compare

import (
	"fmt"
	"math"
	"time"

	"github.com/redquake/redquake/internal/format"
)

// Figure is what is compared. Its values are positive, and compared as ratios, unless it is
// counted.
type Figure struct {
	Name           string
	HigherIsBetter bool
	Counted        bool    // a number of rare events, such as lost writes: compared by the difference
	Floor          float64 // values below it are set to it: it is as small as what can be measured
	Tail           float64 // of a quantile of latencies: the share of the requests that are slower
	Margin         Margin
}

// Margin is up to which difference two cells count as the same: the greater of both. A counted
// figure has none.
type Margin struct {
	Relative float64 // 0.05 is 5 %
	Absolute float64 // in the figure's unit
}

// of is the margin as a relative difference from a baseline, which is above 0; absolute is whether
// it is the absolute one.
func (m Margin) of(baseline float64) (relative float64, absolute bool) {
	if of := m.Absolute / baseline; of > m.Relative {
		return of, true
	}
	return m.Relative, false
}

// MarginAt is up to which relative difference from a level of the figure another one counts as the
// same.
func (f Figure) MarginAt(level float64) float64 {
	if f.Counted {
		return 0
	}
	relative, _ := f.Margin.of(max(level, f.Floor))
	return relative
}

// The figures that can be compared, in their units: durations in seconds, rates of errors as
// shares, CPU in cores, memory in bytes.
var (
	Throughput = Figure{
		Name:           "throughput",
		HigherIsBetter: true,
		Floor:          1,
		Margin:         Margin{Relative: 0.05},
	}
	LatencyP50 = Figure{
		Name:   "latencyP50",
		Floor:  1e-6,
		Tail:   0.5,
		Margin: Margin{Relative: 0.10, Absolute: 1e-4},
	}
	LatencyP99 = Figure{
		Name:   "latencyP99",
		Floor:  1e-6,
		Tail:   0.01,
		Margin: Margin{Relative: 0.25, Absolute: 1e-4},
	}
	LatencyP999 = Figure{
		Name:   "latencyP999",
		Floor:  1e-6,
		Tail:   0.001,
		Margin: Margin{Relative: 0.50, Absolute: 1e-4},
	}
	ErrorRate = Figure{
		Name:   "errorRate",
		Floor:  1e-6,
		Margin: Margin{Relative: 0.50, Absolute: 1e-3},
	}
	Outage = Figure{
		Name:   "outage",
		Floor:  5e-3,
		Margin: Margin{Relative: 0.25, Absolute: 50e-3},
	}
	ProbeOutage = Figure{
		Name:   "probeOutage",
		Floor:  5e-3,
		Margin: Margin{Relative: 0.25, Absolute: 50e-3},
	}
	RecoveryTime = Figure{
		Name:   "recoveryTime",
		Floor:  0.1,
		Margin: Margin{Relative: 0.25, Absolute: 1},
	}
	LostWrites        = Figure{Name: "lostWrites", Counted: true}
	FailedButExecuted = Figure{Name: "failedButExecuted", Counted: true}
	ExecutedTwice     = Figure{Name: "executedTwice", Counted: true}
	LockOverlaps      = Figure{Name: "lockOverlaps", Counted: true}
	LostRequests      = Figure{
		Name:   "lostRequests",
		Floor:  1,
		Margin: Margin{Relative: 0.25},
	}
	MaxCPU = Figure{
		Name:   "maxCPU",
		Floor:  1e-3,
		Margin: Margin{Relative: 0.10},
	}
	MaxMemory = Figure{
		Name:   "maxMemory",
		Floor:  1 << 20,
		Margin: Margin{Relative: 0.10},
	}
)

// Text is a value in its unit.
func (f Figure) Text(v float64) string {
	switch {
	case f.Name == Throughput.Name:
		return format.Rate(v) + "/s"
	case f.Name == ErrorRate.Name:
		return format.Share(v)
	case f.Counted, f.Name == LostRequests.Name:
		return fmt.Sprintf("%.0f", v)
	case f.Name == MaxCPU.Name:
		return fmt.Sprintf("%.3g cores", v)
	case f.Name == MaxMemory.Name:
		return fmt.Sprintf("%.1fMi", v/(1<<20))
	}
	return format.Duration(time.Duration(v * float64(time.Second)))
}

// Figures are all of them.
func Figures() []Figure {
	return []Figure{
		Throughput, LatencyP50, LatencyP99, LatencyP999, ErrorRate, Outage, ProbeOutage, RecoveryTime,
		LostWrites, FailedButExecuted, ExecutedTwice, LockOverlaps, LostRequests, MaxCPU, MaxMemory,
	}
}

// FigureNamed is the figure with a name; one that this program does not know has only its name.
func FigureNamed(name string) Figure {
	for _, f := range Figures() {
		if f.Name == name {
			return f
		}
	}
	return Figure{Name: name}
}

// Require is what comparisons must say for an experiment to pass.
type Require string

// The requirements.
const (
	RequireNone     Require = "None"
	RequireNotWorse Require = "NotWorse" // no figure is worse, and none may be by more than the margin
	RequireSame     Require = "Same"     // all figures are the same within the margin
)

// Met is whether a comparison meets a requirement; known is false where it is inconclusive. Counted
// figures are the same where neither side has any.
func (r Comparison) Met(require Require, f Figure) (met, known bool) {
	//exhaustive:enforce
	switch require {
	case RequireNone:
	case RequireNotWorse:
		if r.Verdict == Worse {
			return false, true
		}
		return true, r.Reason == NoneSeen || r.notWorse(f)
	case RequireSame:
		return r.Verdict == Same || r.Reason == NoneSeen, r.Verdict != Inconclusive || r.Reason == NoneSeen
	}
	return true, true
}

// notWorse reports whether the bad end of the interval of 90 % lies within the margin:
// non-inferiority, one of the two tests of Same.
func (r Comparison) notWorse(f Figure) bool {
	if r.Verdict == Better || r.Verdict == Same {
		return true
	}
	if r.Method == "" || f.Counted {
		return false
	}
	limit := math.Log1p(r.Margin)
	if f.HigherIsBetter {
		return r.Same.Low > -limit
	}
	return r.Same.High < limit
}

// MaxRepeats is the greatest number of repeats that an experiment may have.
const MaxRepeats = 50

// repeatsNeeded is the smallest number of repeats with which a comparison can be made, if no run is
// dropped; 0 if there is none.
func (d Design) repeatsNeeded(ranksOnly bool) int {
	for n := 1; n <= MaxRepeats; n++ {
		df := n*d.RunsPerRound - d.Cells - n + 1
		if d.method(n, n*max(d.Baseline, 1), df, ranksOnly) != "" {
			return n
		}
	}
	return 0
}

// RepeatsNeeded is how many repeats of each cell a verdict on a figure needs at least, before
// anything ran; 0 = more than MaxRepeats. censored: a run of it may not be over by its deadline, so
// that only ranks can be compared.
func (d Design) RepeatsNeeded(f Figure, censored bool) int {
	return d.repeatsNeeded(f.Counted || censored)
}

// repeatsForMargin is about how many repeats would tell a cell that equals its baseline the same
// within the margin, three times in four: n is how many there were, half half the width of their
// interval, limit the margin, both of logarithms. 0 if the interval is infinite.
func repeatsForMargin(n int, half, limit float64) int {
	if math.IsInf(half, 0) || math.IsNaN(half) || limit <= 0 {
		return 0
	}
	ratio := half / limit
	return int(max(float64(n+1), min(math.Ceil(2.5*float64(n)*ratio*ratio), 1e6)))
}
