package digest

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
)

// ResultOf is the result of a fault on a load that began at start: the one that was kept beside the
// record, and what its object says where that is missing, or was kept before the fault was
// complete.
func ResultOf(kept []result.Fault, f *v1alpha1.RedisFault, start time.Time) *result.Fault {
	stored := result.FaultWith(kept, string(f.UID), f.Name)
	byObject := FaultOf(f, start)
	switch {
	case stored == nil:
		return byObject
	case stored.Verdict == "" && byObject.Verdict != "":
		complete := *stored
		complete.Verdict = byObject.Verdict
		complete.Why = byObject.Why
		complete.Objectives = byObject.Objectives
		complete.Lost = byObject.Lost
		return &complete
	}
	return stored
}

// FaultOf is the result of a fault by its object: while clients are observed, and where only the
// object was kept. Start is that of its load. It has no more than the status: of latencies p50 and
// p99 only.
func FaultOf(f *v1alpha1.RedisFault, start time.Time) *result.Fault {
	status := &f.Status
	out := &result.Fault{
		Version:  result.FaultVersion,
		Name:     f.Name,
		UID:      string(f.UID),
		Type:     string(f.Spec.Action.Type),
		Verdict:  string(status.Verdict),
		Start:    start.UTC(),
		Deadline: result.Seconds(f.Spec.RecoveryDeadline.Duration),
	}
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectivesMet)
	if c != nil && status.Verdict != "" {
		out.Why = c.Message
	}
	for i := range status.Targets {
		out.Targets = append(out.Targets, status.Targets[i].Pod)
	}
	if status.InjectedAt == nil {
		return out
	}
	out.InjectedAt = status.InjectedAt.UTC()
	out.At = result.Seconds(status.InjectedAt.Sub(start))
	if offset := status.InjectedOffset; offset != nil {
		out.At = secondsOf(*offset)
	}
	if status.SettledTime != nil {
		out.Observed = result.Seconds(status.SettledTime.Sub(status.InjectedAt.Time))
	}
	for i := range status.Objectives {
		out.Objectives = append(out.Objectives, Objective(&status.Objectives[i]))
	}
	if status.Impact != nil {
		readImpact(out, status.Impact)
	}
	return out
}

// FaultObject is the object of a fault of which only the result was kept, as far as that has it.
func FaultObject(f *result.Fault, loadTest string) *v1alpha1.RedisFault {
	o := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: f.Name, UID: types.UID(f.UID)}}
	o.Spec.Action.Type, o.Spec.RecoveryDeadline.Duration = v1alpha1.FaultType(f.Type),
		time.Duration(f.Deadline)
	o.Status = v1alpha1.RedisFaultStatus{
		LoadTest:       loadTest,
		InjectedAt:     new(metav1.NewMicroTime(f.InjectedAt)),
		InjectedOffset: new(duration(f.At)),
		Verdict:        v1alpha1.Verdict(f.Verdict),
		Impact:         Impact(f),
	}
	for _, pod := range f.Targets {
		o.Status.Targets = append(o.Status.Targets, v1alpha1.FaultTarget{Pod: pod})
	}
	if f.Observed > 0 {
		o.Status.SettledTime = new(metav1.NewMicroTime(f.InjectedAt.Add(time.Duration(f.Observed))))
	}
	if f.Verdict != "" {
		o.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue},
			{Type: v1alpha1.ConditionObjectivesMet, Status: metav1.ConditionUnknown, Message: f.Why},
		}
	}
	return o
}

// readImpact sets the figures of a status.
func readImpact(f *result.Fault, i *v1alpha1.Impact) {
	f.Baseline = Number(i.BaselineTPS)
	f.Lowest = Number(i.MinTPS)
	f.RecoveredShare = Number(i.RecoveredThroughput)
	f.TimeToImpact = boundsIf(i.TimeToImpact)
	f.TotalOutage = boundsIf(i.TotalOutage)
	f.RecoveryTime = boundsIf(i.RecoveryTime)
	f.Recovered = i.Recovered
	f.ErrorWindow = secondsOf(i.ErrorWindow)
	f.Errors = uint64(i.Errors)
	f.LostRequests = uint64(max(0, i.LostRequests))
	f.Reads = readFailures(i.Reads)
	f.Writes = readFailures(i.Writes)
	f.Lost = lostOf(i)
	readHeadlines(f, i)
	for _, e := range i.ErrorsByClass {
		f.ByClass = append(f.ByClass, result.ErrorCount{Class: e.Class, Count: uint64(e.Count)})
	}
	if l := i.LatencyP99; l != nil {
		f.Latency = &result.LatencyAround{
			Before: quantiles(nil, l.Before),
			During: quantiles(nil, l.During),
			After:  quantiles(nil, l.After),
		}
	}
	if w := i.WhileActive; w != nil {
		f.WhileActive = &result.WhileActive{
			Length:                 secondsOf(w.Length),
			Throughput:             Number(w.Throughput),
			ThroughputChange:       Number(w.Change),
			Latency:                quantiles(w.LatencyP50, w.LatencyP99),
			LatencyP50Change:       Number(w.LatencyP50Change),
			LatencyP99Change:       Number(w.LatencyP99Change),
			LatencyP50ChangeBounds: readChangeBounds(w.LatencyP50ChangeBounds),
			LatencyP99ChangeBounds: readChangeBounds(w.LatencyP99ChangeBounds),
			ErrorRate:              Number(w.ErrorRate),
			ErrorRateChange:        Number(w.ErrorRateChange),
		}
	}
	readLists(f, i)
}

func readChangeBounds(b *v1alpha1.ChangeBounds) *result.ChangeBounds {
	if b == nil {
		return nil
	}
	least, known := b.AtLeast.Number()
	if !known {
		return nil
	}
	return &result.ChangeBounds{AtLeast: least, AtMost: Number(b.AtMost)}
}

// readHeadlines sets the outage and the dip, and those of the parts.
func readHeadlines(f *result.Fault, i *v1alpha1.Impact) {
	if d := i.Dip; d != nil && Number(d.Value) != nil {
		f.DeepestDip = &result.FaultDip{Share: *Number(d.Value), Of: string(d.Of)}
	}
	if d := i.Dips; d != nil {
		f.Dips = &result.FaultDips{
			All:    Number(d.All),
			Reads:  Number(d.Reads),
			Writes: Number(d.Writes),
		}
	}
	if o := i.Outage; o != nil {
		f.LongestOutage = readOutage(&o.BoundedDuration, string(o.Of), o.Shard)
	}
	if o := i.Outages; o != nil && o.Load != nil {
		f.Outages = &result.FaultOutages{
			Load:   *boundsIf(o.Load),
			Reads:  boundsIf(o.Reads),
			Writes: boundsIf(o.Writes),
			Probe:  boundsIf(o.Probe),
		}
		if s := o.Shard; s != nil {
			f.Outages.Shard = readOutage(&s.BoundedDuration, impact.Shard, &s.Shard)
		}
	}
}

// readLists sets operations, phases and doubts.
func readLists(f *result.Fault, i *v1alpha1.Impact) {
	for k := range i.Operations {
		o := &i.Operations[k]
		one := result.OperationHit{
			Name:     o.Name,
			Dip:      Number(o.Dip),
			Failures: *readFailures(&o.Failures),
		}
		if o.Outage != nil {
			one.Outage = *boundsIf(o.Outage)
		}
		f.Operations = append(f.Operations, one)
	}
	for _, p := range i.Phases {
		if p.Duration != nil {
			f.Phases = append(f.Phases, result.Phase{
				Name:   p.Name,
				Source: string(p.Source),
				At:     result.Seconds(p.At.Sub(f.InjectedAt)),
				Took:   *boundsIf(p.Duration),
			})
		}
	}
	for _, d := range i.Doubts {
		f.Doubts = append(f.Doubts, impact.Doubt{Reason: d.Reason, Message: d.Message})
	}
}

// lostOf is nil while the lost writes are unknown.
func lostOf(i *v1alpha1.Impact) *result.AttributedLoss {
	lost := LostWritesOf(i)
	if lost == nil {
		return nil
	}
	return &result.AttributedLoss{
		AtLeast:   lost.AtLeast,
		AtMost:    lost.AtMost,
		First:     secondsIf(i.FirstLost),
		Last:      secondsIf(i.LastLost),
		SawErrors: i.SawErrors,
	}
}

// Objective is an objective of a status as results have it.
func Objective(o *v1alpha1.ObjectiveResult) result.Objective {
	return result.Objective{
		Name:    o.Name,
		Unit:    units[o.Unit],
		Limit:   numberOr0(o.Limit),
		Actual:  Number(o.Actual),
		AtLeast: Number(o.AtLeast),
		AtMost:  Number(o.AtMost),
		Met:     o.Met,
		Message: o.Message,
	}
}

// units are the units of a result, for those of a status.
var units = map[v1alpha1.Unit]result.Unit{
	v1alpha1.UnitCount:     result.UnitCount,
	v1alpha1.UnitShare:     result.UnitShare,
	v1alpha1.UnitSeconds:   result.UnitSeconds,
	v1alpha1.UnitPerSecond: result.UnitPerSecond,
}

func readOutage(b *v1alpha1.BoundedDuration, of string, shard *int32) *result.FaultOutage {
	out := &result.FaultOutage{BoundedSeconds: *boundsIf(b), Of: of}
	if shard != nil {
		out.Shard = new(int(*shard))
	}
	return out
}

func readFailures(f *v1alpha1.Failures) *result.Failures {
	if f == nil {
		return nil
	}
	return &result.Failures{
		First:  secondsIf(f.FirstError),
		Last:   secondsIf(f.LastError),
		Errors: uint64(f.Errors),
	}
}

func boundsIf(b *v1alpha1.BoundedDuration) *result.BoundedSeconds {
	if b == nil {
		return nil
	}
	return &result.BoundedSeconds{
		Value:   secondsOf(b.Value),
		AtLeast: secondsOf(b.AtLeast),
		AtMost:  secondsOf(b.AtMost),
	}
}

// quantiles is nil if neither was measured.
func quantiles(p50, p99 *v1alpha1.Duration) *result.Quantiles {
	if p50 == nil && p99 == nil {
		return nil
	}
	return &result.Quantiles{
		P50: secondsOf(ptr.Deref(p50, v1alpha1.Duration{})),
		P99: secondsOf(ptr.Deref(p99, v1alpha1.Duration{})),
	}
}

func secondsOf(m v1alpha1.Duration) result.Seconds {
	return result.Seconds(m.Duration)
}

func secondsIf(m *v1alpha1.Duration) *result.Seconds {
	if m == nil {
		return nil
	}
	return new(secondsOf(*m))
}

// Number is nil for a figure that was not measured.
func Number(d v1alpha1.Decimal) *float64 {
	if x, known := d.Number(); known {
		return &x
	}
	return nil
}
