//go:build e2e

package e2e_test

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyRedis creates the Redis of config/samples and waits until its pod is ready. edit, where given, changes each
// object before.
func (n *namespace) applyRedis(edit func(*unstructured.Unstructured)) {
	n.Helper()
	objects, err := readObjects(filepath.Join(samples, "redis-standalone", "redis.yaml"))
	if err != nil {
		n.Fatal(err)
	}
	pod := "redis-0"
	for _, object := range objects {
		if edit != nil {
			edit(object)
		}
		if object.GetKind() == "StatefulSet" {
			pod = object.GetName() + "-0"
		}
		n.create(object)
	}
	n.podReady(pod, deployTime)
	address := n.redisAddress()
	// kube-proxy follows the endpoints a little later
	n.eventually(patience, "the Service leads to Redis", func() (bool, string) {
		conn, err := net.DialTimeout("tcp", address, 10*time.Second)
		if err != nil {
			return false, err.Error()
		}
		return true, fmt.Sprint(conn.Close())
	})
}

func (n *namespace) podReady(name string, within time.Duration) *corev1.Pod {
	n.Helper()
	pod := &corev1.Pod{}
	n.watched(within, "pod "+name+" is ready", &corev1.PodList{}, name, func() (bool, string) {
		if !n.get(name, pod) {
			return false, "there is none"
		}
		if isReady(pod) {
			return pod.DeletionTimestamp == nil, "it is being deleted"
		}
		return false, fmt.Sprintf("%+v", pod.Status)
	})
	return pod
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (n *namespace) redisPod() *corev1.Pod {
	n.Helper()
	pod := &corev1.Pod{}
	if !n.get("redis-0", pod) {
		n.Fatal("there is no pod redis-0")
	}
	return pod
}

// redisAddress is the address of the Service redis in the cluster's network.
func (n *namespace) redisAddress() string {
	n.Helper()
	service := &corev1.Service{}
	if !n.get("redis", service) {
		n.Fatal("there is no Service redis")
	}
	return net.JoinHostPort(service.Spec.ClusterIP, "6379")
}

// redis is a client of the Service redis.
func (n *namespace) redis() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: n.redisAddress()})
	n.Cleanup(func() { _ = c.Close() })
	return c
}

// loadPods are the pods of a load test.
func (n *namespace) loadPods(test string) []corev1.Pod {
	n.Helper()
	var pods corev1.PodList
	n.list(&pods, client.MatchingLabels{"redquake.dev/loadtest": test})
	return pods.Items
}
