package redisloadtest_test

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// Load pods ask for no user where the namespace assigns one, as OpenShift's do.
func TestNamespaceThatAssignsUserIDs(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		p.Annotate(p.Namespace, "openshift.io/sa.scc.uid-range", "1000680000/10000")
		p.CreateLoad(operatortest.Load())
		p.TestHasReason("run", 10*time.Second, v1alpha1.ReasonRunning)
		job := &batchv1.Job{}
		if err := p.Client.Get(t.Context(), client.ObjectKey{Namespace: p.Namespace, Name: children.LoadJobName("run")},
			job); err != nil {
			t.Fatal(err)
		}
		if s := job.Spec.Template.Spec.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil ||
			!*s.RunAsNonRoot {
			t.Errorf("security context %+v, want no fixed IDs", s)
		}
	})
}

// What only Kubernetes checks about pods fails the test at once, with its message.
func TestRefusedLoadPods(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		p := w.Place
		redis := w.StartRedis("")
		w.Client = interceptor.NewClient(w.Client, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if _, ok := object.(*batchv1.Job); ok {
					return apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, object.GetName(), field.ErrorList{
						field.Invalid(field.NewPath("spec.template.spec.affinity"), "x", "operator is unknown"),
					})
				}
				return c.Create(ctx, object, options...)
			},
		})
		operatortest.StartOperator(p, operatortest.Spy{})
		p.Create(operatortest.NewLoadTest("run", redis.Address(), nil))
		failed(p, "run", 10*time.Second, v1alpha1.ReasonInvalidSpec, "spec.pods", "operator is unknown")
	})
}
