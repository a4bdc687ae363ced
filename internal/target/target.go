// Package target is a Redis in Kubernetes: its pods and the addresses of their servers, its
// Secrets, its sentinels, and the roles of its servers.
package target

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/target/credentials"
	"github.com/redquake/redquake/internal/target/podwatch"
	"github.com/redquake/redquake/internal/target/sentinel"
)

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
	Sentinels sentinel.Set
	Watched   *podwatch.Watch // its pods; nil = they are not watched
}

// Pod reads one pod of the namespace.
func (r Redis) Pod(ctx context.Context, name string) (*corev1.Pod, error) {
	since := time.Now()
	pod := &corev1.Pod{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, pod)
	if err != nil {
		return pod, fmt.Errorf("read pod %s: %w", name, err)
	}
	r.learn(since, *pod)
	return pod, nil
}

// LoginFor reads the Secrets that a target names. A Problem names the field whose Secret or key is
// missing.
// Server names are not checked against pod addresses, which no certificate holds, unless serverName
// is set.
func LoginFor(
	ctx context.Context, secrets client.Reader, namespace string, target *v1alpha1.RedisTarget,
) (redis.Login, error) {
	login, err := credentials.Login(ctx, secrets, namespace, "spec.target", target.Auth, target.TLS)
	login.Timeout = confine.AskTimeout
	return login, err
}

// Reaches returns a Problem where no command would be sent to an address that a server named.
func (r Redis) Reaches(ctx context.Context, address, who, as string) error {
	c, confined := r.Servers.(confine.Servers)
	if !confined {
		return nil
	}
	_, err := c.Book.Resolve(ctx, address)
	return confine.NamedBy(err, who, as)
}

// PlaceOf is the address of the pod that is dialled for an address, such as that of a node port;
// the address itself where no pod is known.
func (r Redis) PlaceOf(ctx context.Context, address string) string {
	if c, confined := r.Servers.(confine.Servers); confined {
		places, err := c.Book.Resolve(ctx, address)
		if err == nil && len(places) > 0 {
			return places[0]
		}
	}
	return address
}

// residentAt is the pod of the namespace that an address leads to, and where it is dialled; ""
// where none is known, or several have the name.
func (r Redis) residentAt(
	ctx context.Context, address string,
) (place string, uid types.UID, name string) {
	c, confined := r.Servers.(confine.Servers)
	if !confined {
		return "", "", ""
	}
	places, err := c.Book.Resolve(ctx, address)
	if err != nil || len(places) != 1 {
		return "", "", ""
	}
	uid, name = c.Book.Occupant(ctx, places[0])
	return places[0], uid, name
}

// learn makes pods that were read known as places of commands.
func (r Redis) learn(since time.Time, pods ...corev1.Pod) {
	if c, confined := r.Servers.(confine.Servers); confined {
		c.Book.Learn(since, pods)
	}
}
