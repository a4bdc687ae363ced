// Package chaosmesh implements the faults that Chaos Mesh injects, by objects that package object
// builds and reads.
package chaosmesh

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/peers"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target/confine"
)

const (
	askTimeout = confine.AskTimeout

	// chaosPatience is how long Chaos Mesh may take to break a pod, or to revert that, before that
	// counts as an error: the controller then retries as long as after any other error.
	chaosPatience = 20 * time.Second
	// chaosMargin is by how much a child outlasts its fault: its time counts from its creation, the
	// fault's from its injection. It ends by itself only if the operator does not run any more.
	chaosMargin = time.Minute
)

// chaosMesh injects the fault by an object of Chaos Mesh that the fault owns: the child. Creating
// the child is the injection. It is reverted once the child is deleted, which Chaos Mesh's
// finalizer delays until then. The child's status is no proof of the effect: that is measured at
// Redis.
type chaosMesh struct {
	contract.Deps
	spec *v1alpha1.RedisFaultSpec
	kind schema.GroupVersionKind
}

// New returns the injector of a fault by Chaos Mesh, or a Problem where Chaos Mesh does not support
// its type.
func New(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) (contract.Injector, error) {
	kind, known := object.Kind(spec.Action.Type)
	if !known {
		return nil, problem.Invalid("spec.engine: ChaosMesh does not support the fault %q",
			spec.Action.Type)
	}
	return chaosMesh{
		Deps: deps,
		spec: spec,
		kind: kind,
	}, nil
}

func (c chaosMesh) Traits() contract.Traits {
	if c.spec.Action.Type == v1alpha1.FaultPodKill {
		return contract.Traits{
			EndsServer: true,
			Abrupt:     true,
			NewPod:     true,
			Silences:   true,
			WholePod:   true,
		}
	}
	silences, wholePod := c.silences()
	return contract.Traits{
		Lasts:    c.spec.Stays(),
		Silences: silences,
		WholePod: wholePod,
	}
}

// silentDelay is the delay of each call to the volume from which a server does not serve in time: a
// write to the append-only file holds up all clients.
const silentDelay = time.Second

// silences reports whether a server that is hit does not serve, or does not serve its peers, and
// whether a sentinel beside it is cut off as well. CPU stress and a shifted clock leave a server
// serving: it gets its share of the CPU.
func (c chaosMesh) silences() (server, wholePod bool) {
	if d := c.spec.Action.DiskDelay; d != nil {
		return d.Delay.Duration >= silentDelay, false
	}
	return peers.Silences(&c.spec.Action)
}

// Types are the types of faults that Chaos Mesh supports.
func Types() []v1alpha1.FaultType {
	return object.Types()
}

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
			packets(a.NetworkPartition.Direction, a.NetworkPartition.Peers))
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
