package redisfault

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/lifecycle"
)

func (s *scope) setConditions(d lifecycle.Decision[lifecycle.FaultAction], o outcome) {
	reason, message := s.summary(d, o)
	state.SetSummary(&s.fault.Status.Conditions, s.fault.Generation, state.Summary{
		Complete: o.ended && !o.failed, Failed: o.ended && o.failed,
		Suspended: !o.ended && s.seen.Suspend && !s.seen.Recorded, Reason: reason, Message: message,
	})
	s.setSelected(o, reason, message)
	s.setInjected(reason)
	s.setReverted(reason)
	s.setRecovered(d, o, reason)
}

// summary is where the fault stands.
func (s *scope) summary(
	d lifecycle.Decision[lifecycle.FaultAction], o outcome,
) (reason, message string) {
	reason, message = d.Reason, d.Message
	if o.problem != nil {
		reason, message = o.problem.Reason, o.problem.Message
	}
	if s.seen.Setting {
		return reason, s.settingSummary(d, o, message)
	}
	if o.ended && !o.failed && reason == v1alpha1.ReasonSucceeded {
		reason, message = s.recoveryReason(), s.impactMessage()
	}
	if d.Action == lifecycle.FaultObserve || d.Action == lifecycle.FaultHold && o.problem == nil {
		message = s.impactMessage() + s.rolesMessage()
	}
	if b := s.fault.Status.Breach; b != nil &&
		(d.Action == lifecycle.FaultObserve || reason == v1alpha1.ReasonStopConditionMet && !o.failed) {
		message = b.Message + "; " + s.impactMessage()
	}
	return reason, message
}

// recoveryReason is the reason of a fault that has run to its end, by its recovery.
func (s *scope) recoveryReason() string {
	switch i := s.fault.Status.Impact; {
	// nil: the record could never be read
	case i == nil, !i.Recovered && recoveryUnknown(&s.fault.Status):
		return v1alpha1.ReasonInconclusive
	case !i.Recovered:
		return v1alpha1.ReasonNotRecovered
	}
	return v1alpha1.ReasonSucceeded
}

func (s *scope) setSelected(o outcome, reason, message string) {
	names := podNames(s.fault.Status.Targets)
	switch {
	case s.traits.External:
		s.setCondition(v1alpha1.ConditionTargetsSelected, metav1.ConditionUnknown, reason,
			"type External selects no target")
	case len(names) > 0:
		s.setCondition(v1alpha1.ConditionTargetsSelected, metav1.ConditionTrue, "Selected",
			strings.Join(names, ", "))
	case o.problem != nil && !claims.WaitsForOthers(reason):
		s.setCondition(v1alpha1.ConditionTargetsSelected, metav1.ConditionFalse, reason, message)
	default: // also when the trigger has lapsed since the targets could not be selected
		s.setCondition(v1alpha1.ConditionTargetsSelected, metav1.ConditionUnknown, reason,
			"not selected yet")
	}
}

func (s *scope) setInjected(reason string) {
	injected := s.allTargets(func(t v1alpha1.FaultTarget) bool { return t.InjectedAt != nil })
	message := "effect: " + orNone(string(s.fault.Status.Effect))
	if s.traits.External {
		injected = state.ConditionStatus(s.fault.Status.InjectedAt != nil)
		message = "something else breaks Redis; " + message
	}
	s.setCondition(v1alpha1.ConditionInjected, injected, reason, message)
}

func (s *scope) setReverted(reason string) {
	status := &s.fault.Status
	reverted := s.allTargets(func(t v1alpha1.FaultTarget) bool { return t.RevertedAt != nil })
	message := "a fault of type " + string(s.fault.Spec.Action.Type) + " leaves nothing to revert"
	switch {
	case s.seen.DryRun, s.traits.External, s.seen.Restored != "":
		reverted = metav1.ConditionTrue
		message = "the operator injects nothing: there is nothing to revert"
	case s.seen.RevertFailed != "":
		reason = v1alpha1.ReasonRevertFailed
		message = digest.Truncate(s.seen.RevertFailed, 32000)
	case s.delayed() != "":
		reason, message = v1alpha1.ReasonRevertDelayed, s.delayed()
	case s.traits.Lasts > 0 && reverted == metav1.ConditionTrue && status.RevertedAt != nil &&
		status.InjectedAt != nil:
		message = fmt.Sprintf("reverted %s after the injection",
			format.Duration(status.RevertedAt.Sub(status.InjectedAt.Time)))
	case s.seen.Setting:
		message = fmt.Sprintf("it stays until RedisLoadTest %s has ended, for %s at most",
			s.seen.LoadName, format.Duration(s.traits.Lasts))
	case s.traits.Lasts > 0:
		message = "it lasts for " + format.Duration(s.traits.Lasts)
	}
	s.setCondition(v1alpha1.ConditionReverted, reverted, reason, message)
}

// delayed says which targets cannot be reverted for too long already, why, and how to do it
// manually; "" if there are none.
func (s *scope) delayed() string {
	since := s.fault.Status.RevertingSince
	if since == nil || s.now.Sub(since.Time) < lifecycle.RevertPatience {
		return ""
	}
	var failures []string
	for i := range s.fault.Status.Targets {
		if t := &s.fault.Status.Targets[i]; faultrun.IsOpen(t) &&
			t.RevertAttempts >= lifecycle.RevertAttempts {
			failures = append(failures,
				fmt.Sprintf("pod %s: %s; the revert goes on. To revert manually: %s", t.Pod, t.RevertError,
					s.injector.ManualRevertCommand(t)))
		}
	}
	return strings.Join(failures, "; ")
}

func (s *scope) setRecovered(
	d lifecycle.Decision[lifecycle.FaultAction], o outcome, reason string,
) {
	status := &s.fault.Status
	recovered := status.Impact != nil && status.Impact.Recovered
	shown := state.ConditionStatus(recovered)
	judged := o.ended || status.SettledTime != nil
	if !recovered && (!judged || recoveryUnknown(status) || o.failed ||
		d.Reason == v1alpha1.ReasonAborted) {
		shown = metav1.ConditionUnknown
	}
	message := recoveryMessage(status)
	if s.seen.Setting {
		shown = metav1.ConditionUnknown
		message = "nothing is measured against a setting"
	}
	s.setCondition(v1alpha1.ConditionRecovered, shown, reason, message)
}

// allTargets returns whether every target fulfils a predicate, as the status of a condition.
func (s *scope) allTargets(done func(t v1alpha1.FaultTarget) bool) metav1.ConditionStatus {
	targets := s.fault.Status.Targets
	return state.ConditionStatus(len(targets) > 0 &&
		!slices.ContainsFunc(targets, func(t v1alpha1.FaultTarget) bool { return !done(t) }))
}

func (s *scope) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	state.SetCondition(&s.fault.Status.Conditions, s.fault.Generation, kind, status, reason, message)
}

// recoveryMessage describes the recovery.
func recoveryMessage(status *v1alpha1.RedisFaultStatus) string {
	if status.Impact == nil || !status.Impact.Recovered || status.RecoveredAt == nil {
		return "the throughput has not been at 90% of the baseline for 10s"
	}
	return fmt.Sprintf("the throughput recovered after %s",
		format.Duration(status.Impact.RecoveryTime.Value.Duration()))
}

// impactMessage summarizes the impact on clients in one sentence.
func (s *scope) impactMessage() string {
	i, display := s.fault.Status.Impact, s.fault.Status.Display
	if i == nil || display == nil {
		return "no figures yet"
	}
	fell := "throughput fell by " + display.Dip
	if display.Dip == "" {
		fell = "no throughput before the fault"
	}
	text := fmt.Sprintf("%s, no success for %s, %d errors, %d requests lost", fell,
		orNone(display.Outage), i.Errors, i.LostRequests)
	switch {
	case i.LostWrites != nil:
		text += fmt.Sprintf(", %d acknowledged writes lost", *i.LostWrites)
	case i.LostWritesAtLeast != nil && i.LostWritesAtMost != nil:
		text += fmt.Sprintf(", between %d and %d acknowledged writes lost", *i.LostWritesAtLeast,
			*i.LostWritesAtMost)
	}
	if display.WhileActive != "" {
		text += ", while active " + display.WhileActive
	}
	switch {
	case i.Recovered:
		return text + ", recovered after " + display.Recovery
	case s.fault.Status.SettledTime == nil:
		return text + ", not recovered yet"
	case recoveryUnknown(&s.fault.Status):
		return text + ", whether it recovered is not known"
	}
	return text + ", not recovered within " + format.Duration(s.fault.Spec.RecoveryDeadline.Duration)
}
