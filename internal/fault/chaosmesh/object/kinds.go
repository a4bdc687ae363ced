// Package object writes the objects of Chaos Mesh and reads their status. It is pure: it holds no
// client. It is the only package that imports Chaos Mesh's Go types
// (docs/decisions/0012-chaos-mesh-types.md).
package object

import (
	"maps"
	"slices"
	"strings"

	cmv1 "github.com/chaos-mesh/chaos-mesh/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Object is an object of Chaos Mesh, of whatever kind.
type Object interface {
	client.Object
	GetStatus() *cmv1.ChaosStatus
}

// kinds are those that faults use, by name, each with an empty object and an empty list.
var kinds = map[string]struct {
	object Object
	list   client.ObjectList
}{
	cmv1.KindPodChaos:     {&cmv1.PodChaos{}, &cmv1.PodChaosList{}},
	cmv1.KindNetworkChaos: {&cmv1.NetworkChaos{}, &cmv1.NetworkChaosList{}},
	cmv1.KindIOChaos:      {&cmv1.IOChaos{}, &cmv1.IOChaosList{}},
	cmv1.KindStressChaos:  {&cmv1.StressChaos{}, &cmv1.StressChaosList{}},
	cmv1.KindTimeChaos:    {&cmv1.TimeChaos{}, &cmv1.TimeChaosList{}},
}

// Objects returns an empty object of every kind that faults use.
func Objects() []client.Object {
	var objects []client.Object
	for _, kind := range kinds {
		objects = append(objects, kind.object.DeepCopyObject().(Object))
	}
	return objects
}

// AddToScheme adds the kinds that faults use to a scheme, and none of the others that Chaos Mesh
// has.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, kind := range kinds {
		scheme.AddKnownTypes(cmv1.SchemeGroupVersion, kind.object, kind.list)
	}
	metav1.AddToGroupVersion(scheme, cmv1.SchemeGroupVersion)
	return nil
}

// kindOf is the kind of object that injects each type of fault.
var kindOf = map[v1alpha1.FaultType]string{
	v1alpha1.FaultPodKill:          cmv1.KindPodChaos,
	v1alpha1.FaultNetworkDelay:     cmv1.KindNetworkChaos,
	v1alpha1.FaultNetworkLoss:      cmv1.KindNetworkChaos,
	v1alpha1.FaultNetworkPartition: cmv1.KindNetworkChaos,
	v1alpha1.FaultDiskDelay:        cmv1.KindIOChaos,
	v1alpha1.FaultCPUStress:        cmv1.KindStressChaos,
	v1alpha1.FaultClockSkew:        cmv1.KindTimeChaos,
}

// Types are the types of faults that Chaos Mesh has.
func Types() []v1alpha1.FaultType {
	return slices.Sorted(maps.Keys(kindOf))
}

// Kind is the kind of object that injects a type of fault; ok is false for types that Chaos Mesh
// does not have.
func Kind(fault v1alpha1.FaultType) (kind schema.GroupVersionKind, ok bool) {
	name, ok := kindOf[fault]
	return cmv1.SchemeGroupVersion.WithKind(name), ok
}

// New returns an empty object of a kind that Kind returned.
func New(kind schema.GroupVersionKind) Object {
	return kinds[kind.Kind].object.DeepCopyObject().(Object)
}

// NewList returns an empty list of objects of a kind that Kind returned.
func NewList(kind schema.GroupVersionKind) client.ObjectList {
	return kinds[kind.Kind].list.DeepCopyObject().(client.ObjectList)
}

// Resource is a kind's name in kubectl.
func Resource(kind schema.GroupVersionKind) string {
	return strings.ToLower(kind.Kind) + "." + kind.Group
}
