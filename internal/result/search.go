package result

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Search is the result of a search for the highest rate. Throughput, errors and latencies of the
// run are those of the trial of that rate.
type Search struct {
	Rate    float64 `json:"rate"` // highest rate that met the objectives, requests/s; 0 = none did
	Done    bool    `json:"done"` // it was completed
	Message string  `json:"message"`
	Trials  []Trial `json:"trials"`

	Tried []search.Trial `json:"-"` // the input from which NewLoad sets Trials
}

// Trial is one rate that was tried, with the figures of its evaluated part.
type Trial struct {
	Rate       float64    `json:"rate"`
	At         Seconds    `json:"atSeconds"` // since the load's start
	Measured   Seconds    `json:"measuredSeconds"`
	Met        bool       `json:"met"`
	Missed     string     `json:"missed,omitempty"`
	Throughput float64    `json:"throughput"`
	ErrorRate  float64    `json:"errorRate"`
	Latency    *Quantiles `json:"latency,omitempty"`
}

// window returns the part of the run that its figures are about: the best trial; ok is false if no
// trial was evaluated.
func (s *Search) window(plan *plan.Plan) (from, to time.Duration, ok bool) {
	best, ok := search.Best(s.Tried)
	from, to = plan.Shape.Search.Window(best.Rate, best.At)
	return from, to, ok
}

// judged sets Trials to the trials that were evaluated.
func (s *Search) judged(plan *plan.Plan, series *merged.Series) {
	spec := plan.Shape.Search
	for _, t := range s.Tried {
		if !t.Judged {
			continue
		}
		from, to := spec.Window(t.Rate, t.At)
		sum := summary.SummarizeWindow(series, from, to)
		s.Trials = append(s.Trials, Trial{
			Rate:       t.Rate,
			At:         Seconds(t.At),
			Measured:   Seconds(sum.Measured),
			Met:        t.Met,
			Missed:     t.Why,
			Throughput: sum.Throughput,
			ErrorRate:  sum.ErrorRate,
			Latency:    quantilesOf(sum.Latency),
		})
		if t.Met {
			s.Trials[len(s.Trials)-1].Missed = ""
		}
	}
}

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
	named := p.Target.Topology
	if named != "" && named != plan.TopologyAuto {
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
		servers = append(servers, Server{
			Address: s.Primary,
			Role:    rolePrimary,
			Shard:   number,
		})
	}
	for _, replica := range s.Replicas {
		servers = append(servers, Server{
			Address: replica,
			Role:    roleReplica,
			Shard:   number,
		})
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
