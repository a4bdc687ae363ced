package redisfault_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// A protected namespace rejects faults.
func TestProtectedNamespace(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		p.Annotate(p.Namespace, v1alpha1.AnnotationProtected, "true")
		p.CreateLoad(operatortest.Lasting(time.Hour))
		p.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = operatortest.Length(
				0)
		}))
		f := p.FaultEnds("kill", time.Minute)
		if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); c == nil ||
			c.Reason != v1alpha1.ReasonProtected || !strings.Contains(c.Message, v1alpha1.AnnotationProtected) {
			t.Errorf("Failed is %+v, want Protected and the annotation", c)
		}
		if len(f.Status.Targets) != 0 || len(p.Redis.PodsDeleted()) != 0 {
			t.Errorf("targets %+v, pods deleted %v", f.Status.Targets, p.Redis.PodsDeleted())
		}
	})
}
