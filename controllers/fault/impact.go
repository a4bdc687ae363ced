package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/target"
)

// sustainFor is how long recovery must hold.
const sustainFor = 10 * time.Second // impact.Options' default

// observeImpact measures what clients have lived through so far, and finds the pods that the timeline speaks of.
func (r *Reconciler) observeImpact(ctx context.Context, s *scope) {
	if s.fault.Status.InjectedAt == nil || s.fault.Status.SettledTime != nil {
		return
	}
	deadline := s.fault.Spec.RecoveryDeadline.Duration
	if deadline == 0 {
		deadline = 2 * time.Minute
	}
	if stays := s.activeFor(r.Clock.Now()); stays > 0 { // recovery begins when a lasting fault is reverted
		deadline += stays
	}
	s.seen.SettleWithin = deadline + sustainFor
	read := s.test != nil && s.run.Read(func(series *record.Series) {
		start := s.test.Status.StartTime.Time
		f := impact.Fault{At: s.fault.Status.InjectedAt.Sub(start), Deadline: deadline}
		seen := effectCompletedAt(&s.fault.Status, s.traits)
		if !seen.IsZero() {
			f.SeenAt = seen.Sub(start)
		}
		options := impact.Options{MeasuredFrom: s.quietFrom}
		measured := impact.Analyze(series, f, options)
		s.measured, s.recordEnd = &result.Fault{Impact: measured}, series.End()
		s.seen.Settled = impact.Settled(series, f, options) && (!seen.IsZero() || series.Ended())
	})
	if read {
		s.addClockDoubts()
	} else {
		// Waiting cannot bring the record back once the load is over; before that the session may only have to resume.
		s.seen.Settled = s.seen.Load == lifecycle.LoadEnded || s.seen.Load == lifecycle.LoadFailed
	}
	if s.target == nil {
		return
	}
	pods, err := target.Redis{Namespace: s.fault.Namespace, Live: r.Client, Spec: s.target}.AllPods(ctx)
	if err != nil { // a Service that was deleted meanwhile, or may not be read any more: nothing can be said of the pods
		return
	}
	s.pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !s.isAffected(&p) })
	s.podsRead, s.podsAt = true, r.Clock.Now()
}

// activeFor is how long the fault was there from its injection, or will have been: 0 for one that leaves nothing.
func (s *scope) activeFor(now time.Time) time.Duration {
	status := &s.fault.Status
	switch {
	case s.traits.Lasts == 0 && !s.traits.RollsPods:
		return 0
	case status.RevertedAt != nil:
		return status.RevertedAt.Sub(status.InjectedAt.Time)
	case s.seen.InjectedAll:
		return max(s.seen.ActiveAt.Add(s.traits.Lasts).Sub(status.InjectedAt.Time), now.Sub(status.InjectedAt.Time))
	}
	return now.Sub(status.InjectedAt.Time) + s.traits.Lasts
}

// addClockDoubts adds a doubt where the operator's clock is another than the one that t0 was noted by.
func (s *scope) addClockDoubts() {
	for _, d := range state.ClockDoubts(s.run.ClockShift()) {
		s.measured.Doubt(d)
	}
}

// isAffected says whether a pod is one that was hit, or was created since.
func (s *scope) isAffected(pod *corev1.Pod) bool {
	if !pod.CreationTimestamp.Time.Before(s.fault.Status.InjectedAt.Time.Truncate(time.Second)) {
		return true
	}
	return slices.ContainsFunc(s.fault.Status.Targets, func(t v1alpha1.FaultTarget) bool { return t.Pod == pod.Name })
}

// setImpact puts the figures so far into the status; the clients' part of the timeline only when they are final.
func (s *scope) setImpact(final bool) {
	status := &s.fault.Status
	if s.measured == nil {
		if final && status.Impact != nil && !status.Impact.Recovered {
			status.Impact.Doubts = append(status.Impact.Doubts, v1alpha1.Doubt{Reason: "RecordOutOfReach", Message: "the load's record could not be read to the end of the fault"})
		}
		return
	}
	if final && !s.measured.Recovered && s.seen.Load != lifecycle.LoadRunning && s.recordEnd < status.InjectedAt.Sub(s.test.Status.StartTime.Time)+s.seen.SettleWithin {
		s.measured.Doubt(impact.Doubt{Reason: "LoadEnded",
			Message: fmt.Sprintf("the load ended %s after its start, too early to see whether recovery holds", format.Duration(s.recordEnd))})
	}
	status.Impact = impactOf(s.measured)
	if !final {
		return
	}
	addClientEvents(status, &s.measured.Impact)
	status.Impact.Phases = phasesOf(status, &s.measured.Impact)
	if s.measured.Recovered {
		at := metav1.NewMicroTime(status.InjectedAt.Add(s.measured.RecoveryTime))
		status.RecoveredAt = &at
	}
}

func impactOf(f *result.Fault) *v1alpha1.Impact {
	i := &f.Impact
	out := &v1alpha1.Impact{
		BaselineTPS: v1alpha1.DecimalOf(i.BaselineRate), MinTPS: v1alpha1.DecimalOf(i.MinRate), TPSDip: v1alpha1.DecimalOf(i.Dip),
		TimeToImpact: boundedIf(i.TimeToImpact >= 0, result.Exactly(i.TimeToImpact)), Outage: bounded(result.Exactly(i.Outage)), TotalOutage: v1alpha1.MicrosecondsOf(i.TotalOutage),
		ServerOutage: boundedIf(i.ServerOutage >= 0, result.Exactly(i.ServerOutage)), ErrorWindow: v1alpha1.MicrosecondsOf(i.ErrorWindow), Recovered: i.Recovered,
		LostRequests: int64(i.LostRequests + 0.5), Errors: int64(i.Errors), ErrorsByClass: state.ErrorCounts(result.ErrorCounts(&i.ErrorsByClass)),
		LatencyP99: &v1alpha1.LatencyAround{Before: p99(i.Before), During: p99(i.During), After: p99(i.After)},
	}
	if i.ShardOutage > 0 {
		out.ShardOutage, out.Shard = bounded(result.Exactly(i.ShardOutage)), new(int32(i.ShardDown))
	}
	if took, recovered := f.Recovery(); recovered {
		out.RecoveryTime, out.RecoveredThroughput = bounded(took), v1alpha1.DecimalOf(i.RecoveredThroughput)
	}
	for _, d := range i.Doubts {
		if !slices.ContainsFunc(out.Doubts, func(o v1alpha1.Doubt) bool { return o.Reason == d.Reason }) {
			out.Doubts = append(out.Doubts, v1alpha1.Doubt{Reason: d.Reason, Message: state.Truncate(d.Message, 512)})
		}
	}
	return out
}

func boundedIf(known bool, b result.Bounded) *v1alpha1.BoundedDuration {
	if !known {
		return nil
	}
	return bounded(b)
}

func bounded(b result.Bounded) *v1alpha1.BoundedDuration {
	return &v1alpha1.BoundedDuration{Value: v1alpha1.MicrosecondsOf(b.Value), AtLeast: v1alpha1.MicrosecondsOf(b.AtLeast), AtMost: v1alpha1.MicrosecondsOf(b.AtMost)}
}

// p99 is absent where nothing was measured.
func p99(of impact.Latency) *v1alpha1.Microseconds {
	if of.Count == 0 {
		return nil
	}
	return new(v1alpha1.MicrosecondsOf(of.P99))
}
