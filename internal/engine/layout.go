package engine

import (
	"math"
	"runtime"

	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
)

// perLoop is how many connections one loop serves before another one is worth its thread, and loopsMost bounds the loops: one fills a core
// with some hundred thousand requests per second, and each costs 136 KiB and more per operation for its records.
const (
	perLoop   = 64
	loopsMost = 8
)

// sharedDepth is how many requests may be in flight on a connection that users share.
const sharedDepth = 1024

// layOut makes the loops, and for a target that is used as it is their connections: as many as the plan says, or fewer where fewer can ever be busy.
func (r *run) layOut() {
	p := r.plan
	pods, pod := int64(p.Pods), int64(r.pod)
	count := int64(p.Client.Connections)
	most := p.Client.Pipeline
	if p.Client.Mode == plan.Multiplexed {
		most = sharedDepth
	}
	depth := func(int64) int { return most }
	if p.Shape.OpenLoop() {
		inFlight := count * int64(most)
		if p.Shape.Users > 0 {
			inFlight = min(inFlight, max(1, share(int64(p.Shape.Users), pods, pod)))
		}
		count = min(count, inFlight)
		conns := count
		depth = func(i int64) int { return int(share(inFlight, conns, i)) }
	} else {
		users := share(int64(math.Ceil(plan.NewSchedule(p.Shape).Peak())), pods, pod)
		count = min(count, users)
	}
	loops := min(int64(runtime.GOMAXPROCS(0)), loopsMost, (count+perLoop-1)/perLoop)
	r.rec = newRecorder(int64(p.Interval), len(r.operations), len(p.Tallies()), max(1, int(loops)))
	if r.callers != nil {
		r.callers.most = count
		return
	}
	for i := range loops {
		l := r.newLoop(i, loops)
		l.connsPerPool, l.depth = share(count, loops, i), depth
		l.reach(0)
		r.loops = append(r.loops, l)
	}
}

// newLoop is loop number i of loops.
func (r *run) newLoop(i, loops int64) *loop {
	p := r.plan
	l := &loop{
		run: r, shard: r.rec.shards[i], in: make([]byte, readBuffer), layout: one, first: i, stride: loops,
		source: r.redis.Source(int64(r.pod)*loops+i, int64(p.Pods)*loops, false),
	}
	l.follower, _ = l.source.(workload.Follower)
	l.shares, l.maxAge, l.added = p.Client.Mode == plan.Multiplexed, int64(p.Client.MaxAge), int64(p.Client.AddedLatency)
	if r.pacer.Load() != nil {
		l.demand = newOpenLoop(l, i, loops)
	} else {
		l.demand = newClosedLoop(l, i, loops)
	}
	return l
}

// newPool makes the loop's connections to a place; they are dialled at once where the loop runs already.
func (l *loop) newPool(to place, conns int64) *pool {
	p := &pool{place: to}
	for i := range conns {
		number := l.first + i*l.stride
		c := &conn{loop: l, pool: p, number: number, index: int32(len(l.conns)), depth: l.depth(number)}
		p.conns, l.conns = append(p.conns, c), append(l.conns, c)
		if l.dialing != nil {
			c.connect(l.dialing)
		}
	}
	l.pools = append(l.pools, p)
	return p
}
