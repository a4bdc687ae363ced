package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// NewLoadRun makes the report of a run from its record. Every figure is over the measured time, after ramp-up and warm-up; of a search, which is nil for
// any other run, throughput, errors and latencies are those of the trial of the rate that it found, and the bottleneck is what kept the next from meeting the objectives.
func NewLoadRun(plan *plan.Plan, series *record.Series, found *Search, outcome Outcome, message string) *LoadRun {
	from := plan.Shape.MeasuredFrom()
	end := series.LoadEnd(plan.Shape.Length(), outcome == Finished && plan.Shape.Requests > 0)
	summary := impact.SummarizeTo(series, from, end)
	if found != nil {
		if first, last, ok := found.searched(plan, series); ok {
			summary = impact.SummarizeWindow(series, first, last)
		}
	}
	r := &LoadRun{
		Outcome: outcome, Message: message,
		Start: series.Start, Elapsed: Seconds(end), Planned: Seconds(plan.Shape.Length()), Measured: Seconds(summary.Measured),
		Target: target(plan, series), Load: inWords(plan.Shape), Latency: ServiceTime,
		Total: operation("all", &summary.Figures), Errors: errorCounts(&summary.ByClass), MaxLag: Seconds(summary.MaxLag),
		LongestGap: longest(series.Gaps(), from), LongestShardGap: longestOfShards(series, from),
		Redis:      redis(impact.Servers(series)),
		Bottleneck: limitedBy(plan, series, found),
		Trend:      impact.Trend(series, trendWidth),
		Notes:      series.Notes,
		Search:     found,
	}
	if plan.Shape.OpenLoop() {
		r.Latency = ResponseTime
	}
	for i := range summary.Operations {
		r.Operations = append(r.Operations, operation(summary.Operations[i].Name, &summary.Operations[i].Figures))
	}
	r.Workload = figures(plan.Workload.Readings(summary.Tallies))
	if len(summary.Shards) > 1 {
		for i, s := range summary.Shards {
			r.Shards = append(r.Shards, Shard{Shard: i, OK: s.OK, Errors: s.Errors, Throughput: s.Throughput, LongestGap: Seconds(s.Gap)})
		}
	}
	if series.HasProbe() {
		r.ProbeGap = longest(series.ProbeGaps(), from)
	}
	for _, a := range impact.Anomalies(series, from, nil) {
		if found != nil {
			break // a search falls and rises by itself
		}
		r.Anomalies = append(r.Anomalies, Anomaly{At: Seconds(a.At), Length: Seconds(a.Length), Dip: a.Depth})
	}
	switch {
	case outcome != Finished:
	case summary.Requests == 0:
		r.Outcome, r.Message = Failed, "no request was made in the measured time"
	case summary.OK == 0:
		r.Outcome, r.Message = Failed, "no request succeeded"
	}
	return r
}

// limitedBy names the bottleneck; nil of a run that was never measured.
func limitedBy(plan *plan.Plan, series *record.Series, searched *Search) *Bottleneck {
	if series.End() <= plan.Shape.MeasuredFrom() {
		return nil
	}
	in := bottleneck.Of(plan, series)
	if searched != nil {
		in.Without = plan.Shape.Search.Elsewhere(searched.Tried)
	}
	found := bottleneck.Find(in)
	return &Bottleneck{Component: string(found.Component), Evidence: found.Evidence}
}

// trendWidth is the width of the drawn throughput, in cells.
const trendWidth = 60

// target is what the last reading of INFO says of the server.
func target(plan *plan.Plan, series *record.Series) Target {
	t := Target{Addresses: plan.Target.Addresses}
	if servers := series.Servers(); len(servers) > 0 {
		s := servers[len(servers)-1]
		t.Server, t.Version, t.Mode, t.Role = s.Name, s.Version, s.Mode, s.Role
	}
	return t
}

// inWords says how much load was meant.
func inWords(shape plan.Shape) string {
	switch {
	case shape.Search != nil:
		return fmt.Sprintf("open loop, the highest rate between %s and %s requests/s that meets the objectives", format.Rate(shape.Search.From), format.Rate(shape.Search.To))
	case len(shape.Stages) > 0 && shape.OpenLoop():
		return fmt.Sprintf("open loop, %d stages up to %s requests/s", len(shape.Stages), format.Rate(peak(shape.Stages, func(s plan.Stage) float64 { return s.Rate })))
	case len(shape.Stages) > 0:
		return fmt.Sprintf("closed loop, %d stages up to %.0f users", len(shape.Stages), peak(shape.Stages, func(s plan.Stage) float64 { return float64(s.Users) }))
	case shape.Rate > 0 && shape.Users > 0:
		return fmt.Sprintf("open loop, %s requests/s, at most %d in flight", format.Rate(shape.Rate), shape.Users)
	case shape.Rate > 0:
		return fmt.Sprintf("open loop, %s requests/s", format.Rate(shape.Rate))
	case shape.ThinkTime > 0:
		return fmt.Sprintf("closed loop, %d users with %s between requests", shape.Users, format.Duration(shape.ThinkTime))
	}
	return fmt.Sprintf("closed loop, %d users", shape.Users)
}

func peak(stages []plan.Stage, of func(plan.Stage) float64) float64 {
	highest := 0.0
	for _, s := range stages {
		highest = max(highest, of(s))
	}
	return highest
}

// longest is the longest gap that reaches beyond from; nil where there is none.
func longest(gaps []record.Gap, from time.Duration) *Gap {
	var found *Gap
	for _, g := range gaps {
		if time.Duration(g.To) <= from {
			continue
		}
		if length := Seconds(g.To - g.From); found == nil || length > found.Length {
			found = &Gap{At: Seconds(g.From), Length: length, Open: g.Open}
		}
	}
	return found
}

// longestOfShards is the longest gap of any shard; nil where there are not several, or no gap.
func longestOfShards(series *record.Series, from time.Duration) *ShardGap {
	var found *ShardGap
	for shard := range series.Shards() {
		if g := longest(series.ShardGaps(shard), from); g != nil && (found == nil || g.Length > found.Length) {
			found = &ShardGap{Shard: shard, Gap: *g}
		}
	}
	return found
}

// operation writes figures of package impact as the report has them.
func operation(name string, f *impact.Figures) Operation {
	return Operation{
		Name: name, Requests: f.Requests, OK: f.OK, Failed: f.Fail, Unknown: f.Unknown, Dropped: f.Dropped, Throughput: f.Throughput,
		Latency: quantilesOf(f.Latency), Service: quantilesOf(f.Service),
	}
}

func quantilesOf(l impact.Latency) *Quantiles {
	if l.Count == 0 {
		return nil
	}
	return &Quantiles{P50: Seconds(l.P50), P90: Seconds(l.P90), P99: Seconds(l.P99), P999: Seconds(l.P999), Max: Seconds(l.Max)}
}

// errorCounts lists the classes that were seen, the most frequent first.
func errorCounts(byClass *[record.NumClasses]uint64) []ErrorCount {
	counts := []ErrorCount{} // an empty list in JSON, not null
	for class, n := range byClass {
		if n > 0 {
			counts = append(counts, ErrorCount{record.Class(class).String(), n})
		}
	}
	slices.SortStableFunc(counts, func(a, b ErrorCount) int { return cmp.Compare(b.Count, a.Count) })
	return counts
}

// redis is what the server said; nil where it was not asked, or asked once: a maximum needs two readings.
func redis(f impact.ServerFacts) *Redis {
	if f.Readings < 2 {
		return nil
	}
	return &Redis{
		MaxCPU: f.MaxCPU, MaxMainThreadCPU: f.MaxMainThread, MaxMemory: f.MaxUsedMemory,
		EvictedKeys: f.Evicted, RejectedConnections: f.Rejected, Restarts: f.Restarts,
	}
}
