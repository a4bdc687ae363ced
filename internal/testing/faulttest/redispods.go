package faulttest

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/internal/redis/topology"
)

func conflict(name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, name, errors.New("the UID in the precondition is another"))
}

// RedisPods are a primary and two replicas that answer, and one server that does not.
func RedisPods(w *World) {
	w.Pod("redis-2", "u2", "10.0.0.2", topology.Replica, nil)
	w.Pod("redis-0", "u0", "10.0.0.10", topology.Replica, nil)
	w.Pod("redis-1", "u1", "10.0.0.1", topology.Primary, nil)
	w.Pod("redis-3", "u3", "10.0.0.3", "", nil)
}
