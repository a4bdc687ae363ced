package result

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/truth"
)

// described is a target in one line.
func described(t Target) string {
	parts := []string{t.Topology, strings.Join(t.Addresses, ","), strings.Join(t.Sentinels, ",")}
	for _, s := range t.Servers {
		one := s.Address + " " + s.Role
		if s.Shard != nil {
			one += fmt.Sprint(" of shard ", *s.Shard)
		}
		parts = append(parts, one)
	}
	return strings.Join(parts, "; ")
}

// Whichever server was sampled last, the target is the whole deployment.
func TestTruthTargetIsTheDeployment(t *testing.T) {
	sentinels := plan.Target{Topology: plan.TopologyAuto, Sentinel: &plan.Sentinel{Addresses: []string{"s:26379"}}}
	for _, c := range []struct {
		name   string
		target plan.Target
		layout *topology.Map
		want   string
	}{
		{
			"sentinels",
			sentinels,
			topology.NewMap(topology.KindSentinel, 1, []topology.Shard{{Primary: "a:1", Replicas: []string{"b:1", "c:1"}}}),
			"Sentinel; ; s:26379; a:1 primary; b:1 replica; c:1 replica",
		},
		{
			"a cluster of three shards",
			plan.Target{Addresses: []string{"a:1"}},
			topology.NewMap(topology.KindCluster, 1, []topology.Shard{
				{Primary: "a:1", Replicas: []string{"d:1"}},
				{Primary: "b:1", Replicas: []string{"e:1"}},
				{Replicas: []string{"f:1"}},
			}),
			"Cluster; a:1; ; a:1 primary of shard 0; d:1 replica of shard 0; b:1 primary of shard 1; e:1 replica of shard 1; " +
				"f:1 replica of shard 2",
		},
		{
			"a Service in front of two",
			plan.Target{Topology: plan.TopologyStandalone, Addresses: []string{"redis:6379"}},
			nil,
			"Standalone; redis:6379; ; a:1 primary; b:1 replica",
		},
	} {
		s := merged.New("run", time.Unix(0, 0), time.Second, []string{"get"}, 1)
		iv := record.Interval{
			Pods:       1,
			Ops:        make([]record.Op, 1),
			FirstOK:    -1,
			LastOK:     -1,
			FirstError: -1,
			LastError:  -1,
			Servers: []record.Server{
				{At: 1, Address: "a:1", Name: "redis", Version: "7.0.15", Role: "master"},
				{At: 2, Address: "b:1", Name: "redis", Version: "7.0.15", Role: "slave"},
				{At: 3, Address: "a:1", Name: "redis", Version: "7.0.15", Role: "slave"},
			},
		}
		if err := s.Add(0, &iv); err != nil {
			t.Fatal(err)
		}
		got := target(&plan.Plan{Target: c.target}, s, LoadInput{Layout: c.layout})
		truth.Report(t, "T23", "the target of "+c.name, c.want, described(got),
			described(got) == c.want && got.Server == "redis" && got.Version == "7.0.15")
	}
}

// A load that ends before its first reading of INFO has the reply that was received before it.
func TestTargetOfAShortLoad(t *testing.T) {
	p := &plan.Plan{Target: plan.Target{Topology: plan.TopologyStandalone, Addresses: []string{"redis:6379"}}}
	s := merged.New("run", time.Unix(0, 0), time.Second, []string{"get"}, 1)
	got := target(p, s, LoadInput{
		Before: &record.Server{Address: "a:1", Name: "valkey", Version: "9.1.2", Role: "master"},
	})
	if want := "Standalone; redis:6379; ; a:1 primary"; described(got) != want || got.Server != "valkey" ||
		got.Version != "9.1.2" {
		t.Errorf("%s, %s %s, expected %s", described(got), got.Server, got.Version, want)
	}
	if got := target(p, s, LoadInput{}); got.Version != "" || len(got.Servers) > 0 {
		t.Errorf("%s, %s %s without a reply", described(got), got.Server, got.Version)
	}
}

// A load of an API or a database alone has no Redis: its JSON names no target, rather than an empty Standalone one.
func TestNoTarget(t *testing.T) {
	p := &plan.Plan{
		Target:   plan.Target{Topology: plan.TopologyAuto},
		Shape:    plan.Shape{Rate: 1, Duration: time.Second},
		Workload: plan.Workload{HTTP: &plan.HTTP{}},
	}
	series := merged.New("run", time.Unix(0, 0), time.Second, []string{"get"}, 1)
	text, err := json.Marshal(NewLoad(p, series, LoadInput{Outcome: Finished}))
	if err != nil || strings.Contains(string(text), `"target"`) {
		t.Errorf("%v, %s", err, text)
	}
}
