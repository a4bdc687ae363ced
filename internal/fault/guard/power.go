package guard

import (
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
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
	for i := range found {
		pod := found[i].Pod
		if pod.Spec.NodeName == spec.Action.NodeLoss.Node && !slices.Contains(b.now, pod.Name) {
			b.now = append(b.now, pod.Name)
		}
	}
}
