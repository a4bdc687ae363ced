package redisfault_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// The policy changes between the record of a fault and its first injection: nothing is injected, and the record is
// withdrawn.
func TestPolicyChangesBeforeInjection(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ policy, reason, after string }{
		{"version: v1\n", v1alpha1.ReasonPolicyInvalid, v1alpha1.ReasonActive},
		{"version: v1alpha1\nmaxFaults: 0\n", v1alpha1.ReasonWaitingForPolicy, v1alpha1.ReasonActive},
		{
			"version: v1alpha1\nrules:\n- {name: none, namespaces: {names: ['*']}, forbid: {faults: ['*']}}\n",
			v1alpha1.ReasonForbiddenByPolicy, v1alpha1.ReasonForbiddenByPolicy,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartRedis("")
				w.Kubelet.Start()
				w.SetPolicy("version: v1alpha1\n")
				var once sync.Once
				operatortest.StartOperator(w.Place, operatortest.Spy{Before: func(c operatortest.Write) error {
					if f, is := c.Object.(*v1alpha1.RedisFault); is && f.Status.StartTime != nil && f.Status.InjectedAt == nil {
						once.Do(func() { w.SetPolicy(tc.policy) })
					}
					return nil
				}})
				w.Create(operatortest.LongRun(redis.Address()))
				w.Create(operatortest.HzFor("break", "50", 20*time.Second))
				f := w.FaultHasReason("break", time.Minute, tc.reason)
				if f.Status.StartTime != nil || len(f.Status.Targets) != 0 || f.Status.Holding != nil || redis.Hz("") != "10" {
					t.Errorf("%s; hz is %s, %+v", operatortest.Where(f.Status.Conditions), redis.Hz(""), f.Status)
				}
				w.SetPolicy("version: v1alpha1\nmaxFaults: 1\n")
				f = w.FaultHasReason("break", 2*time.Minute, tc.after)
				if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); tc.after == tc.reason &&
					(c == nil || !strings.Contains(c.Message, `rule "none"`)) {
					t.Errorf("%+v", c)
				}
				w.FaultEnds("break", 5*time.Minute)
				if redis.Hz("") != "10" {
					t.Errorf("hz is %s in the end", redis.Hz(""))
				}
			})
		})
	}
}
