package faulttest

import (
	"github.com/redquake/redquake/internal/redis/topology"
)

// RedisPods are a primary and two replicas that answer, and one server that does not.
func RedisPods(w *World) {
	w.Pod("redis-2", "u2", "10.0.0.2", topology.Replica, nil)
	w.Pod("redis-0", "u0", "10.0.0.10", topology.Replica, nil)
	w.Pod("redis-1", "u1", "10.0.0.1", topology.Primary, nil)
	w.Pod("redis-3", "u3", "10.0.0.3", "", nil)
}
