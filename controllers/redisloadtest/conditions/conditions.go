// Package conditions says in the status how a load test stands.
package conditions

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
)

// Set sets the conditions.
func Set(s *scope.Test, d lifecycle.Decision[lifecycle.LoadTestAction], o state.Outcome) {
	status, generation := &s.Test.Status, s.Test.Generation
	reason, message := d.Reason, d.Message
	if o.Err != nil {
		message = o.Err.Error()
	}
	if o.Problem != nil {
		reason, message = o.Problem.Reason, o.Problem.Message
	}
	if o.Ended && !o.Failed {
		message = summaryMessage(s, d.Message)
	}
	queued := d.Action == lifecycle.LoadTestWait && reason == v1alpha1.ReasonJobSuspended
	state.SetSummary(&status.Conditions, generation, state.Summary{
		Complete: o.Ended && !o.Failed,
		Failed:   o.Ended && o.Failed,
		Suspended: d.Action == lifecycle.LoadTestSuspend && o.Err == nil ||
			d.Action == lifecycle.LoadTestWait && reason == v1alpha1.ReasonSuspended || queued,
		Queued:  queued,
		Reason:  reason,
		Message: cmp.Or(message, "the load test has ended"),
	})
	setAccepted(s, reason)
	setLoadReady(s, reason, message)
	if meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectivesMet) == nil ||
		!o.Ended || o.Failed {
		state.SetCondition(&status.Conditions, generation, v1alpha1.ConditionObjectivesMet,
			metav1.ConditionUnknown, reason, "evaluated when the test is complete")
	}
}

func setAccepted(s *scope.Test, reason string) {
	conditions, generation := &s.Test.Status.Conditions, s.Test.Generation
	switch {
	case s.Seen.Problem != nil:
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionFalse,
			s.Seen.Problem.Reason, s.Seen.Problem.Message)
	case s.Plan != nil:
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionTrue,
			"Accepted", "the target and its Secrets were found")
	default:
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionUnknown,
			reason, "not evaluated yet")
	}
}

func setLoadReady(s *scope.Test, reason, message string) {
	ready := !s.Seen.StartedAt.IsZero() ||
		(s.Seen.PodsWanted > 0 && s.Seen.PodsReady == s.Seen.PodsWanted)
	if ready {
		message = fmt.Sprintf("%[1]d of %[1]d load pods were connected to Redis", s.Seen.PodsWanted)
	}
	state.SetCondition(&s.Test.Status.Conditions, s.Test.Generation, v1alpha1.ConditionLoadReady,
		state.ConditionStatus(ready), reason, message)
}

// summaryMessage summarizes the result of the test in one sentence.
func summaryMessage(s *scope.Test, why string) string {
	status := &s.Test.Status
	if status.Summary == nil || status.Display == nil {
		return why
	}
	text := "no request in the measured time"
	if status.Summary.Requests > 0 {
		text = fmt.Sprintf("%d requests at %s/s, %d errors", status.Summary.Requests, status.Display.TPS,
			status.Summary.Errors)
	}
	if status.Display.P99 != "" {
		text += ", p99 " + status.Display.P99
	}
	if status.Search != nil && status.Search.Message != "" {
		text = status.Search.Message + "; " + text
	}
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectivesMet)
	if c != nil && status.Verdict != "" {
		text += fmt.Sprintf("; %s: %s", status.Verdict, c.Message)
	}
	if why != "" {
		text = why + "; " + text
	}
	return text
}
