package figures

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// judgeSettled evaluates the objectives that do not depend on losses. The verdict follows when the
// fault is complete.
func judgeSettled(s *scope.Fault) {
	if s.Measured != nil {
		s.Measured.Observed = result.Seconds(
			s.Fault.Status.SettledTime.Sub(s.Fault.Status.InjectedAt.Time))
		s.Fault.Status.Objectives = verdict.Fault(s.Fault.Spec.Objectives, s.Measured)
	}
}

// judgedLosses evaluates the objective of the lost writes, with its default.
func judgedLosses(s *scope.Fault) []result.Objective {
	limits := ptr.Deref(s.Fault.Spec.Objectives, v1alpha1.FaultObjectives{})
	kind := declared.Of(&s.Fault.Spec)
	if limits.MaxLostWrites == nil && kind != nil && kind.Keeps && s.Test != nil &&
		ptr.Deref(s.Test.Spec.Verify, v1alpha1.LoadVerify{}).AcknowledgedWrites {
		limits.MaxLostWrites = new(int64(0))
	}
	return verdict.Losses(&limits, s.Losses)
}

// HeldDoubts are the doubts about the figures of a load that ran with a setting.
func HeldDoubts(status *v1alpha1.RedisFaultStatus) []impact.Doubt {
	switch held := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionHeld); {
	case held == nil:
		return []impact.Doubt{
			{Reason: v1alpha1.ReasonNotConfirmed, Message: "whether the setting was in force is not known"},
		}
	case held.Status != metav1.ConditionTrue:
		return []impact.Doubt{{Reason: held.Reason, Message: held.Message}}
	}
	return nil
}

// RecoveryUnknown reports whether it is in doubt that a load did not recover.
func RecoveryUnknown(status *v1alpha1.RedisFaultStatus) bool {
	return status.Impact != nil &&
		slices.ContainsFunc(status.Impact.Doubts, func(d v1alpha1.Doubt) bool {
			return d.Reason == impact.RecoveryUnknown
		})
}

// doubts are the reasons not to trust the figures of the fault.
func doubts(s *scope.Fault) (doubts []impact.Doubt) {
	status := &s.Fault.Status
	switch {
	case status.InjectedAt == nil:
		doubts = append(doubts, impact.Doubt{
			Reason:  v1alpha1.ReasonNotInjected,
			Message: "the fault was not injected",
		})
	case s.Seen.Setting:
		doubts = append(doubts, HeldDoubts(status)...)
	case status.Impact == nil:
		doubts = append(doubts, impact.Doubt{
			Reason:  "RecordOutOfReach",
			Message: "the load's record could not be read: there are no figures",
		})
	default:
		for _, d := range status.Impact.Doubts {
			doubts = append(doubts, impact.Doubt{Reason: d.Reason, Message: d.Message})
		}
	}
	if status.InjectedAt != nil && status.Effect != v1alpha1.EffectConfirmed && !s.Seen.Setting {
		doubts = append(doubts, impact.Doubt{
			Reason:  "EffectUnconfirmed",
			Message: "the effect of the fault is not confirmed",
		})
	}
	return doubts
}

// endedEarly is the doubt about a fault that was ended before its time, unless because it had hurt
// more than allowed; nil = it was not.
func endedEarly(status *v1alpha1.RedisFaultStatus, reason string) *impact.Doubt {
	switch b := status.Breach; {
	case b != nil && !b.Answered:
		return &impact.Doubt{
			Reason:  v1alpha1.ReasonStopConditionMet,
			Message: "the fault was ended early: " + b.Message,
		}
	case b == nil && (reason == v1alpha1.ReasonAborted || reason == v1alpha1.ReasonStopped):
		return &impact.Doubt{Reason: reason, Message: "the fault was ended early"}
	}
	return nil
}

// judge sets the verdict. What makes it doubtful that it was ended early is kept with the other
// doubts.
func judge(s *scope.Fault, reason string) {
	status := &s.Fault.Status
	doubts := doubts(s)
	if early := endedEarly(status, reason); early != nil {
		doubts = append(doubts, *early)
		if status.Impact != nil {
			status.Impact.Doubts = append(status.Impact.Doubts, digest.Doubts([]impact.Doubt{*early})...)
		}
	}
	var missed verdict.Missed
	if status.Impact != nil && !status.Impact.Recovered && !RecoveryUnknown(status) {
		missed.Message = fmt.Sprintf("spec.recoveryDeadline: the throughput did not recover within %s",
			format.Duration(s.Fault.Spec.RecoveryDeadline.Duration))
	}
	if b := status.Breach; b != nil && b.Answered {
		missed = verdict.Missed{Message: b.Message, Certain: true} // it has hurt more than allowed
	}
	last := verdict.InStatus(judgedLosses(s))
	judgement := verdict.Conclude(append(status.Objectives, last...), doubts, missed, s.Losses)
	status.Verdict = judgement.Verdict
	status.Objectives = judgement.Objectives
	s.Judgement = &judgement
	state.SetObjectivesMet(&status.Conditions, s.Fault.Generation, judgement)
}
