//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestNetworkFaults drops packets of a Redis in a real kernel, by a container that a real kubelet starts beside it.
func TestNetworkFaults(t *testing.T) {
	t.Parallel()
	n := privilegedNamespace(t, "e2e-network-")
	n.applyRedis(nil)
	n.create(n.steadyLoad("base", standaloneTarget(), 25*time.Minute))
	n.waitLoadTest("base", patience, v1alpha1.ReasonRunning)
	const lasts = 6 * time.Second
	for _, c := range []struct {
		scenario string
		action   v1alpha1.Action
		least    map[string]string
	}{
		{
			"networkPartition",
			v1alpha1.Action{
				Type: v1alpha1.FaultNetworkPartition,
				NetworkPartition: &v1alpha1.NetworkPartition{
					Peers:     []v1alpha1.NetworkPeer{v1alpha1.PeerClients},
					Direction: v1alpha1.DirectionBoth,
				},
			},
			map[string]string{"outage": "5.5s", "probeOutage": "5.5s"},
		},
		{
			"networkPartitionIn",
			v1alpha1.Action{
				Type: v1alpha1.FaultNetworkPartition,
				NetworkPartition: &v1alpha1.NetworkPartition{
					Peers:     []v1alpha1.NetworkPeer{v1alpha1.PeerAll},
					Direction: v1alpha1.DirectionIn,
				},
			},
			map[string]string{"outage": "5.5s", "probeOutage": "5.5s"},
		},
		{
			"networkLoss",
			v1alpha1.Action{
				Type:        v1alpha1.FaultNetworkLoss,
				NetworkLoss: &v1alpha1.NetworkLoss{Loss: "10%", Direction: v1alpha1.DirectionIn},
			},
			nil,
		},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			n := n.in(t)
			n.podReady("redis-0", deployTime)
			n.flows("redis")
			done := n.breaks(c.scenario, "redis", faultOn("base", kebab(c.scenario), c.action.Type,
				func(s *v1alpha1.RedisFaultSpec) { s.Action, s.Duration = c.action, span(lasts) }), c.least)
			if !strings.Contains(done.Status.EffectEvidence, "the kernel has dropped ") {
				t.Errorf("the evidence is %q", done.Status.EffectEvidence)
			}
		})
	}
	t.Run("networkDelay", func(t *testing.T) { n.in(t).delaysOrIsRefused() })
}

// delaysOrIsRefused delays packets where the node's kernel can, and holds that it says so where it cannot.
func (n *namespace) delaysOrIsRefused() {
	n.Helper()
	fault := faultOn("base", "delay", v1alpha1.FaultNetworkDelay, func(s *v1alpha1.RedisFaultSpec) {
		s.Action.NetworkDelay = &v1alpha1.NetworkDelay{
			Latency: *span(50 * time.Millisecond),
			Peers:   []v1alpha1.NetworkPeer{v1alpha1.PeerClients},
		}
		s.Duration = span(6 * time.Second)
	})
	n.create(fault)
	done := n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered,
		v1alpha1.ReasonNotSupported)
	said := ""
	for _, c := range done.Status.Conditions {
		said += c.Message + "\n"
	}
	if done.Status.InjectedAt != nil {
		n.Logf("the kernel has netem: effect %s, %s", done.Status.Effect, done.Status.EffectEvidence)
		if done.Status.Effect != v1alpha1.EffectConfirmed {
			n.Errorf("effect %s: %s", done.Status.Effect, done.Status.EffectEvidence)
		}
		return
	}
	n.Logf("the kernel has no netem: %s", said)
	want := "spec.action.networkDelay: packets of pod redis-0 cannot be delayed on node " + n.redisPod().Spec.NodeName
	if !strings.Contains(said, want) {
		n.Errorf("it says %s, want %s", said, want)
	}
	n.flows("redis")
}

// TestCutFromOperator cuts a server off from its operator, a Deployment in another namespace whose pod asks the server some
// ten times a second: it gets no answer while the cut lasts, and the clients of the load do not notice.
func TestCutFromOperator(t *testing.T) {
	t.Parallel()
	n, operators := privilegedNamespace(t, "e2e-cutoff-"), newNamespace(t, "asking")
	n.applyRedis(nil)
	deployment := idleDeployment("redis-operator", 1)
	deployment.Spec.Template.Spec.Containers[0].Command = asks(n.redisPod().Status.PodIP).Containers[0].Command
	operators.create(deployment)
	operators.replicasAre(deployment.Name, 1)
	n.create(n.steadyLoad("base", standaloneTarget(), 10*time.Minute))
	n.waitLoadTest("base", patience, v1alpha1.ReasonRunning)
	n.flows("redis")

	const lasts = 8 * time.Second
	done := n.breaks("networkPartitionOperator", "redis", faultOn("base", "cut", v1alpha1.FaultNetworkPartition,
		func(s *v1alpha1.RedisFaultSpec) {
			s.Action.NetworkPartition = &v1alpha1.NetworkPartition{
				Peers:    []v1alpha1.NetworkPeer{v1alpha1.PeerOperator},
				Operator: &v1alpha1.OperatorReference{Deployment: deployment.Name, Namespace: operators.name},
			}
			s.Duration = span(lasts)
		}), nil)
	_, gap := longestGap(operators.answers(operators.podOf(deployment).Name), done.Status.InjectedAt.Time)
	outage := done.Status.Impact.Outage.Value.Duration
	t.Logf("the operator had no answer for %s; outage of the load %s", gap.Round(time.Millisecond), outage)
	// asked again half a second after a question without an answer
	if gap < lasts-100*time.Millisecond || gap > lasts*3/2 {
		t.Errorf("the operator had no answer for %s, want %s", gap, lasts)
	}
	if outage > lasts/2 {
		t.Errorf("the load had an outage of %s", outage)
	}
}

// podOf is the only pod of a Deployment.
func (n *namespace) podOf(deployment *appsv1.Deployment) *corev1.Pod {
	n.Helper()
	var pods corev1.PodList
	if err := cluster.List(n.Context(), &pods, client.InNamespace(n.name),
		client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil || len(pods.Items) != 1 {
		n.Fatalf("%d pods of %s, %v", len(pods.Items), deployment.Name, err)
	}
	return &pods.Items[0]
}

// TestNetworkFaultsAreRefused holds that nothing is changed where the cluster does not admit the container, or the rules
// would be the node's.
func TestNetworkFaultsAreRefused(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "no-network")
	n.applyRedis(nil)
	n.create(n.steadyLoad("base", standaloneTarget(), 10*time.Minute))
	n.waitLoadTest("base", patience, v1alpha1.ReasonRunning)
	fault := faultOn("base", "cut", v1alpha1.FaultNetworkPartition, func(s *v1alpha1.RedisFaultSpec) {
		s.Action.NetworkPartition = &v1alpha1.NetworkPartition{Peers: []v1alpha1.NetworkPeer{v1alpha1.PeerClients}}
	})
	n.create(fault)
	done := n.waitFault(fault.Name, patience, v1alpha1.ReasonNotSupported)
	text := ""
	for _, c := range done.Status.Conditions {
		text += c.Message + "\n"
	}
	if !strings.Contains(text, "violates PodSecurity") || !strings.Contains(text, "must admit the capability NET_ADMIN") {
		t.Errorf("it says %s", text)
	}
	if pod := n.redisPod(); len(pod.Spec.EphemeralContainers) > 0 {
		t.Errorf("the pod has %+v", pod.Spec.EphemeralContainers)
	}
}
