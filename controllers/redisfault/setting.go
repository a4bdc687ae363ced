package redisfault

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target/paging"
)

// A setting is what a load runs with. It is injected before the load, faults on the same load act
// beside it, and it is reverted after the load, and after them.
// When the load has ended, that is stored first, as heldUntil; then it is read from the API server
// which other faults on the load are recorded. A fault that is recorded later finds heldUntil
// before its first injection, and gives way; one that was recorded earlier is found.

// isAnotherLoad reports whether a load test of the right name is not the one that a recorded fault
// belongs to. A load that is suspended and begins again is the same for a setting.
func (s *scope) isAnotherLoad(test *v1alpha1.RedisLoadTest) bool {
	status := &s.fault.Status
	switch {
	case status.StartTime == nil || status.LoadStartTime == nil:
		return false
	case s.seen.Setting:
		return status.LoadTestUID != string(test.UID)
	}
	return !status.LoadStartTime.Equal(test.Status.StartTime)
}

// followLoad takes over which load runs with a recorded setting, and when it has started.
func (s *scope) followLoad() {
	status := &s.fault.Status
	if !s.seen.Setting || status.StartTime == nil {
		return
	}
	status.LoadTestUID = string(s.test.UID)
	if start := s.test.Status.StartTime; start != nil {
		status.LoadStartTime, s.seen.LoadStart = start, start.Time
	}
}

// silencing is why a fault is no setting: no load could run with it.
func silencing(f *v1alpha1.RedisFault) *problem.Problem {
	return &problem.Problem{Reason: v1alpha1.ReasonInvalidSpec, Lasting: true, Message: fmt.Sprintf(
		"spec.setting: this %s would silence Redis, and a setting leaves it serving: set a shorter "+
			"delay (below 1s), or a smaller loss (at most 50%%)", f.Spec.Action.Type)}
}

// clashWith is why a fault can never act beside the settings of its load that are in force; nil if
// it can.
func clashWith(wanted lock.Claim, held []lock.Claim) *problem.Problem {
	for _, other := range held {
		if why := lock.Clash(wanted, other); why != "" {
			return &problem.Problem{
				Reason:  v1alpha1.ReasonInvalidSpec,
				Message: "spec.action: " + why,
				Lasting: true,
			}
		}
	}
	return nil
}

// observeLingering determines what keeps a setting from its revert whose load has ended.
func (r *Reconciler) observeLingering(ctx context.Context, s *scope) error {
	since := s.fault.Status.HeldUntil
	if since == nil || s.seen.Reverting || s.seen.RevertedAll {
		return nil
	}
	s.seen.LingersSince = since.Time
	held := meta.FindStatusCondition(s.fault.Status.Conditions, v1alpha1.ConditionHeld)
	s.seen.Unseen = held == nil || held.Status == metav1.ConditionUnknown
	later, err := r.laterOnLoad(ctx, s.fault)
	s.seen.Later = later
	return err
}

// laterOnLoad is a fault that was recorded on the load of a setting after its injection, and that
// is not reverted, as the API server has it; "" = there is none.
func (r *Reconciler) laterOnLoad(
	ctx context.Context, setting *v1alpha1.RedisFault,
) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	later := ""
	var page v1alpha1.RedisFaultList
	err := paging.Each(ctx, r.APIReader, &page, func() bool {
		for i := range page.Items {
			f := &page.Items[i]
			same := f.Spec.LoadTestRef != nil && f.Spec.LoadTestRef.Name == setting.Spec.LoadTestRef.Name
			if same && f.UID != setting.UID && f.Status.StartTime != nil &&
				f.Status.StartTime.After(setting.Status.InjectedAt.Time) {
				later = f.Name
				return false
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(setting.Namespace), client.MatchingFields{claims.Holding: "true"})
	if err != nil {
		return "", fmt.Errorf("list the faults that act: %w", err)
	}
	return later, nil
}

// linger looks at a setting once its load has ended, or it is aborted, and stores that this has
// happened. What it sees then decides the verdict.
func (r *Reconciler) linger(ctx context.Context, s *scope) outcome {
	now := r.Clock.Now()
	first := s.fault.Status.HeldUntil == nil
	if !first && !s.seen.Unseen {
		return outcome{}
	}
	err := r.connect(ctx, s)
	if first {
		s.fault.Status.HeldUntil = new(metav1.NewMicroTime(now))
		log.FromContext(ctx).Info("The load of a setting has ended", "faultType",
			s.fault.Spec.Action.Type, "loadTest", s.seen.LoadName)
	}
	s.confirm(ctx, now)
	r.recordSightings(ctx, s)
	return outcome{err: err}
}

// setHeld sets the condition Held by what was just seen of the effect.
func (s *scope) setHeld(effect v1alpha1.Effect, evidence string, confirmed bool) {
	last := s.fault.Status.HeldUntil != nil
	switch {
	// whatever is seen: a condition that changed to and fro would be written again and again
	case s.late():
	case s.lost(): // although somebody may have set it again: a part of the load ran without it
	case effect == v1alpha1.EffectConfirmed:
		s.setCondition(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonHeld,
			"the setting is in force")
	case effect == v1alpha1.EffectNotObserved && confirmed:
		s.setCondition(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonSettingLost,
			"the setting was lost: "+evidence)
	case last || !confirmed:
		s.setCondition(v1alpha1.ConditionHeld, metav1.ConditionUnknown, v1alpha1.ReasonNotConfirmed,
			evidence)
	}
}

// lost reports whether a setting was seen not to be in force of which that is exact: what the
// network does to single requests is not, and a workload replaces the pods that another fault
// kills.
func (s *scope) lost() bool {
	held := meta.FindStatusCondition(s.fault.Status.Conditions, v1alpha1.ConditionHeld)
	return held != nil && held.Reason == v1alpha1.ReasonSettingLost &&
		fault.TraitsOf(&s.fault.Spec).Exact
}

// limitHeld corrects the condition Held by when the setting was there: the load was not measured
// with it before it was complete, nor after its revert.
func (s *scope) limitHeld() {
	if !s.seen.Setting || !s.seen.InjectedAny {
		return
	}
	switch {
	case s.late():
		s.setCondition(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonSettingLate,
			fmt.Sprintf(
				"the setting was complete at %s, and the load of RedisLoadTest %s was measured before that",
				s.seen.ActiveAt.UTC().Format(clockTime), s.seen.LoadName))
	case s.cutShort():
		s.setCondition(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonCutShort,
			fmt.Sprintf("the setting was reverted before RedisLoadTest %s had ended", s.seen.LoadName))
	}
}

// late reports whether a load was measured before its setting was complete.
func (s *scope) late() bool {
	started := s.fault.Status.LoadStartTime
	return s.seen.InjectedAll && started != nil && s.test != nil &&
		s.seen.ActiveAt.After(started.Add(measuredFrom(s.test)))
}

// clockTime is how messages show an instant.
const clockTime = "15:04:05.000Z"

// cutShort reports whether a setting is reverted although its load is not over. What begins a
// revert without heldUntil does not wait for the load.
func (s *scope) cutShort() bool {
	if s.fault.Status.HeldUntil != nil {
		return s.seen.Abort && s.seen.LingersSince.IsZero() && !s.seen.LoadOver()
	}
	return s.seen.Reverting || s.seen.RevertedAll
}

// settingSummary is the message of Complete for a setting, where message is that of the decision.
func (s *scope) settingSummary(
	d lifecycle.Decision[lifecycle.FaultAction], o outcome, message string,
) string {
	succeeded := o.ended && !o.failed && d.Reason == v1alpha1.ReasonSucceeded
	if o.problem == nil && (succeeded || d.Action == lifecycle.FaultHold) {
		return s.settingMessage(succeeded)
	}
	return message
}

// settingMessage describes a setting that is in force, or has succeeded. While that is in force it
// has no figures: it would be written whenever they change.
func (s *scope) settingMessage(ended bool) string {
	load := "RedisLoadTest " + s.seen.LoadName
	if s.seen.LoadStart.IsZero() {
		load += ", which has not started yet"
	}
	held := meta.FindStatusCondition(s.fault.Status.Conditions, v1alpha1.ConditionHeld)
	switch {
	case held == nil || !ended && held.Status == metav1.ConditionUnknown:
		return "the effect is not confirmed; for " + load
	case !ended && held.Status == metav1.ConditionFalse:
		return fmt.Sprintf("not in force (%s, see the condition Held); for %s", held.Reason, load)
	case !ended:
		return "in force for " + load
	case held.Status == metav1.ConditionTrue:
		return fmt.Sprintf("reverted; %s ran with the setting", load)
	}
	return "reverted; " + held.Message
}
