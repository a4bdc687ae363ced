package fault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

func TestWarnings(t *testing.T) {
	owned := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "databases.spotahome.com/v1", Kind: "RedisFailover", Name: "cache", UID: "x", Controller: new(true)},
		}},
	}
	probe := func(p *corev1.Pod) {
		p.Spec.Containers[0].LivenessProbe = &corev1.Probe{PeriodSeconds: 5, FailureThreshold: 3}
	}
	hook := func(p *corev1.Pod) {
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "redis-cli failover"}}},
		}
	}
	for _, tc := range []struct {
		name   string
		set    *appsv1.StatefulSet
		pod    func(*corev1.Pod)
		traits contract.Traits
		want   string // "" = no warning
	}{
		{"nothing of note", nil, nil, contract.Traits{EndsServer: true, Silences: true, Lasts: time.Minute}, ""},
		{
			"a hook before a kill",
			nil,
			hook,
			contract.Traits{EndsServer: true, Silences: true},
			"preStop hook, which runs before the server ends, for up to a second also with grace period 0: sh",
		},
		{"a hook that will not run", nil, hook, contract.Traits{Silences: true, Lasts: time.Second}, ""},
		{
			"a probe more patient than the fault is long",
			nil,
			probe,
			contract.Traits{Silences: true, Lasts: 14 * time.Second},
			"",
		},
		{
			"a probe less patient",
			nil,
			probe,
			contract.Traits{Silences: true, Lasts: 15 * time.Second},
			"restarts its container after 15s",
		},
		{"an operator", owned, nil, contract.Traits{Lasts: time.Second}, "RedisFailover cache (databases.spotahome.com/v1)"},
		{"an operator, and a failover", owned, nil, contract.Traits{}, "RedisFailover cache"},
		{
			"an operator, and a fault beside the workload",
			owned,
			nil,
			contract.Traits{Apart: true, Lasts: time.Second},
			"",
		},
		{"an operator, and a kill", owned, nil, contract.Traits{EndsServer: true}, ""},
		{"a hook before a roll", nil, hook, contract.Traits{RollsPods: true, Lasts: time.Second}, "preStop hook"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			if tc.set != nil {
				if err := w.Cluster.Create(t.Context(), tc.set.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, tc.pod)
			got := Warnings(t.Context(), w.Deps().Redis, tc.traits, []v1alpha1.FaultTarget{{Pod: "redis-0"}, {Pod: "gone"}})
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A dry run and a fault name the copies of the data that are not in sync, each once: replicas whose full
// synchronization never completes are in one, or not connected.
func TestWarningsOfCopies(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	for i, state := range []func(*memredis.State){
		func(*memredis.State) {},
		func(s *memredis.State) { s.Link = memredis.LinkSyncing },
		func(s *memredis.State) { s.Link = memredis.LinkLost },
	} {
		pod := w.Pod(fmt.Sprintf("redis-%d", i+1), fmt.Sprintf("u%d", i+1), fmt.Sprintf("10.0.0.%d", i+2), topology.Replica,
			nil)
		w.Servers.Change(faulttest.AddressOf(pod), state)
	}
	copies := []string{"redis-1", "redis-2", "redis-3", "gone"}
	got := Warnings(t.Context(), w.Deps().Redis, contract.Traits{Silences: true, Lasts: time.Second},
		[]v1alpha1.FaultTarget{{Pod: "redis-0", Copies: copies}, {Pod: "redis-1", Copies: copies}})
	if len(got) != 2 || !strings.Contains(got[0],
		"redis-2 copies the whole data set: it is no copy in sync of the data of pod redis-0") ||
		!strings.Contains(got[1], "redis-3 is not connected to its primary") {
		t.Errorf("%q", got)
	}
}
