//go:build e2e

package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// writeUp is one of the failovers described in public write-ups, as average throughput every 10 s: a load, and a fault.
type writeUp struct {
	name  string // in figures.yaml after the topology's: sentinelSet, clusterSet
	edit  func(*v1alpha1.RedisLoadTestSpec)
	kind  v1alpha1.FaultType
	fault func(*v1alpha1.RedisFaultSpec)
}

// TestFailovers runs seven such faults, scaled down, with Sentinel and with Redis Cluster, and counts the acknowledged
// writes that were lost. `make e2e-failovers` runs it.
func TestFailovers(t *testing.T) {
	byFailover := []writeUp{
		{"Set", onlySets, v1alpha1.FaultFailover, failover(v1alpha1.FailoverPlain)},
		{"SetGet", setsAndGets, v1alpha1.FaultFailover, failover(v1alpha1.FailoverPlain)},
		{"MaxAge", shortConnections, v1alpha1.FaultFailover, failover(v1alpha1.FailoverPlain)},
	}
	byScale := []writeUp{
		{"ReplicaAdded", setsAndGets, v1alpha1.FaultReplicaScale, scaleBy(1)},
		{"ReplicaRemoved", setsAndGets, v1alpha1.FaultReplicaScale, scaleBy(-1)},
	}
	one := []writeUp{{"OneReplica", setsAndGets, v1alpha1.FaultFailover, failover(v1alpha1.FailoverPlain)}}
	two := []writeUp{{"TwoReplicas", setsAndGets, v1alpha1.FaultFailover, failover(v1alpha1.FailoverPlain)}}
	// Replicas are added and removed first: a StatefulSet removes its last pod, and a failover may have made that the
	// primary.
	for _, d := range []struct {
		name, app string
		deploy    func(*namespace)
		agree     func(*namespace)
		target    v1alpha1.RedisTarget
		cases     []writeUp
	}{
		{
			"sentinel",
			"redis-ha",
			func(n *namespace) { n.applySentinels(3) },
			(*namespace).sentinelsAgree,
			sentinelTarget(),
			slices.Concat(byScale, two, byFailover),
		},
		{
			"sentinel",
			"redis-ha",
			func(n *namespace) { n.applySentinels(2) },
			(*namespace).sentinelsAgree,
			sentinelTarget(),
			one,
		},
		{
			"cluster",
			"redis-cluster",
			func(n *namespace) { n.applyCluster(1) },
			(*namespace).clusterAgrees,
			clusterTarget(),
			slices.Concat(byScale, one, byFailover),
		},
		{
			"cluster",
			"redis-cluster",
			func(n *namespace) { n.applyCluster(2) },
			(*namespace).clusterAgrees,
			clusterTarget(),
			two,
		},
	} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t, "failovers-"+d.name)
			d.deploy(n)
			for _, w := range d.cases {
				if !t.Run(w.name, func(t *testing.T) { n.in(t).runWriteUp(d.app, d.name+w.name, d.target, w); d.agree(n.in(t)) }) {
					return // what one left behind would only make the next fail, too
				}
			}
		})
	}
}

// runWriteUp runs one write-up: a load, the fault under it, and the load to its end, so that acknowledged writes are
// read back.
func (n *namespace) runWriteUp(app, scenario string, target v1alpha1.RedisTarget, w writeUp) {
	n.Helper()
	name := kebab(scenario)
	test := n.steadyLoad(name, target, 40*time.Second)
	test.Spec.Load.WarmUp = span(2 * time.Second)
	test.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true}
	w.edit(&test.Spec)
	if w.kind == v1alpha1.FaultReplicaScale {
		test.Spec.Load.Duration = span(75 * time.Second) // a pod and a full sync, and what a revert needs
	}
	n.create(test)
	n.waitLoadTest(name, patience, v1alpha1.ReasonRunning)
	fault := faultOn(name, name, w.kind, w.fault)
	fault.Spec.Trigger.After = span(7 * time.Second)
	if broken := n.breaks(scenario, app, fault, nil); !broken.Status.Impact.Recovered {
		n.Errorf("%s: clients did not recover: %+v", fault.Name, broken.Status.Impact)
	}
	done := n.waitLoadTest(name, 2*patience, v1alpha1.ReasonSucceeded)
	n.sumsAgree(done, n.record(done))
	var i *v1alpha1.Impact
	n.eventually(patience, "the fault's status has its lost writes", func() (bool, string) {
		i = n.fault(name).Status.Impact
		return i != nil && i.LostWrites != nil, "not yet"
	})
	n.impactFigures(scenario, i, nil)
	// The replica of a cluster takes over at the offset that the primary stopped at, and a scaling promotes no replica.
	// SENTINEL FAILOVER does not wait for its replica.
	if *i.LostWrites > 0 && (test.Spec.Target.Topology == v1alpha1.TopologyCluster ||
		w.kind == v1alpha1.FaultReplicaScale) {
		n.Errorf("%s: %d acknowledged writes are lost, want none", name, *i.LostWrites)
	}
}

func onlySets(s *v1alpha1.RedisLoadTestSpec) {
	s.Workload.Commands = []v1alpha1.WorkloadCommand{{Name: "set", Command: []string{"SET", "{key}", "{value}"}}}
}

func setsAndGets(s *v1alpha1.RedisLoadTestSpec) {
	s.Workload.Commands = []v1alpha1.WorkloadCommand{
		{Name: "set", Weight: 1, Command: []string{"SET", "{key}", "{value}"}},
		{Name: "get", Weight: 1, Command: []string{"GET", "{key}"}},
	}
}

// shortConnections dials every connection anew after 2 s, where those of SetGet are kept: it corresponds to the maximum
// age of a minute or more in services, for a load of half a minute.
func shortConnections(s *v1alpha1.RedisLoadTestSpec) {
	setsAndGets(s)
	s.Client.ConnectionMaxAge = span(2 * time.Second)
}

func scaleBy(by int32) func(*v1alpha1.RedisFaultSpec) {
	return func(s *v1alpha1.RedisFaultSpec) {
		s.Action.ReplicaScale, s.Duration = &v1alpha1.ReplicaScale{
			By:          by,
			SyncTimeout: *span(time.Minute),
		}, span(3*time.Second)
		s.Select.Mode = v1alpha1.SelectOne
	}
}
