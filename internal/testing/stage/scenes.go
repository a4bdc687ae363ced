//go:build integration

package stage

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/powertest"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/serverstate"
)

// RedisPods is a target by its pods' label; the load goes to the addresses.
func RedisPods(addresses ...string) v1alpha1.RedisTarget {
	return v1alpha1.RedisTarget{
		Addresses:   addresses,
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
	}
}

// Single is the scene of one server in one pod.
func Single(
	broken func(*operatortest.RedisSet) int, options ...string,
) func(*operatortest.Place) Scene {
	return func(p *operatortest.Place) Scene {
		set := operatortest.StartRedis(p, options...)
		sc := Scene{
			Target: RedisPods(set.Address()),
			Shows:  func() map[string]string { return serverstate.Of(set.Address()) },
		}
		if broken != nil {
			sc.broken = func() int { return broken(set) }
		}
		return sc
	}
}

// PodsDeleted counts the deleted pods.
func PodsDeleted(s *operatortest.RedisSet) int {
	return len(s.PodsDeleted())
}

// FleetOf is the scene of a StatefulSet.
func FleetOf(
	replicas int32, change func(*Fleet, *appsv1.StatefulSet),
) func(*operatortest.Place) Scene {
	return func(p *operatortest.Place) Scene {
		f := StartFleet(p, replicas, change)
		return Scene{
			Target:  RedisPods(f.Address(0)),
			Shows:   f.Shows,
			Primary: f.PrimaryOf,
			AsksAPI: true,
		}
	}
}

// staying is the scene of a StatefulSet whose pods are not replaced: what its servers show is asked
// without an API server.
func staying(replicas int32) func(*operatortest.Place) Scene {
	return func(p *operatortest.Place) Scene {
		f := StartFleet(p, replicas, nil)
		addresses := map[string]string{}
		for i := range int(replicas) {
			addresses[fmt.Sprintf("redis-%d", i)] = f.Address(i)
		}
		return Scene{
			Target:  RedisPods(f.Address(0)),
			Shows:   func() map[string]string { return ServersShow(addresses) },
			Primary: f.PrimaryOf,
		}
	}
}

// watched is the scene of a primary and two replicas that three sentinels watch.
func watched(p *operatortest.Place) Scene {
	return watchedFor(p, 0)
}

// PatientlyWatched leaves time for a failover while the primary's writes are paused.
func PatientlyWatched(p *operatortest.Place) Scene {
	return watchedFor(p, 10*time.Second)
}

func watchedFor(p *operatortest.Place, downAfter time.Duration) Scene {
	set := redistest.NewSentinel(p.T, 2, redistest.SentinelOptions{DownAfter: downAfter})
	addresses := PodsOf(p, set.Servers())
	target := RedisPods()
	target.Sentinel = &v1alpha1.SentinelTarget{
		Addresses:  set.SentinelAddresses(),
		MasterName: redistest.MasterName,
	}
	return Scene{
		Target: target,
		Shows:  func() map[string]string { return ServersShow(addresses) },
		broken: func() int { return failoversOf(set) },
	}
}

// failoversOf returns the number of failovers by sentinels: each one increments the config epoch.
func failoversOf(set *redistest.Sentinel) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client, latest := redis.NewClient(nil), int64(0)
	defer client.Close()
	for _, sentinel := range set.Sentinels {
		reply, err := client.Do(ctx, sentinel.Address(), redis.Login{}, "SENTINEL", "MASTER",
			redistest.MasterName)
		if err != nil {
			continue
		}
		if watched, err := topology.ParseWatched(reply); err == nil {
			latest = max(latest, watched.ConfigEpoch)
		}
	}
	return int(latest)
}

// PodsOf creates a pod for each server, and returns the addresses of the servers by pod name.
func PodsOf(p *operatortest.Place, servers []*redistest.Server) map[string]string {
	p.T.Helper()
	addresses := map[string]string{}
	for i, server := range servers {
		name := fmt.Sprintf("redis-%d", i)
		addresses[name] = server.Address()
		PodAt(p, name, map[string]string{"app": "redis"}, server.Port)
	}
	return addresses
}

// PodAt creates a pod at 127.0.0.1.
func PodAt(p *operatortest.Place, name string, labels map[string]string, port int) {
	p.T.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: int32(port)}},
		}}},
	}
	p.Create(pod)
	pod.Status = corev1.PodStatus{
		Phase:  corev1.PodRunning,
		PodIP:  "127.0.0.1",
		PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}},
	}
	p.MustChange(p.Client.Status().Update(context.Background(), pod))
}

// Rewritten is the scene of a server whose configuration file is rewritten as soon as a fault has
// changed hz, as Sentinel does.
func Rewritten(p *operatortest.Place) Scene {
	server := redistest.NewServer(p.T, redistest.Options{})
	addresses := PodsOf(p, []*redistest.Server{server})
	RewriteOf(p, server.Address())
	return Scene{Target: RedisPods(server.Address()), Shows: func() map[string]string {
		shows := ServersShow(addresses)
		file, err := os.ReadFile(configFile(server.Dir))
		shows["hz in the file"] = fmt.Sprint(strings.Contains(string(file), "hz 50"), err)
		return shows
	}}
}

// RewriteOf rewrites the file of a server as soon as a fault has changed hz.
func RewriteOf(p *operatortest.Place, address string) {
	c := goredis.NewClient(&goredis.Options{
		Addr:                  address,
		MaxRetries:            -1,
		DialerRetries:         1,
		DisableIdentity:       true,
		ContextTimeoutEnabled: true,
	})
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		done := false // for this fault
		for ctx.Err() == nil {
			await.Pass(20*time.Millisecond, "the time between two looks of what stands in for Sentinel")
			settings, _ := c.ConfigGet(ctx, "hz").Result()
			if settings["hz"] == "50" && !done {
				done = c.ConfigRewrite(ctx).Err() == nil
			}
			done = done && settings["hz"] == "50"
		}
	}()
	p.T.Cleanup(func() {
		stop()
		<-over
		_ = c.Close()
	})
}

// OnNodes adds two schedulable nodes to a fleet.
func OnNodes(f *Fleet, _ *appsv1.StatefulSet) {
	for _, name := range []string{"a", "b"} {
		node := f.Namespace + "-" + name
		cluster.NewNode(f.T, f.Client, node, map[string]string{
			PlaceLabel:               f.Namespace,
			corev1.LabelTopologyZone: node, // each node is a zone
		})
		f.Pods.Nodes = append(f.Pods.Nodes, node)
	}
}

// Powered adds two nodes to a fleet whose power a hook switches.
func Powered(f *Fleet, set *appsv1.StatefulSet) {
	OnNodes(f, set)
	f.PowerHook = (&powertest.Grid{Client: f.Client}).Serve(f.T)
}

// operatorName is the Deployment that looks after a fleet.
const operatorName = "redis-operator"

// Operated adds the Deployment of an operator to a fleet. No controller makes pods of it.
func Operated(f *Fleet, _ *appsv1.StatefulSet) {
	f.T.Helper()
	labels := map[string]string{"app": operatorName}
	f.Create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: operatorName},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "redis-operator"}}},
			},
		},
	})
}

// OnClaims has the StatefulSet of a fleet make a claim for each pod, and again where one is deleted.
func OnClaims(f *Fleet, set *appsv1.StatefulSet) {
	OnVolume(f, set)
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}}
}

// OnVolume also gives a volume to each pod, which can be attached to one node at a time.
func OnVolume(f *Fleet, set *appsv1.StatefulSet) {
	OnNodes(f, set)
	for i := range 5 {
		f.Pods.Volumes = append(f.Pods.Volumes,
			cluster.NewVolume(f.T, f.Client, f.Namespace, fmt.Sprintf("%s-%d", f.Namespace, i),
				fmt.Sprintf("data-redis-%d", i)))
	}
	f.Pods.Admit = func(pod *corev1.Pod) { // as of a template of claims
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + pod.Name},
		}}}
		// the server's dir is in it
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
			{Name: "data", MountPath: os.TempDir()},
		}
	}
}
