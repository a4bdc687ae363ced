package chaosmesh

import (
	"cmp"
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

func (c chaosMesh) Describe(target *v1alpha1.FaultTarget) contract.Description {
	child := c.kind.Kind + " " + c.childName(target)
	if c.spec.Action.Type == v1alpha1.FaultPodKill {
		return contract.Description{
			Action:     fmt.Sprintf("create %s, which deletes pod %s", child, target.Pod),
			SelfEnding: "the pod's controller replaces it",
		}
	}
	return contract.DescribeRecord(target, func(record chaosRecord) contract.Description {
		return contract.Description{
			Action: fmt.Sprintf("create %s, which %s", child, c.inWords(target, record)),
			Revert: fmt.Sprintf("delete %s, and wait until Chaos Mesh has reverted it", child),
			SelfEnding: fmt.Sprintf("Chaos Mesh reverts it %s after its creation",
				c.spec.Stays()+chaosMargin),
		}
	})
}

// inWords is what the child does.
func (c chaosMesh) inWords(target *v1alpha1.FaultTarget, record chaosRecord) string {
	switch a := &c.spec.Action; {
	case a.NetworkDelay != nil:
		return fmt.Sprintf("delays the packets of %s by %s (%s)", target.Pod,
			a.NetworkDelay.Latency.Duration, packets(a.NetworkDelay.Direction, a.NetworkDelay.Peers))
	case a.NetworkLoss != nil:
		return fmt.Sprintf("drops %s of the packets of %s (%s)", a.NetworkLoss.Loss, target.Pod,
			packets(a.NetworkLoss.Direction, a.NetworkLoss.Peers))
	case a.NetworkPartition != nil:
		return fmt.Sprintf("drops all packets of %s (%s)", target.Pod,
			packets(a.NetworkPartition.Direction, a.NetworkPartition.From))
	case a.DiskDelay != nil:
		return fmt.Sprintf("delays the calls to %s of %s by %s", record.VolumePath, target.Pod,
			a.DiskDelay.Delay.Duration)
	case a.ClockSkew != nil:
		return fmt.Sprintf("shifts the clock of %s by %s", target.Pod, a.ClockSkew.Offset.Duration)
	}
	workers, load := int32(1), int32(100)
	if s := c.spec.Action.CPUStress; s != nil {
		workers, load = cmp.Or(s.Workers, workers), cmp.Or(s.Load, load)
	}
	return fmt.Sprintf("consumes CPU in container %s of %s: workers %d, each %d%% of a core",
		target.Container, target.Pod, workers, load)
}

func packets(direction v1alpha1.NetworkDirection, peers v1alpha1.NetworkPeers) string {
	return fmt.Sprintf("direction %s, peers %s", direction, cmp.Or(peers, "all"))
}
