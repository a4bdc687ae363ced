// Package figures measures what a fault does to clients: from the record of its load into the
// status, with the verdict, and into the result that is kept beside that record.
package figures

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
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

// SustainFor is how long the throughput must stay recovered.
const SustainFor = 10 * time.Second // impact.Options' default

// KeepAround is how long the record is kept at full resolution before the injection and after the
// recovery.
const KeepAround = 2 * time.Minute

// ObserveImpact measures the impact on clients so far, and reads the pods for the timeline.
func ObserveImpact(s *scope.Fault, clock clock.PassiveClock) {
	if s.Fault.Status.InjectedAt == nil || s.Fault.Status.SettledTime != nil || s.Seen.Setting {
		return
	}
	deadline := s.Fault.Spec.RecoveryDeadline.Duration
	if deadline == 0 {
		deadline = 2 * time.Minute
	}
	// the recovery from a lasting fault begins with its revert
	if stays := activeFor(s, clock.Now()); stays > 0 {
		deadline += stays
	}
	s.Seen.SettleWithin = deadline + SustainFor
	seen := timeline.EffectCompletedAt(&s.Fault.Status, s.Traits)
	keepRecord(s, math.MaxInt64)
	read := s.Test != nil && s.Run.Read(func(series *merged.Series) {
		start := s.Test.Status.StartTime.Time
		f := impact.Fault{
			At:          state.InjectedAfter(&s.Fault.Status, start),
			Deadline:    deadline,
			Uncertainty: series.ClockUncertainty,
			Took:        injectionTook(s),
		}
		f.Active = activeWindow(s, f.At)
		if !seen.IsZero() {
			f.SeenAt = f.At + s.SinceInjection(seen)
		}
		options := impact.Options{MeasuredFrom: s.QuietFrom, Planned: children.Planned(&s.Test.Spec)}
		measured := impact.Analyze(series, f, options)
		s.Impact, s.Measured, s.RecordEnd = &measured, resultOf(s, &measured, f.At),
			series.Fine(f.At, f.At).End()
		s.Seen.Settled = impact.Settled(series, f, options) && (!seen.IsZero() || series.Ended())
		addClockDoubts(s, series)
	})
	if read && s.Seen.Settled {
		keepRecord(s, s.RecordEnd+KeepAround)
	}
	if !read {
		// After the end of the load, the record does not become available by waiting; before that, the
		// session may resume.
		s.Seen.Settled = s.Seen.Load == lifecycle.LoadEnded || s.Seen.Load == lifecycle.LoadFailed
	}
	pods, ok := s.Deps.Watched.Pods()
	if !ok { // their state is unknown
		return
	}
	s.Pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !isAffected(s, &p) })
	s.PodsRead, s.PodsAt = true, clock.Now()
}

// keepRecord keeps the record at full resolution from 2 minutes before the injection to an instant,
// both since the start.
func keepRecord(s *scope.Fault, until time.Duration) {
	if s.Test == nil || s.Test.Status.StartTime == nil {
		return
	}
	t0 := state.InjectedAfter(&s.Fault.Status, s.Test.Status.StartTime.Time)
	s.Run.Keep(string(s.Fault.UID), t0-KeepAround, until)
}

// activeFor returns the time from the injection to the actual or the expected revert, of a fault
// that waits for some of its targets to the injection of the last; 0 for others without a lasting
// effect.
func activeFor(s *scope.Fault, now time.Time) time.Duration {
	status := &s.Fault.Status
	switch {
	case !s.Traits.Stays() && !s.Traits.Waits:
		return 0
	case !s.Traits.Stays() && s.Seen.InjectedAll:
		return s.SinceInjection(s.Seen.ActiveAt)
	case status.RevertedAt != nil:
		return s.SinceInjection(status.RevertedAt.Time)
	case s.Seen.InjectedAll:
		return max(s.SinceInjection(s.Seen.ActiveAt)+s.Traits.Lasts, s.SinceInjection(now))
	}
	return s.SinceInjection(now) + s.Traits.Lasts
}

// activeWindow returns when a lasting fault was there that was injected at an instant from the
// start of the load: from being complete on all targets to its revert or its own end, whichever is
// first; the zero value for other faults.
func activeWindow(s *scope.Fault, injected time.Duration) summary.Window {
	if s.Traits.Lasts == 0 || !s.Seen.InjectedAll {
		return summary.Window{}
	}
	from := injected + s.SinceInjection(s.Seen.ActiveAt)
	to := from + s.Traits.Lasts
	if since := s.Fault.Status.RevertingSince; since != nil {
		to = min(to, injected+s.SinceInjection(since.Time))
	}
	return summary.Window{From: from, To: to}
}

// injectionTook is how long the longest of the injecting calls took.
func injectionTook(s *scope.Fault) time.Duration {
	var longest time.Duration
	for i := range s.Fault.Status.Targets {
		longest = max(longest, timeline.Took(&s.Fault.Status.Targets[i]))
	}
	return longest
}

// addClockDoubts adds the doubts about the clocks: of the load pods, and of the operator, from
// which t0 was read.
func addClockDoubts(s *scope.Fault, series *merged.Series) {
	for _, d := range state.ClockDoubts(series) {
		s.Measured.Doubt(d)
	}
	if s.Fault.Status.InjectedOffset == nil {
		s.Measured.Doubt(impact.Doubt{
			Reason:  "ClockStepped",
			Message: "the operator's wall clock was set around the injection, and its process restarted: the instant of the injection is uncertain",
		})
	}
}

// addDurationDoubts adds the doubts about a fault that stayed for longer or for shorter than asked.
func addDurationDoubts(s *scope.Fault) {
	status := &s.Fault.Status
	if late := status.Overstayed; late != nil {
		s.Measured.Doubt(impact.Doubt{
			Reason: v1alpha1.ReasonOverstayed,
			Message: fmt.Sprintf("the fault stayed for %s longer than asked",
				format.Duration(late.Duration)),
		})
	}
	// a breach decides the verdict
	if s.Traits.Lasts == 0 || !s.Seen.InjectedAll || status.RevertingSince == nil ||
		status.Breach != nil {
		return
	}
	stayed := status.RevertingSince.Sub(s.Seen.ActiveAt)
	if stayed < s.Traits.Lasts-time.Second {
		s.Measured.Doubt(impact.Doubt{
			Reason: "CutShort",
			Message: fmt.Sprintf("the fault stayed for %s instead of %s", format.Duration(stayed),
				format.Duration(s.Traits.Lasts)),
		})
	}
}

// isAffected reports whether a pod is a target, or was created after the injection.
func isAffected(s *scope.Fault, pod *corev1.Pod) bool {
	if !pod.CreationTimestamp.Time.Before(s.Fault.Status.InjectedAt.Time.Truncate(time.Second)) {
		return true
	}
	return slices.ContainsFunc(s.Fault.Status.Targets, func(t v1alpha1.FaultTarget) bool {
		return t.Pod == pod.Name
	})
}

// SetImpact sets the figures so far in the status; final ones with the clients' part of the
// timeline.
func SetImpact(s *scope.Fault, final bool) {
	status := &s.Fault.Status
	if s.Measured == nil {
		if final && status.Impact != nil && !status.Impact.Recovered {
			status.Impact.Doubts = append(status.Impact.Doubts, v1alpha1.Doubt{
				Reason:  "RecordOutOfReach",
				Message: "the load's record could not be read to the end of the fault",
			})
		}
		return
	}
	if final && !s.Measured.Recovered && s.Seen.Load != lifecycle.LoadRunning &&
		s.RecordEnd < status.InjectedAt.Sub(s.Test.Status.StartTime.Time)+s.Seen.SettleWithin {
		s.Measured.Doubt(impact.Doubt{
			Reason: "LoadEnded",
			Message: fmt.Sprintf(
				"the load ended %s after its start, too early to see whether recovery holds",
				format.Duration(s.RecordEnd)),
		})
	}
	if final && s.Measured.Recovered && s.RolesOpen != "" {
		s.Measured.Doubt(impact.Doubt{
			Reason: fault.EventTwoPrimaries,
			Message: "which server is the primary was not decided when the observation ended: " +
				s.RolesOpen,
		})
	}
	addDurationDoubts(s)
	if final {
		timeline.AddClients(status, s.Impact)
		s.Measured.Phases = timeline.Phases(status, s.Impact)
	}
	if status.Impact = digest.Impact(s.Measured); !final {
		return
	}
	if took, recovered := s.Measured.Recovery(); recovered {
		at := metav1.NewMicroTime(status.InjectedAt.Add(took.Value))
		status.RecoveredAt = &at
	}
}

// resultOf is the result of the fault so far: what was measured of it, injected at an instant from
// the start of the load.
func resultOf(s *scope.Fault, measured *impact.Impact, at time.Duration) *result.Fault {
	status := &s.Fault.Status
	in := result.FaultInput{
		Name:       s.Fault.Name,
		UID:        string(s.Fault.UID),
		Type:       string(s.Fault.Spec.Action.Type),
		Start:      s.Test.Status.StartTime.Time,
		At:         at,
		InjectedAt: status.InjectedAt.Time,
		Deadline:   s.Fault.Spec.RecoveryDeadline.Duration,
	}
	for i := range status.Targets {
		in.Targets = append(in.Targets, status.Targets[i].Pod)
	}
	return result.NewFault(measured, in)
}

// FollowedPods returns the pods for the timeline: without the replacements that the fault deletes
// as soon as they appear.
func FollowedPods(s *scope.Fault) []corev1.Pod {
	if !s.Seen.Kept || !s.Traits.EndsServer || s.Seen.RevertedAll {
		return s.Pods
	}
	return slices.DeleteFunc(slices.Clone(s.Pods), func(p corev1.Pod) bool {
		return timeline.TargetOf(&s.Fault.Status, &p) == nil
	})
}
