package controllers

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
)

// Chaos Mesh's kinds may be absent. A cache of an absent kind never synchronizes, and reads from it block.
func TestManagerCachesNothingOfChaosMesh(t *testing.T) {
	var past []string
	for _, object := range managerOptions(nil, nil).Client.Cache.DisableFor {
		past = append(past, kindOf(t, object))
	}
	for _, fault := range []v1alpha1.FaultType{
		v1alpha1.FaultPodKill, v1alpha1.FaultNetworkDelay, v1alpha1.FaultDiskDelay,
		v1alpha1.FaultCPUStress, v1alpha1.FaultClockSkew,
	} {
		kind, _ := object.Kind(fault)
		if kind := kindOf(t, object.New(kind)); !slices.Contains(past, kind) {
			t.Errorf("%s is read through the cache", kind)
		}
	}
}

// A cache of all pods of a large cluster would need gigabytes, and so would one of all Jobs.
func TestManagerCachesPodsAndJobsOfLoadsOnly(t *testing.T) {
	cached := map[string]bool{}
	for object, options := range managerOptions([]string{"shop"}, nil).Cache.ByObject {
		load, foreign := labels.Set{v1alpha1.LabelLoadTest: "cache"}, labels.Set{"app": "shop"}
		cached[kindOf(t, object)] = options.Label != nil && options.Label.Matches(load) && !options.Label.Matches(foreign)
	}
	for _, object := range []client.Object{&corev1.Pod{}, &batchv1.Job{}} {
		if kind := kindOf(t, object); !cached[kind] {
			t.Errorf("the cache holds objects of %s that belong to no load", kind)
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
