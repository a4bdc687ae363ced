package state

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/digest"
)

// Summary is the overall state of an object, which its conditions show.
type Summary struct {
	Complete, Failed, Suspended bool
	// suspended by something that will let it go on: the object is on its way
	Queued          bool
	Reason, Message string
}

// SetSummary sets the conditions that all kinds have that end. Complete, Failed and Suspended are
// those of a Job; without Reconciling and Stalled, kstatus would report a running or failed object
// as current.
func SetSummary(conditions *[]metav1.Condition, generation int64, s Summary) {
	set := func(kind string, status bool) {
		reason, message := s.Reason, ""
		switch {
		case status:
			message = s.Message
		case kind == v1alpha1.ConditionSuspended: // why the object has failed is no reason of that
			reason = v1alpha1.ReasonNotSuspended
		}
		SetCondition(conditions, generation, kind, ConditionStatus(status), reason, message)
	}
	SetCondition(conditions, generation, v1alpha1.ConditionComplete, ConditionStatus(s.Complete),
		s.Reason, s.Message)
	set(v1alpha1.ConditionFailed, s.Failed)
	set(v1alpha1.ConditionSuspended, s.Suspended)
	set(v1alpha1.ConditionReconciling, !s.Complete && !s.Failed && (!s.Suspended || s.Queued))
	set(v1alpha1.ConditionStalled, s.Failed)
}

// SetObjectivesMet sets the verdict as a condition.
func SetObjectivesMet(conditions *[]metav1.Condition, generation int64, j verdict.Judgement) {
	status := metav1.ConditionUnknown
	if j.Verdict != v1alpha1.VerdictInconclusive {
		status = ConditionStatus(j.Verdict == v1alpha1.VerdictPass)
	}
	SetCondition(conditions, generation, v1alpha1.ConditionObjectivesMet, status, j.Reason, j.Message)
}

// SetCondition sets one condition. Its transition time changes only with its status.
func SetCondition(
	conditions *[]metav1.Condition, generation int64, kind string, status metav1.ConditionStatus,
	reason, message string,
) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:               kind,
		Status:             status,
		Reason:             reason,
		Message:            digest.Truncate(message, 4096),
		ObservedGeneration: generation,
	})
}

// ConditionStatus returns True or False.
func ConditionStatus(b bool) metav1.ConditionStatus {
	if b {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// FirstSeen returns when an operator first wrote the status of an unfinished object, by that one's
// clock, or now if none has. The creation is by the API server's clock: a wait that counts from it
// would be over at once where the operator's is ahead.
func FirstSeen(conditions []metav1.Condition, now time.Time) time.Time {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete)
	if c != nil {
		return c.LastTransitionTime.Time
	}
	return now
}

// IsFinished reports whether an object is complete or has failed.
func IsFinished(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionComplete) ||
		meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionFailed)
}

// Succeeded reports whether an object has run to its end.
func Succeeded(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonSucceeded
}

// EndOf is how an object ended, in a sentence.
func EndOf(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete)
	if c == nil {
		return "it was not processed"
	}
	return digest.Truncate(c.Reason+": "+c.Message, 300)
}

// Changed returns a condition if its status or its reason has changed: then an event is due.
// Otherwise it returns nil.
func Changed(before, after []metav1.Condition, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(after, kind)
	old := meta.FindStatusCondition(before, kind)
	if c == nil || (old != nil && old.Reason == c.Reason && old.Status == c.Status) {
		return nil
	}
	return c
}
