package impact

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/gaps"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/record"
)

// instant is a time of a run with the earliest and the latest that it can have been.
type instant struct{ at, earliest, latest time.Duration }

// recovery returns the first instant t >= t0 from which nothing is wrong for SustainFor: no trouble
// (see longEnough) of the load, its reads, its writes or a shard begins or goes on in [t,
// t+SustainFor], and every 1 s window in it has a success rate of at least RecoveredShare x
// baseline, less one request for each load pod (evenly paced, its next one comes just after the
// window now and then), and an error rate of at most the baseline's + ErrorMargin. t, or the
// earliest that it can have been, is not after the limit, and the record must reach to
// t+SustainFor.
//
// So t is t0, or the end of the last of what was wrong: the first success after a gap, the last
// error, or the end of a time of low throughput (see endOfLow).
// A window of a full rate hides no gap: behind an outage a server works off what has gathered.
func (a *analysis) recovery() (instant, bool) {
	return a.recoveryWithout(nil)
}

// recoveryWithout is recovery without what stalls of the load generator can have done: they are the
// running sums of the stalled time, or nil. Without a recovery that held, the instant is one of
// which it is not known whether it did, see mayHold; or else all of it is 0.
func (a *analysis) recoveryWithout(stalls []time.Duration) (instant, bool) {
	if a.base.rate <= 0 {
		return instant{}, false
	}
	c := a.curve
	good := a.goodFor(stalls)
	t := instant{a.fault.At, a.fault.At, a.fault.At}
	held := false
	for i := a.first; i < c.N && t.earliest <= a.limit; {
		if !a.holds(i, good) {
			i++
			continue
		}
		if i > a.first && good[i-1] == 0 {
			if low := a.endOfLow(i, stalls); low.at > t.at {
				t = low
			}
		}
		// it must hold from t on
		next := c.Ceil(t.at)
		if next > i && t.at > a.fault.At && !a.holds(next, good) {
			i = next
			continue
		}
		g := a.gapAhead(t.at)
		if held = g == nil; held {
			break
		}
		t = a.endOfGap(g, t)
		i = max(i, c.Floor(t.at)+1) // the interval in which the gap ends has had fewer successes
	}
	if t.earliest > a.limit || !held && !a.mayHold(t, good) {
		return instant{}, false
	}
	return t, held
}

// holds reports whether windows are good for long enough from interval i on. A server that
// terminates gracefully may continue to serve for a while: windows before the effect do not count
// as recovery.
func (a *analysis) holds(i int, good []int) bool {
	need := a.mustHold(i)
	return i+need <= a.curve.N && good[i] > need-a.curve.Wide
}

// mustHold is for how many intervals a recovery must hold from interval i on.
func (a *analysis) mustHold(i int) int {
	return max(a.sustain, a.curve.Ceil(a.fault.SeenAt)+a.sustain-i)
}

// endOfGap is the end of a gap after t.
func (a *analysis) endOfGap(g *gap, t instant) instant {
	latest := time.Duration(g.To)
	// it does not tell whether reads, or writes, of a shard still fail
	if len(a.kinds) > 0 && len(a.shards) > 1 {
		latest = max(latest, t.latest)
	}
	return instant{
		time.Duration(g.To), time.Duration(g.To - max(g.MaybeSooner, g.UnprovenTail)),
		latest,
	}
}

// mayHold reports whether the load was observed for long enough after the earliest instant of a
// recovery, but not after the latest, and was good since: requests are so rare that none tells
// which of them it was.
func (a *analysis) mayHold(t instant, good []int) bool {
	c := a.curve
	earliest, next := c.Ceil(t.earliest), c.Ceil(t.at)
	return t.earliest <= t.at-c.Step && earliest+a.mustHold(earliest) <= c.N && next <= c.N &&
		good[next] >= c.N-c.Wide-next && a.gapAhead(t.at) == nil
}

// endOfLow is when the throughput or the errors were as before, if the windows are good from
// interval i on, and the one that begins with the interval before is not. The gap that ends there,
// or the last error, tells it. Otherwise it is the end of the interval up to which successes were
// missing, where a rate halfway between the lowest good one and that of the time after it would
// have been enough: a change point (Page 1954, CUSUM). It can have been any other interval that
// differs from that by less than the counts of the baseline vary (3 sigma), and is as exact as an
// interval. So is the end of a gap that explains only little of what is missing.
func (a *analysis) endOfLow(i int, stalls []time.Duration) instant {
	c := a.curve
	change, sooner, later := a.changePoint(i-1, stalls)
	around := instant{c.At(change), c.At(sooner - 1), c.At(later + 1)}
	t := a.lastTrouble(change-1, stalls)
	if t.at < 0 {
		t = a.lastTrouble(change, stalls)
	}
	// the throughput may have been as before since, but for what is usual
	for k := change - 2; k >= i-1 && t.at < 0; k-- {
		if t = a.lastTrouble(k, stalls); t.at >= 0 && !a.sufficient(t, i-1, min(change, c.N)) {
			return around
		}
	}
	switch {
	case t.at < 0:
		return around
	case !a.sufficient(t, i-1, min(change, c.N)): // the level was low, too
		return instant{t.at, min(t.earliest, around.earliest), max(t.latest, around.latest)}
	}
	return t
}

// sufficient reports whether the end of the last trouble tells when the throughput was as before,
// given the intervals [first, end) of a low one. That of a few requests that were slower than
// others does not.
func (a *analysis) sufficient(t instant, first, end int) bool {
	return !a.onlySlow(t.at) && a.explained(first, end) && a.resumed(t.at, end)
}

// onlySlow reports whether a trouble ends at an instant that is as short as a slow request, and in
// which none failed.
func (a *analysis) onlySlow(t time.Duration) bool {
	c, longest := a.curve, time.Duration(0)
	for i := range a.troubles {
		g := &a.troubles[i]
		if time.Duration(g.To) != t {
			continue
		}
		if c.Bad[min(c.Ceil(t), c.N)] > c.Bad[c.Floor(time.Duration(g.From))] {
			return false
		}
		longest = max(longest, g.length())
	}
	return longest > 0 && longest <= gaps.ManyTimes*a.steadyBaseline().Service(nil, 0.5)
}

// resumed reports whether the throughput was as before between the end of a trouble and the begin
// of interval end. It need not reach it. Where the trouble was that of a part of the load, the rest
// was served before.
func (a *analysis) resumed(t time.Duration, end int) bool {
	c := a.curve
	first := c.Floor(t)
	if end <= first {
		return true
	}
	expected := a.expectedRate(first, end)
	served := expected * (1 - a.shareOfEnding(t)) * (t - c.At(first)).Seconds()
	due := a.options.RecoveredShare * expected * (c.At(end) - t).Seconds()
	return float64(c.OK[end]-c.OK[first])-served >= due-float64(c.Series.Pods)
}

// shareOfEnding is the largest share of the load of which a trouble ends at an instant; all of it,
// if none does.
func (a *analysis) shareOfEnding(t time.Duration) (share float64) {
	for i := range a.troubles {
		if g := &a.troubles[i]; time.Duration(g.To) == t {
			share = max(share, g.share)
		}
	}
	if share == 0 {
		return 1
	}
	return share
}

// explained reports whether the gaps and errors in the intervals [first, end) are most of what is
// missing there.
func (a *analysis) explained(first, end int) bool {
	c := a.curve
	expected := a.expectedRate(first, end)
	missing := expected*c.At(end-first).Seconds() - float64(c.OK[end]-c.OK[first])
	var unserved [partitions]float64 // each of them is all of the load
	for i := range a.troubles {
		g := &a.troubles[i]
		within := min(time.Duration(g.To), c.At(end)) - max(time.Duration(g.From), c.At(first))
		unserved[g.of] += g.share * expected * max(0, within).Seconds()
	}
	return float64(c.Bad[end]-c.Bad[first])+slices.Max(unserved[:]) >= missing/2
}

// changePoint returns the interval with which the throughput is as before, after a low window that
// begins with interval i, and the first and the last that it can have been.
func (a *analysis) changePoint(i int, stalls []time.Duration) (change, sooner, later int) {
	c := a.curve
	end := min(i+c.Wide, c.N)
	missing := make([]float64, end-i+1) // up to each interval
	after := min(i+1+max(a.sustain, c.Wide), c.N)
	level := min(1, c.Rate(i+1, after)/a.expectedRate(i+1, after))
	enough, most := (level+a.options.RecoveredShare)/2, 0
	for k := i; k < end; k++ {
		expected := enough * a.expectedRate(k, k+1) * c.Step.Seconds()
		if stalls != nil {
			expected *= max(0, 1-float64(stalls[k+1]-stalls[k])/float64(c.Step))
		}
		missing[k+1-i] = missing[k-i] + expected - float64(c.OK[k+1]-c.OK[k])
		if missing[k+1-i] > missing[most] || k == i {
			most = k + 1 - i
		}
	}
	sooner, later = most, most
	noise := 3 * a.intervalDeviation()
	for k := 1; k < len(missing); k++ {
		if missing[k] >= missing[most]-noise {
			sooner, later = min(sooner, k), max(later, k)
		}
	}
	return i + most, i + sooner, i + later
}

// intervalDeviation is the standard deviation of the successes in an interval of the baseline.
func (a *analysis) intervalDeviation() float64 {
	var counts []float64
	for k := a.base.first; k < a.first; k++ {
		counts = append(counts, float64(a.curve.OK[k+1]-a.curve.OK[k])/
			max(throughput.LowestLevel, a.expected.Mean(k, k+1)))
	}
	mean := 0.0
	for _, n := range counts {
		mean += n / float64(len(counts))
	}
	if mean == 0 {
		return 0
	}
	return throughput.Variation(counts) * mean
}

// goodFor returns for every interval the number of consecutive good windows, beginning with its
// own.
func (a *analysis) goodFor(stalls []time.Duration) []int {
	c := a.curve
	run := make([]int, c.N+2)
	for i := c.N - c.Wide; i >= a.first; i-- {
		stalled := time.Duration(0)
		if stalls != nil {
			// what was late in one second may fail in the next
			stalled = stalls[i+c.Wide] - stalls[max(0, i-c.Wide)]
		}
		needed := a.options.RecoveredShare * a.expectedRate(i, i+c.Wide) *
			max(0, 1-float64(stalled)/float64(c.Width()))
		needed -= float64(c.Series.Pods) / c.Width().Seconds()
		if c.WindowRate(i) >= needed && a.judgeable(i, i+c.Wide) &&
			(stalled > 0 || c.ErrorRate(i, i+c.Wide) <= a.base.errors+a.options.ErrorMargin) {
			run[i] = run[i+1] + 1
		}
	}
	return run
}

// stalledTime is the running sum, over the intervals, of the time in which the load generators did
// not run, on average of the pods; nil = all did.
func (a *analysis) stalledTime() []time.Duration {
	if !a.stallsSummed {
		a.stalls, a.stallsSummed = stalledTimeOf(a.curve), true
	}
	return a.stalls
}

func stalledTimeOf(c *throughput.Curve) []time.Duration {
	var sums []time.Duration
	for pod := range c.Series.Pods {
		for _, s := range summary.United(c.Series.Stalls(pod)) {
			if sums == nil {
				sums = make([]time.Duration, c.N+1)
			}
			for i := c.Floor(time.Duration(s.From)); i < c.Ceil(time.Duration(s.To)); i++ {
				within := min(time.Duration(s.To), c.At(i+1)) - max(time.Duration(s.From), c.At(i))
				sums[i+1] += within
			}
		}
	}
	for i := 1; i < len(sums); i++ {
		sums[i] += sums[i-1]
	}
	for i := range sums {
		sums[i] /= time.Duration(c.Series.Pods)
	}
	return sums
}

// gapAhead returns the first trouble that keeps the load from being recovered at t: it is not over
// then, and begins before recovery has held long enough.
func (a *analysis) gapAhead(t time.Duration) (first *gap) {
	for i := range a.troubles {
		g := &a.troubles[i]
		if time.Duration(g.To) > t &&
			time.Duration(g.From) < max(t, a.fault.SeenAt)+a.options.SustainFor &&
			(first == nil || g.To < first.To) {
			first = g
		}
	}
	return first
}

// lastTrouble is when the last trouble ended or the last error occurred in interval i, after t0; -1
// = neither. An error beside a stall of a load generator may have occurred long before it was
// noticed.
func (a *analysis) lastTrouble(i int, stalls []time.Duration) instant {
	c := a.curve
	last := instant{-1, -1, -1}
	within := func(t, earliest, latest time.Duration) {
		if c.Floor(t) != i || t < a.fault.At {
			return
		}
		latest = max(latest, last.latest)
		if last.latest = latest; t > last.at {
			last = instant{t, earliest, latest}
		}
	}
	for _, g := range a.troubles {
		if to := time.Duration(g.To); !g.Open {
			within(to, to-time.Duration(max(g.MaybeSooner, g.UnprovenTail)), to)
		}
	}
	if i >= 0 && i < c.N && (stalls == nil || stalls[i+1] == stalls[i]) {
		failed := time.Duration(c.Series.At(i).LastError)
		within(failed, failed, failed+a.rarely()) // the next request may be as late
	}
	return last
}

// errorsEnd is the latest instant at which the errors around an instant can have ended: where
// reads, or writes, of a shard fail, no gap tells.
func (a *analysis) errorsEnd(t instant) time.Duration {
	c, latest := a.curve, t.latest
	if len(a.kinds) == 0 || len(a.shards) < 2 {
		return latest
	}
	for i := c.Floor(max(a.fault.At, t.latest-a.rarely())); i < c.N && c.At(i) <= latest; i++ {
		iv := c.Series.At(i)
		first, last := time.Duration(iv.FirstError), time.Duration(iv.LastError)
		if first >= a.fault.At && first <= latest {
			latest = max(latest, last+a.rarelyOf(iv))
		}
	}
	return latest
}

// rarelyOf is within which time a request of the kinds that failed in an interval goes to any one
// shard for certain.
func (a *analysis) rarelyOf(iv *record.Interval) (d time.Duration) {
	for i := range a.kinds {
		for _, op := range gaps.Operations(a.curve.Series, a.kinds[i].name) {
			if o := &iv.Ops[op]; o.Fail+o.Unknown > 0 {
				d = max(d, a.certainlyWithin(a.kinds[i].mean))
			}
		}
	}
	return d
}

// dip returns the lowest rate of the windows that begin in [first, end), at least of the first, and
// its depth below the baseline. Each rate is divided by the planned level of its window. Until a
// window is complete the rate is the baseline's.
func (a *analysis) dip(c *throughput.Curve, baseline float64, end int) (lowest, depth float64) {
	lowest = baseline
	for i := a.first; i < max(end, a.first+1) && i+c.Wide <= c.N; i++ {
		if !a.judgeable(i, i+c.Wide) {
			continue
		}
		r := c.WindowRate(i) / a.expected.Mean(i, i+c.Wide)
		if i == a.first || r < lowest {
			lowest = r
		}
	}
	if baseline > 0 {
		depth = max(0, 1-lowest/baseline)
	}
	return lowest, depth
}

// rarely is within which time a request of the rarest kind goes to any one shard for certain: with
// random arrivals, one pause in e^10 is longer.
func (a *analysis) rarely() time.Duration {
	mean := a.load.mean
	for i := range a.kinds {
		mean = max(mean, a.kinds[i].mean)
	}
	return a.certainlyWithin(mean)
}

// certainlyWithin is that time for requests with a mean time between them.
func (a *analysis) certainlyWithin(mean time.Duration) time.Duration {
	return 10 * mean * time.Duration(max(1, len(a.shards)))
}

// soonerRecovery is the recovery had the load generators run all the time; nil if they did, or if
// there is none even so. Of a load that did not recover for certain, it is the one that it may have
// had.
func (a *analysis) soonerRecovery(recovered instant, ok bool) *instant {
	if stalls := a.stalledTime(); stalls != nil {
		if sooner, ok := a.recoveryWithout(stalls); ok {
			return &sooner
		}
	}
	if !ok && recovered.at > 0 {
		return &recovered
	}
	return nil
}

// recoveryTime is the time from t0 to the recovery. It can have been as early as it is without the
// stalls of the load generator, and as late as the end of a gap that is no longer than those
// without a fault.
func (a *analysis) recoveryTime(recovered instant, sooner *instant) durations.Bounded {
	for i := range a.usual {
		g := &a.usual[i]
		if time.Duration(g.From) < recovered.at+a.options.SustainFor {
			recovered.latest = max(recovered.latest, time.Duration(g.To))
		}
	}
	slices.SortFunc(a.short, func(x, y gap) int { return cmp.Compare(x.From, y.From) })
	for i := range a.short { // it may not be over yet
		g := &a.short[i]
		if time.Duration(g.From) <= recovered.latest {
			recovered.latest = max(recovered.latest, time.Duration(g.To))
		}
	}
	recovered.latest = max(recovered.latest, a.errorsEnd(recovered))
	if sooner != nil {
		recovered.earliest = min(recovered.earliest, sooner.earliest)
	}
	b := a.sinceInjection(recovered.at, recovered.earliest, recovered.latest)
	if recovered.at == a.fault.At {
		b = durations.Bounded{AtMost: recovered.latest - a.fault.At}.OrUnseen(a.load.unseen)
	}
	return b
}

// unknownRecovery is the doubt about a load of which it is not known whether it recovered: it would
// have had the load generators run all the time; or, as its requests are rare, had one asked
// sooner.
func (a *analysis) unknownRecovery(sooner *instant, rare bool) Doubt {
	stalls, t0 := a.stalledTime(), a.fault.At
	if rare {
		return Doubt{
			RecoveryUnknown,
			fmt.Sprintf(
				"so few requests were sent that the load can have recovered between %s and %s after the fault: it was not observed for the %s "+
					"for which a recovery must hold after the latest of these", brief(sooner.earliest-t0),
				brief(sooner.at-t0), brief(a.options.SustainFor)),
		}
	}
	stalled := stalls[a.curve.Ceil(a.limit)] - stalls[a.first]
	return Doubt{
		RecoveryUnknown,
		fmt.Sprintf(
			"the load generator did not run for %s of the %s after the fault: it is not known whether the "+
				"throughput was too low because of that, or because of the fault",
			brief(stalled), brief(a.limit-a.fault.At)),
	}
}

// sinceInjection returns the time from t0 to an instant that can have been between two others.
func (a *analysis) sinceInjection(at, earliest, latest time.Duration) durations.Bounded {
	t0, u := a.fault.At, a.fault.Uncertainty
	return durations.Within(max(0, at-t0), earliest-t0-a.fault.Took-u, latest-t0+u)
}
