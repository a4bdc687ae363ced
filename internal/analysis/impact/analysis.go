package impact

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/analysis/gaps"
	"github.com/redquake/redquake/internal/analysis/summary"
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
	first   int          // its first interval
	seconds []float64    // its 1 s rates, at the level of t0
	rate    float64      // median of seconds
	errors  float64      // share of requests that did not succeed in it
	steady  *gaps.Sample // it without outages; nil until it is asked for
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
	a := &analysis{
		curve:   throughput.CurveOf(s),
		fault:   f,
		options: o,
	}
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

// GeneratorStarved is the reason of a Doubt: a load generator waited for a CPU for so long that
// figures which hang on it are uncertain.
const GeneratorStarved = "GeneratorStarved"

// StarvedShare is the share of its time that a load generator must have waited for a CPU for
// figures that hang on it to be in doubt: a tenth of the throughput of a closed loop may be
// missing.
const StarvedShare = 0.1

// starved returns a doubt if a load generator of a closed loop waited for a CPU for a tenth of the
// time before the fault, or from then until the recovery and for as long as that must hold: the
// throughput is as much its own as that of Redis. In an open loop requests are late by it, and none
// is missing.
func (a *analysis) starved() *Doubt {
	c := a.curve
	from := c.At(a.base.first)
	to := min(max(a.until, a.watchedAnyway())+a.options.SustainFor, c.At(c.N))
	if a.inBaseline().IsOpenLoop() {
		return nil
	}
	before, after := a.waiting(from, c.At(a.first)), a.waiting(c.At(a.first), to)
	if max(before.Share, after.Share) < StarvedShare {
		return nil
	}
	pod, share, when := before.Pod, before.Share, "before"
	if after.Share > before.Share {
		pod, share, when = after.Pod, after.Share, "after"
	}
	return &Doubt{
		GeneratorStarved,
		fmt.Sprintf(
			"load pod %d waited for a CPU for up to %.0f %% of the time %s the injection (%.0f %% before, %.0f %% after it): "+
				"the throughput, and what depends on it, may be that of the load generator. Give it a CPU of "+
				"its own", pod, 100*share, when, 100*before.Share, 100*after.Share),
	}
}

// waiting is how the load generators waited for a CPU between two instants.
func (a *analysis) waiting(from, to time.Duration) summary.Waiting {
	return summary.WaitingWithin(a.curve.Series, from, to)
}

// errorInstants returns the first error of a curve's operations at or after t0 and the last one
// until recovery that are in excess of the baseline's;
// -1 = none. Intervals contain the instants of the errors of all operations: those of a part are
// known to the interval.
//
// Without errors in the baseline, every error is. Otherwise an interval is in excess if the second
// that ends with it, or for the last error the second that begins with it, has more errors than any
// second of the baseline had, and more than the baseline's error rate + ErrorMargin implies.
func (a *analysis) errorInstants(c *throughput.Curve) (first, last time.Duration) {
	first, last = -1, -1
	baseError := c.ErrorRate(a.base.first, a.first)
	window := func(from, to int) (errors uint64, allowed float64) {
		from, to = max(from, 0), min(to, c.N)
		errors = c.Failed[to] - c.Failed[from]
		requests := c.OK[to] - c.OK[from] + c.Bad[to] - c.Bad[from]
		return errors, (baseError + a.options.ErrorMargin) * float64(requests)
	}
	usual := uint64(0)
	for i := a.base.first; i+c.Wide <= a.first; i++ {
		usual = max(usual, c.Failed[i+c.Wide]-c.Failed[i])
	}
	exceeds := func(from, to int) bool {
		errors, allowed := window(from, to)
		return errors > usual && (usual == 0 || float64(errors) > allowed)
	}
	for i := a.first; i < c.N && c.At(i) <= a.until; i++ {
		if c.Failed[i+1] == c.Failed[i] {
			continue
		}
		iv := c.Series.At(i)
		for _, at := range [...]time.Duration{time.Duration(iv.FirstError), time.Duration(iv.LastError)} {
			if at < a.fault.At || at > a.until {
				continue
			}
			if first < 0 && exceeds(i+1-c.Wide, i+1) {
				first = at
			}
			if first >= 0 && exceeds(i, i+c.Wide) {
				last = max(last, at)
			}
		}
	}
	return first, max(first, last)
}
