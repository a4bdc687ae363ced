package controllers

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/report"
)

func summaryStatus(sum *impact.Summary) *v1alpha1.LoadSummary {
	out := &v1alpha1.LoadSummary{
		Requests: int64(sum.Requests), Errors: int64(errorsOf(&sum.Figures)), Failed: int64(sum.Fail), Unknown: int64(sum.Unknown), Dropped: int64(sum.Dropped),
		ErrorRate: format.Share(sum.ErrorRate), ErrorsByClass: errorCounts(sum.ByClass), Throughput: format.Rate(sum.Throughput),
		Latency: latencyStatus(sum.Latency), Shards: shardSummaries(sum.Shards),
	}
	if sum.MaxLag > 0 {
		out.MaxLag = format.Duration(sum.MaxLag)
	}
	for i := range sum.Operations {
		o := &sum.Operations[i]
		out.Operations = append(out.Operations, v1alpha1.OperationSummary{
			Name: o.Name, Requests: int64(o.Requests), Errors: int64(errorsOf(&o.Figures)), Throughput: format.Rate(o.Throughput), Latency: latencyStatus(o.Latency),
		})
	}
	return out
}

// mostShards is how many shards a status lists.
const mostShards = 64

func shardSummaries(shards []impact.Shard) []v1alpha1.ShardSummary {
	if len(shards) < 2 {
		return nil
	}
	var out []v1alpha1.ShardSummary
	for i, s := range shards[:min(len(shards), mostShards)] {
		one := v1alpha1.ShardSummary{Shard: int32(i), Throughput: format.Rate(s.Throughput), Errors: int64(s.Errors)}
		if s.Gap > 0 {
			one.LongestGap = format.Duration(s.Gap)
		}
		out = append(out, one)
	}
	return out
}

func workloadFigures(readings []plan.Reading) []v1alpha1.WorkloadFigure {
	var out []v1alpha1.WorkloadFigure
	for _, r := range readings {
		out = append(out, v1alpha1.WorkloadFigure{Name: r.Name, Value: report.Reading(r)})
	}
	return out
}

func errorsOf(f *impact.Figures) uint64 { return f.Fail + f.Unknown + f.Dropped }

func latencyStatus(l impact.Latency) *v1alpha1.LatencySummary {
	if l.Count == 0 {
		return nil
	}
	return &v1alpha1.LatencySummary{
		P50: format.Duration(l.P50), P90: format.Duration(l.P90), P99: format.Duration(l.P99), P999: format.Duration(l.P999), Max: format.Duration(l.Max),
	}
}

func errorCounts(byClass [record.NumClasses]uint64) []v1alpha1.ErrorCount {
	var counts []v1alpha1.ErrorCount
	for class, n := range byClass {
		if n > 0 {
			counts = append(counts, v1alpha1.ErrorCount{Class: record.Class(class).String(), Count: int64(n)})
		}
	}
	return counts
}

func redisFacts(f impact.ServerFacts) *v1alpha1.RedisFacts {
	if f.Readings == 0 {
		return nil
	}
	out := &v1alpha1.RedisFacts{
		MaxCPU: format.Millicores(float64(f.MaxCPU) / 1000), MaxMemory: format.Bytes(f.MaxUsedMemory),
		EvictedKeys: f.Evicted, RejectedConnections: f.Rejected, Restarts: int32(f.Restarts),
	}
	if f.MaxMainThread > 0 {
		out.MaxMainThreadCPU = format.Millicores(float64(f.MaxMainThread) / 1000)
	}
	return out
}

// faultWindows are the stretches that faults explain, from the load's start: from each injection to its recovery, or to the deadline.
func (s *loadTestScope) faultWindows() []impact.Window {
	var windows []impact.Window
	for i := range s.faults {
		f := &s.faults[i]
		if f.Status.InjectedAt == nil {
			continue
		}
		from := f.Status.InjectedAt.Sub(s.seen.StartedAt)
		length := f.Spec.RecoveryDeadline.Duration
		if figures := faultFigures(f); figures.Impact.Recovered {
			length = figures.Impact.RecoveryTime
		}
		// The grid's step before t0 belongs to the fault as well, and so does the last second of its recovery: windows are 1 s long.
		windows = append(windows, impact.Window{From: from - s.plan.Interval, To: from + length + time.Second})
	}
	return windows
}

func (s *loadTestScope) anomalies(found []impact.Anomaly) []v1alpha1.Anomaly {
	var out []v1alpha1.Anomaly
	for _, a := range found[:min(len(found), 32)] {
		at := metav1.NewMicroTime(s.seen.StartedAt.Add(a.At))
		out = append(out, v1alpha1.Anomaly{At: &at, Length: format.Duration(a.Length), Dip: format.Share(a.Depth)})
	}
	return out
}

// faultFigures reads back what a fault's status says, to three significant figures.
func faultFigures(f *v1alpha1.RedisFault) verdict.Fault {
	out := verdict.Fault{Name: f.Name, Confirmed: f.Status.Effect == v1alpha1.EffectConfirmed}
	i := f.Status.Impact
	if i == nil {
		return out
	}
	out.Impact = impact.Impact{Recovered: i.Recovered, Dip: parseShare(i.TPSDip), Outage: parseDuration(i.Outage), ShardOutage: parseDuration(i.ShardOutage), RecoveryTime: parseDuration(i.RecoveryTime)}
	for _, d := range i.Doubts {
		out.Impact.Doubts = append(out.Impact.Doubts, impact.Doubt{Reason: d.Reason, Message: d.Message})
	}
	return out
}

func parseShare(text string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		return 0
	}
	return n / 100
}

func parseDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}
