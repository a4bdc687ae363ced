// Package experiment makes the figures of runs comparable: what each run gave, and the comparisons
// of cells with their baseline.
package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/result"
)

// Run is the figures of one run of a cell.
type Run struct {
	Source       string // a file, or the name of an object
	Start        time.Time
	Round        int
	Inconclusive string // why the run has no figures to compare; "" = it has
	// at a rate: its throughput is that rate, and its latencies count from the intended arrival
	OpenLoop bool
	Whole    bool // its figures are of the whole time, with the ramp-up
	Values   map[string]Value
}

// Value is a figure of a run, in the unit that package compare gives it.
type Value struct {
	Value    float64 `json:"value"`
	Censored bool    `json:"censored,omitempty"` // it is Value or more
	// Least is what a latency is at least, if the load generator waited for a CPU: a part of it is the
	// generator's own then, of a share Late of the requests at most. 0 = it did not.
	Least float64 `json:"least,omitempty"`
	Late  float64 `json:"late,omitempty"`
}

func (r *Run) set(f compare.Figure, v float64) {
	if r.Values == nil {
		r.Values = map[string]Value{}
	}
	r.Values[f.Name] = Value{Value: v}
}

// OfLoad is the run of `redquake load`, with the faults on it.
func OfLoad(l *result.Load, faults ...result.Fault) Run {
	r := Run{Start: l.Start, OpenLoop: l.Latency == result.ResponseTime}
	switch {
	case l.Outcome != result.Finished:
		r.Inconclusive = cmp.Or(l.Message, string(l.Outcome))
	case len(l.Doubts) > 0:
		r.Inconclusive = l.Doubts[0].Reason + ": " + l.Doubts[0].Message
	case l.Starved() != "": // its verdict is certain, its throughput is not
		r.Inconclusive = impact.GeneratorStarved + ": " + l.Starved()
	}
	r.ofLoad(l, time.Duration(l.Measured))
	for i := range faults {
		r.ofFault(&faults[i])
	}
	return r
}

// ofLoad takes over the figures of a load. Throughput, errors and latencies are those of the whole
// measured time, with the faults, as in the columns and in reports. A load without a success is as
// slow as it was long, over.
func (r *Run) ofLoad(l *result.Load, over time.Duration) {
	r.ofOperation(&l.Total, over)
	r.set(compare.Outage, 0)
	if gap := l.Outage(); gap != nil {
		r.worst(compare.Outage, Value{Value: gap.Length.Seconds(), Censored: gap.Open})
	}
	if v := l.Verification; v != nil {
		lost := v.LostWrites()
		if lost != nil && lost.AtLeast == lost.AtMost {
			r.set(compare.LostWrites, float64(lost.AtLeast))
		}
		if v.FailedButExecuted != nil {
			r.set(compare.FailedButExecuted, float64(*v.FailedButExecuted))
		}
		if v.ExecutedTwice != nil {
			r.set(compare.ExecutedTwice, float64(*v.ExecutedTwice))
		}
	}
	if g := l.Guarantees; g != nil && g.Untold == "" && g.Lock != nil {
		r.set(compare.LockOverlaps, float64(g.Lock.Overlaps))
	}
	if redis := l.Redis; redis != nil {
		r.set(compare.MaxCPU, float64(redis.MaxCPU)/1000)
		r.set(compare.MaxMemory, float64(redis.MaxMemory))
	}
}

// OfCourse is the run of which only the record was kept, without a result: its figures are of the
// whole time, with the ramp-up.
func OfCourse(c *result.Course) Run {
	r := Run{Start: c.Start, Whole: true}
	end := result.Seconds(0)
	if len(c.Rows) > 0 {
		end = c.Rows[len(c.Rows)-1].Until
		r.ofOperation(&c.Rows[0].Operation, time.Duration(end))
		r.OpenLoop = c.Rows[0].Service != nil
	}
	for _, m := range c.Faults {
		if m.Outage != nil {
			r.worst(compare.Outage, Value{Value: m.Outage.Value.Seconds()})
		}
		if m.Took != nil {
			r.worst(compare.RecoveryTime, Value{Value: m.Took.Value.Seconds()})
		} else {
			r.worst(compare.RecoveryTime, Value{Value: (end - m.At).Seconds(), Censored: true})
		}
	}
	return r
}

// ofOperation takes over the figures of requests over a time. Without a success the latency is as
// long as that, or longer.
func (r *Run) ofOperation(o *result.Operation, over time.Duration) {
	r.set(compare.Throughput, o.Throughput)
	r.set(compare.ErrorRate, o.ErrorRate)
	if q := o.Latency; q != nil {
		r.ofLatency(q, o.Stalled)
	} else if o.Requests > 0 {
		r.noSuccess(over)
	}
}

func (r *Run) ofLatency(q *result.Quantiles, stalled *result.Stalled) {
	least, late := q, 0.0
	if stalled != nil && stalled.Latency != nil {
		least, late = stalled.Latency, stalled.Share
		if w := stalled.Waited; w != nil {
			late = max(late, w.Share)
		}
	}
	for _, one := range []struct {
		of           compare.Figure
		value, least result.Seconds
	}{
		{compare.LatencyP50, q.P50, least.P50},
		{compare.LatencyP99, q.P99, least.P99},
		{compare.LatencyP999, q.P999, least.P999},
	} {
		r.set(one.of, one.value.Seconds())
		if one.least < one.value {
			r.Values[one.of.Name] = Value{
				Value: one.value.Seconds(),
				Least: one.least.Seconds(),
				Late:  late,
			}
		}
	}
}

func (r *Run) noSuccess(over time.Duration) {
	for _, f := range []compare.Figure{compare.LatencyP50, compare.LatencyP99, compare.LatencyP999} {
		r.worst(f, Value{Value: over.Seconds(), Censored: true})
	}
}

// worst keeps the greater value: of several faults on a load the worst one is compared.
func (r *Run) worst(f compare.Figure, v Value) {
	if r.Values == nil {
		r.Values = map[string]Value{}
	}
	old, ok := r.Values[f.Name]
	if !ok || v.Value > old.Value || v.Value == old.Value && v.Censored {
		r.Values[f.Name] = v
	}
}

// OfObjects is the run of a RedisLoadTest with its RedisFaults. Its figures are those of the
// results that were kept beside the record, and of the statuses where there are none.
func OfObjects(test *v1alpha1.RedisLoadTest, faults []v1alpha1.RedisFault, kept result.Run) Run {
	load := &test.Spec.Load
	r := Run{Source: test.Name, OpenLoop: isOpen(load)}
	if test.Status.StartTime != nil {
		r.Start = test.Status.StartTime.Time
	}
	r.Inconclusive = withoutFigures(&test.Status)
	of := kept.Load
	if of == nil && test.Status.Summary != nil {
		of = digest.LoadOf(&test.Status, plan.Shape{})
	}
	if of != nil {
		r.ofLoad(of, max(planned(load), lasted(&test.Status)))
		starved := of.Starved()
		if starved != "" && r.Inconclusive == "" {
			r.Inconclusive = impact.GeneratorStarved + ": " + starved
		}
	}
	for i := range faults {
		f := &faults[i]
		if f.Spec.Setting {
			r.ofSetting(f)
		} else {
			r.ofFault(digest.ResultOf(kept.Faults, f, r.Start))
		}
	}
	// their objects may have been deleted; one that was deleted before its end has no verdict
	for i := range kept.Faults {
		f := &kept.Faults[i]
		if f.Verdict != "" &&
			!slices.ContainsFunc(faults, func(o v1alpha1.RedisFault) bool {
				return string(o.UID) == f.UID &&
					o.Name == f.Name
			}) {
			r.ofFault(f)
		}
	}
	return r
}

// withoutFigures is why a load test has no figures to compare; "" = it has.
func withoutFigures(s *v1alpha1.RedisLoadTestStatus) string {
	switch {
	case !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionComplete):
		return "it is not complete"
	case s.Verdict == v1alpha1.VerdictInconclusive:
		return "its verdict is Inconclusive" + because(s.Conditions)
	case len(s.Doubts) > 0: // it lost too much, which is certain; nothing else is
		return s.Doubts[0].Reason + ": " + s.Doubts[0].Message
	}
	return ""
}

// planned is how long a load was to be; 0 = that depends on the server.
func planned(load *v1alpha1.LoadShape) time.Duration {
	var length time.Duration
	if load.Duration != nil {
		length = load.Duration.Duration
	}
	for _, s := range load.Stages {
		length += s.Duration.Duration
	}
	return length
}

// lasted is how long a load has lasted, with its end.
func lasted(s *v1alpha1.RedisLoadTestStatus) time.Duration {
	if s.StartTime == nil || s.CompletionTime == nil {
		return 0
	}
	return s.CompletionTime.Sub(s.StartTime.Time)
}

// because is what a verdict's condition says of it, behind a colon; "" = nothing.
func because(conditions []metav1.Condition) string {
	why := meta.FindStatusCondition(conditions, v1alpha1.ConditionObjectivesMet)
	if why != nil && why.Message != "" {
		return ": " + why.Message
	}
	return ""
}

// ofSetting drops a run of which a setting was not in force. Nothing is measured against a setting.
func (r *Run) ofSetting(f *v1alpha1.RedisFault) {
	if f.Status.Verdict != v1alpha1.VerdictPass {
		r.Inconclusive = "RedisFault " + f.Name +
			", its setting, is not known to have been in force: its verdict is not Pass"
	}
}

func (r *Run) ofFault(f *result.Fault) {
	if f.Verdict == string(v1alpha1.VerdictInconclusive) || !f.Measured() {
		r.Inconclusive = "RedisFault " + f.Name + " is inconclusive"
		if f.Why != "" {
			r.Inconclusive += ": " + f.Why
		}
		return
	}
	// A fault that lost too much, or that a stop condition ended, is a Fail whatever is in doubt of its
	// figures. Only stalls are in the bounds, of durations alone.
	stalled := false
	for _, d := range f.Doubts {
		if d.Reason != impact.GeneratorStalled {
			r.Inconclusive = fmt.Sprintf("RedisFault %s: %s: %s", f.Name, d.Reason, d.Message)
			return
		}
		stalled = true
	}
	r.worst(compare.Outage, Value{Value: f.Outage().Value.Seconds()})
	//nolint:forbidigo // a figure of its own, by its own name
	if parts := f.Outages; parts != nil && parts.Probe != nil {
		r.worst(compare.ProbeOutage, Value{Value: parts.Probe.Value.Seconds()})
	}
	if took, recovered := f.Recovery(); recovered {
		r.worst(compare.RecoveryTime, Value{Value: took.Value.Seconds()})
	} else {
		r.worst(compare.RecoveryTime, Value{Value: f.Deadline.Seconds(), Censored: true})
	}
	if !stalled {
		r.worst(compare.LostRequests, Value{Value: float64(f.LostRequests)})
	}
}

// has reports whether any of the runs has the figure.
func has(runs []Run, f compare.Figure) bool {
	return slices.ContainsFunc(runs, func(r Run) bool { _, ok := r.Values[f.Name]; return ok })
}
