package redisloadtest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/runs"
)

// Figures are written every two seconds for each object, and changes of conditions at once.
func TestDue(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(t0)
	r := &Reconciler{Clock: clock, Runs: runs.NewRegistry()}
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	state.SetSummary(&test.Status.Conditions, 1, state.Summary{Reason: v1alpha1.ReasonRunning})
	s := &scope.Test{Test: test, Before: test.DeepCopy(), Run: runs.NewRegistry().Add("a", t0, nil)}
	look := func(what string, at time.Duration, want bool) {
		t.Helper()
		clock.SetTime(t0.Add(at))
		if got := r.statusDue(s); got != want {
			t.Errorf("%s: due %v, want %v", what, got, want)
		}
	}
	look("nothing has changed", 0, false)
	test.Status.Progress = 1
	look("the first figures", 0, true)
	look("figures just after", time.Second, false)
	look("figures a moment too early", 2*time.Second-time.Millisecond, false)
	look("figures when they are due", 2*time.Second, true)
	state.SetSummary(&test.Status.Conditions, 1, state.Summary{Complete: true, Reason: v1alpha1.ReasonSucceeded})
	look("the end", 2*time.Second+time.Millisecond, true)
}
