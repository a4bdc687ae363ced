package redisloadtest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
)

func TestSummaryMessage(t *testing.T) {
	s := &scope{test: &v1alpha1.RedisLoadTest{}}
	if got := s.summaryMessage("why"); got != "why" {
		t.Errorf("without figures: %q", got)
	}
	s.test.Status.Summary = &v1alpha1.LoadSummary{Requests: 10, Errors: 1}
	s.test.Status.Display = &v1alpha1.LoadTestDisplay{TPS: "5", P99: "3ms"}
	s.test.Status.Verdict = v1alpha1.VerdictPass
	state.SetCondition(&s.test.Status.Conditions, 1, v1alpha1.ConditionObjectivesMet, metav1.ConditionTrue, "Succeeded",
		"2 of 2 objectives are met")
	if got := s.summaryMessage(
		"ended by spec.abort"); got !=
		"ended by spec.abort; 10 requests at 5/s, 1 errors, p99 3ms; Pass: 2 of 2 objectives are met" {
		t.Errorf("the summary is %q", got)
	}
	s.test.Status.Summary.Requests, s.test.Status.Display = 0, &v1alpha1.LoadTestDisplay{}
	if got := s.summaryMessage(""); got != "no request in the measured time; Pass: 2 of 2 objectives are met" {
		t.Errorf("without a request the summary is %q", got)
	}
}
