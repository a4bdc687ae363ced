package impact

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// analysis is the input and the intermediate values from which all figures of one fault are
// computed.
type analysis struct {
	curve   *throughput.Curve
	fault   Fault
	options Options

	first    int // the interval that contains t0
	base     baseline
	planned  throughput.Level // of the load's plan, 1 at t0
	expected throughput.Level // planned, if the throughput follows it; otherwise constant
	sustain  int              // SustainFor in intervals
	limit    time.Duration    // the latest recovery that counts: the deadline or the end of the record
	until    time.Duration    // the recovery; limit if there is none
	soonest  time.Duration    // the same, had the load generators run all the time

	stalls       []time.Duration // see stalledTime
	stallsSummed bool

	load          gapLog
	kinds, shards []gapLog
	troubles      []gap // of all of these, after t0 and longer than without a fault
	usual         []gap // those of them that would be troubles, were they longer than without a fault
	short         []gap // and those that would be, were they not as late
}

// baseline is the time before t0 that the rest is compared with. It ends with the interval before
// the one that contains t0.
type baseline struct {
	first   int       // its first interval
	seconds []float64 // its 1 s rates, at the level of t0
	rate    float64   // median of seconds
	errors  float64   // share of requests that did not succeed in it
	steady  *sample   // it without outages; nil until it is asked for
}

// gap is a gap of the record from t0's point of view.
type gap struct {
	record.Gap
	// requests waited in vain in it too long before t0 for it to be the fault's alone: it is counted
	// from t0 on
	earlier bool
	of      partition
	share   float64 // of the load's requests that go to the part
}

// partition is one of the ways in which the load is looked at: as a whole, as reads and writes, by
// shard.
type partition int

const (
	whole partition = iota
	byKind
	byShard
	partitions
)

func (g gap) length() time.Duration {
	return time.Duration(g.To - g.From)
}

func newAnalysis(s *merged.Series, f Fault, o Options) *analysis {
	s = around(s, f, o)
	a := &analysis{curve: throughput.CurveOf(s), fault: f, options: o}
	c := a.curve
	a.first = c.Floor(f.At)
	a.base.first = min(c.Ceil(max(f.At-o.BaselineWindow, o.MeasuredFrom)), a.first)
	a.follow()
	a.base.seconds = a.expected.SecondsBefore(c, a.base.first, a.first)
	a.base.rate = throughput.Median(a.base.seconds)
	a.base.errors = c.ErrorRate(a.base.first, a.first)
	a.sustain = max(int((o.SustainFor+c.Step-1)/c.Step), c.Wide)
	a.limit = c.At(c.N)
	if f.Deadline > 0 {
		a.limit = min(a.limit, f.At+f.Deadline)
	}
	a.gapLogs()
	return a
}

// around returns the record at full resolution, if it was kept so from the baseline on.
func around(s *merged.Series, f Fault, o Options) *merged.Series {
	return s.Fine(max(f.At-o.BaselineWindow, o.MeasuredFrom), f.At)
}
