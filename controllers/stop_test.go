package controllers

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// annotate sets or removes an annotation of a namespace.
func (p *place) annotate(namespace, name, value string) {
	p.t.Helper()
	object := &corev1.Namespace{}
	if err := p.client.Get(context.Background(), client.ObjectKey{Name: namespace}, object); err != nil {
		p.t.Fatal(err)
	}
	before := object.DeepCopy()
	object.Annotations = map[string]string{name: value}
	if value == "" {
		object.Annotations = nil
	}
	p.mustChange(p.client.Patch(context.Background(), object, client.MergeFrom(before)))
}

// A protected namespace rejects faults.
func TestProtectedNamespace(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(p, spy{})
		p.annotate(p.namespace, v1alpha1.AnnotationProtected, "true")
		p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(
				time.Hour)
		}))
		p.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = length(
				0)
		}))
		f := p.faultEnds("kill", time.Minute)
		if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); c == nil ||
			c.Reason != v1alpha1.ReasonProtected || !strings.Contains(c.Message, v1alpha1.AnnotationProtected) {
			t.Errorf("Failed is %+v, want Protected and the annotation", c)
		}
		if len(f.Status.Targets) != 0 || len(redis.podsDeleted()) != 0 {
			t.Errorf("targets %+v, pods deleted %v", f.Status.Targets, redis.podsDeleted())
		}
	})
}
