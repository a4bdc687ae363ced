package result

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/anomaly"
	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/analysis/usage"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/redis/topology"
)

// LoadInput is the input of a result apart from the plan and the record.
type LoadInput struct {
	Outcome Outcome
	Message string  // why it was interrupted or failed
	Search  *Search // nil for a run without a search
	// Faults are the windows from each fault's injection to its recovery: OutsideFaults and Anomalies
	// exclude them.
	Faults         []summary.Window
	ServerCPULimit float64 // of Redis' containers, in cores; 0 = none, or unknown
	// the containers of Redis that ended during the load, apart from faults
	Exits []Exit
	// of the deployment when the load began; nil = unknown, or a standalone server
	Layout *topology.Map
	// which sentinels name which server at the end of the load; "" = there are none, or it is unknown
	Named string
	// Notes are what the load has found in the deployment before its start, in sentences.
	Notes []string
	// Before is the primary's reply to INFO before the load: a load of a few milliseconds has no other
	// reading. nil = unknown.
	Before *record.Server
}

// Exit is a container of Redis that ended during the load.
type Exit struct {
	Times       int
	OutOfMemory bool   // the last time, the kernel ended it at its memory limit
	Message     string // a sentence for people
}

// NewLoad returns the result of a run from its record. All figures are over the measured time,
// after ramp-up and warm-up. Throughput, errors and latencies of a search are those of the best
// trial, and the bottleneck is that of the lowest rate that missed the objectives.
func NewLoad(plan *plan.Plan, series *merged.Series, in LoadInput) *Load {
	r := LoadSoFar(plan, series, in)
	from, end := plan.Shape.MeasuredFrom(), time.Duration(r.Elapsed)
	if in.Search != nil {
		in.Search.judged(plan, series)
	}
	outside := summary.SummarizeWithout(series, from, end, in.Faults)
	if len(in.Faults) > 0 {
		r.OutsideFaults = new(OperationOf("all", &outside.Figures))
	}
	r.Warnings = append(ended(in.Exits),
		r.warnings(&outside.ByClass, steady(plan, series, in), in.Named)...)
	r.Trend = throughput.Trend(series, trendWidth)
	r.SetGaps(series, from, end)
	r.setStalls(plan, series, in)
	if in.Search == nil && !switches(plan) { // the rate of a search changes with each trial
		for _, a := range anomaly.Anomalies(series, from, plan.Shape.Planned(), in.Faults) {
			r.Anomalies = append(r.Anomalies, Anomaly{
				At:     Seconds(a.At),
				Length: Seconds(a.Length),
				Dip:    a.Depth,
			})
		}
	}
	if plan.Target.IsSet() && len(r.Servers) == 0 {
		r.Target.NotObserved = cmp.Or(r.Target.NotObserved,
			"no server replied to INFO twice in the measured time")
	}
	r.Bottleneck = limitedBy(plan, series, in)
	r.doubt()
	r.doubtQueue(plan)
	switch {
	case in.Outcome != Finished:
	case r.Total.Requests == 0:
		r.Outcome, r.Message = Failed, "no request was made in the measured time"
	case r.Total.OK == 0:
		r.Outcome, r.Message = Failed, "no request succeeded"
	}
	return r
}

// doubt adds the doubts that the result itself casts on its figures.
func (r *Load) doubt() {
	b := r.Bottleneck
	if b != nil && b.Component == string(bottleneck.LoadGenerator) && !b.Stalled {
		r.Doubt("LoadGeneratorSaturated", "the load generator was the bottleneck: "+b.Evidence)
	}
	r.doubtRedirected()
	if s := r.Search; s != nil && !s.Done {
		r.Doubt("SearchUnfinished", "the search did not complete: "+s.Message)
	}
}

// redirectedMost is the share of redirected requests beyond which a load measures the client's wrong
// routes: a topology that changes costs each connection a few.
const redirectedMost = 0.01

// doubtRedirected adds a doubt if requests went to nodes that do not have their keys.
func (r *Load) doubtRedirected() {
	n, all := r.Total.Redirected, r.Total.Requests
	if float64(n) <= redirectedMost*float64(all) {
		return
	}
	r.Doubt("Redirected", fmt.Sprintf(
		"nodes answered MOVED or ASK %d times for %d requests, which were sent again: their latency is that "+
			"of several round trips; slots were moving, or the nodes did not say which words of a command are "+
			"its keys (COMMAND GETKEYS)", n, all))
}

// Doubt adds a reason why the figures are inconclusive.
func (r *Load) Doubt(reason, message string) {
	r.Doubts = append(r.Doubts, impact.Doubt{Reason: reason, Message: message})
}

// LoadSoFar is the part of NewLoad that is cheap enough to be computed repeatedly while the load
// runs: it lacks trials, OutsideFaults, gaps, anomalies, bottleneck and trend.
func LoadSoFar(plan *plan.Plan, series *merged.Series, in LoadInput) *Load {
	from := plan.Shape.MeasuredFrom()
	end := loadEnd(plan, series, in.Outcome)
	sum := summary.SummarizeTo(series, from, end)
	around := usage.Window{From: from, To: end}
	if in.Search != nil {
		if first, last, ok := in.Search.window(plan); ok {
			sum = summary.SummarizeWindow(series, first, last)
			around = usage.Window{From: first, To: last}
		}
	}
	r := &Load{
		Version:  LoadVersion,
		Outcome:  in.Outcome,
		Message:  in.Message,
		Start:    series.Start,
		Elapsed:  Seconds(end),
		Planned:  Seconds(plan.Shape.Length()),
		Measured: Seconds(sum.Measured),
		Target:   target(plan, series, in),
		Asked:    Asked{Shape: plan.Shape.InWords(), Seed: plan.Workload.Seed},
		Latency:  ServiceTime,
		Total:    OperationOf("all", &sum.Figures),
		Errors:   ErrorCounts(&sum.ByClass),
		MaxLag:   Seconds(sum.MaxLag),
		Redis:    redis(summary.Servers(series)),
		Workload: figures(plan.Workload.Readings(sum.Tallies)),
		Notes:    slices.Concat(in.Notes, series.Notes),
		Search:   in.Search,
	}
	if plan.Shape.OpenLoop() {
		r.Latency = ResponseTime
	}
	if r.Redis != nil {
		restarts := 0
		for _, e := range in.Exits {
			restarts += e.Times
		}
		r.Redis.Restarts = max(r.Redis.Restarts, restarts)
	}
	r.setUsage(plan, series, around, in.ServerCPULimit)
	for i := range sum.Operations {
		r.Operations = append(r.Operations,
			OperationOf(sum.Operations[i].Name, &sum.Operations[i].Figures))
	}
	r.setTurns(plan, series, from, end)
	if len(sum.Shards) > 1 {
		for i, s := range sum.Shards {
			r.Shards = append(r.Shards, Shard{
				Shard:      i,
				OK:         s.OK,
				Errors:     s.Errors,
				Throughput: s.Throughput,
			})
		}
	}
	return r
}

// loadEnd is when a load ended. In an open loop every request has a time of its own, 1/rate, in
// whose middle it is due: the load lasts until that of the last one is over. Ended with its reply,
// a few requests would be more per second than were offered. That of Poisson arrivals lasts at least
// as long as so many take on average.
func loadEnd(p *plan.Plan, series *merged.Series, outcome Outcome) time.Duration {
	planned := p.Shape.Length()
	end := series.LoadEnd(planned, outcome == Finished && p.Shape.Requests > 0)
	if !p.Shape.OpenLoop() || p.Shape.Search != nil || !series.Ended() ||
		planned > 0 && end >= planned {
		return end
	}
	if p.Shape.Arrivals == plan.Poisson && outcome != Finished { // until then, more or fewer were due
		return end
	}
	offered := time.Duration(plan.NewSchedule(p.Shape).WhenIntegral(float64(series.Requests())))
	if planned > 0 {
		offered = min(offered, planned)
	}
	return max(end, offered)
}

// limitedBy returns the bottleneck; nil for a run that ended before the measured time.
func limitedBy(plan *plan.Plan, series *merged.Series, given LoadInput) *Bottleneck {
	if series.End() <= plan.Shape.MeasuredFrom() {
		return nil
	}
	found := bottleneck.Find(steady(plan, series, given))
	return &Bottleneck{
		Component: string(found.Component),
		Pods:      found.Pods,
		Evidence:  found.Evidence,
		Stalled:   found.Stalled,
	}
}

// steady returns the input of the analysis of a run without its faults, or at the rate that a
// search has found.
func steady(plan *plan.Plan, series *merged.Series, given LoadInput) bottleneck.Input {
	in := bottleneck.Of(plan, series)
	in.Without, in.ServerCPULimit = given.Faults, given.ServerCPULimit
	for _, e := range given.Exits {
		if e.OutOfMemory {
			in.OutOfMemory = e.Message
		}
	}
	if given.Search != nil {
		in.Without = search.Spec(*plan.Shape.Search).Elsewhere(given.Search.Tried)
	}
	return in
}

// trendWidth is the width of the drawn throughput, in cells.
const trendWidth = 60

// OperationOf converts figures of package impact to an Operation.
func OperationOf(name string, f *summary.Figures) Operation {
	return Operation{
		Name:       name,
		Requests:   f.Requests,
		OK:         f.OK,
		Drained:    f.Drained,
		Failed:     f.Fail,
		Unknown:    f.Unknown,
		Dropped:    f.Dropped,
		Misses:     f.Missed,
		Redirected: f.Redirected,
		Throughput: f.Throughput,
		ErrorRate:  f.ErrorRate,
		Latency:    quantilesOf(f.Latency),
		Service:    quantilesOf(f.Service),
	}
}

// Sample adds a message of the servers to each class of errors that has one.
func (r *Load) Sample(messages [record.NumClasses]string) {
	for class, text := range messages {
		for i := range r.Errors {
			if r.Errors[i].Class == record.Class(class).String() {
				r.Errors[i].Sample = text
			}
		}
	}
}

// ErrorCounts lists the classes that occurred, the most frequent first.
func ErrorCounts(byClass *[record.NumClasses]uint64) []ErrorCount {
	counts := []ErrorCount{} // an empty list in JSON, not null
	for class, n := range byClass {
		if n > 0 {
			counts = append(counts, ErrorCount{Class: record.Class(class).String(), Count: n})
		}
	}
	slices.SortStableFunc(counts, func(a, b ErrorCount) int { return cmp.Compare(b.Count, a.Count) })
	return counts
}

// redis converts the facts from INFO; nil for fewer than two readings, from which no usage can be
// computed.
func redis(f summary.ServerFacts) *Redis {
	if f.Readings < 2 {
		return nil
	}
	return &Redis{
		MaxCPU:              f.MaxCPU,
		MaxMainThreadCPU:    f.MaxMainThread,
		MaxMemory:           f.MaxUsedMemory,
		EvictedKeys:         f.Evicted,
		RejectedConnections: f.Rejected,
		Restarts:            f.Restarts,
	}
}
