package redisfault

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/ending"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// An operator that starts with rights in one namespace, whose annotations the API server does not send, arms every
// fault at once, and reverts those that are overdue.
func TestRestoreArmsAllFaultsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var faults []client.Object
		for name, injected := range map[string]time.Duration{"a": 0, "b": 0, "c": -time.Hour, "d": 0} {
			f := reverttest.ActiveFault(t, "redis-"+name)
			f.Name, f.UID, f.Spec.Action.Type = name, types.UID(name), v1alpha1.FaultConfig
			at := metav1.NewMicroTime(time.Now().Add(injected))
			f.Status.Targets[0].InjectedAt, f.Status.Targets[0].ActiveAt = &at, &at
			f.Spec.Abort = name == "d"
			faults = append(faults, f)
		}
		api := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(faults...).Build()
		live := interceptor.NewClient(api, interceptor.Funcs{
			Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object,
				_ ...client.GetOption,
			) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		r := &Reconciler{
			Client:     api,
			APIReader:  live,
			Clock:      clock.RealClock{},
			Namespaces: []string{"ns"},
			Term:       faultrun.NewRegistry(nil).NewTerm(),
		}
		defer r.Term.Registry.Close()
		began := time.Now()
		restored := make(chan struct{})
		go func() {
			defer close(restored)
			r.Restore(t.Context())
		}()
		synctest.Wait()
		for name, begins := range map[types.UID]bool{"a": false, "b": false, "c": true, "d": true} {
			v := r.Term.Find(name).Reverter()
			if v == nil || v.Reverting() != begins {
				t.Errorf("fault %s after %s: armed %t, want it to be reverted: %t", name, time.Since(began), v != nil, begins)
			}
		}
		<-restored
		if took := time.Since(began); took > ending.RestoreWithin+faultrun.CallTimeout {
			t.Errorf("reconciles had to wait for %s", took)
		}
	})
}

// The nodes cannot be listed when an operator starts: the taints of lost faults are removed as soon as they can.
func TestNodesAreSweptAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, attempts := time.Now(), 0
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:        "orphan",
				Annotations: map[string]string{v1alpha1.AnnotationTaintPrefix + "gone": "shop/gone"},
			},
			Spec: corev1.NodeSpec{
				Taints: []corev1.Taint{{Key: v1alpha1.TaintFault, Value: "gone", Effect: corev1.TaintEffectNoSchedule}},
			},
		}
		api := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(node).Build()
		live := interceptor.NewClient(api, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if attempts++; time.Since(began) < 2*time.Minute {
					return errors.New("no answer")
				}
				return c.List(ctx, list, options...)
			},
		})
		r := &Reconciler{Client: api, APIReader: live, Clock: clock.RealClock{}, Term: faultrun.NewRegistry(nil).NewTerm()}
		defer r.Term.Registry.Close()
		r.Restore(t.Context())
		r.ending().Sweep(t.Context())
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil || len(node.Spec.Taints) > 0 ||
			len(node.Annotations) > 0 {
			t.Errorf("%v, %+v, annotations %v", err, node.Spec, node.Annotations)
		}
		if took := time.Since(began); took > 4*time.Minute || attempts > 15 {
			t.Errorf("after %s, with %d attempts", took, attempts)
		}
		before := attempts
		if r.ending().Sweep(t.Context()); attempts != before {
			t.Errorf("%d attempts after the sweep", attempts-before)
		}
	})
}
