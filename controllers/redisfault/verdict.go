package redisfault

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// judgeSettled evaluates the objectives that do not depend on losses. The verdict follows when the
// fault is complete.
func (s *scope) judgeSettled() {
	if s.measured != nil {
		s.measured.Observed = result.Seconds(
			s.fault.Status.SettledTime.Sub(s.fault.Status.InjectedAt.Time))
		s.fault.Status.Objectives = verdict.Fault(s.fault.Spec.Objectives, s.measured)
	}
}

// heldDoubts are the doubts about the figures of a load that ran with a setting.
func heldDoubts(status *v1alpha1.RedisFaultStatus) []impact.Doubt {
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

// recoveryUnknown reports whether it is in doubt that a load did not recover.
func recoveryUnknown(status *v1alpha1.RedisFaultStatus) bool {
	return status.Impact != nil &&
		slices.ContainsFunc(status.Impact.Doubts, func(d v1alpha1.Doubt) bool {
			return d.Reason == impact.RecoveryUnknown
		})
}

// doubts are the reasons not to trust the figures of the fault.
func (s *scope) doubts(reason string) (doubts []impact.Doubt) {
	status := &s.fault.Status
	switch {
	case status.InjectedAt == nil:
		doubts = append(doubts, impact.Doubt{
			Reason:  "NotInjected",
			Message: "the fault was not injected",
		})
	case s.seen.Setting:
		doubts = append(doubts, heldDoubts(status)...)
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
	if reason == v1alpha1.ReasonAborted || reason == v1alpha1.ReasonStopped {
		doubts = append(doubts, impact.Doubt{Reason: reason, Message: "the fault was ended early"})
	}
	if status.InjectedAt != nil && status.Effect != v1alpha1.EffectConfirmed && !s.seen.Setting {
		doubts = append(doubts, impact.Doubt{
			Reason:  "EffectUnconfirmed",
			Message: "the effect of the fault is not confirmed",
		})
	}
	return doubts
}

// judge sets the verdict.
func (s *scope) judge(reason string) {
	status, doubts := &s.fault.Status, s.doubts(reason)
	missed := ""
	if status.Impact != nil && !status.Impact.Recovered && !recoveryUnknown(status) {
		missed = fmt.Sprintf("spec.recoveryDeadline: the throughput did not recover within %s",
			format.Duration(s.fault.Spec.RecoveryDeadline.Duration))
	}
	if b := status.Breach; b != nil && b.Answered {
		doubts, missed = nil, b.Message // it has hurt more than allowed, whatever else is in doubt
	} else if b != nil {
		doubts = append(doubts, impact.Doubt{
			Reason:  v1alpha1.ReasonStopConditionMet,
			Message: "the fault was ended early: " + b.Message,
		})
	}
	last := verdict.InStatus(verdict.Losses(s.fault.Spec.Objectives, s.losses))
	judgement := verdict.Conclude(append(status.Objectives, last...), doubts, missed, s.losses)
	status.Verdict = judgement.Verdict
	status.Objectives = judgement.Objectives
	s.judgement = &judgement
	state.SetObjectivesMet(&status.Conditions, s.fault.Generation, judgement)
}
