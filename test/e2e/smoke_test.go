//go:build e2e

package e2e_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// bothNodes is held for writing by a scenario that takes a node from the whole cluster, and for reading by one that
// needs both.
var bothNodes sync.RWMutex

// TestSmoke is what `make e2e` runs: scenarios that a real kubelet, attach-detach controller, StatefulSet controller or
// garbage collector has a part in, in lanes that run at the same time. It checks order, presence, evidence and
// reverting, and judges no time: it must pass on a machine that has other work. `make e2e-full` runs all scenarios,
// under their own names.
func TestSmoke(t *testing.T) {
	for name, lane := range map[string]func(*testing.T){
		"lane-a": func(t *testing.T) {
			// A baseline is 10 s of load after the warm-up.
			t.Run("PodKill", func(t *testing.T) { podKill(t, 500, v1alpha1.FaultTrigger{After: span(13 * time.Second)}) })
			t.Run("MultiAttach", multiAttach)
		},
		"lane-b": func(t *testing.T) {
			t.Run("Sentinel", func(t *testing.T) { faultKinds(t, "sentinel", "failoverPlain") })
			t.Run("Cluster", func(t *testing.T) { faultKinds(t, "cluster", "replicaScale") })
			t.Run("Standalone", func(t *testing.T) { faultKinds(t, "standalone", "config", "resources") })
		},
		"lane-c": func(t *testing.T) {
			t.Run("LoadPods", loadPods)
			t.Run("Permissions", permissions)
			t.Run("External", external)
			if onLab() {
				t.Run("Registry", func(t *testing.T) { registry(t) })
			}
			t.Run("OwnedByOperators", func(t *testing.T) { ownedByOperators(t) })
			t.Run("BadTargets", func(t *testing.T) {
				badTargets(t, "no-service", "no-endpoint", "wrong-password",
					"no-listener")
			})
			t.Run("DeleteRunning", func(t *testing.T) {
				n := newNamespace(t, "delete")
				n.applyRedis(nil)
				deleteRunning(n)
			})
		},
		"lane-d": func(t *testing.T) {
			t.Run("Workloads", workloads)
			t.Run("Versions", versions)
			t.Run("Addressing", addressing)
			t.Run("Experiment", smallExperiment)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lane(t)
		})
	}
}
