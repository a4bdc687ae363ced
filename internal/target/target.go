// Package target is a Redis in Kubernetes: its pods and where their servers listen, its Secrets, its sentinels, and who is who among them.
package target

import (
	"context"
	"time"

	"github.com/redquake/redquake/internal/redis"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
)

// AskTimeout bounds every question to Redis that a fault depends on.
const AskTimeout = 2 * time.Second

// LookFor bounds a question to a server that may hang because of a fault: a look asks several, and has AskTimeout for all.
const LookFor = AskTimeout / 4

// Redis is one Redis in a namespace, and how its servers and sentinels are reached.
type Redis struct {
	Namespace string
	Spec      *v1alpha1.RedisTarget // nil where it is not known
	Live      client.Reader         // reads past every cache
	Servers   topology.Servers
	Login     redis.Login
	Sentinels Sentinels
}

// Pod reads one pod of the namespace.
func (r Redis) Pod(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, pod)
}
