package redisloadtest

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
)

func (s *scope) setConditions(d lifecycle.Decision[lifecycle.LoadTestAction], o outcome) {
	status, generation := &s.test.Status, s.test.Generation
	reason, message := d.Reason, d.Message
	if o.err != nil {
		message = o.err.Error()
	}
	if o.problem != nil {
		reason, message = o.problem.Reason, o.problem.Message
	}
	if o.ended && !o.failed {
		message = s.summaryMessage(d.Message)
	}
	queued := d.Action == lifecycle.LoadTestWait && reason == v1alpha1.ReasonJobSuspended
	state.SetSummary(&status.Conditions, generation, state.Summary{
		Complete: o.ended && !o.failed, Failed: o.ended && o.failed,
		Suspended: d.Action == lifecycle.LoadTestSuspend && o.err == nil ||
			d.Action == lifecycle.LoadTestWait && reason == v1alpha1.ReasonSuspended || queued,
		Queued: queued,
		Reason: reason, Message: cmp.Or(message, "the load test has ended"),
	})
	s.setAccepted(reason)
	s.setLoadReady(reason, message)
	if meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectivesMet) == nil ||
		!o.ended || o.failed {
		state.SetCondition(&status.Conditions, generation, v1alpha1.ConditionObjectivesMet,
			metav1.ConditionUnknown, reason, "evaluated when the test is complete")
	}
}

func (s *scope) setAccepted(reason string) {
	conditions, generation := &s.test.Status.Conditions, s.test.Generation
	switch {
	case s.seen.Problem != nil:
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionFalse,
			s.seen.Problem.Reason, s.seen.Problem.Message)
	case s.plan != nil:
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionTrue,
			"Accepted", "the target and its Secrets were found")
	default:
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionUnknown,
			reason, "not evaluated yet")
	}
}

func (s *scope) setLoadReady(reason, message string) {
	ready := !s.seen.StartedAt.IsZero() ||
		(s.seen.PodsWanted > 0 && s.seen.PodsReady == s.seen.PodsWanted)
	if ready {
		message = fmt.Sprintf("%[1]d of %[1]d load pods were connected to Redis", s.seen.PodsWanted)
	}
	state.SetCondition(&s.test.Status.Conditions, s.test.Generation, v1alpha1.ConditionLoadReady,
		state.ConditionStatus(ready), reason, message)
}

// summaryMessage summarizes the result of the test in one sentence.
func (s *scope) summaryMessage(why string) string {
	status := &s.test.Status
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
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectivesMet); c != nil &&
		status.Verdict != "" {
		text += fmt.Sprintf("; %s: %s", status.Verdict, c.Message)
	}
	if why != "" {
		text = why + "; " + text
	}
	return text
}
