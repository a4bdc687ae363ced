// Package conditions says in the status how a fault stands: its conditions, the messages of these,
// and the columns of tables.
package conditions

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/lifecycle"
)

// Set sets the conditions.
func Set(s *scope.Fault, d lifecycle.Decision[lifecycle.FaultAction], o state.Outcome) {
	reason, message := summary(s, d, o)
	state.SetSummary(&s.Fault.Status.Conditions, s.Fault.Generation, state.Summary{
		Complete:  o.Ended && !o.Failed,
		Failed:    o.Ended && o.Failed,
		Suspended: !o.Ended && s.Seen.Suspend && !s.Seen.Recorded,
		Reason:    reason,
		Message:   message,
	})
	setSelected(s, o, reason, message)
	if o.Ended && !s.Seen.Recorded && !s.Seen.InjectedAny && !s.Traits.External && !s.Seen.DryRun &&
		s.Seen.Restored == "" {
		setNever(s)
		return
	}
	setInjected(s, reason)
	setReverted(s, reason)
	setRecovered(s, d, o, reason)
}

// setNever sets what follows of a fault that has ended before anything of it was injected: Complete
// says why.
func setNever(s *scope.Fault) {
	const never = v1alpha1.ReasonNotInjected
	setCondition(s, v1alpha1.ConditionInjected, metav1.ConditionFalse, never, "nothing was injected")
	setCondition(s, v1alpha1.ConditionReverted, metav1.ConditionFalse, never,
		"there is nothing to revert")
	setCondition(s, v1alpha1.ConditionRecovered, metav1.ConditionUnknown, never,
		"there is no recovery to measure")
}

// summary is where the fault stands.
func summary(s *scope.Fault,
	d lifecycle.Decision[lifecycle.FaultAction], o state.Outcome,
) (reason, message string) {
	reason, message = d.Reason, d.Message
	if o.Problem != nil {
		reason, message = o.Problem.Reason, o.Problem.Message
	}
	if s.Seen.Setting {
		return reason, settingSummary(s, d, o, message)
	}
	if o.Ended && !o.Failed && reason == v1alpha1.ReasonSucceeded {
		reason, message = recoveryReason(s), impactMessage(s)
	}
	if d.Action == lifecycle.FaultObserve || d.Action == lifecycle.FaultHold && o.Problem == nil {
		message = impactMessage(s) + rolesMessage(s)
	}
	b := s.Fault.Status.Breach
	if b != nil &&
		(d.Action == lifecycle.FaultObserve || reason == v1alpha1.ReasonStopConditionMet && !o.Failed) {
		message = b.Message + "; " + impactMessage(s)
	}
	return reason, message
}

// recoveryReason is the reason of a fault that has run to its end, by its recovery.
func recoveryReason(s *scope.Fault) string {
	switch i := s.Fault.Status.Impact; {
	// nil: the record could never be read
	case i == nil, !i.Recovered && figures.RecoveryUnknown(&s.Fault.Status):
		return v1alpha1.ReasonInconclusive
	case !i.Recovered:
		return v1alpha1.ReasonNotRecovered
	}
	return v1alpha1.ReasonSucceeded
}

func setSelected(s *scope.Fault, o state.Outcome, reason, message string) {
	names := scope.PodNames(s.Fault.Status.Targets)
	switch {
	case s.Traits.External:
		setCondition(s, v1alpha1.ConditionTargetsSelected, metav1.ConditionUnknown, reason,
			"type External selects no target")
	case len(names) > 0:
		setCondition(s, v1alpha1.ConditionTargetsSelected, metav1.ConditionTrue, "Selected",
			strings.Join(names, ", "))
	case o.Problem != nil && !claims.WaitsForOthers(reason):
		setCondition(s, v1alpha1.ConditionTargetsSelected, metav1.ConditionFalse, reason, message)
	default: // also when the trigger has lapsed since the targets could not be selected
		setCondition(s, v1alpha1.ConditionTargetsSelected, metav1.ConditionUnknown, reason,
			"not selected yet")
	}
}

func setInjected(s *scope.Fault, reason string) {
	injected := allTargets(s, func(t v1alpha1.FaultTarget) bool { return t.InjectedAt != nil })
	message := "effect: " + orNone(string(s.Fault.Status.Effect))
	if s.Traits.External {
		injected = state.ConditionStatus(s.Fault.Status.InjectedAt != nil)
		message = "something else breaks Redis; " + message
	}
	setStep(s, v1alpha1.ConditionInjected, injected, reason, message)
}

func setReverted(s *scope.Fault, reason string) {
	status := &s.Fault.Status
	reverted := allTargets(s, func(t v1alpha1.FaultTarget) bool { return t.RevertedAt != nil })
	message := "a fault of type " + string(s.Fault.Spec.Action.Type) + " leaves nothing to revert"
	if s.Traits.Lasts == 0 && reverted == metav1.ConditionTrue {
		reason = v1alpha1.ReasonNothingToRevert
	}
	switch {
	case s.Seen.DryRun, s.Traits.External, s.Seen.Restored != "":
		reverted, reason = metav1.ConditionTrue, v1alpha1.ReasonNothingToRevert
		message = "the operator injects nothing: there is nothing to revert"
	case s.Seen.RevertFailed != "":
		reason = v1alpha1.ReasonRevertFailed
		message = digest.Truncate(s.Seen.RevertFailed, 32000)
	case delayedReverts(s) != "":
		reason, message = v1alpha1.ReasonRevertDelayed, delayedReverts(s)
	case s.Traits.Lasts > 0 && reverted == metav1.ConditionTrue:
		reason, message = v1alpha1.ConditionReverted, "what was tried is reverted"
		if status.RevertedAt != nil && status.InjectedAt != nil {
			message = fmt.Sprintf("reverted %s after the injection",
				format.Duration(status.RevertedAt.Sub(status.InjectedAt.Time)))
		}
	case s.Seen.Setting:
		message = fmt.Sprintf("it stays until RedisLoadTest %s has ended, for %s at most",
			s.Seen.LoadName, format.Duration(s.Traits.Lasts))
	case s.Traits.Lasts > 0:
		message = "it lasts for " + format.Duration(s.Traits.Lasts)
	}
	setCondition(s, v1alpha1.ConditionReverted, reverted, reason, message)
}

// delayedReverts says which targets cannot be reverted for too long already, why, and how to do it
// manually; "" if there are none.
func delayedReverts(s *scope.Fault) string {
	since := s.Fault.Status.RevertingSince
	if since == nil || s.Now.Sub(since.Time) < lifecycle.RevertPatience {
		return ""
	}
	var failures []string
	for i := range s.Fault.Status.Targets {
		t := &s.Fault.Status.Targets[i]
		if faultrun.IsOpen(t) && t.RevertAttempts >= lifecycle.RevertAttempts {
			failures = append(failures,
				fmt.Sprintf("pod %s: %s; the revert goes on. To revert manually: %s", t.Pod, t.RevertError,
					s.Injector.ManualRevertCommand(t)))
		}
	}
	return strings.Join(failures, "; ")
}

func setRecovered(s *scope.Fault,
	d lifecycle.Decision[lifecycle.FaultAction], o state.Outcome, reason string,
) {
	status := &s.Fault.Status
	recovered := status.Impact != nil && status.Impact.Recovered
	shown := state.ConditionStatus(recovered)
	judged := o.Ended || status.SettledTime != nil
	if !recovered && (!judged || figures.RecoveryUnknown(status) || o.Failed ||
		d.Reason == v1alpha1.ReasonAborted) {
		shown = metav1.ConditionUnknown
	}
	message := recoveryMessage(status)
	if s.Seen.Setting {
		shown = metav1.ConditionUnknown
		message = "nothing is measured against a setting"
	}
	setStep(s, v1alpha1.ConditionRecovered, shown, reason, message)
}

// allTargets returns whether every target fulfils a predicate, as the status of a condition.
func allTargets(s *scope.Fault, done func(t v1alpha1.FaultTarget) bool) metav1.ConditionStatus {
	targets := s.Fault.Status.Targets
	return state.ConditionStatus(len(targets) > 0 &&
		!slices.ContainsFunc(targets, func(t v1alpha1.FaultTarget) bool { return !done(t) }))
}

// setStep sets the condition of a step. Where the fault stands is the reason of a step that was not taken; one that was
// taken has its own, whatever became of the fault later.
func setStep(
	s *scope.Fault, kind string, status metav1.ConditionStatus, reason, message string,
) {
	if status == metav1.ConditionTrue {
		reason = kind
	}
	setCondition(s, kind, status, reason, message)
}

func setCondition(
	s *scope.Fault, kind string, status metav1.ConditionStatus, reason, message string,
) {
	state.SetCondition(&s.Fault.Status.Conditions, s.Fault.Generation, kind, status, reason, message)
}

// recoveryMessage describes the recovery.
func recoveryMessage(status *v1alpha1.RedisFaultStatus) string {
	if status.Impact == nil || !status.Impact.Recovered || status.RecoveredAt == nil {
		return "the throughput has not been at 90% of the baseline for 10s"
	}
	return fmt.Sprintf("the throughput recovered after %s",
		format.Duration(status.Impact.RecoveryTime.Value.Duration))
}

// impactMessage summarizes the impact on clients in one sentence.
func impactMessage(s *scope.Fault) string {
	i, display := s.Fault.Status.Impact, s.Fault.Status.Display
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
	case s.Fault.Status.SettledTime == nil:
		return text + ", not recovered yet"
	case figures.RecoveryUnknown(&s.Fault.Status):
		return text + ", whether it recovered is not known"
	}
	return text + ", not recovered within " + format.Duration(s.Fault.Spec.RecoveryDeadline.Duration)
}

// rolesMessage is what a fault still waits for after the recovery of its load; "" = nothing.
func rolesMessage(s *scope.Fault) string {
	if s.RolesOpen == "" {
		return ""
	}
	return "; waiting until it is decided which server is the primary: " + s.RolesOpen
}
