package loop

import (
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/topology"
)

// New creates loop number i of loops, with a number of connections to the target's addresses. depth
// returns how many requests may be in flight on connection i of the pod.
func New(s *load.State, i, loops, conns int64, depth func(i int64) int) *Loop {
	p := s.Plan
	l := &Loop{
		run: s, stripe: s.Recorder.Stripes[i], gaps: gaps.NewLogs(s.Thresholds, false),
		settings: settings{
			connsPerPool: conns,
			depth:        depth,
			first:        i,
			stride:       loops,
			multiplexed:  p.Client.Mode == plan.Multiplexed,
			maxAge:       int64(p.Client.MaxAge),
			addedLatency: int64(p.Client.AddedLatency),
			scanEvery:    min(max(s.Timeout/20, scanShortest), scanLongest),
		},
		destinations: destinations{layout: route.StandaloneMap},
		traffic:      traffic{flying: make([]int32, len(s.Operations))},
		buffers:      buffers{in: make([]byte, readBuffer)},
	}
	l.draws(false)
	if s.Pacer.Load() != nil {
		l.demand = newOpenLoop(l, i, loops)
	} else {
		l.demand = newClosedLoop(l, i, loops)
	}
	l.ensurePools(0)
	return l
}

// draws has the loop draw its requests from a source of its own.
func (l *Loop) draws(cluster bool) {
	p := l.run.Plan
	l.source = l.run.Redis.Source(int64(l.run.Pod)*l.stride+l.first, int64(p.Pods)*l.stride, cluster)
	l.follower, _ = l.source.(workload.Follower)
}

// LayOut creates the connections to each shard of a deployment. It must be called before the loop
// is served.
func (l *Loop) LayOut(m *topology.Map) {
	l.draws(m.Kind == topology.KindCluster)
	from := l.run.Plan.Client.ReadFrom
	l.readsReplicas = from == plan.ReadReplica || from == plan.ReadAny
	l.layout = m
	for shard := range m.Shards {
		l.ensurePools(shard)
	}
}

// Connections returns the loop's connections, to be established before the loop is served.
func (l *Loop) Connections() []*Conn {
	return l.conns
}

// Place is where the connection leads.
func (c *Conn) Place() route.Place {
	return c.pool.place
}

// Lock keeps the loop from waking up until unlock is called.
func (l *Loop) Lock() (unlock func()) {
	l.stripe.Mu.Lock() // the loop holds it while it is awake
	return l.stripe.Mu.Unlock
}

// GapSource returns the source of the loop's gaps. With sharded it also has those of each shard.
func (l *Loop) GapSource(sharded bool) gaps.Source {
	l.gaps.Sharded = sharded
	return gaps.Source{Lock: &l.stripe.Mu, Logs: &l.gaps, Settled: l.settled}
}
