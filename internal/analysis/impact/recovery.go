package impact

import (
	"iter"
	"time"
)

// recovery returns the first instant t >= t0 from which every 1 s window that lies in [t, t+SustainFor] has a success rate of at least
// RecoveredShare x baseline and an error rate of at most the baseline's + ErrorMargin. t is neither in a gap longer than the baseline's (of the load, or
// one of reads, writes or a shard in which a request waited in vain) nor before such a gap that began within 1 s after t0. t is not after the limit, and
// the record must reach to t+SustainFor.
//
// Windows begin with an interval, so t is t0 or the start of an interval. If a gap ends or the last error occurs within an interval, and the
// condition holds from the next interval on, t is that instant: the recovery time of an outage of D is D, not D rounded up.
func (a *analysis) recovery() (time.Duration, bool) { return a.recoveryWithout(nil) }

// recoveryWithout is recovery without what stalls of the load generator can have done: they are the running sums of the stalled time, or nil.
func (a *analysis) recoveryWithout(stalls []time.Duration) (time.Duration, bool) {
	if a.baseline <= 0 {
		return 0, false
	}
	c := a.curve
	goodFor := a.goodFor(stalls)
	gapAhead := func(t time.Duration) bool { return a.gapAhead(t, stalls != nil) }
	// A server that terminates gracefully may continue to serve for a while: windows before the effect do not count as recovery.
	proven := c.ceil(a.fault.SeenAt) + a.sustain
	holds := func(i int) bool {
		need := max(a.sustain, proven-i)
		return i+need <= c.n && goodFor[i] > need-c.wide
	}
	for i := a.first; i < c.n && c.at(i) <= a.limit; i++ {
		if holds(i) {
			if t := max(c.at(i), a.fault.At); t <= a.limit && !gapAhead(t) {
				return t, true
			}
		}
		if t := a.lastTrouble(i); t >= 0 && holds(i+1) && t <= a.limit && !gapAhead(t) {
			return t, true
		}
	}
	return 0, false
}

// goodFor returns for every interval the number of consecutive good windows, beginning with its own.
func (a *analysis) goodFor(stalls []time.Duration) []int {
	c := a.curve
	run := make([]int, c.n+2)
	for i := c.n - c.wide; i >= a.first; i-- {
		stalled := time.Duration(0)
		if stalls != nil {
			stalled = stalls[i+c.wide] - stalls[max(0, i-c.wide)] // what was late in one second may fail in the next
		}
		needed := a.options.RecoveredShare * a.expectedRate(i, i+c.wide) * max(0, 1-float64(stalled)/float64(c.width()))
		if c.windowRate(i) >= needed && a.judgeable(i, i+c.wide) && (stalled > 0 || c.errorRate(i, i+c.wide) <= a.baseError+a.options.ErrorMargin) {
			run[i] = run[i+1] + 1
		}
	}
	return run
}

// stalledTime is the running sum, over the intervals, of the time in which the load generators did not run, on average of the pods; nil = all did.
func (a *analysis) stalledTime() []time.Duration {
	c := a.curve
	var sums []time.Duration
	for pod := range c.series.Pods {
		for _, s := range united(c.series.Stalls(pod)) {
			if sums == nil {
				sums = make([]time.Duration, c.n+1)
			}
			for i := c.floor(time.Duration(s.From)); i < c.ceil(time.Duration(s.To)); i++ {
				within := min(time.Duration(s.To), c.at(i+1)) - max(time.Duration(s.From), c.at(i))
				sums[i+1] += within
			}
		}
	}
	for i := 1; i < len(sums); i++ {
		sums[i] += sums[i-1]
	}
	for i := range sums {
		sums[i] /= time.Duration(c.series.Pods)
	}
	return sums
}

// gapAhead reports whether t is in a gap or before a gap that begins within 1 s after t0: recovery must not precede an outage that is too
// short to lower the rate of a second. Later gaps count only by the rates: stalls of a few milliseconds occur on any busy machine. With proven
// only gaps count in which a request waited in vain.
func (a *analysis) gapAhead(t time.Duration, proven bool) bool {
	for _, g := range a.troubles {
		if proven && a.load.atLeast(g) == 0 {
			continue
		}
		if from := time.Duration(g.From); time.Duration(g.To) > t && (from < t || from < a.fault.At+second) {
			return true
		}
	}
	return false
}

// gapsOfAll yields the gaps of the load, and those of its parts that are troubles.
func (a *analysis) gapsOfAll() iter.Seq[gap] {
	return func(yield func(gap) bool) {
		for _, g := range a.load.gaps {
			if !yield(gap{g}) {
				return
			}
		}
		for _, g := range a.troubles {
			if !yield(g) {
				return
			}
		}
	}
}

// lastTrouble is when the last gap ended or the last error occurred in interval i, after t0; -1 = neither.
func (a *analysis) lastTrouble(i int) time.Duration {
	begin, end := a.curve.at(i), a.curve.at(i+1)
	last := time.Duration(-1)
	within := func(t time.Duration) {
		if t >= begin && t < end && t >= a.fault.At {
			last = max(last, t)
		}
	}
	for g := range a.gapsOfAll() {
		if !g.Open {
			within(time.Duration(g.To))
		}
	}
	within(time.Duration(a.curve.series.At(i).LastError))
	return last
}

// dip returns the lowest rate of the windows that begin in [first, end), at least of the first, and its depth below the baseline. Each rate is
// divided by the planned level of its window. Until a window is complete the rate is the baseline's.
func (a *analysis) dip(c *curve, baseline float64, end int) (lowest, depth float64) {
	lowest = baseline
	for i := a.first; i < max(end, a.first+1) && i+c.wide <= c.n; i++ {
		if !a.judgeable(i, i+c.wide) {
			continue
		}
		if r := c.windowRate(i) / a.expected.mean(i, i+c.wide); i == a.first || r < lowest {
			lowest = r
		}
	}
	if baseline > 0 {
		depth = max(0, 1-lowest/baseline)
	}
	return lowest, depth
}

// recoveryTime is the time from t0 to the recovery. One that is the end of a gap is as uncertain as that. One that is the last error can have been
// any time until the next request. It can have been as early as it is without the stalls of the load generator.
func (a *analysis) recoveryTime(recovered time.Duration) Bounded {
	if recovered == a.fault.At {
		return Exactly(0).orUnseen(a.load.unseen)
	}
	earliest, latest := recovered, recovered+a.curve.step
	if recovered%a.curve.step == 0 { // a window that begins with an interval
		earliest = recovered - a.curve.step
	}
	for g := range a.gapsOfAll() {
		if time.Duration(g.To) == recovered {
			earliest, latest = recovered-time.Duration(max(g.MaybeSooner, g.UnprovenTail)), recovered
			if a.load.atLeast(g) == 0 {
				earliest = time.Duration(g.From - g.MaybeBefore)
			}
		}
	}
	if stalls := a.stalledTime(); stalls != nil {
		if sooner, ok := a.recoveryWithout(stalls); ok {
			earliest = min(earliest, sooner)
		}
	}
	return a.sinceInjection(recovered, earliest, latest)
}

// sinceInjection returns the time from t0 to an instant that can have been between two others.
func (a *analysis) sinceInjection(at, earliest, latest time.Duration) Bounded {
	t0, u := a.fault.At, a.fault.Uncertainty
	return within(max(0, at-t0), earliest-t0-a.fault.Took-u, latest-t0+u)
}

// firstGap returns the first gap of this fault, of the load or of a part of it, that is longer than those of the baseline; nil if there is none.
func (a *analysis) firstGap() (first *gap) {
	for _, list := range [][]gapLog{{a.load}, a.kinds, a.shards} {
		for i := range list {
			for _, g := range a.gapsOf(&list[i]) {
				if g.length() > list[i].noise && (first == nil || g.From < first.From) {
					first = &g
				}
			}
		}
	}
	return first
}
