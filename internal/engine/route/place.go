package route

import (
	"context"
	"net"
	"slices"
	"strconv"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/topology"
)

// DialNode connects to a place, for requests that are not part of the load.
func (r *Routes) DialNode(ctx context.Context, p Place) (net.Conn, error) {
	c, err := r.DialerTo(p, 0).Dial(ctx, 0, nil)
	return c.Conn, err
}

// DialerTo returns the dialer for a place. number spreads connections over replicas.
func (r *Routes) DialerTo(p Place, number int64) *dial.Dialer {
	if p.Address == "" && r.Tracker == nil {
		return r.Dialer
	}
	d := *r.Dialer
	d.Replica = p.Replica && r.Current().Kind == topology.KindCluster
	switch {
	case p.Address != "":
		d.Addresses = func() []string { return []string{p.Address} }
		d.Name = p.Address
	case p.Replica:
		d.Name = "a replica of shard " + strconv.Itoa(p.Shard)
		d.Addresses = func() []string { return Rotated(r.Current().Shards[p.Shard].Replicas, number) }
	default:
		d.Name = "the primary of shard " + strconv.Itoa(p.Shard)
		d.Addresses = func() []string {
			primary := r.Current().Shards[p.Shard].Primary
			if primary != "" {
				return []string{primary}
			}
			return nil
		}
	}
	d.OnFailure = func(err error) { r.Refresh("a dial of " + d.Name + " failed: " + err.Error()) }
	return &d
}

// Kind is the topology of the deployment.
func (r *Routes) Kind() plan.Topology {
	if r.Tracker == nil {
		return plan.TopologyStandalone
	}
	return plan.Topology(r.Current().Kind)
}

// AnyServer returns the address of one known server, for messages.
func (r *Routes) AnyServer() string {
	if known := r.Servers(); len(known) > 0 {
		return known[0]
	}
	return "the deployment"
}

// Servers returns the known addresses, primaries first.
func (r *Routes) Servers() []string {
	if r.Tracker == nil {
		return r.Dialer.Target.Addresses[:1]
	}
	m := r.Current()
	return slices.Concat(m.Primaries(), m.Replicas())
}
