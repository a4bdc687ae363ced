//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Layouts of Redis that charts, operators and write-ups make: the manifests of testdata. Each is loaded and broken, and
// the fault must hit the right pod.

func TestBitnamiSentinel(t *testing.T)   { t.Parallel(); bitnamiSentinel(t) }
func TestBitnamiRun(t *testing.T)        { t.Parallel(); bitnamiRun(t) }
func TestSentinelSidecars(t *testing.T)  { t.Parallel(); sentinelSidecars(t) }
func TestClusterByNodePort(t *testing.T) { t.Parallel(); clusterByNodePort(t) }

func TestOwnedByOperators(t *testing.T) {
	t.Parallel()
	ownedByOperators(t).killed("kill")
}

// layout is where the servers of a deployment are.
type layout struct {
	*namespace
	target   v1alpha1.RedisTarget
	port     string
	password string
}

// bitnamiSentinel fails over to a replica at the sentinels beside the servers, which need a password and know them by
// host names, and kills the new primary.
// Options cannot be given to the servers, so IOThreads names the chart's value.
func bitnamiSentinel(t *testing.T) {
	n := newNamespace(t, "bitnami")
	n.applyTestdata("bitnami-sentinel.yaml", nil)
	sample := &v1alpha1.RedisLoadTest{}
	n.sample("loadtest-sentinel-chart.yaml", sample)
	l := layout{n, sample.Spec.Target, "6379", "not-a-secret"}
	n.rolledOut("cache-redis-node")
	l.refused("threads", v1alpha1.FaultIOThreads, func(s *v1alpha1.RedisFaultSpec) {
		s.Action.IOThreads = &v1alpha1.IOThreads{Count: 2}
		s.Allow = []v1alpha1.Allowance{v1alpha1.AllowTooFewCores}
	}, "runs start-node.sh of Bitnami's chart", "the chart's value replica.extraFlags")
	l.failsOver("failover", nil)
	l.killed("kill")
}

// bitnamiRun gives the server another option by the variable that its start script passes on, and restores it.
func bitnamiRun(t *testing.T) {
	n := newNamespace(t, "bitnamirun")
	n.applyTestdata("bitnami-run.yaml", nil)
	n.rolledOut("batch-redis")
	l := layout{n, v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "batch-redis"}}, "6379", ""}
	variables := func() []corev1.EnvVar {
		set := &appsv1.StatefulSet{}
		n.get("batch-redis", set)
		return set.Spec.Template.Spec.Containers[0].Env
	}
	before := variables()
	fault := l.faultOf("threads", v1alpha1.FaultIOThreads, func(s *v1alpha1.RedisFaultSpec) {
		// what is read next is read while it is active
		s.Action.IOThreads, s.Duration = &v1alpha1.IOThreads{Count: 2}, span(time.Minute)
		s.Allow = []v1alpha1.Allowance{v1alpha1.AllowTooFewCores}
	})
	n.create(fault)
	n.eventually(3*patience, "the server has two threads, and its other options", func() (bool, string) {
		state := l.settings("io-threads", "maxclients")
		return state == "2 500", state
	})
	if now := variables(); now[0].Value != "--maxclients 500 --io-threads 2" {
		t.Errorf("the variables are %+v", now)
	}
	done := n.waitFault(fault.Name, 3*patience, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered)
	if done.Status.Effect == v1alpha1.EffectNotObserved ||
		!strings.Contains(done.Status.EffectEvidence, "io-threads of batch-redis-0 is 2") {
		t.Errorf("effect %s: %s", done.Status.Effect, done.Status.EffectEvidence)
	}
	l.sane(done)
	if now := variables(); !slices.Equal(now, before) {
		t.Errorf("the variables are %+v, want %+v", now, before)
	}
	n.podReady("batch-redis-0", deployTime)
	if state := l.settings("io-threads", "maxclients"); state != "1 500" {
		t.Errorf("io-threads and maxclients are %s after the revert", state)
	}
}

// sentinelSidecars does the same with sentinels that know the servers by address, in pods that declare no ports and
// whose first container is the sentinel.
func sentinelSidecars(t *testing.T) {
	n := newNamespace(t, "sidecars")
	n.applyTestdata("sentinel-sidecars.yaml", nil)
	l := layout{n, v1alpha1.RedisTarget{
		Topology:    v1alpha1.TopologySentinel,
		Sentinel:    &v1alpha1.SentinelTarget{Service: &v1alpha1.SentinelService{Name: "store"}},
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "store"}},
		Container:   "server",
	}, "6379", ""}
	n.rolledOut("store")
	l.failsOver("failover", nil)
	l.killed("kill")
}

// clusterByNodePort fails over the second shard of a cluster whose nodes announce the addresses of their hosts.
func clusterByNodePort(t *testing.T) {
	n := newNamespace(t, "nodeport")
	n.applyTestdata("cluster-nodeport.yaml", nil)
	n.rolledOut("shared")
	n.eventually(deployTime, "the cluster is made", func() (bool, string) {
		var job batchv1.Job
		return n.get("shared-create", &job) && job.Status.Succeeded > 0, fmt.Sprintf("%+v", job.Status)
	})
	l := layout{n, v1alpha1.RedisTarget{
		Topology: v1alpha1.TopologyCluster, Service: &v1alpha1.ServiceReference{Name: "shared", Port: 7000},
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shared"}},
	}, "7000", ""}
	done := l.broken("failover", "shared-1", v1alpha1.FaultFailover, func(s *v1alpha1.RedisFaultSpec) {
		failover(v1alpha1.FailoverPlain)(s)
		s.Select.Shard = new(int32(1))
	})
	if !slices.ContainsFunc(done.Status.Timeline, func(e v1alpha1.TimelineEvent) bool {
		return e.Event == "Promoted" &&
			e.Object == "shared-4"
	}) {
		t.Errorf("the timeline %+v does not name shared-4 as promoted", done.Status.Timeline)
	}
	if hit := done.Status.Targets[0]; !strings.HasSuffix(hit.Address, ":7000") {
		t.Errorf("hit %+v, want port 7000", hit)
	}
	l.primariesAre("shared-0", "shared-2", "shared-4")
	if test := n.loadTest("failover-probe"); test.Status.Summary == nil || len(test.Status.Summary.Shards) != 3 {
		t.Errorf("the load's summary is %+v, want three shards", test.Status.Summary)
	}
}

// ownedByOperators asks for what the operators that own the servers would restore: each such fault is refused with the
// field to set.
func ownedByOperators(t *testing.T) (l layout) {
	n := newNamespace(t, "owned")
	n.applyTestdata("owned.yaml", n.owned())
	settings := func(s *v1alpha1.RedisFaultSpec) {
		s.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"maxclients": "700"}}
	}
	threads := func(s *v1alpha1.RedisFaultSpec) {
		s.Action.IOThreads = &v1alpha1.IOThreads{Count: 2}
		s.Allow = []v1alpha1.Allowance{v1alpha1.AllowTooFewCores}
	}
	replicas := func(s *v1alpha1.RedisFaultSpec) {
		s.Action.ReplicaScale = &v1alpha1.ReplicaScale{By: 1, SyncTimeout: *span(time.Minute)}
	}
	for _, tc := range []struct{ name, owner, settings, threads, replicas string }{
		{
			"ot", "RedisReplication ot (redis.redis.opstreelabs.in/v1beta2)", "spec.redisConfig.dynamicConfig",
			"spec.redisConfig.additionalRedisConfig", "spec.clusterSize",
		},
		{
			"spotahome", "RedisFailover spotahome (databases.spotahome.com/v1)", "spec.redis.customConfig", "spec.redis.command",
			"spec.redis.replicas",
		},
		{"valkey", "ValkeyCluster valkey (valkey.io/v1alpha1)", "spec.config", "spec.config", "spec.replicas"},
	} {
		n.rolledOut(tc.name)
		l = layout{n, v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: tc.name}}, "6379", ""}
		l.refused(tc.name+"-settings", v1alpha1.FaultConfig, settings, tc.owner, tc.settings)
		l.refused(tc.name+"-threads", v1alpha1.FaultIOThreads, threads, tc.owner, tc.threads)
		l.refused(tc.name+"-replicas", v1alpha1.FaultReplicaScale, replicas, tc.owner, tc.replicas)
	}
	return l
}

// owned gives each StatefulSet the resource of its name as the owner that controls it. Definitions of resources are of
// the cluster: they are made here, and removed at the end unless they were there before.
func (n *namespace) owned() func(*unstructured.Unstructured) bool {
	owners := map[string]*unstructured.Unstructured{}
	return func(object *unstructured.Unstructured) bool {
		switch kind := object.GetKind(); {
		case kind == "CustomResourceDefinition":
			err := cluster.Create(n.Context(), object)
			if err != nil && !apierrors.IsAlreadyExists(err) {
				n.Fatal(err)
			}
			if err == nil {
				n.Cleanup(func() { _ = cluster.Delete(context.WithoutCancel(n.Context()), object) })
			}
			return false
		case object.GroupVersionKind().Group != "" && kind != "StatefulSet":
			owners[object.GetName()] = object
			n.eventually(patience, kind+" is defined", func() (bool, string) {
				object.SetNamespace(n.name)
				err := cluster.Create(n.Context(), object)
				return err == nil, fmt.Sprint(err)
			})
			return false
		case kind == "StatefulSet":
			object.SetOwnerReferences([]metav1.OwnerReference{
				*metav1.NewControllerRef(owners[object.GetName()], owners[object.GetName()].GroupVersionKind()),
			})
		}
		return true
	}
}

// applyTestdata creates the objects of a file of testdata; those for which edit returns false are not.
func (n *namespace) applyTestdata(file string, edit func(*unstructured.Unstructured) bool) {
	n.Helper()
	objects, err := readObjects(filepath.Join("testdata", file))
	if err != nil {
		n.Fatal(err)
	}
	for _, object := range objects {
		if edit == nil || edit(object) {
			n.create(object)
		}
	}
}

// faultOf is a fault that brings its own load, which is its baseline for 10 s.
func (l layout) faultOf(
	name string, kind v1alpha1.FaultType, edit func(*v1alpha1.RedisFaultSpec),
) *v1alpha1.RedisFault {
	fault := faultOn("", name, kind, edit)
	fault.Spec.LoadTestRef, fault.Spec.Target = nil, l.target.DeepCopy()
	fault.Spec.Trigger.After, fault.Spec.RecoveryDeadline = span(13*time.Second), *span(time.Minute)
	return fault
}

// refused checks that a fault is refused as not supported, in these words, before anything is broken.
func (l layout) refused(name string, kind v1alpha1.FaultType, edit func(*v1alpha1.RedisFaultSpec), words ...string) {
	l.Helper()
	fault := l.faultOf(name, kind, edit)
	fault.Spec.DryRun = true
	l.create(fault)
	done := l.waitFault(name, patience, v1alpha1.ReasonNotSupported)
	_, message, _, failed := completeReason(done.Status.Conditions)
	for _, text := range words {
		if !failed || !strings.Contains(message, text) {
			l.Errorf("%s: failed %v: %s; want %q", name, failed, message, text)
		}
	}
}

// broken runs a fault to its end and checks that it hit this pod, and its figures.
func (l layout) broken(
	name, pod string, kind v1alpha1.FaultType, edit func(*v1alpha1.RedisFaultSpec),
) *v1alpha1.RedisFault {
	l.Helper()
	l.create(l.faultOf(name, kind, edit))
	done := l.waitFault(name, 3*patience, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered)
	l.isReverted(done)
	if hit := done.Status.Targets; len(hit) != 1 || hit[0].Pod != pod || hit[0].Role != v1alpha1.RolePrimary {
		l.Errorf("%s hit %+v, want the primary in pod %s", name, hit, pod)
	}
	l.sane(done)
	return done
}

// failsOver has another server become the primary.
func (l layout) failsOver(name string, edit func(*v1alpha1.RedisFaultSpec)) {
	l.Helper()
	old := l.primary()
	l.broken(name, old, v1alpha1.FaultFailover, func(s *v1alpha1.RedisFaultSpec) {
		failover(v1alpha1.FailoverPlain)(s)
		if edit != nil {
			edit(s)
		}
	})
	l.eventually(patience, "another server is the primary", func() (bool, string) {
		now := l.primaries()
		return len(now) == 1 && now[0] != old, fmt.Sprint(now)
	})
}

// killed kills the pod of the primary.
func (l layout) killed(name string) {
	l.Helper()
	pod := l.podReady(l.primary(), deployTime)
	l.broken(name, pod.Name, v1alpha1.FaultPodKill, func(s *v1alpha1.RedisFaultSpec) {
		s.Action.PodKill = &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
	})
	if now := l.podReady(pod.Name, deployTime); now.UID == pod.UID {
		l.Errorf("pod %s was not killed", pod.Name)
	}
}

// sane checks that a load of 200 requests a second was measured, and that clients noticed a killed pod; a failover may
// take less than two requests.
func (l layout) sane(fault *v1alpha1.RedisFault) {
	l.Helper()
	i := fault.Status.Impact
	if i == nil || i.Outage == nil {
		l.Fatalf("%s: impact %+v", fault.Name, i)
	}
	baseline, err := number(string(i.BaselineTPS))
	outage := i.Outage.Value.Duration
	if err != nil || baseline < 100 || baseline > 220 || outage < 0 || outage > time.Minute ||
		outage == 0 && fault.Spec.Action.Type == v1alpha1.FaultPodKill || i.Recovered != (i.RecoveryTime != nil) {
		l.Errorf("%s: impact %+v", fault.Name, i)
	}
	l.Logf("%s: baseline %s/s, dip %s, outage %s, recovery %s, %d errors", fault.Name, i.BaselineTPS,
		shareText(i.Dip.Value), outage, durationText(i.RecoveryTime), i.Errors)
}

func (l layout) client(pod *corev1.Pod) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:          net.JoinHostPort(pod.Status.PodIP, l.port),
		Password:      l.password,
		DialTimeout:   10 * time.Second,
		ReadTimeout:   10 * time.Second,
		MaxRetries:    -1,
		DialerRetries: 1,
	})
}

// pods are those of the target.
func (l layout) pods() []corev1.Pod {
	l.Helper()
	selector := l.target.PodSelector.DeepCopy()
	if selector == nil {
		service := &corev1.Service{}
		l.get(l.target.Service.Name, service)
		selector = &metav1.LabelSelector{MatchLabels: service.Spec.Selector}
	}
	var pods corev1.PodList
	l.list(&pods, client.MatchingLabels(selector.MatchLabels))
	return pods.Items
}

// primaries are the pods whose servers say so, by name.
func (l layout) primaries() []string {
	l.Helper()
	var names []string
	for _, pod := range l.pods() {
		c := l.client(&pod)
		info, err := c.InfoMap(l.Context(), "replication").Result()
		_ = c.Close()
		if err == nil && info["Replication"]["role"] == "master" {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (l layout) primary() string {
	l.Helper()
	var name string
	l.eventually(patience, "there is one primary, with all replicas", func() (bool, string) {
		names := l.primaries()
		if len(names) != 1 {
			return false, fmt.Sprint(names)
		}
		name = names[0]
		pods := l.pods()
		at := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == name })
		c := l.client(&pods[at])
		defer func() { _ = c.Close() }()
		info, err := c.Info(l.Context(), "replication").Result()
		return err == nil && strings.Count(info, "state=online") == len(pods)-1, info
	})
	return name
}

func (l layout) primariesAre(want ...string) {
	l.Helper()
	l.eventually(patience, fmt.Sprintf("the primaries are %v", want), func() (bool, string) {
		now := l.primaries()
		return slices.Equal(now, want), fmt.Sprint(now)
	})
}

// settings are values of CONFIG GET at the only server.
func (l layout) settings(names ...string) string {
	l.Helper()
	var values []string
	for _, pod := range l.pods() {
		c := l.client(&pod)
		for _, name := range names {
			all, err := c.ConfigGet(l.Context(), name).Result()
			if err != nil {
				values = append(values, err.Error())
				continue
			}
			values = append(values, all[name])
		}
		_ = c.Close()
	}
	return strings.Join(values, " ")
}
