package conditions

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
)

func TestSummaryMessage(t *testing.T) {
	s := &scope.Test{Test: &v1alpha1.RedisLoadTest{}}
	if got := summaryMessage(s, "why"); got != "why" {
		t.Errorf("without figures: %q", got)
	}
	s.Test.Status.Summary = &v1alpha1.LoadSummary{Requests: 10, Errors: 1}
	s.Test.Status.Display = &v1alpha1.LoadTestDisplay{TPS: "5", P99: "3ms"}
	s.Test.Status.Verdict = v1alpha1.VerdictPass
	state.SetCondition(&s.Test.Status.Conditions, 1, v1alpha1.ConditionObjectivesMet, metav1.ConditionTrue, "Succeeded",
		"2 of 2 objectives are met")
	if got := summaryMessage(s,
		"ended by spec.abort"); got !=
		"ended by spec.abort; 10 requests at 5/s, 1 errors, p99 3ms; Pass: 2 of 2 objectives are met" {
		t.Errorf("the summary is %q", got)
	}
	s.Test.Status.Summary.Requests, s.Test.Status.Display = 0, &v1alpha1.LoadTestDisplay{}
	if got := summaryMessage(s, ""); got != "no request in the measured time; Pass: 2 of 2 objectives are met" {
		t.Errorf("without a request the summary is %q", got)
	}
}
