package fault

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/format"
)

// judgeSettled evaluates the objectives that do not depend on losses. The verdict follows when the fault is complete.
func (s *scope) judgeSettled() {
	if s.measured != nil {
		s.fault.Status.Objectives = verdict.Fault(s.fault.Spec.Objectives, s.measured)
	}
}

// judge sets the verdict.
func (s *scope) judge(reason string) {
	status := &s.fault.Status
	var doubts []impact.Doubt
	switch {
	case status.InjectedAt == nil:
		doubts = append(doubts, impact.Doubt{Reason: "NotInjected", Message: "the fault was not injected"})
	case status.Impact == nil:
		doubts = append(doubts, impact.Doubt{Reason: "RecordOutOfReach", Message: "the load's record could not be read: there are no figures"})
	default:
		for _, d := range status.Impact.Doubts {
			doubts = append(doubts, impact.Doubt{Reason: d.Reason, Message: d.Message})
		}
	}
	if reason == v1alpha1.ReasonAborted || reason == v1alpha1.ReasonStopped {
		doubts = append(doubts, impact.Doubt{Reason: reason, Message: "the fault was ended early"})
	}
	if status.InjectedAt != nil && status.Effect != v1alpha1.EffectConfirmed {
		doubts = append(doubts, impact.Doubt{Reason: "EffectUnconfirmed", Message: "the effect of the fault is not confirmed"})
	}
	missed := ""
	if status.Impact != nil && !status.Impact.Recovered {
		missed = fmt.Sprintf("spec.recoveryDeadline: the throughput did not recover within %s", format.Duration(s.fault.Spec.RecoveryDeadline.Duration))
	}
	if b := status.Breach; b != nil && b.Answered {
		doubts, missed = nil, b.Message // it has hurt more than allowed, whatever else is in doubt
	} else if b != nil {
		doubts = append(doubts, impact.Doubt{Reason: v1alpha1.ReasonStopConditionMet, Message: "the fault was ended early: " + b.Message})
	}
	judgement := verdict.Conclude(append(status.Objectives, verdict.Losses(s.fault.Spec.Objectives, s.losses)...), doubts, missed)
	status.Verdict, status.Objectives = judgement.Verdict, judgement.Objectives
	state.SetObjectivesMet(&status.Conditions, s.fault.Generation, judgement)
}
