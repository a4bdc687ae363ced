package controllers

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/verdict"
)

// standing is where an object stands, as its conditions tell it.
type standing struct {
	complete, failed, suspended bool
	reason, message             string
}

// setStanding sets the conditions that both kinds carry. Complete, Failed and Suspended are what Job users look at; without Reconciling
// and Stalled kstatus would take a running and a failed object for current.
func setStanding(conditions *[]metav1.Condition, generation int64, at standing) {
	set := func(kind string, status bool) {
		message := ""
		if status {
			message = at.message
		}
		setCondition(conditions, generation, kind, truth(status), at.reason, message)
	}
	setCondition(conditions, generation, v1alpha1.ConditionComplete, truth(at.complete), at.reason, at.message)
	set(v1alpha1.ConditionFailed, at.failed)
	set(v1alpha1.ConditionSuspended, at.suspended)
	set(v1alpha1.ConditionReconciling, !at.complete && !at.failed && !at.suspended)
	set(v1alpha1.ConditionStalled, at.failed)
}

func setCondition(conditions *[]metav1.Condition, generation int64, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: limited(message, 4096), ObservedGeneration: generation,
	})
}

func truth(b bool) metav1.ConditionStatus {
	if b {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// setObjectivesMet sets the verdict as a condition.
func setObjectivesMet(conditions *[]metav1.Condition, generation int64, j verdict.Judgement) {
	state := metav1.ConditionUnknown
	if j.Verdict != v1alpha1.VerdictInconclusive {
		state = truth(j.Verdict == v1alpha1.VerdictPass)
	}
	setCondition(conditions, generation, v1alpha1.ConditionObjectivesMet, state, j.Reason, j.Message)
}
