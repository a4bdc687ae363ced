package guard

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/sentinel"
)

// selectsNode refuses a fault that switches off the machine of a server which it has not selected.
// within are the servers on its node.
func selectsNode(
	spec *v1alpha1.RedisFaultSpec, within []target.Server, targets []v1alpha1.FaultTarget,
) error {
	if !spec.Action.SwitchesPower() {
		return nil
	}
	var left []string
	for i := range within {
		s := &within[i]
		if s.Err == nil && s.State.Role != topology.Sentinel &&
			!slices.ContainsFunc(targets, func(t v1alpha1.FaultTarget) bool { return t.Pod == s.Pod.Name }) {
			left = append(left, s.Pod.Name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return problem.Invalid("spec.select: %s would lose power as well: select all servers of the target on the node, "+
		"by mode All", strings.Join(left[:min(len(left), mostReasons)], ", "))
}

// addNode adds to the blow of a fault that switches off a machine all servers and sentinels on it.
func (b *blow) addNode(spec *v1alpha1.RedisFaultSpec, found []target.Server) {
	if !spec.Action.SwitchesPower() {
		return
	}
	b.node = spec.Action.NodeLoss.Node
	for i := range found {
		pod := found[i].Pod
		if pod.Spec.NodeName == b.node && !slices.Contains(b.now, pod.Name) {
			b.now = append(b.now, pod.Name)
		}
	}
}

// addSentinels adds to the blow the sentinels on its node in pods that are no servers of the target,
// and returns them. They are in the namespace: the operator asks no others.
func (b *blow) addSentinels(
	ctx context.Context, redis target.Redis, asked sentinel.Watchers, found []target.Server,
) ([]target.Voter, error) {
	if b.node == "" {
		return nil, nil
	}
	on, err := redis.ListPods(ctx, client.MatchingFields{"spec.nodeName": b.node})
	if err != nil {
		return nil, err
	}
	on = slices.DeleteFunc(on, func(pod corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" ||
			slices.ContainsFunc(found, func(s target.Server) bool { return s.Pod.UID == pod.UID })
	})
	var voters []target.Voter
	for id, pod := range redis.SentinelsApart(ctx, on, found) {
		if asked.Has(id) {
			b.now = append(b.now, pod)
			voters = append(voters, target.Voter{Name: pod, Answers: true})
		}
	}
	return voters, nil
}
