package controllers

import (
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
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
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.kubelet.Start()
				w.setPolicy("version: v1alpha1\n")
				var once sync.Once
				startOperator(w.place, spy{Before: func(c write) error {
					if f, is := c.Object.(*v1alpha1.RedisFault); is && f.Status.StartTime != nil && f.Status.InjectedAt == nil {
						once.Do(func() { w.setPolicy(tc.policy) })
					}
					return nil
				}})
				w.create(longRun(redis.address()))
				w.create(hzFor("break", "50", 20*time.Second))
				f := w.faultHasReason("break", time.Minute, tc.reason)
				if f.Status.StartTime != nil || len(f.Status.Targets) != 0 || f.Status.Holding != nil || redis.hz("") != "10" {
					t.Errorf("%s; hz is %s, %+v", where(f.Status.Conditions), redis.hz(""), f.Status)
				}
				w.setPolicy("version: v1alpha1\nmaxFaults: 1\n")
				f = w.faultHasReason("break", 2*time.Minute, tc.after)
				if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); tc.after == tc.reason &&
					(c == nil || !strings.Contains(c.Message, `rule "none"`)) {
					t.Errorf("%+v", c)
				}
				w.faultEnds("break", 5*time.Minute)
				if redis.hz("") != "10" {
					t.Errorf("hz is %s in the end", redis.hz(""))
				}
			})
		})
	}
}
