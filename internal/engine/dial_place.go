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
func (r *routes) dialNode(ctx context.Context, p place) (net.Conn, error) {
	c, err := r.dialerTo(p, 0).Dial(ctx, 0, nil)
	return c.Conn, err
}

// dialerTo returns the dialer for a place. number spreads connections over replicas.
func (r *routes) dialerTo(p place, number int64) *dial.Dialer {
	if p.address == "" && r.tracker == nil {
		return r.dialer
	}
	d := *r.dialer
	d.Replica = p.replica && r.current().Kind == topology.KindCluster
	switch {
	case p.address != "":
		d.Addresses = func() []string { return []string{p.address} }
		d.Name = p.address
	case p.replica:
		d.Name = "a replica of shard " + strconv.Itoa(p.shard)
		d.Addresses = func() []string { return rotated(r.current().Shards[p.shard].Replicas, number) }
	default:
		d.Name = "the primary of shard " + strconv.Itoa(p.shard)
		d.Addresses = func() []string {
			if primary := r.current().Shards[p.shard].Primary; primary != "" {
				return []string{primary}
			}
			return nil
		}
	}
	d.OnFailure = func(err error) { r.refresh("a dial of " + d.Name + " failed: " + err.Error()) }
	return &d
}

// kind is the topology of the deployment.
func (r *routes) kind() plan.Topology {
	if r.tracker == nil {
		return plan.TopologyStandalone
	}
	return plan.Topology(r.current().Kind)
}

// anyServer returns the address of one known server, for messages.
func (r *routes) anyServer() string {
	if known := r.servers(); len(known) > 0 {
		return known[0]
	}
	return "the deployment"
}

// servers returns the known addresses, primaries first.
func (r *routes) servers() []string {
	if r.tracker == nil {
		return r.dialer.Target.Addresses[:1]
	}
	m := r.current()
	return slices.Concat(m.Primaries(), m.Replicas())
}
