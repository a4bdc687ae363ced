package network_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// fromOperator is a cut from the operator whose pods are at 10.0.2.1 and 10.0.2.2, in a namespace of its own.
func fromOperator(t *testing.T) *bench {
	t.Helper()
	action := partition(v1alpha1.PeerOperator)
	action.NetworkPartition.Operator = &v1alpha1.OperatorReference{Deployment: "redis-operator", Namespace: "ops"}
	b := newBench(t, action)
	faulttest.Must(t, b.Cluster.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "redis-operator"},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "operator"}}},
	}))
	b.operatorPod("a", "10.0.2.1", "operator")
	b.operatorPod("b", "10.0.2.2", "operator")
	b.operatorPod("stranger", "10.0.2.3", "other")
	return b
}

func (b *bench) operatorPod(name, ip, app string) {
	b.T.Helper()
	faulttest.Must(b.T, b.Cluster.Create(b.T.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, UID: types.UID(name), Labels: map[string]string{"app": app}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip},
	}))
}

// The operator of a Redis is cut off wherever its pods are, also those that take their places under other names; while
// the API server does not answer, those of before.
func TestOperatorIsFollowed(t *testing.T) {
	b := fromOperator(t)
	b.inject()
	b.drops("in true, out true, except false, share 10000, peers 10.0.2.1 10.0.2.2")
	faulttest.Must(t, b.Cluster.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a"}}))
	b.operatorPod("c", "10.0.2.9", "operator")
	faulttest.Must(t, b.renew())
	b.drops("peers 10.0.2.2 10.0.2.9")
	if server, pod := b.injector().Traits().Silences, b.injector().Traits().WholePod; server || pod {
		t.Errorf("it silences the server %t, the pod %t", server, pod)
	}
	if says := b.injector().Describe(b.target).Action; !strings.Contains(says, "the pods of Deployment redis-operator") {
		t.Error(says)
	}
}

// An operator that there is not, without a pod, on its node's network, or Redquake itself, is refused.
func TestOperatorsThatCannotBeCutOff(t *testing.T) {
	deployment := func(b *bench) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		faulttest.Must(b.T, b.Cluster.Get(b.T.Context(), types.NamespacedName{Namespace: "ops", Name: "redis-operator"}, d))
		return d
	}
	for name, tc := range map[string]struct {
		change func(b *bench)
		says   string
	}{
		"none": {
			func(b *bench) { b.spec.Action.NetworkPartition.Operator.Deployment = "gone" },
			"spec.action.networkPartition.operator: there is no Deployment ops/gone",
		},
		"without a pod": {
			func(b *bench) {
				for _, name := range []string{"a", "b"} {
					faulttest.Must(b.T,
						b.Cluster.Delete(b.T.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name}}))
				}
			},
			"there are no Operator to pod redis-0",
		},
		"Redquake": {
			func(b *bench) {
				d := deployment(b)
				d.Spec.Template.Labels = map[string]string{"app.kubernetes.io/name": "redquake"}
				faulttest.Must(b.T, b.Cluster.Update(b.T.Context(), d))
			},
			"Deployment ops/redis-operator is Redquake",
		},
		"on its node's network": {
			func(b *bench) {
				faulttest.Must(b.T, b.Cluster.Create(b.T.Context(), &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "host", Labels: map[string]string{"app": "operator"}},
					Spec:       corev1.PodSpec{HostNetwork: true},
					Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.1.9"},
				}))
			},
			"pod host has spec.hostNetwork",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := fromOperator(t)
			tc.change(b)
			p := faulttest.ProblemOf(t, b.injector().Preflight(t.Context(), b.target))
			if !strings.Contains(p.Message, tc.says) || b.target.Revert != nil {
				t.Errorf("%+v, record %v", p, b.target.Revert)
			}
		})
	}
}
