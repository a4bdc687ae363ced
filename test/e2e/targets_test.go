//go:build e2e

package e2e_test

import (
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// The deployments of config/samples, as a load test names them.

func standaloneTarget() v1alpha1.RedisTarget {
	return v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis"}}
}

func sentinelTarget() v1alpha1.RedisTarget {
	return v1alpha1.RedisTarget{
		Topology: v1alpha1.TopologySentinel,
		Sentinel: &v1alpha1.SentinelTarget{
			Service:    &v1alpha1.SentinelService{Name: "redis-sentinel"},
			MasterName: "mymaster",
		},
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis-ha"}},
	}
}

func replicationTarget() v1alpha1.RedisTarget {
	return v1alpha1.RedisTarget{
		Topology:    v1alpha1.TopologyReplication,
		Addresses:   []string{"redis-ha-0.redis-ha:6379", "redis-ha-1.redis-ha:6379", "redis-ha-2.redis-ha:6379"},
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis-ha"}},
	}
}

func clusterTarget() v1alpha1.RedisTarget {
	return v1alpha1.RedisTarget{
		Topology:    v1alpha1.TopologyCluster,
		Service:     &v1alpha1.ServiceReference{Name: "redis-cluster"},
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis-cluster"}},
	}
}

// steadyLoad is a load of 300 SET and GET a second from one pod: enough to see an outage to some milliseconds, and
// little beside other work.
func (n *namespace) steadyLoad(name string, target v1alpha1.RedisTarget, length time.Duration) *v1alpha1.RedisLoadTest {
	n.Helper()
	test := n.smallLoad(name, length)
	test.Spec.Target = target
	test.Spec.Load.Rate, test.Spec.Client.Connections = new(int32(300)), 30
	return test
}

// kebab writes clientPause as client-pause.
func kebab(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
