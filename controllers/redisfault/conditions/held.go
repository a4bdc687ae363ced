package conditions

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/lifecycle"
)

// SetHeld sets the condition Held by what was just seen of the effect.
func SetHeld(s *scope.Fault, effect v1alpha1.Effect, evidence string, confirmed bool) {
	last := s.Fault.Status.HeldUntil != nil
	switch {
	// whatever is seen: a condition that changed to and fro would be written again and again
	case late(s):
	case lost(s): // although somebody may have set it again: a part of the load ran without it
	case effect == v1alpha1.EffectConfirmed:
		setCondition(s, v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonHeld,
			"the setting is in force")
	case effect == v1alpha1.EffectNotObserved && confirmed:
		setCondition(s, v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonSettingLost,
			"the setting was lost: "+evidence)
	case last || !confirmed:
		setCondition(s, v1alpha1.ConditionHeld, metav1.ConditionUnknown, v1alpha1.ReasonNotConfirmed,
			evidence)
	}
}

// lost reports whether a setting was seen not to be in force of which that is exact: what the
// network does to single requests is not, and a workload replaces the pods that another fault
// kills.
func lost(s *scope.Fault) bool {
	held := meta.FindStatusCondition(s.Fault.Status.Conditions, v1alpha1.ConditionHeld)
	return held != nil && held.Reason == v1alpha1.ReasonSettingLost &&
		fault.TraitsOf(&s.Fault.Spec).Exact
}

// LimitHeld corrects the condition Held by when the setting was there: the load was not measured
// with it before it was complete, nor after its revert.
func LimitHeld(s *scope.Fault) {
	if !s.Seen.Setting || !s.Seen.InjectedAny {
		return
	}
	switch {
	case late(s):
		setCondition(s, v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonSettingLate,
			fmt.Sprintf(
				"the setting was complete at %s, and the load of RedisLoadTest %s was measured before that",
				s.Seen.ActiveAt.UTC().Format(clockTime), s.Seen.LoadName))
	case cutShort(s):
		setCondition(s, v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonCutShort,
			fmt.Sprintf("the setting was reverted before RedisLoadTest %s had ended", s.Seen.LoadName))
	}
}

// late reports whether a load was measured before its setting was complete.
func late(s *scope.Fault) bool {
	started := s.Fault.Status.LoadStartTime
	return s.Seen.InjectedAll && started != nil && s.Test != nil &&
		s.Seen.ActiveAt.After(started.Add(scope.MeasuredFrom(s.Test)))
}

// clockTime is how messages show an instant.
const clockTime = "15:04:05.000Z"

// cutShort reports whether a setting is reverted although its load is not over. What begins a
// revert without heldUntil does not wait for the load.
func cutShort(s *scope.Fault) bool {
	if s.Fault.Status.HeldUntil != nil {
		return s.Seen.Abort && s.Seen.ClosingSince.IsZero() && !s.Seen.LoadOver()
	}
	return s.Seen.Reverting || s.Seen.RevertedAll
}

// settingSummary is the message of Complete for a setting, where message is that of the decision.
func settingSummary(s *scope.Fault,
	d lifecycle.Decision[lifecycle.FaultAction], o state.Outcome, message string,
) string {
	succeeded := o.Ended && !o.Failed && d.Reason == v1alpha1.ReasonSucceeded
	if o.Problem == nil && (succeeded || d.Action == lifecycle.FaultHold) {
		return settingMessage(s, succeeded)
	}
	return message
}

// settingMessage describes a setting that is in force, or has succeeded. While that is in force it
// has no figures: it would be written whenever they change.
func settingMessage(s *scope.Fault, ended bool) string {
	load := "RedisLoadTest " + s.Seen.LoadName
	if s.Seen.LoadStart.IsZero() {
		load += ", which has not started yet"
	}
	held := meta.FindStatusCondition(s.Fault.Status.Conditions, v1alpha1.ConditionHeld)
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
