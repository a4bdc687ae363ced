//go:build integration

package peers_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/peers"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// The connections that a real server reports can be parsed, and show who is not heard any more.
func TestConnectionsOfServers(t *testing.T) {
	t.Parallel()
	pair := redistest.NewReplication(t, 1, redistest.Options{})
	real := topology.NewReal()
	t.Cleanup(real.Close)
	deps := contract.Deps{Redis: target.Redis{Servers: real, Login: redis.Login{Timeout: faulttest.Patient}}}
	primary, replica := pair.Primary.Address(), pair.Replicas[0].Address()
	connections, err := peers.Connections(t.Context(), deps, primary)
	if err != nil || len(connections) == 0 || connections[0].From != "127.0.0.1" {
		t.Errorf("connections of the primary: %+v (%v)", connections, err)
	}
	await.Until(t, "the replica speaks", func() error {
		replicas, err := peers.Replicas(t.Context(), deps, primary)
		if err == nil && (len(replicas) != 1 || replicas[0].From != "127.0.0.1" || replicas[0].Quiet >= replicas[0].Limit) {
			return errors.New("it is not heard")
		}
		return err
	})
	pair.Replicas[0].Stop() // as a partition does: the connection stays open, no data arrives
	t.Cleanup(pair.Replicas[0].Cont)
	await.Until(t, "the replica is not heard any more", func() error {
		replicas, err := peers.Replicas(t.Context(), deps, primary)
		if err == nil && len(replicas) == 1 && replicas[0].Quiet < replicas[0].Limit {
			return errors.New("it still is")
		}
		return err
	})
	pair.Replicas[0].Cont()
	await.Until(t, "the replica has its primary's connection", func() error {
		heard, err := peers.Connections(t.Context(), deps, replica)
		if err == nil && !slices.ContainsFunc(heard, func(n peers.Connection) bool {
			return n.Limit == 12 && n.From == "127.0.0.1" // a primary without writes pings every 10 s
		}) {
			return errors.New("no connection of a primary")
		}
		return err
	})
}
