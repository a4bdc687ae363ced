package redisloadtest_test

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// TestCleanup: the load pods remove the keys of their load together, each its part, before the test is complete, and
// leave those of an application. Without it, and after an abort, the keys stay.
func TestCleanup(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cleanup v1alpha1.KeyCleanup
		keys    int64
		abort   bool
		left    bool
	}{
		"delete":          {v1alpha1.CleanupDelete, 100_000, false, false},
		"keep":            {v1alpha1.CleanupKeep, 1000, false, true},
		"delete, aborted": {v1alpha1.CleanupDelete, 1000, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartEngine()
				operatortest.StartOperator(w.Place, operatortest.Spy{})
				redis.Put("rq:of-an-application", "1")
				w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Pods.Count = 3
					test.Spec.Workload.Keyspace.Keys = tt.keys
					test.Spec.Workload.Keyspace.Prefill = true
					test.Spec.Workload.Keyspace.Cleanup = tt.cleanup
				}))
				if tt.abort {
					w.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
					w.MustChange(operatortest.Change(w.Place, operatortest.NamedTest("run"),
						func(test *v1alpha1.RedisLoadTest) { test.Spec.Abort = true }))
				}
				if !tt.left {
					w.TestHasReason("run", time.Minute, v1alpha1.ReasonCleaningUp)
				}
				test := w.TestEnds("run", 2*time.Minute)
				if tt.abort == (operatortest.Reason(test.Status.Conditions) == v1alpha1.ReasonSucceeded) {
					w.T.Errorf("the test: %s", operatortest.Where(test.Status.Conditions))
				}
				left := len(redis.Keys("rq:"))
				if !tt.left && left != 1 || tt.left && left < int(tt.keys) {
					w.T.Errorf("%d keys are left", left)
				}
				// without it 4 s; 50,000 keys a second
				took := test.Status.CompletionTime.Sub(test.Status.StartTime.Time)
				if waited := took > 4500*time.Millisecond; waited == tt.left {
					w.T.Errorf("the test took %s", took)
				}
			})
		})
	}
}
