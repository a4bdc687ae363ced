package result

import (
	"slices"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/redis/topology"
)

// The roles of a Server.
const (
	rolePrimary = "primary"
	roleReplica = "replica"
)

// target describes the deployment by its layout, and by the readings of INFO, or that before the
// load; the zero value if the load has no target.
func target(p *plan.Plan, series *merged.Series, in LoadInput) Target {
	if !p.Target.IsSet() {
		return Target{}
	}
	t := Target{
		Topology:    string(plan.TopologyStandalone),
		Addresses:   p.Target.Addresses,
		NotObserved: bottleneck.NotObserved(p, series),
	}
	if named := p.Target.Topology; named != "" && named != plan.TopologyAuto {
		t.Topology = string(named)
	}
	if s := p.Target.Sentinel; s != nil {
		t.Sentinels = s.Addresses
	}
	readings, layout := series.Servers(), in.Layout
	if len(readings) == 0 && in.Before != nil {
		readings = []record.Server{*in.Before}
	}
	if n := len(readings); n > 0 {
		t.Server, t.Version = readings[n-1].Name, readings[n-1].Version
	}
	if layout == nil {
		t.Servers = serversOf(readings)
		return t
	}
	t.Topology = string(layout.Kind)
	for i := range layout.Shards {
		t.Servers = append(t.Servers, serversOfShard(layout, i)...)
	}
	return t
}

func serversOfShard(layout *topology.Map, shard int) []Server {
	var number *int
	if layout.Kind == topology.KindCluster {
		number = &shard
	}
	var servers []Server
	s := &layout.Shards[shard]
	if s.Primary != "" {
		servers = append(servers, Server{Address: s.Primary, Role: rolePrimary, Shard: number})
	}
	for _, replica := range s.Replicas {
		servers = append(servers, Server{Address: replica, Role: roleReplica, Shard: number})
	}
	return servers
}

// serversOf lists the servers that replied to INFO, each with the role of its first reading.
func serversOf(readings []record.Server) []Server {
	roles := map[string]string{"master": rolePrimary, "slave": roleReplica}
	var servers []Server
	for i := range readings {
		r := &readings[i]
		if !slices.ContainsFunc(servers, func(s Server) bool { return s.Address == r.Address }) {
			servers = append(servers, Server{Address: r.Address, Role: roles[r.Role]})
		}
	}
	return servers
}
