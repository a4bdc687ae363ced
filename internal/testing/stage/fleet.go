//go:build integration

package stage

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
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/serverstate"
)

// Fleet is a StatefulSet of a place whose pods are real servers: redis-0 starts as the primary, the
// others as its replicas.
type Fleet struct {
	*operatortest.Place
	Pods *cluster.StatefulSet

	clustered bool     // the servers form a cluster instead: see formCluster
	Options   []string // of all servers, not in their pods
	File      bool     // the servers have a configuration file, which they can rewrite

	mu      sync.Mutex
	stopped int // servers that ended with their pods
	// of the servers, by the UID of the pod; in a cluster by its name, as there they must find their
	// node again
	dirs    map[string]string
	servers map[string]*cluster.Redis // the last one of each pod, by its UID
}

// StartFleet creates a StatefulSet and waits until all its pods are in sync.
func StartFleet(
	p *operatortest.Place, replicas int32, change func(*Fleet, *appsv1.StatefulSet),
) *Fleet {
	p.T.Helper()
	f := &Fleet{Place: p, dirs: map[string]string{}, servers: map[string]*cluster.Redis{}}
	f.Pods = &cluster.StatefulSet{
		Client: p.Client, Namespace: p.Namespace, Name: "redis", Container: "redis", Start: f.start,
		Address: func(pod *corev1.Pod) string { return f.IPOf(cluster.Ordinal(pod)) },
		OutOfMemory: func(pod *corev1.Pod) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.servers[string(pod.UID)].IsOutOfMemory()
		},
	}
	labels := map[string]string{"app": "redis"}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("256Mi")}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "redis"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(5)), Containers: []corev1.Container{{
						Name: "redis", Image: "redis:7", Args: []string{"redis-server"},
						Ports: []corev1.ContainerPort{{ContainerPort: 6379}}, Resources: corev1.ResourceRequirements{Limits: room, Requests: room},
					}},
				},
			},
		},
	}
	if change != nil {
		change(f, set)
	}
	p.Create(set)
	stop := p.StandIn("the fleet", p.LookEvery, f.step, &corev1.PodList{}, &appsv1.StatefulSetList{})
	p.T.Cleanup(func() {
		stop()
		f.Pods.StopAll()
	})
	if f.clustered {
		p.Until("all servers answer", time.Minute, func() bool { return f.ready(replicas) },
			func() string { return "" })
		p.MustChange(f.formCluster())
	}
	p.Until("the fleet is in sync", time.Minute, func() bool {
		shows := f.Shows()
		return shows["roles"] == f.inSync(replicas) &&
			(!f.clustered || shows["nodes"] == fmt.Sprintf("ok, 3 primaries of %d nodes", replicas))
	}, func() string { return fmt.Sprint(f.Shows()) })
	return f
}

// step performs the next step of all controllers, also for pods that faults created.
func (f *Fleet) step(ctx context.Context) error {
	if err := f.forget(ctx); err != nil {
		return err
	}
	_, err := f.Pods.Step(ctx)
	return errors.Join(err, cluster.RunHelpers(ctx, f.Client, f.Namespace))
}

// IPOf is the IP address of a pod.
func (f *Fleet) IPOf(ordinal int) string {
	return f.Subnet + strconv.Itoa(2+ordinal)
}

// Address is where the server of a pod listens.
func (f *Fleet) Address(ordinal int) string {
	return f.IPOf(ordinal) + ":6379"
}

// ready reports whether all servers have answered.
func (f *Fleet) ready(replicas int32) bool {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "redis"}}
	return f.Read(set) && set.Status.ReadyReplicas == replicas
}

// start runs a pod's server with the arguments of its container.
func (f *Fleet) start(pod *corev1.Pod) (stop func(), exited <-chan struct{}, err error) {
	ip := f.IPOf(cluster.Ordinal(pod))
	dir, err := f.dirOf(pod)
	if err != nil {
		return nil, nil, err
	}
	arguments := append(slices.Concat(pod.Spec.Containers[0].Args[1:], f.Options),
		"--replica-announce-ip", ip)
	if f.File {
		arguments = append([]string{configFile(dir)}, arguments...)
	}
	switch {
	case f.clustered:
		arguments = append(arguments, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
			"--cluster-announce-ip",
			ip)
	default:
		if primary := f.primaryFor(cluster.Ordinal(pod)); primary != "" {
			arguments = append(arguments, "--replicaof", primary, "6379")
		}
	}
	memory := pod.Spec.Containers[0].Resources.Limits.Memory().Value()
	server, err := cluster.RunRedis(context.Background(), dir, ip, 6379, memory, arguments...)
	if err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers[string(pod.UID)] = server
	return func() {
		server.Stop()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stopped++
	}, server.Exited, nil
}

// dirOf is the directory of a pod's server: a container that is restarted has that of the one
// before.
func (f *Fleet) dirOf(pod *corev1.Pod) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := string(pod.UID)
	if f.clustered {
		key = pod.Name
	}
	if dir := f.dirs[key]; dir != "" {
		return dir, nil
	}
	dir := f.T.TempDir()
	f.dirs[key] = dir
	if !f.File {
		return dir, nil
	}
	return dir, os.WriteFile(configFile(dir), nil, 0o600)
}

func configFile(dir string) string {
	return filepath.Join(dir, "redis.conf")
}

// forget removes the data of the pods that a StatefulSet does not have any more.
func (f *Fleet) forget(ctx context.Context) error {
	set := &appsv1.StatefulSet{}
	if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: f.Pods.Name},
		set); err != nil {
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

// PrimaryOf is the name of the pod that is the primary of redis-0's shard, or redis-0 itself.
func (f *Fleet) PrimaryOf() string {
	role, primary := RoleAt(f.Address(0))
	for i := range 8 {
		other, _ := RoleAt(f.Address(i))
		if role == "slave" && f.IPOf(i) == primary || role == "" && !f.clustered && other == "master" {
			return fmt.Sprintf("redis-%d", i)
		}
	}
	return operatortest.RedisName
}

// primaryFor is the address that a server replicates which starts, as an entrypoint script finds
// it: the present primary; "" if that is itself, or if there is none yet.
func (f *Fleet) primaryFor(ordinal int) string {
	replicated := false // by others
	for i := range 8 {
		if i == ordinal {
			continue
		}
		switch role, primary := RoleAt(f.Address(i)); {
		case role == "master":
			return f.IPOf(i)
		case role == "slave" && primary == f.IPOf(ordinal):
			replicated = true
		}
	}
	if ordinal == 0 || replicated {
		return ""
	}
	return f.IPOf(0)
}

// RoleAt returns the role of a server, and of a replica the address of its primary; "" if it does
// not answer.
func RoleAt(address string) (role, primary string) {
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

// ServersStopped is how many servers have ended with their pods.
func (f *Fleet) ServersStopped() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped
}

// Shows returns the state of the servers, except which of them is the primary.
func (f *Fleet) Shows() map[string]string {
	shows := map[string]string{}
	var all corev1.PodList
	if err := f.Client.List(context.Background(), &all, client.InNamespace(f.Namespace),
		client.MatchingLabels{
			"app": "redis",
		}); err != nil {
		shows["pods"] = err.Error()
	}
	addresses := map[string]string{}
	for i := range all.Items {
		addresses[all.Items[i].Name] = f.Address(cluster.Ordinal(&all.Items[i]))
	}
	maps.Copy(shows, ServersShow(addresses))
	return shows
}

// ServersShow returns the settings of the servers of a replication, by name, and their roles
// together.
func ServersShow(addresses map[string]string) map[string]string {
	shows := map[string]string{}
	primaries, inSync, attached, nodes := 0, 0, 0, map[string]bool{}
	for server, address := range addresses {
		one := serverstate.Of(address)
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
			nodes[fmt.Sprintf("%s, %s primaries of %s nodes", one["setting cluster_state"],
				one["setting cluster_size"],
				one["setting cluster_known_nodes"])] = true
		}
		shows[server+" publishes"] = one["publishes"]
		for name, value := range one {
			if strings.HasPrefix(name, "setting ") && name != "setting replicaof" &&
				name != "setting slaveof" {
				shows[server+" "+name] = value
			}
		}
	}
	shows["roles"] = fmt.Sprintf("%d primary, %d replicas in sync", primaries, min(inSync, attached))
	if len(nodes) > 0 {
		// of the cluster, as its members report them
		shows["nodes"] = strings.Join(slices.Sorted(maps.Keys(nodes)), "; ")
	}
	return shows
}
