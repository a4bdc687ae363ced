package result

import (
	"fmt"

	"github.com/redquake/redquake/internal/plan"
)

// busyConnections is the share of connections that a mean must be in use for users to wait for one.
const busyConnections = 0.8

// doubtQueue adds a doubt if users of a closed loop had to wait for a connection: latency counts
// from the send, so it does not contain that wait.
// Users that think wait only if the connections are busy. With a pipeline, a user's turn is a batch
// that fills a connection: connections hold as many users as without one.
func (r *Load) doubtQueue(p *plan.Plan) {
	if r.Total.Requests == 0 || !r.usersQueue(p) {
		return
	}
	users, connections := r.queue(p)
	if p.Shape.ThinkTime > 0 {
		inFlight := 0.0
		if r.Total.Latency != nil {
			inFlight = r.Total.Throughput * r.Total.Latency.Mean.Seconds()
		}
		if inFlight < busyConnections*float64(connections*p.Client.Pipeline) {
			return
		}
	}
	r.Doubt("UsersQueue",
		fmt.Sprintf(
			"%d users shared %d connections: requests waited for a connection, which no latency contains; "+
				"set client.connections to %d per load pod, or fewer users", users, connections,
			(users+p.Pods-1)/p.Pods))
}

// usersQueue reports whether there are more users of a closed loop than connections.
func (r *Load) usersQueue(p *plan.Plan) bool {
	users, connections := r.queue(p)
	return !p.Shape.OpenLoop() && p.Client.Mode != plan.Multiplexed && users > connections
}

func (r *Load) queue(p *plan.Plan) (users, connections int) {
	// of a cluster, for each shard
	return int(plan.NewSchedule(p.Shape).Peak()), p.Pods * p.Client.Connections * max(1, len(r.Shards))
}
