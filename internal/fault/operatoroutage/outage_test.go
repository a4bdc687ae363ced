package operatoroutage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

const elsewhere = "operators"

// operator is the Deployment of an operator in a namespace of its own.
func operator(uid types.UID, replicas *int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "redis-operator", UID: uid},
		Spec:       appsv1.DeploymentSpec{Replicas: replicas},
	}
}

func injectorOf(t *testing.T, w *faulttest.World) contract.Injector {
	t.Helper()
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{
		Type: v1alpha1.FaultOperatorOutage,
		OperatorOutage: &v1alpha1.OperatorOutage{
			OperatorReference: v1alpha1.OperatorReference{Deployment: "redis-operator", Namespace: elsewhere},
		},
	}}, w.Of("away"))
	faulttest.Must(t, err)
	return injector
}

func read(t *testing.T, w *faulttest.World) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	faulttest.Must(t, w.Cluster.Get(t.Context(), client.ObjectKey{Namespace: elsewhere, Name: "redis-operator"}, d))
	return d
}

func TestOutage(t *testing.T) {
	w := faulttest.NewWorld(t, operator("u", nil)) // without a number there is one replica
	injector, hit := injectorOf(t, w), &v1alpha1.FaultTarget{Pod: "redis-0"}
	faulttest.Must(t, injector.Preflight(t.Context(), hit))
	effect := func(want v1alpha1.Effect, says string) {
		t.Helper()
		if got, why := injector.Effect(t.Context(), hit); got != want || !strings.Contains(why, says) {
			t.Errorf("%s: %s; want %s, %q", got, why, want, says)
		}
	}
	effect(v1alpha1.EffectNotObserved, "has 1 replicas")
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), hit)))
	d := read(t, w)
	d.Status.Replicas = 1
	faulttest.Must(t, w.Cluster.Status().Update(t.Context(), d))
	effect(v1alpha1.EffectInconclusive, "1 pods of Deployment operators/redis-operator have not ended yet")
	d.Status.Replicas = 0
	faulttest.Must(t, w.Cluster.Status().Update(t.Context(), d))
	effect(v1alpha1.EffectConfirmed, "has no pods but such as are ending, and had 1")
	d.Status.TerminatingReplicas = new(int32(1)) // as newer clusters count them
	faulttest.Must(t, w.Cluster.Status().Update(t.Context(), d))
	effect(v1alpha1.EffectInconclusive, "1 pods of Deployment operators/redis-operator have not ended yet")
	d.Status.TerminatingReplicas = new(int32(0))
	d.Generation = 2
	faulttest.Must(t, w.Cluster.Update(t.Context(), d))
	d.Status.TerminatingReplicas = new(int32(0))
	faulttest.Must(t, w.Cluster.Status().Update(t.Context(), d))
	effect(v1alpha1.EffectInconclusive, "has not scaled it yet")
	d.Status.ObservedGeneration = 2
	faulttest.Must(t, w.Cluster.Status().Update(t.Context(), d))
	effect(v1alpha1.EffectConfirmed, "has no pods, and had 1")
	faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), hit)))
	if got := *read(t, w).Spec.Replicas; got != 1 {
		t.Errorf("reverted to %d", got)
	}
	// another Deployment of the name is none of its business
	w.Hooks.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
		return c.Delete(ctx, o, options...)
	}
	faulttest.Must(t, w.Cluster.Delete(t.Context(), read(t, w)))
	faulttest.Must(t, w.Cluster.Create(t.Context(), operator("another", new(int32(0)))))
	for _, call := range []func(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error){
		injector.Inject, injector.Revert,
	} {
		faulttest.Must(t, faulttest.Called(call(t.Context(), hit)))
	}
	if got := *read(t, w).Spec.Replicas; got != 0 {
		t.Errorf("another Deployment was scaled to %d", got)
	}
	effect(v1alpha1.EffectNotObserved, "was deleted or replaced")
}

// What was scaled between the record and the injection is not broken: the way back would be the wrong one.
func TestScaledSinceTheRecord(t *testing.T) {
	w := faulttest.NewWorld(t, operator("u", new(int32(2))))
	injector, hit := injectorOf(t, w), &v1alpha1.FaultTarget{Pod: "redis-0"}
	faulttest.Must(t, injector.Preflight(t.Context(), hit))
	d := read(t, w)
	d.Spec.Replicas = new(int32(3))
	faulttest.Must(t, w.Cluster.Update(t.Context(), d))
	err := faulttest.Called(injector.Inject(t.Context(), hit))
	if err == nil || !strings.Contains(err.Error(), "has 3 replicas, and had 2 when it was recorded") ||
		*read(t, w).Spec.Replicas != 3 {
		t.Errorf("%v, %d replicas", err, *read(t, w).Spec.Replicas)
	}
}

func TestOutagePreflight(t *testing.T) {
	redquake := operator("u", nil)
	redquake.Spec.Template.Labels = map[string]string{"app.kubernetes.io/name": "redquake"}
	sentinels := operator("u", nil)
	sentinels.Spec.Template.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 26379}}}}
	for name, tc := range map[string]struct {
		objects []client.Object
		denied  client.Object // of its kind
		reason  string
		says    string
	}{
		"no Deployment": {
			nil, nil, v1alpha1.ReasonNoTarget,
			"spec.action.operatorOutage.deployment: there is no Deployment operators/redis-operator",
		},
		"no replicas": {
			[]client.Object{operator("u", new(int32(0)))},
			nil, v1alpha1.ReasonInjectionFailed,
			"has 0 replicas: waiting until it has some",
		},
		"this operator": {[]client.Object{redquake}, nil, v1alpha1.ReasonInvalidSpec, "nobody would be left to revert"},
		"a namespace that is protected": {
			[]client.Object{operator("u", nil), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: elsewhere, Annotations: map[string]string{v1alpha1.AnnotationProtected: "true"},
			}}},
			nil, v1alpha1.ReasonProtected, "namespace operators has the annotation",
		},
		"a namespace without the right": {
			[]client.Object{operator("u", nil)},
			&appsv1.Deployment{}, v1alpha1.ReasonNotSupported,
			"Redquake has no rights in namespace operators: bind them there",
		},
		"a namespace that cannot be read": {
			[]client.Object{operator("u", nil)},
			&corev1.Namespace{}, v1alpha1.ReasonNotSupported,
			"Redquake has no rights in namespace operators: bind them there",
		},
		"sentinels": {[]client.Object{sentinels}, nil, v1alpha1.ReasonInvalidSpec, "serves Redis at port 26379"},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t, tc.objects...)
			w.Hooks.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
				options ...client.GetOption,
			) error {
				if fmt.Sprintf("%T", into) == fmt.Sprintf("%T", tc.denied) {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, key.Name, fmt.Errorf("no right"))
				}
				return c.Get(ctx, key, into, options...)
			}
			hit := &v1alpha1.FaultTarget{Pod: "redis-0"}
			problem := faulttest.ProblemOf(t, injectorOf(t, w).Preflight(t.Context(), hit))
			if problem.Reason != tc.reason || !strings.Contains(problem.Message, tc.says) || hit.Revert != nil {
				t.Errorf("%+v, record %+v", problem, hit.Revert)
			}
		})
	}
}

// A Deployment whose pods are servers of the target is Redis: its guards would not be asked.
func TestRedisIsNoOperator(t *testing.T) {
	d := operator("u", nil)
	d.Namespace, d.Spec.Selector = faulttest.Namespace, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}
	w := faulttest.NewWorld(t, d)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	deps := faulttest.On(w.Of("away"), faulttest.ByPods(map[string]string{"app": "redis"}))
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{
		Type:           v1alpha1.FaultOperatorOutage,
		OperatorOutage: &v1alpha1.OperatorOutage{OperatorReference: v1alpha1.OperatorReference{Deployment: d.Name}},
	}}, deps)
	faulttest.Must(t, err)
	problem := faulttest.ProblemOf(t, injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0"}))
	if problem.Reason != v1alpha1.ReasonInvalidSpec ||
		!strings.Contains(problem.Message, "has pod redis-0 of the target: it is Redis itself") {
		t.Errorf("%+v", problem)
	}
}
