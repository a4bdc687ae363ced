//go:build integration

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/testing/cluster"
)

// fleet is a StatefulSet of a place whose pods are real servers: redis-0 starts as the primary, the others as its
// replicas.
type fleet struct {
	*place
	pods *cluster.StatefulSet

	clustered bool     // the servers form a cluster instead: see formCluster
	options   []string // of all servers, not in their pods
	file      bool     // the servers have a configuration file, which they can rewrite

	mu      sync.Mutex
	stopped int // servers that ended with their pods
	// of the servers, by the UID of the pod; in a cluster by its name, as there they must find their node again
	dirs map[string]string
}

// startFleet creates a StatefulSet and waits until all its pods are in sync.
func startFleet(p *place, replicas int32, change func(*fleet, *appsv1.StatefulSet)) *fleet {
	p.t.Helper()
	f := &fleet{place: p, dirs: map[string]string{}}
	f.pods = &cluster.StatefulSet{
		Client: p.client, Namespace: p.namespace, Name: "redis", Container: "redis", Start: f.start,
		Address: func(pod *corev1.Pod) string { return f.ipOf(cluster.Ordinal(pod)) },
	}
	labels := map[string]string{"app": "redis"}
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("256Mi"),
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(5)),
			Containers: []corev1.Container{{
				Name:      "redis",
				Image:     "redis:7",
				Args:      []string{"redis-server"},
				Ports:     []corev1.ContainerPort{{ContainerPort: 6379}},
				Resources: corev1.ResourceRequirements{Limits: room, Requests: room},
			}},
		}},
	}}
	if change != nil {
		change(f, set)
	}
	p.create(set)
	stop := p.standIn("the fleet", p.lookEvery, f.step, &corev1.PodList{}, &appsv1.StatefulSetList{})
	p.t.Cleanup(func() {
		stop()
		f.pods.StopAll()
	})
	if f.clustered {
		p.until("all servers answer", time.Minute, func() bool { return f.ready(replicas) }, func() string { return "" })
		p.mustChange(f.formCluster())
	}
	p.until("the fleet is in sync", time.Minute, func() bool {
		shows := f.shows()
		return shows["roles"] == f.inSync(replicas) &&
			(!f.clustered || shows["nodes"] == fmt.Sprintf("ok, 3 primaries of %d nodes", replicas))
	}, func() string { return fmt.Sprint(f.shows()) })
	return f
}

// step performs the next step of all controllers, also for pods that faults created.
func (f *fleet) step(ctx context.Context) error {
	if err := f.forget(ctx); err != nil {
		return err
	}
	_, err := f.pods.Step(ctx)
	return errors.Join(err, cluster.RunHelpers(ctx, f.client, f.namespace))
}

func (f *fleet) ipOf(ordinal int) string { return f.subnet + strconv.Itoa(2+ordinal) }

func (f *fleet) address(ordinal int) string { return f.ipOf(ordinal) + ":6379" }

// ready reports whether all servers have answered.
func (f *fleet) ready(replicas int32) bool {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "redis"}}
	return f.read(set) && set.Status.ReadyReplicas == replicas
}

// start runs a pod's server with the arguments of its container.
func (f *fleet) start(pod *corev1.Pod) (stop func(), exited <-chan struct{}, err error) {
	ip := f.ipOf(cluster.Ordinal(pod))
	dir, err := f.dirOf(pod)
	if err != nil {
		return nil, nil, err
	}
	arguments := append(slices.Concat(pod.Spec.Containers[0].Args[1:], f.options), "--replica-announce-ip", ip)
	if f.file {
		arguments = append([]string{configFile(dir)}, arguments...)
	}
	switch {
	case f.clustered:
		arguments = append(arguments, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-announce-ip",
			ip)
	default:
		if primary := f.primaryFor(cluster.Ordinal(pod)); primary != "" {
			arguments = append(arguments, "--replicaof", primary, "6379")
		}
	}
	end, exited, err := cluster.RunRedis(context.Background(), dir, ip, 6379, arguments...)
	return func() {
		end()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stopped++
	}, exited, err
}

// dirOf is the directory of a pod's server: a container that is restarted has that of the one before.
func (f *fleet) dirOf(pod *corev1.Pod) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := string(pod.UID)
	if f.clustered {
		key = pod.Name
	}
	if dir := f.dirs[key]; dir != "" {
		return dir, nil
	}
	dir := f.t.TempDir()
	f.dirs[key] = dir
	if !f.file {
		return dir, nil
	}
	return dir, os.WriteFile(configFile(dir), nil, 0o600)
}

func configFile(dir string) string { return filepath.Join(dir, "redis.conf") }

// forget removes the data of the pods that a StatefulSet does not have any more.
func (f *fleet) forget(ctx context.Context) error {
	set := &appsv1.StatefulSet{}
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: f.pods.Name}, set); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.dirs, func(pod, _ string) bool {
		return f.clustered &&
			cluster.OrdinalOf(pod) >= int(*set.Spec.Replicas)
	})
	return nil
}

// primaryOf is the name of the pod that is the primary of redis-0's shard, or redis-0 itself.
func (f *fleet) primaryOf() string {
	role, primary := roleAt(f.address(0))
	for i := range 8 {
		other, _ := roleAt(f.address(i))
		if role == "slave" && f.ipOf(i) == primary || role == "" && !f.clustered && other == "master" {
			return fmt.Sprintf("redis-%d", i)
		}
	}
	return redisName
}

// primaryFor is the address that a server replicates which starts, as an entrypoint script finds it: the present
// primary; "" if that is itself, or if there is none yet.
func (f *fleet) primaryFor(ordinal int) string {
	replicated := false // by others
	for i := range 8 {
		if i == ordinal {
			continue
		}
		switch role, primary := roleAt(f.address(i)); {
		case role == "master":
			return f.ipOf(i)
		case role == "slave" && primary == f.ipOf(ordinal):
			replicated = true
		}
	}
	if ordinal == 0 || replicated {
		return ""
	}
	return f.ipOf(0)
}

// roleAt returns the role of a server, and of a replica the address of its primary; "" if it does not answer.
func roleAt(address string) (role, primary string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := goredis.NewClient(&goredis.Options{
		Addr:                  address,
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})
	defer c.Close()
	info, _ := c.Info(ctx, "replication").Result()
	for line := range strings.Lines(info) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name {
		case "role":
			role = value
		case "master_host":
			primary = value
		}
	}
	return role, primary
}

func (f *fleet) serversStopped() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped
}

// shows returns the state of the servers, except which of them is the primary.
func (f *fleet) shows() map[string]string {
	shows := map[string]string{}
	var all corev1.PodList
	if err := f.client.List(context.Background(), &all, client.InNamespace(f.namespace), client.MatchingLabels{
		"app": "redis",
	}); err != nil {
		shows["pods"] = err.Error()
	}
	addresses := map[string]string{}
	for i := range all.Items {
		addresses[all.Items[i].Name] = f.address(cluster.Ordinal(&all.Items[i]))
	}
	maps.Copy(shows, serversShow(addresses))
	return shows
}

// serversShow returns the settings of the servers of a replication, by name, and their roles together.
func serversShow(addresses map[string]string) map[string]string {
	shows := map[string]string{}
	primaries, inSync, attached, nodes := 0, 0, 0, map[string]bool{}
	for server, address := range addresses {
		one := serverShows(address)
		switch {
		case one["role"] == "master":
			primaries++
			n, _ := strconv.Atoi(one["connected_slaves"])
			attached += n
			if shows["writes"] == "" || one["writes"] != "<nil>" { // in a cluster there are several
				shows["writes"] = one["writes"]
			}
		case one["role"] == "slave" && one["master_link_status"] == "up":
			inSync++
		}
		if one["setting cluster-enabled"] == "yes" {
			nodes[fmt.Sprintf("%s, %s primaries of %s nodes", one["setting cluster_state"], one["setting cluster_size"],
				one["setting cluster_known_nodes"])] = true
		}
		shows[server+" publishes"] = one["publishes"]
		for name, value := range one {
			if strings.HasPrefix(name, "setting ") && name != "setting replicaof" && name != "setting slaveof" {
				shows[server+" "+name] = value
			}
		}
	}
	shows["roles"] = fmt.Sprintf("%d primary, %d replicas in sync", primaries, min(inSync, attached))
	if len(nodes) > 0 {
		shows["nodes"] = strings.Join(slices.Sorted(maps.Keys(nodes)), "; ") // of the cluster, as its members report them
	}
	return shows
}
