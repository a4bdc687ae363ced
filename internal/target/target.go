// Package target is a Redis in Kubernetes: its pods and the addresses of their servers, its
// Secrets, its sentinels, and the roles of its servers.
package target

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/podwatch"
)

// AskTimeout limits every query to Redis that a fault depends on.
const AskTimeout = 2 * time.Second

// QueryTimeout limits a query to a server that may hang because of a fault: several are made within
// one AskTimeout.
const QueryTimeout = AskTimeout / 4

// Redis is one Redis in a namespace, and how its servers and sentinels are reached.
type Redis struct {
	Namespace string
	Spec      *v1alpha1.RedisTarget // nil where it is not needed
	// of the target, by which the port of its pods is known; nil where there is none, or ReadService
	// was not called
	Service   *corev1.Service
	Live      client.Reader // reads past every cache
	Servers   topology.Servers
	Login     redis.Login
	Sentinels Sentinels
	Watched   *podwatch.Watch // its pods; nil = they are not watched
}

// Pod reads one pod of the namespace.
func (r Redis) Pod(ctx context.Context, name string) (*corev1.Pod, error) {
	since := time.Now()
	pod := &corev1.Pod{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, pod); err != nil {
		return pod, fmt.Errorf("read pod %s: %w", name, err)
	}
	r.learn(since, *pod)
	return pod, nil
}
