package impact

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/analysis/gaps"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/record"
)

// gapLog is the load, a part of it (reads, writes, an operation, a shard), or the probe: its gaps,
// and what is usual for it without a fault.
type gapLog struct {
	name string // of a kind of requests
	gaps []record.Gap
	lead time.Duration // the longest time from the last success to t0 in a gap of this fault
	// gaps up to this length, in which a request waited in vain, also occur without a fault
	noise time.Duration
	// usual is how long a request may wait though the server serves: the 99th percentile of the
	// service time in the baseline, and one mean time between successes.
	usual time.Duration
	// service is the first of the two.
	service time.Duration
	mean    time.Duration // between successes; 0 = unknown
	// unseen is the longest time without a success of which there need be no gap: that of
	// merged.Series.Gaps. 0 = unknown.
	unseen time.Duration
}

// gapLogs sets the logs of the load and of those of its parts in which an outage can hide, and
// their troubles.
func (a *analysis) gapLogs() {
	s := a.curve.Series
	a.load = a.logOf(s.Gaps(), a.curve.OK[a.first]-a.curve.OK[a.base.first], a.service(nil))
	if a.base.rate > 0 {
		a.load.lead = max(a.curve.Step, time.Duration(2*float64(throughput.Second)/a.base.rate))
		a.load.unseen = unseen(s.PodsLikeSlowest(), time.Duration(float64(throughput.Second)/a.base.rate))
	}
	a.kinds = a.kindLogs()
	for shard := range s.Shards() {
		one := a.logOf(s.ShardGaps(shard), a.inBaseline().AtShard(shard), a.load.usual)
		a.shards = append(a.shards, one)
	}
	for of, list := range [partitions][]gapLog{
		whole:   {a.load},
		byKind:  a.kinds,
		byShard: a.shards,
	} {
		for i := range list {
			a.addTroubles(&list[i], partition(of))
		}
	}
}

func (a *analysis) addTroubles(p *gapLog, of partition) {
	share := 1.0
	if of != whole && p.mean > 0 {
		share = float64(a.load.mean) / float64(p.mean)
	}
	for _, g := range p.gaps {
		one := gap{
			Gap:   g,
			of:    of,
			share: share,
		}
		switch {
		case time.Duration(g.To) <= a.fault.At || g.AtLeast(int64(max(p.service, gaps.LeastWait))) == 0:
		case !a.longEnough(p, one): // or no longer than a request waits now and then
			a.short = append(a.short, one)
		case one.length() > p.noise:
			a.troubles = append(a.troubles, one)
		default:
			a.usual = append(a.usual, one)
		}
	}
}

// lateTrouble is for how long requests must have waited in vain in a gap that begins more than a
// second after t0, and more than a second from when the effect was complete, for the load not to be
// recovered before it: servers and load generators are interrupted for some milliseconds now and
// then, whatever happens.
const lateTrouble = 50 * time.Millisecond

// longEnough reports whether a gap is trouble, unless one as long also occurs without a fault: a
// request waited in vain in it, for lateTrouble in a late one.
func (a *analysis) longEnough(p *gapLog, g gap) bool {
	least := time.Duration(0)
	from := time.Duration(g.From)
	if from >= a.fault.At+throughput.Second && (from-a.fault.SeenAt).Abs() >= throughput.Second {
		least = lateTrouble - 1
	}
	return p.atLeast(g) > least
}

// kindLogs returns those of reads and of writes; nil unless the load has both.
func (a *analysis) kindLogs() []gapLog {
	s := a.curve.Series
	var list []gapLog
	for _, kind := range []string{Writes, Reads} {
		ops := gaps.Operations(s, kind)
		if len(ops) == 0 || len(ops) == len(s.Ops) {
			return nil
		}
		one := a.logOf(gaps.OfKind(s, kind), a.sumOps(ops), a.service(ops))
		one.name = kind
		list = append(list, one)
	}
	return list
}

// probes returns the log of the probe of each shard, or the only one.
func (a *analysis) probes() []gapLog {
	s, length := a.curve.Series, a.curve.At(a.first-a.base.first)
	ok := a.inBaseline().OfProbe()
	service := a.steadyBaseline().ServiceOfProbe(0.99)
	var logs []gapLog
	for _, list := range gaps.OfProbes(s) {
		p := a.logOf(list, ok, service)
		if ok > 0 {
			p.unseen = unseen(float64(s.ProbePods()), length/time.Duration(ok))
		}
		logs = append(logs, p)
	}
	return logs
}

// leastGap is the length of the shortest gaps that are recorded.
const leastGap = 5 * time.Millisecond

// unseen is the longest time without a success that pods with a mean time between the successes of
// all may not record. pods is how many like the slowest would have as many.
func unseen(pods float64, mean time.Duration) time.Duration {
	return max(leastGap, time.Duration(2*pods*float64(mean)))
}

// unseenOfPart is the same for requests that are drawn at random: each pod knows their mean time
// from the last 10 s, within 3 standard deviations.
func unseenOfPart(pods float64, mean time.Duration) time.Duration {
	known := max(1, (10*time.Second).Seconds()/(pods*mean.Seconds()))
	return time.Duration((1 + 3/math.Sqrt(known)) * float64(unseen(pods, mean)))
}

// logOf returns a part with the successes ok in the baseline.
func (a *analysis) logOf(list []record.Gap, ok uint64, service time.Duration) gapLog {
	length := a.curve.At(a.first - a.base.first)
	p := gapLog{
		gaps:    list,
		lead:    a.curve.Step,
		usual:   gaps.UsualWait(service, length, ok),
		service: service,
	}
	if ok > 0 {
		mean := length / time.Duration(ok)
		p.mean, p.lead, p.noise, p.unseen = mean, max(p.lead, 2*mean), a.gapNoise(&p,
			mean), unseenOfPart(a.curve.Series.PodsLikeSlowest(), mean)
	}
	return p
}

// gapNoise is the longest gap of the baseline in which a request waited in vain, but at most one
// interval or ten mean times between successes, whichever is longer: the bound prevents an earlier
// fault within the baseline from hiding this one. Times in which the load generator did not run are
// none.
func (a *analysis) gapNoise(p *gapLog, mean time.Duration) time.Duration {
	var longest time.Duration
	for _, g := range p.gaps {
		if time.Duration(g.From) >= a.curve.At(a.base.first) && time.Duration(g.To) <= a.fault.At &&
			p.atLeast(gap{Gap: g}) > 0 {
			longest = max(longest, time.Duration(g.To-g.From))
		}
	}
	return min(longest, max(a.curve.Step, 10*mean))
}

// atLeast is for how long a request waited in vain in a gap for certain.
func (p *gapLog) atLeast(g gap) time.Duration {
	return gaps.Proven(g.Gap, p.usual, p.service)
}

// gapsOf returns the gaps that the fault can have caused: those with the first success after t0
// that begin before the observation is over (see watched). One whose last success is more than lead
// before t0 counts from t0 on: until then the load generator did not run, and no request waited; or
// it is an earlier outage.
func (a *analysis) gapsOf(p *gapLog) []gap {
	var own []gap
	for _, g := range p.gaps {
		from := time.Duration(g.From)
		if time.Duration(g.To) <= a.fault.At || from >= a.watched() {
			continue
		}
		one := gap{Gap: g, earlier: a.before(p, gap{Gap: g})}
		silent := int64(a.fault.At - from)
		if from <= a.fault.At-p.lead {
			one.From = g.From + silent
			one.MaybeBefore = g.MaybeBefore + silent
			one.UnprovenHead = max(0, g.UnprovenHead-silent)
		}
		own = append(own, one)
	}
	return own
}

// before reports whether a request waited in vain too early for a gap to be of this fault alone.
func (a *analysis) before(p *gapLog, g gap) bool {
	return time.Duration(g.From+g.UnprovenHead) <= a.fault.At-p.lead
}

// watched is the end of the observation of gaps: the recovery, and at least as long as it must hold
// after t0.
func (a *analysis) watched() time.Duration {
	return max(a.until, a.watchedAnyway())
}

// surelyWatched is its end had the load recovered as soon as it can have: a gap that begins later
// may be none of the fault's.
func (a *analysis) surelyWatched() time.Duration {
	return max(a.soonest, a.watchedAnyway())
}

func (a *analysis) watchedAnyway() time.Duration {
	return min(max(a.fault.At, a.fault.SeenAt)+a.options.SustainFor, a.limit)
}

// inBaseline is the baseline as a sample.
func (a *analysis) inBaseline() *gaps.Sample {
	return gaps.SampleOf(a.curve.Series, a.base.first, a.first)
}

// service is the 99th percentile of the service time of operations in the baseline; nil = of all.
func (a *analysis) service(ops []int) time.Duration {
	return a.steadyBaseline().Service(ops, 0.99)
}

// steadyBaseline is the baseline without what outages made requests wait.
func (a *analysis) steadyBaseline() *gaps.Sample {
	if a.base.steady == nil {
		a.base.steady = gaps.Steady(a.curve.Series, a.base.first, a.first)
	}
	return a.base.steady
}

func (a *analysis) sumOps(ops []int) uint64 {
	return a.inBaseline().Successes(ops)
}
