package redisloadtest_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// An API can be loaded without a Redis: nothing is said about one, and a fault on that load must name its own.
func TestLoadWithoutTarget(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		w.Kubelet.Start()
		operatortest.StartOperator(p, operatortest.Spy{})
		p.Create(operatortest.NewLoadTest("api", "", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Target = v1alpha1.RedisTarget{}
			test.Spec.Load.Duration = operatortest.Length(5 * time.Second)
			test.Spec.Workload = v1alpha1.Workload{HTTP: &v1alpha1.HTTPWorkload{URL: "http://shop"}, Seed: new(int64(41))}
		}))
		p.Create(operatortest.NewFault("kill", "api", v1alpha1.FaultPodKill, nil))
		f := p.FaultEnds("kill", 30*time.Second)
		c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed)
		if c == nil || c.Reason != v1alpha1.ReasonInvalidSpec ||
			!strings.Contains(c.Message, "spec.target: RedisLoadTest api has no target") {
			t.Errorf("the fault: %+v", f.Status.Conditions)
		}
		test := p.TestEnds("api", 30*time.Second)
		s := &test.Status
		if operatortest.Reason(s.Conditions) != v1alpha1.ReasonSucceeded || s.Verdict != v1alpha1.VerdictPass ||
			s.Summary == nil ||
			s.Summary.Requests != 1000 {
			t.Errorf("%s, verdict %s, %+v", operatortest.Where(s.Conditions), s.Verdict, s.Summary)
		}
		if s.Seed == nil || *s.Seed != 41 {
			t.Errorf("the seed is %v, want that of the spec", s.Seed)
		}
		if s.Target != nil || s.Redis != nil {
			t.Errorf("a Redis is reported: %+v, %+v", s.Target, s.Redis)
		}
	})
}
