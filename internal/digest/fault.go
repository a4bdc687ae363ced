// Package digest writes results into statuses: what columns, verdicts, waiting and people who read
// YAML need of them. Where no result was kept, it reads as much of one as a status has.
package digest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/result"
)

// Columns sets the figures of a fault that its columns show.
func Columns(d *v1alpha1.FaultDisplay, f *result.Fault) {
	d.Outage, d.WhileActive = span(f.Outage().Bounded), changesOf(f.WhileActive)
	if f.Baseline != nil && *f.Baseline > 0 { // else nothing is known that could fall
		d.Dip = format.Share(f.Dip().Value)
	}
	if took, recovered := f.Recovery(); recovered {
		d.Recovery = span(took)
	}
}

func span(b durations.Bounded) string {
	return format.Span(b.Value, b.AtLeast, b.AtMost)
}

// FaultSummary is a fault in the status of its load test.
func FaultSummary(f *v1alpha1.RedisFault) v1alpha1.FaultSummary {
	one := v1alpha1.FaultSummary{
		Name:    f.Name,
		Type:    f.Spec.Action.Type,
		Verdict: f.Status.Verdict,
	}
	if i := f.Status.Impact; i != nil && i.Outage != nil {
		one.Outage = &i.Outage.Value
	}
	if i := f.Status.Impact; i != nil && i.RecoveryTime != nil {
		one.RecoveryTime = &i.RecoveryTime.Value
	}
	return one
}

// changesOf describes the changes while a lasting fault was there; "" for other faults.
func changesOf(w *result.WhileActive) string {
	if w == nil {
		return ""
	}
	var parts []string
	for _, one := range []struct {
		name   string
		change *float64
		bounds *result.ChangeBounds
	}{{"throughput", w.ThroughputChange, nil}, {"p99", w.LatencyP99Change, w.LatencyP99ChangeBounds}} {
		switch {
		case one.bounds != nil:
			parts = append(parts, one.name+" "+one.bounds.Text(format.Change))
		case one.change != nil: // the baseline has one
			parts = append(parts, one.name+" "+format.Change(*one.change))
		}
	}
	return strings.Join(parts, ", ")
}

// Impact is the effect of a fault as its status has it.
func Impact(f *result.Fault) *v1alpha1.Impact {
	out := &v1alpha1.Impact{
		BaselineTPS:         decimal(f.Baseline),
		MinTPS:              decimal(f.Lowest),
		TimeToImpact:        boundedIf(f.TimeToImpact),
		Outage:              outageOf(f.LongestOutage),
		TotalOutage:         boundedIf(f.TotalOutage),
		ErrorWindow:         duration(f.ErrorWindow),
		Recovered:           f.Recovered,
		RecoveryTime:        boundedIf(f.RecoveryTime),
		RecoveredThroughput: decimal(f.RecoveredShare),
		LostRequests:        int64(f.LostRequests),
		Errors:              int64(f.Errors),
		ErrorsByClass:       ErrorCounts(f.ByClass),
		LatencyP99:          &v1alpha1.LatencyAround{},
		WhileActive:         whileActiveOf(f.WhileActive),
		Reads:               failuresOf(f.Reads),
		Writes:              failuresOf(f.Writes),
		Phases:              phasesOf(f),
		Doubts:              Doubts(f.Doubts),
	}
	if d := f.DeepestDip; d != nil {
		out.Dip = &v1alpha1.Dip{Value: v1alpha1.DecimalOf(d.Share), Of: v1alpha1.DipScope(d.Of)}
	}
	if d := f.Dips; d != nil {
		out.Dips = &v1alpha1.Dips{
			All:    decimal(d.All),
			Reads:  decimal(d.Reads),
			Writes: decimal(d.Writes),
		}
	}
	if o := f.Outages; o != nil {
		out.Outages = &v1alpha1.Outages{
			Load:   bounded(o.Load),
			Reads:  boundedIf(o.Reads),
			Writes: boundedIf(o.Writes),
			Probe:  boundedIf(o.Probe),
		}
		if s := outageOf(o.Shard); s != nil {
			out.Outages.Shard = &v1alpha1.ShardOutage{BoundedDuration: s.BoundedDuration, Shard: *s.Shard}
		}
	}
	if l := f.Latency; l != nil {
		out.LatencyP99 = &v1alpha1.LatencyAround{
			Before: p99(l.Before),
			During: p99(l.During),
			After:  p99(l.After),
		}
	}
	for i := range f.Operations {
		o := &f.Operations[i]
		out.Operations = append(out.Operations, v1alpha1.OperationImpact{
			Name:     o.Name,
			Outage:   bounded(o.Outage),
			Dip:      decimal(o.Dip),
			Failures: *failuresOf(&o.Failures),
		})
	}
	Lost(out, f.Lost)
	return out
}

// Lost sets the lost writes because of a fault; nil = they are unknown.
func Lost(i *v1alpha1.Impact, l *result.AttributedLoss) {
	if l == nil {
		return
	}
	i.LostWrites, i.LostWritesAtLeast, i.LostWritesAtMost = LostWritesFields(
		result.Count{AtLeast: l.AtLeast, AtMost: l.AtMost})
	i.FirstLost = durationIf(l.First)
	i.LastLost = durationIf(l.Last)
	i.SawErrors = l.SawErrors
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

func whileActiveOf(w *result.WhileActive) *v1alpha1.WhileActive {
	if w == nil {
		return nil
	}
	out := &v1alpha1.WhileActive{
		Length:                 duration(w.Length),
		Throughput:             decimal(w.Throughput),
		Change:                 decimal(w.ThroughputChange),
		LatencyP50Change:       decimal(w.LatencyP50Change),
		LatencyP99:             p99(w.Latency),
		LatencyP99Change:       decimal(w.LatencyP99Change),
		LatencyP50ChangeBounds: changeBoundsOf(w.LatencyP50ChangeBounds),
		LatencyP99ChangeBounds: changeBoundsOf(w.LatencyP99ChangeBounds),
		ErrorRate:              decimal(w.ErrorRate),
		ErrorRateChange:        decimal(w.ErrorRateChange),
	}
	if w.Latency != nil {
		out.LatencyP50 = new(duration(w.Latency.P50))
	}
	return out
}

func changeBoundsOf(b *result.ChangeBounds) *v1alpha1.ChangeBounds {
	if b == nil {
		return nil
	}
	return &v1alpha1.ChangeBounds{AtLeast: v1alpha1.DecimalOf(b.AtLeast), AtMost: decimal(b.AtMost)}
}

// phasesOf are the phases, by the operator's clock.
func phasesOf(f *result.Fault) (out []v1alpha1.Phase) {
	for _, p := range f.Phases {
		at := metav1.NewMicroTime(f.InjectedAt.Add(time.Duration(p.At)))
		out = append(out, v1alpha1.Phase{
			Name:     p.Name,
			Source:   v1alpha1.PhaseSource(p.Source),
			At:       at,
			Duration: bounded(p.Took),
		})
	}
	return out
}

func outageOf(o *result.FaultOutage) *v1alpha1.Outage {
	if o == nil {
		return nil
	}
	out := &v1alpha1.Outage{
		BoundedDuration: *bounded(o.BoundedSeconds),
		Of:              v1alpha1.OutageScope(o.Of),
	}
	if o.Shard != nil {
		out.Shard = new(int32(*o.Shard))
	}
	return out
}

func bounded(b result.BoundedSeconds) *v1alpha1.BoundedDuration {
	return &v1alpha1.BoundedDuration{
		Value:   duration(b.Value),
		AtLeast: duration(b.AtLeast),
		AtMost:  duration(b.AtMost),
	}
}

// boundedIf returns nil if the duration was not measured.
func boundedIf(b *result.BoundedSeconds) *v1alpha1.BoundedDuration {
	if b == nil {
		return nil
	}
	return bounded(*b)
}

func failuresOf(f *result.Failures) *v1alpha1.Failures {
	if f == nil {
		return nil
	}
	return &v1alpha1.Failures{
		FirstError: durationIf(f.First),
		LastError:  durationIf(f.Last),
		Errors:     int64(f.Errors),
	}
}

func duration(s result.Seconds) v1alpha1.Duration {
	return v1alpha1.DurationOf(time.Duration(s))
}

func durationIf(s *result.Seconds) *v1alpha1.Duration {
	if s == nil {
		return nil
	}
	return new(duration(*s))
}

// decimal is empty for a figure that was not measured.
func decimal(x *float64) v1alpha1.Decimal {
	if x == nil {
		return ""
	}
	return v1alpha1.DecimalOf(*x)
}

// p99 returns nil if nothing was measured.
func p99(of *result.Quantiles) *v1alpha1.Duration {
	if of == nil {
		return nil
	}
	return new(duration(of.P99))
}

// Truncate cuts a text to the size of a status field, at the end of a character. It may hold text
// of a server or of a load pod, with whatever characters. Several lines, as of joined errors,
// become one, divided by semicolons.
func Truncate(text string, bytes int) string {
	text = OneLine(text)
	text = redis.Printable(text, len(text))
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes-3], "") + "..."
}

// OneLine joins the lines of a text, such as those of errors.Join: a message or a column has one.
func OneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) < 2 {
		return text
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

// mostListed is how many texts a list names.
const mostListed = 5

// List joins texts; of many it has the first ones and says how many more there are.
func List(all []string) string {
	if more := len(all) - mostListed; more > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(all[:mostListed], "; "), more)
	}
	return strings.Join(all, "; ")
}

// ErrorCounts converts the numbers of errors by class.
func ErrorCounts(counts []result.ErrorCount) []v1alpha1.ErrorCount {
	var out []v1alpha1.ErrorCount
	for _, c := range counts {
		out = append(out, v1alpha1.ErrorCount{Class: c.Class, Count: int64(min(c.Count, math.MaxInt64))})
	}
	return out
}
