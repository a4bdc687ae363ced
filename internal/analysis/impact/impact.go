// Package impact turns recorded intervals into figures: baseline, steadiness, dip, outage,
// recovery. It is pure: no clock, no I/O.
// The definitions are in docs/measuring.md, the formulas in the functions' comments.
package impact

import (
	"cmp"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/gaps"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
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

// What an outage is of.
const (
	Load   = "Load" // all requests
	Reads  = gaps.Reads
	Writes = gaps.Writes
	Shard  = "Shard" // those to one shard
	Probe  = "Probe" // those of the probe, which opens new connections
)

// All is what a dip is of, beside Reads and Writes.
const All = "All"

// Outage is the outage of a fault. Its bounds are the greatest of those of the parts that it is the
// longest of.
type Outage struct {
	durations.Bounded
	Of    string // Load, Reads, Writes, Shard or Probe
	Shard int    // which one, if it is of a Shard
}

// Outages are the outages of the load and of its parts: each the longest time without a success in
// which a request waited in vain. A value of -1 is of a part that there is not: the load only reads
// or only writes, has one shard, or is not probed.
type Outages struct {
	Load, Reads, Writes durations.Bounded
	Shard               ShardOutage       // the longest of any shard
	Probe               durations.Bounded // at any shard
}

// ShardOutage is the outage of a shard.
type ShardOutage struct {
	durations.Bounded
	Shard int
}

// Longest is the outage of the fault: that of the load, or the longest of those parts of which it
// is proven that they had none for longer. A part with few requests has a longer gap around the
// same outage, which proves nothing.
func (o *Outages) Longest() Outage {
	longest := o.longest(Outage{
		Bounded: o.Shard.Bounded,
		Of:      Shard,
		Shard:   o.Shard.Shard,
	}, Outage{
		Bounded: o.Probe,
		Of:      Probe,
	})
	// that an outage of these was not seen does not exclude it
	for _, part := range []durations.Bounded{o.Shard.Bounded, o.Probe} {
		longest.AtMost = max(longest.AtMost, part.AtMost)
	}
	return longest
}

// OfRequests is the outage of the load, its reads or its writes, through their own connections,
// wherever they go.
func (o *Outages) OfRequests() Outage {
	return o.longest()
}

// kind is the outage of reads or of writes.
func (o *Outages) kind(kind string) *durations.Bounded {
	if kind == Reads {
		return &o.Reads
	}
	return &o.Writes
}

// longest is that of the load, its reads, its writes and others.
func (o *Outages) longest(others ...Outage) Outage {
	longest := Outage{Bounded: o.Load, Of: Load}
	for _, part := range append([]Outage{
		{Bounded: o.Writes, Of: Writes},
		{Bounded: o.Reads, Of: Reads},
	}, others...) {
		if longer(part.Bounded, o.Load, longest.Bounded) {
			longest = Outage{
				Bounded: longest.Max(part.Bounded),
				Of:      part.Of,
				Shard:   part.Shard,
			}
		}
		longest.AtLeast = max(longest.AtLeast, part.AtLeast)
	}
	return longest
}

// longer reports whether the outage of a part is provably longer than that of the load, and longer
// than the longest so far.
func longer(part, load, longest durations.Bounded) bool {
	return part.AtLeast > load.Value && part.Value > longest.Value
}

// Dip is the dip of a fault: the lowest throughput, as a share of the baseline that is missing.
type Dip struct {
	Value float64 // in [0, 1]
	Of    string  // All, Reads or Writes
}

// Dips are the dips of all requests, of those that read and of the others. NaN is of a part that
// there is not, or of which too little is known; see Effect.
type Dips struct{ All, Reads, Writes float64 }

// Live is what a record shows of a fault that is not over yet.
type Live struct {
	Outage time.Duration // as in Impact, so far; also after a recovery
	// fail + unknown + dropped, as a share of requests: the highest of any whole second after t0
	ErrorRate float64
	Ledger    summary.LiveLedger // from the interval that contains t0 on
	End       time.Duration      // of the complete record
}

// LiveOf returns what the complete part of a record shows of a fault.
func LiveOf(s *merged.Series, f Fault, o Options) Live {
	f.Deadline = 0
	a := newAnalysis(s, f, o.WithDefaults())
	a.until, a.soonest = a.limit, a.limit
	var m Impact
	a.outages(&m)
	live := Live{Outage: m.Outage.Value, End: s.End()}
	c := a.curve
	live.Ledger = summary.LedgerOf(c.Series, a.first, c.N)
	for i := c.Ceil(f.At); i+c.Wide <= c.N; i++ {
		live.ErrorRate = max(live.ErrorRate, c.ErrorRate(i, i+c.Wide))
	}
	return live
}

// Lately returns the state of the load at the end of its complete record: for how long it has had
// no success, and the error rate and the lost writes of the last second.
func Lately(s *merged.Series) Live {
	end := s.End()
	s = s.Fine(end-throughput.Second, end)
	live := Live{End: end}
	all := s.Gaps()
	if len(all) > 0 && all[len(all)-1].Open {
		live.Outage = gap{Gap: all[len(all)-1]}.length()
	}
	c := throughput.CurveOf(s)
	live.Ledger = summary.LedgerOf(s, max(0, c.N-c.Wide), c.N)
	if c.N >= c.Wide {
		live.ErrorRate = c.ErrorRate(c.N-c.Wide, c.N)
	}
	return live
}
