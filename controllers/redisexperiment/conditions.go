package redisexperiment

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

func (s *scope) setConditions(d lifecycle.Decision[lifecycle.ExperimentAction], o state.Outcome) {
	status, generation := &s.experiment.Status, s.experiment.Generation
	reason, message := d.Reason, d.Message
	if o.Err != nil {
		message = o.Err.Error()
	}
	if o.Problem != nil {
		reason, message = o.Problem.Reason, o.Problem.Message
	}
	if o.Ended && !o.Failed && reason == v1alpha1.ReasonSucceeded {
		message = s.summary()
	}
	state.SetSummary(&status.Conditions, generation, state.Summary{
		Complete:  o.Ended && !o.Failed,
		Failed:    o.Ended && o.Failed,
		Suspended: d.Action == lifecycle.ExperimentWait && reason == v1alpha1.ReasonSuspended,
		Reason:    reason,
		Message:   cmp.Or(message, "in progress"),
	})
	checked := d.Action == lifecycle.ExperimentCheck && o.Err == nil
	s.setAccepted(checked, o, reason)
	s.setRegressed(o, reason)
	if !o.Ended || status.Verdict == "" {
		state.SetCondition(&status.Conditions, generation, v1alpha1.ConditionObjectivesMet,
			metav1.ConditionUnknown, reason, "evaluated when the experiment is complete")
	}
}

func (s *scope) setAccepted(checked bool, o state.Outcome, reason string) {
	conditions := &s.experiment.Status.Conditions
	generation := s.experiment.Generation
	var trouble *problem.Problem
	switch {
	case o.Problem != nil:
		trouble = o.Problem
	case s.seen.Problem != nil && !s.seen.Started:
		trouble = s.seen.Problem
	}
	switch {
	case trouble != nil:
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionFalse,
			trouble.Reason, trouble.Message)
	case checked, s.seen.Started, accepted(s.experiment):
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionTrue,
			"Accepted", "the API server accepts what every cell will create")
	default:
		state.SetCondition(conditions, generation, v1alpha1.ConditionAccepted, metav1.ConditionUnknown,
			reason, "not evaluated yet")
	}
}

// summary is the result of the experiment in a sentence.
func (s *scope) summary() string {
	count := map[v1alpha1.ComparisonVerdict]int{}
	for _, c := range s.experiment.Status.Comparison {
		count[c.Verdict]++
	}
	return fmt.Sprintf("%s of %s: %s worse, %d better, %d the same, %d inconclusive",
		format.Plural(s.seen.Recorded, "run"), format.Plural(len(s.plan.Variants), "cell"),
		format.Plural(count[v1alpha1.ComparisonWorse], "comparison"), count[v1alpha1.ComparisonBetter],
		count[v1alpha1.ComparisonSame], count[v1alpha1.ComparisonInconclusive])
}
