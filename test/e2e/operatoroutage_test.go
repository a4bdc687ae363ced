//go:build e2e

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestOperatorOutage takes the Deployment that looks after a Redis away, in a namespace of its own, and fails the Redis
// over meanwhile: both act at the same time on the same server. The Deployment, whose pods do nothing, is as before
// afterwards.
func TestOperatorOutage(t *testing.T) {
	t.Parallel()
	n, operators := newNamespace(t, "operated"), newNamespace(t, "operators")
	n.applySentinels(3)
	operators.create(idleDeployment("redis-operator", 2))
	operators.replicasAre("redis-operator", 2)
	n.create(n.steadyLoad("base", sentinelTarget(), 25*time.Minute))
	n.waitLoadTest("base", patience, v1alpha1.ReasonRunning)
	n.flows("redis-ha")
	before := n.currentState("redis-ha")

	away := faultOn("base", "away", v1alpha1.FaultOperatorOutage, func(s *v1alpha1.RedisFaultSpec) {
		s.Action.OperatorOutage = &v1alpha1.OperatorOutage{
			OperatorReference: v1alpha1.OperatorReference{Deployment: "redis-operator", Namespace: operators.name},
		}
		s.Duration = span(40 * time.Second)
	})
	n.create(away)
	n.waitFault(away.Name, patience, v1alpha1.ReasonActive)
	operators.replicasAre("redis-operator", 0)
	over := faultOn("base", "over", v1alpha1.FaultFailover, nil)
	n.create(over)
	n.waitFault(over.Name, patience, v1alpha1.ReasonObserving, v1alpha1.ReasonSucceeded)

	done := n.waitFault(away.Name, 2*patience, v1alpha1.ReasonSucceeded)
	failed := n.waitFault(over.Name, 2*patience, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered)
	n.isReverted(done)
	operators.replicasAre("redis-operator", 2)
	want := fmt.Sprintf("Deployment %s/redis-operator has no pods, and had 2", operators.name)
	if !strings.Contains(done.Status.EffectEvidence, want) {
		t.Errorf("the evidence is %q, want %q", done.Status.EffectEvidence, want)
	}
	if at := failed.Status.InjectedAt; at == nil || at.Before(done.Status.InjectedAt) || done.Status.RevertedAt.Before(at) {
		t.Errorf("the failover was at %v, the operator away from %v to %v", at, done.Status.InjectedAt, done.Status.RevertedAt)
	}
	n.sentinelsAgree()
	n.waitForState("redis-ha", before)
}

// idleDeployment is a Deployment whose pods do nothing.
func idleDeployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(1)),
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: new(true), RunAsUser: new(int64(999)),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{{
						Name: "manager", Image: "docker.io/library/redis:7", ImagePullPolicy: corev1.PullIfNotPresent,
						Command: []string{"sleep", "3600"},
						SecurityContext: &corev1.SecurityContext{
							AllowPrivilegeEscalation: new(false),
							Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
						},
					}},
				},
			},
		},
	}
}

// replicasAre waits until as many pods of a Deployment are available, and no other is left.
func (n *namespace) replicasAre(name string, want int32) {
	n.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name}}
	n.eventually(patience, fmt.Sprintf("%s has %d pods", name, want), func() (bool, string) {
		err := cluster.Get(n.Context(), client.ObjectKeyFromObject(deployment), deployment)
		s := deployment.Status
		return err == nil && s.Replicas == want && s.AvailableReplicas == want, fmt.Sprintf("%+v, %v", s, err)
	})
}
