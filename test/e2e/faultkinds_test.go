//go:build e2e

package e2e_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/declared"
)

// faultKind is one fault of a row of them on the same load.
type faultKind struct {
	scenario string // in figures.yaml, and the fault's name in lower case
	kind     v1alpha1.FaultType
	edit     func(*v1alpha1.RedisFaultSpec)
	least    map[string]string // of figures
}

// deployment is a Redis of the samples, and the faults that it is for.
type deployment struct {
	name, app string
	deploy    func(*namespace)
	target    v1alpha1.RedisTarget
	settled   func(*namespace) // waits until a fault can be injected
	kinds     []faultKind
}

func deployments() []deployment {
	return []deployment{
		{
			"sentinel",
			"redis-ha",
			func(n *namespace) { n.applySentinels(3) },
			sentinelTarget(),
			(*namespace).sentinelsAgree,
			sentinelKinds(),
		},
		{
			"standalone",
			"redis",
			func(n *namespace) { n.applyRedis(nil) },
			standaloneTarget(),
			func(n *namespace) { n.podReady("redis-0", deployTime) },
			standaloneKinds(),
		},
		{
			"cluster",
			"redis-cluster",
			func(n *namespace) { n.applyCluster(1) },
			clusterTarget(),
			(*namespace).clusterAgrees,
			clusterKinds(),
		},
		{
			"replication", "redis-ha", (*namespace).applyReplication, replicationTarget(), (*namespace).replicasInSync,
			replicationKinds(),
		},
	}
}

func TestFaultKinds(t *testing.T) {
	t.Parallel()
	// Two deployments at a time keep two cores busy, and no more: with all of them at once Redis was what starved.
	lanes := make(chan struct{}, 2)
	for _, d := range deployments() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			lanes <- struct{}{}
			defer func() { <-lanes }()
			faultKinds(t, d.name)
		})
	}
}

// faultKinds injects native kinds, all of a deployment or those named, one after the other under one load. Each must be
// confirmed by Redis and leave everything as it was. A kind can run alone: it waits until the effects of the previous
// one are over.
func faultKinds(t *testing.T, name string, only ...string) {
	all := deployments()
	d := all[slices.IndexFunc(all, func(d deployment) bool { return d.name == name })]
	n := newNamespace(t, d.name)
	d.deploy(n)
	n.create(n.steadyLoad("base", d.target, 25*time.Minute))
	n.waitLoadTest("base", patience, v1alpha1.ReasonRunning)
	if name == "standalone" {
		d.kinds = append(d.kinds, n.otherKinds(all)...)
	}
	for _, k := range d.kinds {
		if len(only) > 0 && !slices.Contains(only, k.scenario) {
			continue
		}
		t.Run(k.scenario, func(t *testing.T) {
			n := n.in(t)
			d.settled(n)
			n.flows(d.app)
			n.breaks(k.scenario, d.app, faultOn("base", kebab(k.scenario), k.kind, k.edit), k.least)
		})
	}
}

// apart are the kinds with a test of their own.
var apart = []v1alpha1.FaultType{
	v1alpha1.FaultPodKill, v1alpha1.FaultProcessCrash, v1alpha1.FaultVolumeAttachDelay,
	v1alpha1.FaultNodeLoss, v1alpha1.FaultZoneLoss, v1alpha1.FaultDrain, v1alpha1.FaultOperatorOutage,
	v1alpha1.FaultOutOfMemory, v1alpha1.FaultVolumeLoss, v1alpha1.FaultDiskFull, v1alpha1.FaultNetworkPartition,
	v1alpha1.FaultNetworkLoss, v1alpha1.FaultNetworkDelay,
}

// otherKinds are the kinds that no deployment lists, with action and duration of the sample that has the kind's name.
func (n *namespace) otherKinds(all []deployment) []faultKind {
	n.Helper()
	var kinds []faultKind
	for _, k := range declared.All {
		listed := func(d deployment) bool {
			return slices.ContainsFunc(d.kinds, func(of faultKind) bool { return of.kind == k.Type })
		}
		if k.Engine != v1alpha1.EngineNative || k.External || slices.Contains(apart, k.Type) ||
			slices.ContainsFunc(all, listed) {
			continue
		}
		sample := &v1alpha1.RedisFault{}
		n.sample(k.Name()+".yaml", sample)
		kinds = append(kinds, faultKind{scenario: k.Name(), kind: k.Type, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action, s.Duration, s.Allow = sample.Spec.Action, sample.Spec.Duration, sample.Spec.Allow
		}})
	}
	return kinds
}

func standaloneKinds() []faultKind {
	return []faultKind{
		{scenario: "clientPause", kind: v1alpha1.FaultClientPause, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.ClientPause, s.Duration = &v1alpha1.ClientPause{Mode: v1alpha1.PauseAll}, span(3*time.Second)
		}, least: map[string]string{"outage": "2.5s", "probeOutage": "2.5s"}},
		{scenario: "hang", kind: v1alpha1.FaultHang, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.Hang, s.Duration = &v1alpha1.Hang{Method: v1alpha1.HangAuto}, span(2*time.Second)
		}, least: map[string]string{"outage": "1.5s"}},
		{scenario: "clientKill", kind: v1alpha1.FaultClientKill, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.ClientKill = &v1alpha1.ClientKill{Type: v1alpha1.ClientNormal}
		}},
		{scenario: "backgroundSave", kind: v1alpha1.FaultBackgroundSave, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.BackgroundSave = &v1alpha1.BackgroundSave{Kind: v1alpha1.SaveSnapshot}
		}},
		{scenario: "config", kind: v1alpha1.FaultConfig, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.Config, s.Duration = &v1alpha1.Config{
				Parameters: map[string]v1alpha1.ParameterValue{"appendfsync": "always"},
			}, span(4*time.Second)
		}},
		{scenario: "resources", kind: v1alpha1.FaultResources, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.Resources, s.Duration = &v1alpha1.Resources{CPU: new(resource.MustParse("200m"))}, span(4*time.Second)
		}},
	}
}

func sentinelKinds() []faultKind {
	return []faultKind{
		{scenario: "failoverPlain", kind: v1alpha1.FaultFailover, edit: failover(v1alpha1.FailoverPlain)},
		{scenario: "failoverCoordinated", kind: v1alpha1.FaultFailover, edit: failover(v1alpha1.FailoverCoordinated)},
		{scenario: "ioThreads", kind: v1alpha1.FaultIOThreads, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.IOThreads, s.Duration = &v1alpha1.IOThreads{Count: 2, Method: v1alpha1.ApplyRoll}, span(3*time.Second)
			s.Allow = []v1alpha1.Allowance{v1alpha1.AllowTooFewCores} // the servers of the samples are limited to half a core
		}},
		{scenario: "podTemplate", kind: v1alpha1.FaultPodTemplate, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.PodTemplate, s.Duration = &v1alpha1.PodTemplate{Patch: v1alpha1.PodTemplatePatch{
				Metadata: &runtime.RawExtension{Raw: []byte(`{"annotations": {"example.com/rolled": "yes"}}`)},
				Spec: &runtime.RawExtension{
					Raw: []byte(
						`{"containers": [{"name": "redis", "env": [{"name": "TIER", "value": "gold"}], "resources": {"limits": {"cpu": "600m"}}}]}`),
				},
			}}, span(3*time.Second)
		}},
	}
}

func replicationKinds() []faultKind {
	return []faultKind{
		{scenario: "failoverReplication", kind: v1alpha1.FaultFailover, edit: failover(v1alpha1.FailoverPlain)},
		{scenario: "clientPauseWrite", kind: v1alpha1.FaultClientPause, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.ClientPause, s.Duration = &v1alpha1.ClientPause{Mode: v1alpha1.PauseWrite}, span(3*time.Second)
		}, least: map[string]string{"dip": "15%"}}, // one request of five is a write
		{scenario: "hangByPause", kind: v1alpha1.FaultHang, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.Hang, s.Duration = &v1alpha1.Hang{Method: v1alpha1.HangClientPause}, span(2*time.Second)
		}, least: map[string]string{"outage": "1.5s"}},
		{scenario: "appendOnlyRewrite", kind: v1alpha1.FaultBackgroundSave, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.BackgroundSave = &v1alpha1.BackgroundSave{Kind: v1alpha1.SaveAppendOnlyRewrite}
		}},
	}
}

func clusterKinds() []faultKind {
	return []faultKind{
		{scenario: "replicaScale", kind: v1alpha1.FaultReplicaScale, edit: func(s *v1alpha1.RedisFaultSpec) {
			s.Action.ReplicaScale, s.Duration = &v1alpha1.ReplicaScale{
				By:          1,
				SyncTimeout: *span(2 * time.Minute),
			}, span(3*time.Second)
		}},
		{scenario: "failoverCluster", kind: v1alpha1.FaultFailover, edit: failover(v1alpha1.FailoverPlain)},
		{scenario: "failoverForce", kind: v1alpha1.FaultFailover, edit: failover(v1alpha1.FailoverForce)},
		{scenario: "failoverTakeover", kind: v1alpha1.FaultFailover, edit: failover(v1alpha1.FailoverTakeover)},
	}
}

func failover(mode v1alpha1.FailoverMode) func(*v1alpha1.RedisFaultSpec) {
	return func(s *v1alpha1.RedisFaultSpec) {
		s.Action.Failover = &v1alpha1.Failover{Method: v1alpha1.FailoverAuto, Mode: mode, Timeout: *span(30 * time.Second)}
	}
}

// flows waits until the load comes through, 4 s on end: what a fault is measured against.
func (n *namespace) flows(app string) {
	n.Helper()
	var since time.Time
	n.eventually(2*patience, "the load comes through", func() (bool, string) {
		rate := 0
		for _, pod := range n.servers(app) {
			c := at(&pod)
			stats, err := c.InfoMap(n.Context(), "stats", "replication").Result()
			_ = c.Close()
			if err != nil {
				since = time.Time{}
				return false, pod.Name + ": " + err.Error()
			}
			if stats["Replication"]["role"] == "master" { // the replicas repeat its commands
				now, _ := strconv.Atoi(stats["Stats"]["instantaneous_ops_per_sec"])
				rate += now
			}
		}
		switch {
		case rate < 150:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		return !since.IsZero() && time.Since(since) > 4*time.Second, fmt.Sprintf("%d commands/s at the primaries", rate)
	})
}
