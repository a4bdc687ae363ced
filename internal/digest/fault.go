// Package digest writes results into statuses: what columns, verdicts, waiting and people who read YAML need of them.
package digest

import (
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// Columns sets the figures of a fault that its columns show.
func Columns(d *v1alpha1.FaultDisplay, f *result.Fault) {
	d.Outage, d.WhileActive = span(f.Outage().Bounded), changesOf(f.WhileActive)
	if f.BaselineRate > 0 { // else nothing is known that could fall
		d.Dip = format.Share(f.Dip().Value)
	}
	if took, recovered := f.Recovery(); recovered {
		d.Recovery = span(took)
	}
}

func span(b impact.Bounded) string { return format.Span(b.Value, b.AtLeast, b.AtMost) }

// FaultSummary is a fault in the status of its load test.
func FaultSummary(f *v1alpha1.RedisFault) v1alpha1.FaultSummary {
	one := v1alpha1.FaultSummary{Name: f.Name, Type: f.Spec.Action.Type, Verdict: f.Status.Verdict}
	if i := f.Status.Impact; i != nil && i.Outage != nil {
		one.Outage = &i.Outage.Value
	}
	if i := f.Status.Impact; i != nil && i.RecoveryTime != nil {
		one.RecoveryTime = &i.RecoveryTime.Value
	}
	return one
}

// changesOf describes the changes while a lasting fault was there; "" for other faults.
func changesOf(w *impact.WhileActive) string {
	if w == nil {
		return ""
	}
	var parts []string
	for _, one := range []struct {
		name   string
		change float64
	}{{"throughput", w.Change}, {"p99", w.LatencyP99Change}} {
		text := format.Share(one.change)
		if text == "" { // the baseline has none
			continue
		}
		if one.change > 0 {
			text = "+" + text
		}
		parts = append(parts, one.name+" "+text)
	}
	return strings.Join(parts, ", ")
}

// Impact is the effect of a fault as its status has it.
func Impact(f *result.Fault) *v1alpha1.Impact {
	i := &f.Impact
	out := &v1alpha1.Impact{
		BaselineTPS: v1alpha1.DecimalOf(i.BaselineRate), MinTPS: v1alpha1.DecimalOf(i.MinRate), Dip: dipOf(f.Dip()),
		TimeToImpact: boundedIf(i.TimeToImpact), Outage: outageOf(f.Outage()), TotalOutage: Bounded(i.TotalOutage),
		ErrorWindow: v1alpha1.MicrosecondsOf(i.ErrorWindow), Recovered: i.Recovered,
		LostRequests: int64(i.LostRequests + 0.5), Errors: int64(i.Errors), ErrorsByClass: ErrorCounts(result.ErrorCounts(&i.ErrorsByClass)),
		LatencyP99: &v1alpha1.LatencyAround{Before: p99(i.Before), During: p99(i.During), After: p99(i.After)},
	}
	out.WhileActive = whileActiveOf(i.WhileActive)
	out.Outages, out.Dips = partsOf(i)
	if took, recovered := f.Recovery(); recovered {
		out.RecoveryTime, out.RecoveredThroughput = Bounded(took), v1alpha1.DecimalOf(i.RecoveredThroughput)
	}
	out.Reads, out.Writes, out.Operations = failuresOf(i.Reads), failuresOf(i.Writes), operationsOf(i.Operations)
	out.Doubts = Doubts(i.Doubts)
	return out
}

// Doubts are doubts in a status, the first of each reason.
func Doubts(doubts []impact.Doubt) (out []v1alpha1.Doubt) {
	for _, d := range doubts {
		if !slices.ContainsFunc(out, func(o v1alpha1.Doubt) bool { return o.Reason == d.Reason }) {
			out = append(out, v1alpha1.Doubt{Reason: d.Reason, Message: Truncate(d.Message, 512)})
		}
	}
	return out
}

func whileActiveOf(w *impact.WhileActive) *v1alpha1.WhileActive {
	if w == nil {
		return nil
	}
	out := &v1alpha1.WhileActive{
		Length: v1alpha1.MicrosecondsOf(w.Length), Throughput: v1alpha1.DecimalOf(w.Throughput), Change: v1alpha1.DecimalOf(w.Change),
		LatencyP50Change: v1alpha1.DecimalOf(w.LatencyP50Change), LatencyP99: p99(w.Latency), LatencyP99Change: v1alpha1.DecimalOf(w.LatencyP99Change),
		ErrorRate: v1alpha1.DecimalOf(w.ErrorRate), ErrorRateChange: v1alpha1.DecimalOf(w.ErrorRateChange),
	}
	if w.Latency.Count > 0 {
		out.LatencyP50 = new(v1alpha1.MicrosecondsOf(w.Latency.P50))
	}
	return out
}

// boundedIf returns nil if the duration was not measured.
func boundedIf(b impact.Bounded) *v1alpha1.BoundedDuration {
	if !b.Known() {
		return nil
	}
	return Bounded(b)
}

func outageOf(o impact.Outage) *v1alpha1.Outage {
	out := &v1alpha1.Outage{BoundedDuration: *Bounded(o.Bounded), Of: v1alpha1.OutageScope(o.Of)}
	if o.Of == impact.Shard {
		out.Shard = new(int32(o.Shard))
	}
	return out
}

func dipOf(d impact.Dip) *v1alpha1.Dip {
	return &v1alpha1.Dip{Value: v1alpha1.DecimalOf(d.Value), Of: v1alpha1.DipScope(d.Of)}
}

// partsOf returns the outages and the dips of the parts.
func partsOf(i *impact.Impact) (*v1alpha1.Outages, *v1alpha1.Dips) {
	o := &i.Outages
	outages := &v1alpha1.Outages{Load: Bounded(o.Load), Reads: boundedIf(o.Reads), Writes: boundedIf(o.Writes), Probe: boundedIf(o.Probe)}
	if o.Shard.Known() {
		outages.Shard = &v1alpha1.ShardOutage{BoundedDuration: *Bounded(o.Shard.Bounded), Shard: int32(o.Shard.Shard)}
	}
	return outages, &v1alpha1.Dips{All: v1alpha1.DecimalOf(i.Dips.All), Reads: v1alpha1.DecimalOf(i.Dips.Reads), Writes: v1alpha1.DecimalOf(i.Dips.Writes)}
}

// Bounded is a duration with its bounds.
func Bounded(b impact.Bounded) *v1alpha1.BoundedDuration {
	return &v1alpha1.BoundedDuration{Value: v1alpha1.MicrosecondsOf(b.Value), AtLeast: v1alpha1.MicrosecondsOf(b.AtLeast), AtMost: v1alpha1.MicrosecondsOf(b.AtMost)}
}

// operationsOf returns the effect on each operation.
func operationsOf(effects []impact.Effect) []v1alpha1.OperationImpact {
	var out []v1alpha1.OperationImpact
	for i := range effects {
		e := &effects[i]
		out = append(out, v1alpha1.OperationImpact{Name: e.Name, Outage: Bounded(e.Outage), Dip: v1alpha1.DecimalOf(e.Dip), Failures: *failuresOf(&e.Failures)})
	}
	return out
}

func failuresOf(f *impact.Failures) *v1alpha1.Failures {
	if f == nil {
		return nil
	}
	return &v1alpha1.Failures{FirstError: microsIf(f.FirstError), LastError: microsIf(f.LastError), Errors: int64(f.Errors)}
}

// microsIf returns nil for a negative duration: there was none.
func microsIf(d time.Duration) *v1alpha1.Microseconds {
	if d < 0 {
		return nil
	}
	return new(v1alpha1.MicrosecondsOf(d))
}

// p99 returns nil if nothing was measured.
func p99(of impact.Latency) *v1alpha1.Microseconds {
	if of.Count == 0 {
		return nil
	}
	return new(v1alpha1.MicrosecondsOf(of.P99))
}
