package loop

import (
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/topology"
)

// maxHops is how often a request is redirected before MOVED counts as its failure.
const maxHops = 8

// redirect follows the redirection in a request's error reply, which is not a failure; false if
// there is none that leads to a server of the deployment. Then the topology is queried again.
func (l *Loop) redirect(r *request) bool {
	to := r.redirection
	if to == nil || l.layout.Kind != topology.KindCluster || r.hops == maxHops {
		return false
	}
	r.hops++
	//exhaustive:enforce
	switch to.Kind {
	case route.TryAgain:
		l.requeue(r, l.route(r))
	case route.Ask:
		p := l.poolAt(to.To)
		if p == nil {
			return false
		}
		l.requeue(r, p).asked = true
	case route.Moved:
		if !l.run.Routes.Tracker.Moved(to.Slot, to.To) {
			return false
		}
		if m := l.run.Routes.Current(); m != l.layout {
			l.follow(m)
		}
		r.Slot = to.Slot
		l.requeue(r, l.primaries[l.shardOf(to.Slot)])
	}
	return true
}

// route returns the pool that sends a request.
func (l *Loop) route(r *request) *pool {
	if len(l.pools) == 1 {
		return l.pools[0]
	}
	shard := 0
	if r.Slot != workload.NoSlot {
		// A request for a slot that no server serves goes to any server, so that its error reply is
		// recorded.
		shard, _ = l.layout.ShardOf(r.Slot)
	} else if len(l.layout.Shards) > 1 {
		shard = int(l.rotation) % len(l.layout.Shards)
		l.rotation++
	}
	if shard >= len(l.primaries) {
		shard = 0
	}
	if l.readsReplicas && r.ledger == 0 && l.run.Operations[r.Op].ReadOnly {
		p := l.replicas[shard]
		if p != nil && l.takesReplica(shard) {
			return p
		}
	}
	return l.primaries[shard]
}

// takesReplica reports whether the next read goes to a replica: always, or round-robin over primary
// and replicas. Without a replica the primary takes it.
func (l *Loop) takesReplica(shard int) bool {
	servers := len(l.layout.Shards[shard].Replicas)
	if servers == 0 || l.run.Plan.Client.ReadFrom == plan.ReadReplica {
		return servers > 0
	}
	l.rotation++
	return int(l.rotation%uint64(servers+1)) < servers
}

// follow applies a new topology map: it creates connections to new shards, and replaces connections
// to servers whose role has changed.
func (l *Loop) follow(m *topology.Map) {
	l.layout = m
	for shard := range m.Shards {
		l.ensurePools(shard)
	}
	for _, p := range l.pools {
		if p.place.Address != "" {
			continue
		}
		shard := &m.Shards[p.place.Shard]
		for _, c := range p.conns {
			switch {
			case p.place.Replica && (len(shard.Replicas) == 0 ||
				route.Rotated(shard.Replicas, c.Number)[0] == c.address),
				!p.place.Replica && c.address == shard.Primary,
				!p.place.Replica && shard.Primary == "" && c.up:
			case c.up:
				c.renew()
			default: // a dial is in progress, perhaps to an outdated address
				c.connect(l.dialing)
			}
		}
	}
}

// ensurePools creates missing pools for the shards up to the given one.
func (l *Loop) ensurePools(shard int) {
	for len(l.primaries) <= shard {
		l.primaries = append(l.primaries, l.newPool(route.Place{Shard: len(l.primaries)}, l.connsPerPool))
		l.replicas = append(l.replicas, nil)
	}
	if l.readsReplicas && l.replicas[shard] == nil && len(l.layout.Shards[shard].Replicas) > 0 {
		l.replicas[shard] = l.newPool(route.Place{Shard: shard, Replica: true}, l.connsPerPool)
	}
}

func (l *Loop) shardOf(slot uint16) int {
	shard, _ := l.layout.ShardOf(slot)
	return min(shard, len(l.primaries)-1)
}

// mostUnlisted is to how many addresses that no shard has a loop connects at most: one of them is
// that of a server without slots, and not every user may list those.
const mostUnlisted = 8

// poolAt returns the pool whose primary has the address. If there is none, as a server without
// slots may be unknown, it creates a pool for the address; nil where that is none, or one too many.
func (l *Loop) poolAt(address string) *pool {
	if address == "" {
		l.run.Routes.Refresh("ASK names no server")
		return nil
	}
	for shard := range l.layout.Shards {
		if l.layout.Shards[shard].Primary == address {
			return l.primaries[shard]
		}
	}
	unlisted := 0
	for _, p := range l.pools {
		switch p.place.Address {
		case "":
		case address:
			return p
		default:
			unlisted++
		}
	}
	l.run.Routes.Refresh("ASK names an unknown server " + address)
	if unlisted == mostUnlisted {
		return nil
	}
	return l.newPool(route.Place{Address: address}, min(l.connsPerPool, 4))
}

// newPool creates the loop's connections to a place. They are dialled immediately if the loop is
// already running.
func (l *Loop) newPool(to route.Place, conns int64) *pool {
	p := &pool{place: to}
	for i := range conns {
		number := l.first + i*l.stride
		c := &Conn{
			loop:   l,
			pool:   p,
			Number: number,
			index:  int32(len(l.conns)),
			Depth:  l.depth(number),
		}
		p.conns, l.conns = append(p.conns, c), append(l.conns, c)
		if l.dialing != nil {
			c.connect(l.dialing)
		}
	}
	l.pools = append(l.pools, p)
	return p
}

// requeue adds a request to the queue of p once more, and returns it there.
func (l *Loop) requeue(r *request, p *pool) *request {
	r.reply, r.replies, r.asked, r.redirection = replyNone, 0, false, nil
	l.queued++
	queued := p.waiting.push()
	*queued = *r
	return queued
}
