package engine

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strconv"

	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/topology"
)

// routes says where the run's requests go. Every deployment is a map: one address that stands for all of it is a map of one shard.
type routes struct {
	tracker topology.Tracker // nil where there is nothing to follow: the target's addresses are used as they are

}

// one is the map of a target that is used as it is.
var one = topology.NewMap(topology.KindStandalone, 0, []topology.Shard{{}})

// dialNode connects to a place, for what is done beside the load.
func (r *run) dialNode(ctx context.Context, p place) (net.Conn, error) {
	c, err := r.dialerTo(p, 0).dial(ctx, 0, nil)
	return c.Conn, err
}

// dialerTo is the dialer of a place. number spreads connections over replicas.
func (r *run) dialerTo(p place, number int64) *dialer {
	if p.address == "" && r.routes.tracker == nil {
		return r.dialer
	}
	d := *r.dialer
	d.replica = p.replica && r.routes.current().Kind == topology.KindCluster
	switch {
	case p.address != "":
		d.addresses = func() []string { return []string{p.address} }
		d.name = p.address
	case p.replica:
		d.name = "a replica of shard " + strconv.Itoa(p.shard)
		d.addresses = func() []string { return rotated(r.routes.current().Shards[p.shard].Replicas, number) }
	default:
		d.name = "the primary of shard " + strconv.Itoa(p.shard)
		d.addresses = func() []string {
			if primary := r.routes.current().Shards[p.shard].Primary; primary != "" {
				return []string{primary}
			}
			return nil
		}
	}
	d.missed = func(err error) { r.routes.refresh("a dial of " + d.name + " failed: " + err.Error()) }
	return &d
}

func (r *routes) current() *topology.Map {
	if r.tracker == nil {
		return one
	}
	return r.tracker.Map()
}

func (r *routes) refresh(why string) {
	if r.tracker != nil {
		r.tracker.Refresh(why)
	}
}

// route is the pool that a request goes to.
func (l *loop) route(r *request) *pool {
	if len(l.pools) == 1 {
		return l.pools[0]
	}
	shard := 0
	if r.Slot != workload.NoSlot {
		// A slot that nobody serves goes to any server: its own words say what is wrong.
		shard, _ = l.layout.ShardOf(r.Slot)
	} else if len(l.layout.Shards) > 1 {
		shard = int(l.turns) % len(l.layout.Shards)
		l.turns++
	}
	if shard >= len(l.primaries) {
		shard = 0
	}
	if l.readsElsewhere && r.ledger == 0 && l.run.operations[r.Op].ReadOnly {
		if p := l.replicas[shard]; p != nil && l.takesReplica(shard) {
			return p
		}
	}
	return l.primaries[shard]
}

// takesReplica says whether the next read goes to a replica: always, or in turn with the primary, as often as there are servers of each.
func (l *loop) takesReplica(shard int) bool {
	servers := len(l.layout.Shards[shard].Replicas)
	if l.run.plan.Client.ReadFrom == plan.ReadReplica {
		return true
	}
	l.turns++
	return int(l.turns%uint64(servers+1)) < servers
}

// follow takes up a new map: new shards get connections, and those that lead to a server that is not any more what it was are made anew.
func (l *loop) follow(m *topology.Map) {
	l.layout = m
	for shard := range m.Shards {
		l.reach(shard)
	}
	for _, p := range l.pools {
		if p.place.address != "" {
			continue
		}
		shard := &m.Shards[p.place.shard]
		for _, c := range p.conns {
			switch {
			case p.place.replica && (len(shard.Replicas) == 0 || rotated(shard.Replicas, c.number)[0] == c.address),
				!p.place.replica && c.address == shard.Primary,
				!p.place.replica && shard.Primary == "" && c.up:
			case c.up:
				c.renew()
			default: // a dial is under way, to an address that may not be the right one any more
				c.connect(l.dialing)
			}
		}
	}
}

// rotated is the list from entry number on, and round.
func rotated(list []string, number int64) []string {
	if len(list) == 0 {
		return nil
	}
	first := int(number % int64(len(list)))
	return slices.Concat(list[first:], list[:first])
}

// reach makes the pools of a shard where they are missing.
func (l *loop) reach(shard int) {
	for len(l.primaries) <= shard {
		l.primaries = append(l.primaries, l.newPool(place{shard: len(l.primaries)}, l.connsPerPool))
		l.replicas = append(l.replicas, nil)
	}
	if l.readsElsewhere && l.replicas[shard] == nil && len(l.layout.Shards[shard].Replicas) > 0 {
		l.replicas[shard] = l.newPool(place{shard: shard, replica: true}, l.connsPerPool)
	}
}

// hopsMost is how often a request is sent elsewhere before MOVED counts as its failure.
const hopsMost = 8

// redirect sends a request where the reply points to, which is no failure; false where it points nowhere. The replying server's address completes a
// reply that leaves the host out.
func (l *loop) redirect(r *request, message []byte, from string) bool {
	if l.layout.Kind != topology.KindCluster || r.hops == hopsMost {
		return false
	}
	r.hops++
	if bytes.HasPrefix(message, []byte("TRYAGAIN")) { // keys of one command on both sides of a slot that moves
		l.requeue(r, l.route(r))
		return true
	}
	if slot, to, ok := movedTo(message, from); ok {
		l.run.routes.tracker.Moved(slot, to)
		if m := l.run.routes.current(); m != l.layout {
			l.follow(m)
		}
		r.Slot = slot
		l.requeue(r, l.primaries[l.shardOf(slot)])
		return true
	}
	_, to, ok := pointer(message, "ASK ", from)
	if ok {
		r.asking = true
		l.requeue(r, l.poolAt(to))
	}
	return ok
}

// movedTo reads "MOVED 3999 10.0.0.1:6379", which the server at from answered.
func movedTo(message []byte, from string) (slot uint16, to string, ok bool) {
	return pointer(message, "MOVED ", from)
}

func pointer(message []byte, word, from string) (slot uint16, to string, ok bool) {
	rest, ok := bytes.CutPrefix(message, []byte(word))
	slotText, address, _ := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseUint(string(slotText), 10, 16)
	return uint16(n), completed(string(address), from), ok && err == nil
}

func (l *loop) shardOf(slot uint16) int {
	shard, _ := l.layout.ShardOf(slot)
	return min(shard, len(l.primaries)-1)
}

// completed is an address of a redirection; a server that does not know its own name leaves the host out.
func completed(address, from string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "" {
		return address
	}
	host, _, _ = net.SplitHostPort(from)
	return net.JoinHostPort(host, port)
}

// poolAt is the pool whose primary has the address; where there is none yet, as a server without slots may be unknown, one to the address alone.
func (l *loop) poolAt(address string) *pool {
	for shard := range l.layout.Shards {
		if l.layout.Shards[shard].Primary == address {
			return l.primaries[shard]
		}
	}
	for _, p := range l.pools {
		if p.place.address == address {
			return p
		}
	}
	l.run.routes.refresh("ASK names an unknown server " + address)
	return l.newPool(place{address: address}, min(l.connsPerPool, 4))
}

// requeue sends a request again, to p.
func (l *loop) requeue(r *request, p *pool) {
	r.reply, r.replies = replyNone, 0
	l.queued++
	*p.waiting.push() = *r
}
