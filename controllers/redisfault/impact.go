package redisfault

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/timeline"
)

// sustainFor is how long the throughput must stay recovered.
const sustainFor = 10 * time.Second // impact.Options' default

// keepAround is how long the record is kept at full resolution before the injection and after the
// recovery.
const keepAround = 2 * time.Minute

// observeImpact measures the impact on clients so far, and reads the pods for the timeline.
func (r *Reconciler) observeImpact(s *scope) {
	if s.fault.Status.InjectedAt == nil || s.fault.Status.SettledTime != nil || s.seen.Setting {
		return
	}
	deadline := s.fault.Spec.RecoveryDeadline.Duration
	if deadline == 0 {
		deadline = 2 * time.Minute
	}
	// the recovery from a lasting fault begins with its revert
	if stays := s.activeFor(r.Clock.Now()); stays > 0 {
		deadline += stays
	}
	s.seen.SettleWithin = deadline + sustainFor
	seen := timeline.EffectCompletedAt(&s.fault.Status, s.traits)
	s.keepRecord(math.MaxInt64)
	read := s.test != nil && s.run.Read(func(series *merged.Series) {
		start := s.test.Status.StartTime.Time
		f := impact.Fault{
			At:          state.InjectedAfter(&s.fault.Status, start),
			Deadline:    deadline,
			Uncertainty: series.ClockUncertainty,
			Took:        s.injectionTook(),
		}
		f.Active = s.activeWindow(f.At)
		if !seen.IsZero() {
			f.SeenAt = f.At + s.sinceInjection(seen)
		}
		options := impact.Options{MeasuredFrom: s.quietFrom, Planned: children.Planned(&s.test.Spec)}
		measured := impact.Analyze(series, f, options)
		s.impact, s.measured, s.recordEnd = &measured, s.resultOf(&measured, f.At),
			series.Fine(f.At, f.At).End()
		s.seen.Settled = impact.Settled(series, f, options) && (!seen.IsZero() || series.Ended())
		s.addClockDoubts(series)
	})
	if read && s.seen.Settled {
		s.keepRecord(s.recordEnd + keepAround)
	}
	if !read {
		// After the end of the load, the record does not become available by waiting; before that, the
		// session may resume.
		s.seen.Settled = s.seen.Load == lifecycle.LoadEnded || s.seen.Load == lifecycle.LoadFailed
	}
	pods, ok := s.deps.Watched.Pods()
	if !ok { // their state is unknown
		return
	}
	s.pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !s.isAffected(&p) })
	s.podsRead, s.podsAt = true, r.Clock.Now()
}

// keepRecord keeps the record at full resolution from 2 minutes before the injection to an instant,
// both since the start.
func (s *scope) keepRecord(until time.Duration) {
	if s.test == nil || s.test.Status.StartTime == nil {
		return
	}
	t0 := state.InjectedAfter(&s.fault.Status, s.test.Status.StartTime.Time)
	s.run.Keep(string(s.fault.UID), t0-keepAround, until)
}

// activeFor returns the time from the injection to the actual or the expected revert; 0 for a fault
// without a lasting effect.
func (s *scope) activeFor(now time.Time) time.Duration {
	status := &s.fault.Status
	switch {
	case !s.traits.Stays():
		return 0
	case status.RevertedAt != nil:
		return s.sinceInjection(status.RevertedAt.Time)
	case s.seen.InjectedAll:
		return max(s.sinceInjection(s.seen.ActiveAt)+s.traits.Lasts, s.sinceInjection(now))
	}
	return s.sinceInjection(now) + s.traits.Lasts
}

// activeWindow returns when a lasting fault was there that was injected at an instant from the
// start of the load: from being complete on all targets to its revert or its own end, whichever is
// first; the zero value for other faults.
func (s *scope) activeWindow(injected time.Duration) summary.Window {
	if s.traits.Lasts == 0 || !s.seen.InjectedAll {
		return summary.Window{}
	}
	from := injected + s.sinceInjection(s.seen.ActiveAt)
	to := from + s.traits.Lasts
	if since := s.fault.Status.RevertingSince; since != nil {
		to = min(to, injected+s.sinceInjection(since.Time))
	}
	return summary.Window{From: from, To: to}
}

// injectionTook is how long the longest of the injecting calls took.
func (s *scope) injectionTook() time.Duration {
	var longest time.Duration
	for i := range s.fault.Status.Targets {
		longest = max(longest, timeline.Took(&s.fault.Status.Targets[i]))
	}
	return longest
}

// sinceInjection returns the time from the injection to an instant, even if the operator's wall
// clock was set in between.
func (s *scope) sinceInjection(wall time.Time) time.Duration {
	if offset := s.fault.Status.InjectedOffset; offset != nil {
		if at, _, ok := s.run.At(wall); ok {
			return at - offset.Duration()
		}
	}
	return wall.Sub(s.fault.Status.InjectedAt.Time)
}

// addClockDoubts adds the doubts about the clocks: of the load pods, and of the operator, from
// which t0 was read.
func (s *scope) addClockDoubts(series *merged.Series) {
	for _, d := range state.ClockDoubts(series) {
		s.measured.Doubt(d)
	}
	if s.fault.Status.InjectedOffset == nil {
		s.measured.Doubt(impact.Doubt{
			Reason:  "ClockStepped",
			Message: "the operator's wall clock was set around the injection, and its process restarted: the instant of the injection is uncertain",
		})
	}
}

// addDurationDoubts adds the doubts about a fault that stayed for longer or for shorter than asked.
func (s *scope) addDurationDoubts() {
	status := &s.fault.Status
	if late := status.Overstayed; late != nil {
		s.measured.Doubt(impact.Doubt{
			Reason: v1alpha1.ReasonOverstayed,
			Message: fmt.Sprintf("the fault stayed for %s longer than asked",
				format.Duration(late.Duration())),
		})
	}
	// a breach decides the verdict
	if s.traits.Lasts == 0 || !s.seen.InjectedAll || status.RevertingSince == nil ||
		status.Breach != nil {
		return
	}
	if stayed := status.RevertingSince.Sub(s.seen.ActiveAt); stayed < s.traits.Lasts-time.Second {
		s.measured.Doubt(impact.Doubt{
			Reason: "CutShort",
			Message: fmt.Sprintf("the fault stayed for %s instead of %s", format.Duration(stayed),
				format.Duration(s.traits.Lasts)),
		})
	}
}

// isAffected reports whether a pod is a target, or was created after the injection.
func (s *scope) isAffected(pod *corev1.Pod) bool {
	if !pod.CreationTimestamp.Time.Before(s.fault.Status.InjectedAt.Time.Truncate(time.Second)) {
		return true
	}
	return slices.ContainsFunc(s.fault.Status.Targets, func(t v1alpha1.FaultTarget) bool {
		return t.Pod == pod.Name
	})
}

// setImpact sets the figures so far in the status; final ones with the clients' part of the
// timeline.
func (s *scope) setImpact(final bool) {
	status := &s.fault.Status
	if s.measured == nil {
		if final && status.Impact != nil && !status.Impact.Recovered {
			status.Impact.Doubts = append(status.Impact.Doubts, v1alpha1.Doubt{
				Reason:  "RecordOutOfReach",
				Message: "the load's record could not be read to the end of the fault",
			})
		}
		return
	}
	if final && !s.measured.Recovered && s.seen.Load != lifecycle.LoadRunning &&
		s.recordEnd < status.InjectedAt.Sub(s.test.Status.StartTime.Time)+s.seen.SettleWithin {
		s.measured.Doubt(impact.Doubt{
			Reason: "LoadEnded",
			Message: fmt.Sprintf(
				"the load ended %s after its start, too early to see whether recovery holds",
				format.Duration(s.recordEnd)),
		})
	}
	if final && s.measured.Recovered && s.rolesOpen != "" {
		s.measured.Doubt(impact.Doubt{
			Reason: fault.EventTwoPrimaries,
			Message: "which server is the primary was not decided when the observation ended: " +
				s.rolesOpen,
		})
	}
	s.addDurationDoubts()
	if final {
		timeline.AddClients(status, s.impact)
		s.measured.Phases = timeline.Phases(status, s.impact)
	}
	if status.Impact = digest.Impact(s.measured); !final {
		return
	}
	if took, recovered := s.measured.Recovery(); recovered {
		at := metav1.NewMicroTime(status.InjectedAt.Add(took.Value))
		status.RecoveredAt = &at
	}
}

// resultOf is the result of the fault so far: what was measured of it, injected at an instant from
// the start of the load.
func (s *scope) resultOf(measured *impact.Impact, at time.Duration) *result.Fault {
	status := &s.fault.Status
	in := result.FaultInput{
		Name:       s.fault.Name,
		UID:        string(s.fault.UID),
		Type:       string(s.fault.Spec.Action.Type),
		Start:      s.test.Status.StartTime.Time,
		At:         at,
		InjectedAt: status.InjectedAt.Time,
		Deadline:   s.fault.Spec.RecoveryDeadline.Duration,
	}
	for i := range status.Targets {
		in.Targets = append(in.Targets, status.Targets[i].Pod)
	}
	return result.NewFault(measured, in)
}
