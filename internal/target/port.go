package target

import (
	"context"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target/sentinel"
)

// redisPort is what Redis listens on unless it is configured otherwise.
const redisPort = 6379

// What the names of ports and images contain.
var (
	redisNames  = []string{"redis", "valkey", "keydb"}
	secureNames = []string{"tls", "ssl"}
	// otherNames are of ports at which no client of Redis connects, also if they are called
	// redis-metrics.
	otherNames = []string{"metric", "export", "prom", "http", "bus", "gossip", "sentinel"}
)

// Address is where the server in a pod listens.
func (r Redis) Address(pod *corev1.Pod) string {
	_, port := r.server(pod)
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))
}

// Container is the container of a pod that runs Redis.
func (r Redis) Container(pod *corev1.Pod) corev1.Container {
	container, _ := r.server(pod)
	return container
}

// server is the container that runs Redis, and the port on which it listens: as the target says,
// else as the Service does, else as the names and numbers of the declared ports suggest.
func (r Redis) server(pod *corev1.Pod) (corev1.Container, int32) {
	containers := r.candidates(pod)
	if port := r.givenPort(pod); port != 0 {
		if c, _, ok := declaring(containers, func(p corev1.ContainerPort) bool {
			return p.ContainerPort == port
		}); ok {
			return c, port
		}
		return likely(containers), port
	}
	secure := r.Spec != nil && r.Spec.TLS != nil
	for _, suits := range []func(corev1.ContainerPort) bool{
		func(p corev1.ContainerPort) bool {
			return isRedis(p) &&
				contains(p.Name, secureNames) == secure
		},
		isRedis,
		func(p corev1.ContainerPort) bool { return p.ContainerPort == redisPort },
	} {
		if c, port, ok := declaring(containers, suits); ok {
			return c, port
		}
	}
	c := likely(containers)
	return c, firstPort(&c)
}

// candidates are the containers of a pod that may run Redis: the one that the target names, unless
// the pod is of another kind.
func (r Redis) candidates(pod *corev1.Pod) []corev1.Container {
	if r.Spec != nil && r.Spec.Container != "" {
		for i := range pod.Spec.Containers {
			if pod.Spec.Containers[i].Name == r.Spec.Container {
				return pod.Spec.Containers[i : i+1]
			}
		}
	}
	return pod.Spec.Containers
}

// givenPort is the port that the target or its Service names; 0 = none. It is not that of sentinels
// that the target selects as well.
func (r Redis) givenPort(pod *corev1.Pod) int32 {
	switch {
	case r.Spec == nil || isSentinel(pod):
		return 0
	case r.Spec.PodPort != 0:
		return r.Spec.PodPort
	case r.Service == nil || len(r.Service.Spec.Selector) == 0 ||
		!labels.SelectorFromSet(r.Service.Spec.Selector).Matches(labels.Set(pod.Labels)):
		return 0 // the Service of a proxy, for example
	}
	for _, p := range r.Service.Spec.Ports {
		if p.Port == r.Spec.Service.Port {
			return targetPort(pod, p)
		}
	}
	return 0
}

// targetPort is the port of a pod to which a Service forwards; 0 if the pod has none of that name.
func targetPort(pod *corev1.Pod, port corev1.ServicePort) int32 {
	if port.TargetPort.Type == intstr.Int {
		return port.TargetPort.IntVal
	}
	_, found, _ := declaring(pod.Spec.Containers, func(p corev1.ContainerPort) bool {
		return p.Name == port.TargetPort.StrVal
	})
	return found
}

// isSentinel reports whether a pod declares ports of sentinels only.
func isSentinel(pod *corev1.Pod) bool {
	some := false
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if some = strings.Contains(p.Name, "sentinel") ||
				strconv.Itoa(int(p.ContainerPort)) == sentinel.DefaultPort; !some {
				return false
			}
		}
	}
	return some
}

// declaring is the first container that declares a port that suits, and that port.
func declaring(
	containers []corev1.Container, suits func(corev1.ContainerPort) bool,
) (corev1.Container, int32, bool) {
	for _, c := range containers {
		if i := slices.IndexFunc(c.Ports, suits); i >= 0 {
			return c, c.Ports[i].ContainerPort, true
		}
	}
	return corev1.Container{}, 0, false
}

// likely is the container whose image is named after Redis, else the first.
func likely(containers []corev1.Container) corev1.Container {
	for _, c := range containers {
		if contains(c.Image, redisNames) && !contains(path.Base(c.Image), otherNames) {
			return c
		}
	}
	if len(containers) == 0 {
		return corev1.Container{}
	}
	return containers[0]
}

// firstPort is the first declared port that is not named after something else, else Redis' default.
func firstPort(c *corev1.Container) int32 {
	for _, p := range c.Ports {
		if !contains(p.Name, otherNames) || strings.Contains(p.Name, "sentinel") {
			return p.ContainerPort
		}
	}
	return redisPort
}

func isRedis(p corev1.ContainerPort) bool {
	return contains(p.Name, redisNames) && !contains(p.Name, otherNames)
}

func contains(name string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
}

// checkContainer returns a Problem if no pod has the container that the target names.
func (r Redis) checkContainer(pods []corev1.Pod) error {
	if r.Spec == nil || r.Spec.Container == "" {
		return nil
	}
	var names []string
	for i := range pods {
		for _, c := range pods[i].Spec.Containers {
			if c.Name == r.Spec.Container {
				return nil
			}
			if !slices.Contains(names, c.Name) && len(names) < 8 {
				names = append(names, c.Name)
			}
		}
	}
	return problem.NoTarget(
		"spec.target.container: no running pod of the target has a container %q, only %s",
		r.Spec.Container, strings.Join(names, ", "))
}

// ReadService returns the Redis with its Service, if that is needed to know the port of the pods.
func (r Redis) ReadService(ctx context.Context) (Redis, error) {
	if r.Spec == nil || r.Spec.Service == nil || r.Spec.PodPort != 0 {
		return r, nil
	}
	service := &corev1.Service{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.Service.Name},
		service)
	switch {
	case apierrors.IsNotFound(err): // a Problem where the pods are selected by it
	case err != nil:
		return r, fmt.Errorf("read Service %s: %w", r.Spec.Service.Name, err)
	default:
		r.Service = service
	}
	return r, nil
}
