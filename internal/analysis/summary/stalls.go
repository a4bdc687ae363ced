package summary

import (
	"cmp"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// Stalls are the times within a part of a run in which a load generator did not run, and what the
// figures of that part can have been without them.
type Stalls struct {
	Pod     int           // the one that stalled for longest
	Length  time.Duration // of all its stalls together
	Count   int           // of those that the record keeps: at least so many
	Longest time.Duration

	Waiting Waiting // for a CPU, in stalls and in waits that are too short for one
	// at least: every latency less what stalls, and in an open loop waits, can have added to it
	Latency Latency
	// Service is from the send, at least, of an open loop: what was due while the load generator did
	// not run is sent in a bunch, and its requests wait for one another in the server, as does what is
	// due until it has worked them off. Bunching times as many as were due then may be the slowest for
	// that: of the others, a quantile q is the quantile q x (1 - share) of all.
	Service Latency
	// Lost is the share of the time that pods lost by both, on average: in it as many requests as
	// otherwise can have failed, or not been sent. What is in both counts twice, as not every stall is
	// a wait for a CPU.
	Lost float64
	// Faster is by how much the throughput of a closed loop can have been higher without both: a
	// factor. OnceFaster is the same if the shorter of both is a part of the other, as where all
	// stalls are waits for a CPU.
	Faster, OnceFaster float64
	Share              float64 // of the time in stalls, on average of the pods
}

// StallsTo returns the stalls of the part of a record that SummarizeWithout sums; nil = none.
func StallsTo(s *merged.Series, measuredFrom, loadEnd time.Duration, without []Window) *Stalls {
	return stallsIn(s, partTo(s, measuredFrom, loadEnd, without))
}

// StallsWithin is StallsTo for the part that SummarizeWindow sums.
func StallsWithin(s *merged.Series, from, to time.Duration) *Stalls {
	return stallsIn(s, partWithin(s, from, to))
}

func stallsIn(s *merged.Series, p part) *Stalls {
	var found Stalls
	delays := newDelays(s, p)
	sums := p.stalled(s)
	for pod := range s.Pods {
		stalls := United(s.Stalls(pod))
		within := p.within(s, stalls)
		if sums[pod] > found.Length {
			found.Pod = pod
			found.Length = sums[pod]
			found.Count = len(within)
			found.Longest = longestOf(within)
		}
		delays.add(append(timesOf(stalls), delays.waits(pod)...), unkept(s.Stalls(pod)))
	}
	found.Waiting = waitingIn(s, p)
	if found.Waiting.Waited == 0 &&
		!slices.ContainsFunc(delays.most, func(d time.Duration) bool { return d > 0 }) {
		return nil
	}
	found.lose(sums, p.measured(s))
	found.Latency = delays.latency()
	found.Service = delays.service(min(1, bunching*(found.Waiting.Share+found.Share)))
	return &found
}

// StalledFor is for how long a load generator must not have run, or have been late, for that to
// count: less is usual.
const StalledFor = 5 * time.Millisecond

// bunching is how many times as many requests as were due while a load generator did not run may
// have waited for that in the server: 1/(1-u) for one that is busy for a share u of the time, so 3
// for two thirds.
const bunching = 3

// leastRunning is the share of the time that a load generator ran at least, for the bound of a
// throughput.
const leastRunning = 0.01

// lose sets the time that pods lost, given that of the stalls of each.
func (f *Stalls) lose(sums []time.Duration, measured time.Duration) {
	if measured <= 0 {
		f.Faster, f.OnceFaster = 1, 1
		return
	}
	for _, sum := range sums {
		stalled := float64(sum) / float64(measured)
		lost := min(1, stalled+f.Waiting.Mean)
		f.Share += min(1, stalled) / float64(len(sums))
		f.Lost += lost / float64(len(sums))
		f.Faster += 1 / max(1-lost, leastRunning) / float64(len(sums))
		f.OnceFaster += 1 / max(1-max(stalled, f.Waiting.Mean), leastRunning) / float64(len(sums))
	}
}

// stalled returns for how long each pod stalled within the part: in all stalls, also those that the
// record does not keep.
func (p *part) stalled(s *merged.Series) []time.Duration {
	sums := make([]time.Duration, s.Pods)
	end := time.Duration(p.first)*s.Step + p.took
	for i := p.first; i < p.end; i++ {
		from := time.Duration(i) * s.Step
		if p.excludes(from, from+s.Step) {
			continue
		}
		for pod, ns := range s.At(i).Stalled {
			if pod < len(sums) {
				sums[pod] += max(0, min(time.Duration(ns), end-from))
			}
		}
	}
	return sums
}

// United returns stalls in order, those of several loops of a pod at the same time as one.
func United(stalls []record.Stall) []record.Stall {
	slices.SortFunc(stalls, func(a, b record.Stall) int { return cmp.Compare(a.From, b.From) })
	apart := stalls[:0]
	for _, s := range stalls {
		if n := len(apart); n > 0 && s.From <= apart[n-1].To {
			apart[n-1].To = max(apart[n-1].To, s.To)
			continue
		}
		apart = append(apart, s)
	}
	return apart
}

func longestOf(stalls []record.Stall) (longest time.Duration) {
	for _, s := range stalls {
		longest = max(longest, time.Duration(s.To-s.From))
	}
	return longest
}

// within returns the parts of stalls that are within the part, and not in what it excludes.
func (p *part) within(s *merged.Series, stalls []record.Stall) (within []record.Stall) {
	from := time.Duration(p.first) * s.Step
	for _, one := range stalls {
		one.From, one.To = max(one.From, int64(from)), min(one.To, int64(from+p.took))
		if one.From < one.To && !p.excludes(time.Duration(one.From), time.Duration(one.To)) {
			within = append(within, one)
		}
	}
	return within
}

// delays is by how much stalls can have delayed the outcomes of each interval of a part.
//
// A request that is due in a stall is sent late by at most its length, and those queued behind it
// by no more. So the latency of a request contains at most the stalls between its due time and its
// outcome; and, if there was a queue when it was due, its lag, or the stalls since that queue
// began. The same holds for waits for a CPU, of which only the sum between two readings is known.
type delays struct {
	series *merged.Series
	part   part
	span   int // intervals of a histogram
	// of each interval: the first in which a request with an outcome in it can have been due
	due  []int
	lag  []time.Duration // the longest since then
	most []time.Duration // for the pod for which it is longest
	// of an open loop: its latencies count from the intended arrival, before a wait of the load
	// generator
	agents []record.AgentUse
}

func newDelays(s *merged.Series, p part) *delays {
	d := &delays{
		series: s,
		part:   p,
		span:   max(1, int(s.LatencyStep/s.Step)),
		due:    make([]int, p.end),
		lag:    make([]time.Duration, p.end),
		most:   make([]time.Duration, p.end),
	}
	open := false
	for i := p.first; i < p.end; i++ {
		longest := time.Duration(0)
		for k := range s.At(i).Ops {
			op := &s.At(i).Ops[k]
			longest = max(longest, op.Latency.Max())
			open = open || len(op.Service) > 0
		}
		d.due[i] = max(0, i-int(longest/s.Step)-1)
		for j := d.due[i]; j < d.behind(i); j++ {
			d.lag[i] = max(d.lag[i], time.Duration(s.At(j).MaxLag))
		}
	}
	if open {
		d.agents = s.Agents()
	}
	return d
}

// behind is the index behind the intervals that the histogram of an interval spans.
func (d *delays) behind(i int) int {
	return min(i+d.span, d.part.end)
}

// unkept is the greatest length of a stall of a pod that the record need not have: there are at
// least MaxStalls longer ones.
func unkept(stalls []record.Stall) time.Duration {
	if len(stalls) < merged.MaxStalls {
		return 0
	}
	stalls = slices.SortedFunc(slices.Values(stalls), func(a, b record.Stall) int {
		return cmp.Compare(b.To-b.From, a.To-a.From)
	})
	shortest := stalls[merged.MaxStalls-1]
	return time.Duration(shortest.To - shortest.From)
}

// idle is a time for which a pod did not run, somewhere between two instants.
type idle struct {
	from, to, length time.Duration
}

func timesOf(stalls []record.Stall) (list []idle) {
	for _, one := range stalls {
		list = append(list, idle{
			time.Duration(one.From), time.Duration(one.To),
			time.Duration(one.To - one.From),
		})
	}
	return list
}

// waits lists for how long a pod waited for a CPU between any two readings: in an open loop,
// requests are sent late by it. Those of a closed loop count from the send.
func (d *delays) waits(pod int) (list []idle) {
	var before record.AgentUse
	for _, a := range d.agents {
		if a.Pod != pod {
			continue
		}
		waited := waitedBetween(&before, &a)
		if before.At == 0 { // since the process began
			waited = inSeconds(max(0, a.WaitedSeconds) + a.ThrottledSeconds + a.StolenSeconds)
		}
		from, to := time.Duration(before.At), time.Duration(a.At)
		if waited > 0 && from < to {
			list = append(list, idle{from, to, min(waited, to-from)})
		}
		before = a
	}
	return list
}

// add adds the times for which a pod did not run. Beside those that the record tells, it may not
// have run for unkept at any time.
func (d *delays) add(times []idle, unkept time.Duration) {
	if len(times) == 0 {
		return
	}
	// the lengths of those that began and ended before an interval
	began := make([]time.Duration, d.part.end+1)
	ended := make([]time.Duration, d.part.end+1)
	for _, one := range times {
		from := int(max(one.from, 0) / d.series.Step)
		if from < d.part.end {
			began[from+1] += one.length
		}
		to := int(max(one.to, 0) / d.series.Step)
		if to < d.part.end {
			ended[to+1] += one.length
		}
	}
	// where the queue began that an interval is in; the interval itself if there is none
	queue := make([]int, d.part.end)
	for i := range queue {
		began[i+1] += began[i]
		ended[i+1] += ended[i]
		if queue[i] = i; i > 0 && d.late(i-1) {
			queue[i] = queue[i-1]
		}
	}
	for i := d.part.first; i < d.part.end; i++ {
		due := d.due[i]
		meanwhile := began[d.behind(i)] - ended[due]
		queued := ended[due] - ended[queue[due]]
		d.most[i] = max(d.most[i], unkept, meanwhile+min(queued, d.lag[i]))
	}
}

// late reports whether requests were sent late in an interval, or none was sent: those that were
// due, if any, had to wait.
func (d *delays) late(i int) bool {
	iv := d.series.At(i)
	return time.Duration(iv.MaxLag) > StalledFor ||
		!slices.ContainsFunc(iv.Ops, func(o record.Op) bool { return o.Sent > 0 })
}

// latency is that of the part, each less its delay.
func (d *delays) latency() Latency {
	var least histogram.Distribution
	d.each(func(i int, op *record.Op) { least.AddLess(op.Latency, d.most[i]) })
	return LatencyOf(&least)
}

// service is that of the part without a share of the requests, the slowest.
func (d *delays) service(without float64) Latency {
	var all histogram.Distribution
	d.each(func(_ int, op *record.Op) { all.Add(op.Service) })
	of := func(q float64) time.Duration { return all.Quantile(q * (1 - without)) }
	return Latency{
		P50:   of(0.50),
		P90:   of(0.90),
		P95:   of(0.95),
		P99:   of(0.99),
		P999:  of(0.999),
		P9999: of(0.9999),
		Max:   of(1),
		Mean:  min(all.Mean(), of(0.50)),
		Count: all.Count(),
	}
}

// each calls a function with the operations of each interval of the part in which latencies count.
func (d *delays) each(add func(interval int, op *record.Op)) {
	for i := d.part.first; i < min(d.part.end, d.part.latencyEnd); i++ {
		from := time.Duration(i) * d.series.Step
		if d.part.excludes(from, from+d.series.LatencyStep) {
			continue
		}
		for k := range d.series.At(i).Ops {
			add(i, &d.series.At(i).Ops[k])
		}
	}
}
