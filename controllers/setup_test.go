package controllers

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
)

// Chaos Mesh's kinds may be absent. A cache of an absent kind never synchronizes, and reads from it block.
func TestManagerCachesNothingOfChaosMesh(t *testing.T) {
	var past []string
	for _, object := range ManagerOptions().Client.Cache.DisableFor {
		past = append(past, kindOf(t, object))
	}
	for _, fault := range []v1alpha1.FaultType{v1alpha1.FaultPodKill, v1alpha1.FaultNetworkDelay, v1alpha1.FaultDiskDelay, v1alpha1.FaultCPUStress, v1alpha1.FaultClockSkew} {
		kind, _ := object.Kind(fault)
		if kind := kindOf(t, object.New(kind)); !slices.Contains(past, kind) {
			t.Errorf("%s is read through the cache", kind)
		}
	}
}

func kindOf(t *testing.T, object client.Object) string {
	t.Helper()
	kinds, _, err := NewScheme().ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0].String()
}
