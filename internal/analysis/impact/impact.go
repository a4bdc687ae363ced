// Package impact turns recorded intervals into figures: baseline, steadiness, dip, outage,
// recovery. It is pure: no clock, no I/O.
// The definitions are in docs/measuring.md, the formulas in the functions' comments.
package impact

import (
	"cmp"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// Fault is the times of a fault, counted from the start of the run.
type Fault struct {
	At time.Duration // t0, just before the injecting call was sent
	// when the effect was observed; recovery must hold until SustainFor after it. 0 = immediately
	SeenAt time.Duration
	// the latest recovery that counts is at At+Deadline; 0 = the end of the record
	Deadline time.Duration
	// of a fault that lasts: from being complete to its revert, or until now; the zero value = never
	Active summary.Window

	Uncertainty time.Duration // of At and of the pods' instants on the record's clock
	Took        time.Duration // how long the injecting call took
}

// Options are the configurable limits. The zero value means the defaults.
type Options struct {
	MeasuredFrom    time.Duration // end of ramp-up and warm-up: nothing before it is a baseline
	Planned         plan.Planned  // the load's own plan; the zero value is constant
	BaselineWindow  time.Duration // length of the baseline before t0; default 30 s
	BaselineMinimum time.Duration // a shorter baseline is a doubt; default 10 s
	// share of the baseline rate from which the load counts as recovered; default 0.90
	RecoveredShare float64
	SustainFor     time.Duration // for how long recovery must hold; default 10 s
	// the load also counts as recovered with an error rate that is higher than the baseline's by this;
	// default 0.001
	ErrorMargin float64
}

// WithDefaults returns the limits with the defaults in place of zero values.
func (o Options) WithDefaults() Options {
	o.BaselineWindow = cmp.Or(o.BaselineWindow, 30*time.Second)
	o.BaselineMinimum = cmp.Or(o.BaselineMinimum, 10*time.Second)
	o.RecoveredShare = cmp.Or(o.RecoveredShare, 0.90)
	o.SustainFor = cmp.Or(o.SustainFor, 10*time.Second)
	o.ErrorMargin = cmp.Or(o.ErrorMargin, 0.001)
	return o
}

// Impact is the effect of one fault on the clients.
type Impact struct {
	// successes/s: median of the 1 s success rates of the baseline, at the planned level of t0
	BaselineRate  float64
	BaselineNoise float64 // successes/s: median absolute deviation of these rates
	// lowest success rate over any 1 s window sliding by one interval, from t0 to recovery, at the
	// planned level of t0
	MinRate float64
	// that of all requests, or of the reads or the writes, if it is beyond doubt deeper
	Dip  Dip
	Dips Dips // 1 - MinRate/BaselineRate of each
	// t0 itself, with its uncertainty: that of the clocks, and how long the call took
	Injection durations.Milestone
	// t0 to the first error in excess of the baseline's or the start of the first gap; -1 = neither
	// occurred
	TimeToImpact durations.Bounded
	Outage       Outage            // the longest of Outages: the figure of the fault
	Outages      Outages           // longest gaps that begin after t0 - 1 interval
	TotalOutage  durations.Bounded // sum of the load's gaps until recovery
	// when the gap of Outages.Probe ended, from t0 without its uncertainty; -1 = no probe, no gap, or
	// it did not end
	ProbeOutageEnd durations.Bounded
	// when the gap of Outages.OfRequests ended, from t0 without its uncertainty: the first success; -1
	// = no gap, or it did not end
	OutageEnd durations.Bounded
	// first to last error in excess of the baseline's, from t0 to recovery
	ErrorWindow time.Duration
	Recovered   bool
	// t0 to sustained recovery; -1 = not recovered. AtLeast is known also where it is not known
	// whether it did, see RecoveryUnknown
	RecoveryTime        durations.Bounded
	RecoveredThroughput float64 // rate after recovery / BaselineRate; 0 = not recovered
	// successes that were missing against the baseline from t0 to recovery, in all times in which it
	// became more of them
	LostRequests  float64
	Errors        uint64 // fail + unknown + dropped from t0 to recovery
	ErrorsByClass [record.NumClasses]uint64
	Before        summary.Latency // of the baseline window
	During        summary.Latency // from t0 to recovery
	After         summary.Latency // from recovery to recovery + SustainFor
	WhileActive   *WhileActive    // nil unless Fault.Active has a whole interval in the record
	Operations    []Effect        // on each operation
	// of the requests of each kind; nil = the load has none of this kind
	Reads, Writes *Failures
	Doubts        []Doubt // why the figures should not be trusted; empty = conclusive
}

// IsRecoveryUnknown reports whether it is not known if the load recovered: see RecoveryUnknown.
func (m *Impact) IsRecoveryUnknown() bool {
	return !m.Recovered && m.RecoveryTime.AtLeast >= 0
}

// WhileActive is the load while a lasting fault was there, and its changes against the baseline. A
// change of a duration or a rate is a share of the baseline's: -0.25 is a quarter less, NaN if the
// baseline has none. That of a latency is also NaN if another operation had its turn meanwhile.
type WhileActive struct {
	Length           time.Duration // of the whole intervals within Fault.Active
	Throughput       float64       // successes/s
	Change           float64       // of the throughput
	Latency          summary.Latency
	LatencyP50Change float64
	LatencyP99Change float64
	// P50Bounds and P99Bounds are those of the changes of latencies, if load generators did not run
	// for so much more of the time, or less, than before that the quantile can have changed for that:
	// by half of its tail; nil = they did.
	P50Bounds, P99Bounds *ChangeBounds
	ErrorRate            float64 // fail + unknown + dropped, as a share of requests
	ErrorRateChange      float64 // the difference, in [-1, 1]
}

// ChangeBounds are the least and the greatest that a change can have been, as shares of what a
// figure was before. AtMost can be infinite.
type ChangeBounds struct{ AtLeast, AtMost float64 }

// Doubt is a reason why the figures are inconclusive: a CamelCase word for conditions and a
// sentence with figures.
type Doubt struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}
