package engine

import (
	"context"
	"net"
	"slices"
	"strconv"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/topology"
)

// dialNode connects to a place, for requests that are not part of the load.
func (r *runState) dialNode(ctx context.Context, p place) (net.Conn, error) {
	c, err := r.dialerTo(p, 0).Dial(ctx, 0, nil)
	return c.Conn, err
}

// dialerTo returns the dialer for a place. number spreads connections over replicas.
func (r *runState) dialerTo(p place, number int64) *dial.Dialer {
	if p.address == "" && r.routes.tracker == nil {
		return r.dialer
	}
	d := *r.dialer
	d.Replica = p.replica && r.routes.current().Kind == topology.KindCluster
	switch {
	case p.address != "":
		d.Addresses = func() []string { return []string{p.address} }
		d.Name = p.address
	case p.replica:
		d.Name = "a replica of shard " + strconv.Itoa(p.shard)
		d.Addresses = func() []string { return rotated(r.routes.current().Shards[p.shard].Replicas, number) }
	default:
		d.Name = "the primary of shard " + strconv.Itoa(p.shard)
		d.Addresses = func() []string {
			if primary := r.routes.current().Shards[p.shard].Primary; primary != "" {
				return []string{primary}
			}
			return nil
		}
	}
	d.OnFailure = func(err error) { r.routes.refresh("a dial of " + d.Name + " failed: " + err.Error()) }
	return &d
}

// kind is the topology of the deployment.
func (r *runState) kind() plan.Topology {
	if r.routes.tracker == nil {
		return plan.TopologyStandalone
	}
	return plan.Topology(r.routes.current().Kind)
}

// anyServer returns the address of one known server, for messages.
func (r *runState) anyServer() string {
	if known := r.servers(); len(known) > 0 {
		return known[0]
	}
	return "the deployment"
}

// servers returns the known addresses, primaries first.
func (r *runState) servers() []string {
	if r.routes.tracker == nil {
		return r.plan.Target.Addresses[:1]
	}
	m := r.routes.current()
	return slices.Concat(m.Primaries(), m.Replicas())
}
