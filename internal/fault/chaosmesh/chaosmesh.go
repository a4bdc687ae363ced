// Package chaosmesh implements the faults that Chaos Mesh injects, by objects that package object builds and reads.
package chaosmesh

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

const (
	noShard    = target.NoShard
	askTimeout = target.AskTimeout

	// chaosPatience is how long Chaos Mesh may take to break a pod, or to revert that, before that counts as an error: the controller then retries
	// as long as after any other error.
	chaosPatience = 20 * time.Second
	// chaosMargin is by how much a child outlasts its fault: its time counts from its creation, the fault's from its injection. It ends
	// by itself only if the operator does not run any more.
	chaosMargin = time.Minute
)

// chaosMesh injects the fault by an object of Chaos Mesh that the fault owns: the child. Creating the child is the injection. It is reverted once the
// child is deleted, which Chaos Mesh's finalizer delays until then. The child's status is no proof of the effect: that is measured at Redis.
type chaosMesh struct {
	contract.Deps
	spec *v1alpha1.RedisFaultSpec
	kind schema.GroupVersionKind
}

// New returns the injector of a fault by Chaos Mesh, or a Problem where Chaos Mesh does not support its type.
func New(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) (contract.Injector, error) {
	kind, known := object.Kind(spec.Action.Type)
	if !known {
		return nil, problem.Invalid("spec.engine: ChaosMesh does not support the fault %q", spec.Action.Type)
	}
	return chaosMesh{Deps: deps, spec: spec, kind: kind}, nil
}

func (c chaosMesh) Traits() contract.Traits {
	if c.spec.Action.Type == v1alpha1.FaultPodKill {
		return contract.Traits{EndsServer: true, NewPod: true, Silences: true, WholePod: true}
	}
	parted := c.spec.Action.Type == v1alpha1.FaultNetworkPartition
	return contract.Traits{Lasts: contract.DurationOf(c.spec), Silences: parted, WholePod: parted}
}

// Types are the types of faults that Chaos Mesh supports.
func Types() []v1alpha1.FaultType { return object.Types() }
