//go:build integration

package operatortest

import (
	"math"
	"net"
	"strconv"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/sim"
)

// StartKubelet starts a stand-in whose pods run the real load, each on its own address.
func StartKubelet(p *Place, hosts map[string]string) *sim.Kubelet {
	next := 9
	k := &sim.Kubelet{
		Place:      sim.Place{T: p.T, Client: p.Client, Namespace: p.Namespace},
		LookEvery:  p.LookEvery,
		SweepEvery: time.Second,
		Hosts:      hosts,
		Listen:     func(address string) (net.Listener, error) { return net.Listen("tcp", address) },
		Address: func() string {
			next++
			return p.Subnet + strconv.Itoa(next)
		},
		Load: func(plan *plan.Plan, pod int) (agent.Runner, error) {
			return engine.New(plan, pod, engine.WithPatience(math.MaxInt64)) // as cmd/redquake does
		},
	}
	k.Start()
	return k
}
