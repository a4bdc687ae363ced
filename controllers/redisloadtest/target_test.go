package redisloadtest

import (
	"fmt"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/builders"
	"github.com/redquake/redquake/internal/testing/truth"
)

// status.target names the topology and all servers, whichever a pod has read INFO from.
func TestTruthStatusNamesTheDeployment(t *testing.T) {
	read := &record.Server{Name: "redis", Version: "7.0.15", Mode: "standalone", Role: "slave", Address: "b:1"}
	for _, c := range []struct {
		name   string
		target plan.Target
		pods   []collect.PodStatus
		want   string
	}{
		{
			"sentinels",
			plan.Target{Topology: plan.TopologySentinel, Sentinel: &plan.Sentinel{Addresses: []string{"s:1", "t:1"}}},
			[]collect.PodStatus{
				{
					Server: read,
					Findings: collect.Findings{
						Layout: &agent.Layout{Topology: "Sentinel", Primaries: []string{"a:1"}, Replicas: []string{"b:1"}},
					},
				},
			},
			"Sentinel, primaries [a:1], replicas [b:1], sentinels [s:1 t:1], given []",
		},
		{
			"a cluster of two shards",
			plan.Target{Topology: plan.TopologyAuto, Addresses: []string{"a:1"}},
			[]collect.PodStatus{
				{Server: read},
				{
					Findings: collect.Findings{
						Layout: &agent.Layout{Topology: "Cluster", Primaries: []string{"a:1", "c:1"}, Replicas: []string{"b:1", "d:1"}},
					},
				},
			},
			"Cluster, primaries [a:1 c:1], replicas [b:1 d:1], sentinels [], given [a:1]",
		},
		{
			"one server, which is a replica",
			plan.Target{Topology: plan.TopologyStandalone, Addresses: []string{"redis:1"}},
			[]collect.PodStatus{{Server: read}},
			"Standalone, primaries [], replicas [b:1], sentinels [], given [redis:1]",
		},
	} {
		s := &scope.Test{Plan: builders.Plan(), Test: &v1alpha1.RedisLoadTest{}, Session: collect.Status{Pods: c.pods}}
		s.Plan.Target = c.target
		setTarget(s)
		at := s.Test.Status.Target
		got := fmt.Sprintf("%s, primaries %v, replicas %v, sentinels %v, given %v", at.Topology, at.Primaries, at.Replicas,
			at.Sentinels, at.Addresses)
		truth.Report(t, "T23", "status.target of "+c.name, c.want, got, got == c.want)
	}
}
