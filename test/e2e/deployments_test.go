//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployTime is how long a deployment of the samples may take until it serves: 15 s on an idle machine.
const deployTime = 5 * time.Minute

// applySample creates the objects of a file of config/samples. edit, where given, changes each before.
func (n *namespace) applySample(file string, edit func(*unstructured.Unstructured)) {
	n.Helper()
	objects, err := readObjects(filepath.Join(samples, file))
	if err != nil {
		n.Fatal(err)
	}
	for _, object := range objects {
		if edit != nil {
			edit(object)
		}
		n.create(object)
	}
}

// applySentinels makes the Redis under sentinels of the samples with the given number of servers, and waits until a
// failover can promote a replica.
func (n *namespace) applySentinels(servers int) {
	n.Helper()
	n.applySample("redis-sentinel/redis.yaml", func(object *unstructured.Unstructured) {
		if object.GetKind() == "StatefulSet" && object.GetName() == "redis-ha" {
			_ = unstructured.SetNestedField(object.Object, int64(servers), "spec", "replicas")
		}
	})
	n.rolledOut("redis-ha")
	n.rolledOut("redis-sentinel")
	n.sentinelsAgree()
}

// applyReplication creates the same primary and its two replicas without sentinels, and waits until they are in sync.
func (n *namespace) applyReplication() {
	n.Helper()
	n.applySample("redis-sentinel/redis.yaml", func(object *unstructured.Unstructured) {
		if object.GetKind() == "StatefulSet" && object.GetName() == "redis-sentinel" {
			_ = unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas")
		}
	})
	n.rolledOut("redis-ha")
	n.replicasInSync()
}

// replicasInSync waits until one server is the primary that all others follow.
func (n *namespace) replicasInSync() {
	n.Helper()
	n.eventually(deployTime, "the replicas are in sync", func() (bool, string) {
		pods := n.servers("redis-ha")
		var seen string
		for i := range pods {
			ok, state := n.followed(pods, pods[i].Name)
			if ok {
				return true, ""
			}
			seen += pods[i].Name + ": " + state + "\n"
		}
		return false, seen
	})
}

// applyCluster makes the Redis Cluster of the samples with the given number of replicas for each of its three
// primaries, and waits until it serves.
func (n *namespace) applyCluster(replicas int) {
	n.Helper()
	nodes := 3 * (1 + replicas)
	n.applySample("redis-cluster/redis.yaml", func(object *unstructured.Unstructured) {
		switch object.GetKind() {
		case "StatefulSet":
			_ = unstructured.SetNestedField(object.Object, int64(nodes), "spec", "replicas")
		case "ConfigMap":
			script, _, _ := unstructured.NestedString(object.Object, "data", "create.sh")
			var ordinals []string
			for i := range nodes {
				ordinals = append(ordinals, fmt.Sprint(i))
			}
			script = strings.NewReplacer(
				`nodes="0 1 2 3 4 5"`, fmt.Sprintf("nodes=%q", strings.Join(ordinals, " ")),
				"cluster_known_nodes:6", fmt.Sprintf("cluster_known_nodes:%d", nodes),
				"--cluster-replicas 1", fmt.Sprintf("--cluster-replicas %d", replicas),
			).Replace(script)
			_ = unstructured.SetNestedField(object.Object, script, "data", "create.sh")
		}
	})
	n.rolledOut("redis-cluster")
	n.eventually(deployTime, "the cluster is made", func() (bool, string) {
		var job batchv1.Job
		return n.get("redis-cluster-create", &job) && job.Status.Succeeded > 0, fmt.Sprintf("%+v", job.Status)
	})
	n.clusterAgrees()
}

// rolledOut waits until all pods of a StatefulSet match its template and are ready.
func (n *namespace) rolledOut(name string) {
	n.Helper()
	n.watched(deployTime, "StatefulSet "+name+" is ready", &appsv1.StatefulSetList{}, name, func() (bool, string) {
		var set appsv1.StatefulSet
		if !n.get(name, &set) {
			return false, "there is none"
		}
		s := &set.Status
		return s.ObservedGeneration == set.Generation && s.ReadyReplicas == *set.Spec.Replicas &&
			s.UpdatedReplicas == *set.Spec.Replicas &&
			s.Replicas == *set.Spec.Replicas, fmt.Sprintf("%+v", *s)
	})
}

// servers are the Redis pods of a deployment by name.
func (n *namespace) servers(app string) []corev1.Pod {
	n.Helper()
	var pods corev1.PodList
	n.list(&pods, client.MatchingLabels{"app": app})
	return pods.Items
}

// at is a client of the server in a pod. Every command gets a reply or an error within 10 s. The caller closes it.
func at(pod *corev1.Pod) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:        net.JoinHostPort(pod.Status.PodIP, "6379"),
		DialTimeout: 10 * time.Second,
		ReadTimeout: 10 * time.Second,
		MaxRetries:  -1,
	})
}

// sentinelsAgree waits until all sentinels name the same primary, which has every other server for a replica in sync,
// and would fail over to any of them.
func (n *namespace) sentinelsAgree() {
	n.Helper()
	n.eventually(deployTime, "the sentinels agree, and every replica is fit", func() (bool, string) {
		pods, primary := n.servers("redis-ha"), ""
		for _, sentinel := range n.servers("redis-sentinel") {
			named, err := fitBySentinel(n.Context(), &sentinel, pods)
			if err != nil {
				return false, sentinel.Name + ": " + err.Error()
			}
			if primary == "" {
				primary = named
			}
			if named != primary {
				return false, fmt.Sprintf("%s names %s, another %s", sentinel.Name, named, primary)
			}
		}
		return n.followed(pods, primary)
	})
}

// fitBySentinel is the pod that a sentinel names as the primary. An error states why it would not fail over to any of
// the others. A sentinel keeps servers that no longer exist as down.
func fitBySentinel(ctx context.Context, sentinel *corev1.Pod, pods []corev1.Pod) (primary string, err error) {
	c := redis.NewSentinelClient(&redis.Options{Addr: net.JoinHostPort(sentinel.Status.PodIP, "26379"), MaxRetries: -1})
	defer func() { _ = c.Close() }()
	state, err := c.Master(ctx, "mymaster").Result()
	if err != nil {
		return "", err
	}
	replicas, err := c.Replicas(ctx, "mymaster").Result()
	if err != nil {
		return "", err
	}
	primary, _, _ = strings.Cut(state["ip"], ".")
	if state["flags"] != "master" {
		return "", fmt.Errorf("primary %s is %s", primary, state["flags"])
	}
	fit := map[string]bool{primary: true}
	for _, r := range replicas {
		name, _, _ := strings.Cut(r["ip"], ".")
		fit[name] = r["flags"] == "slave" && r["master-link-status"] == "ok" && r["role-reported"] == "slave" &&
			r["master-host"] == state["ip"]
	}
	for _, pod := range pods {
		if !fit[pod.Name] {
			return "", fmt.Errorf("%s is not fit, of %v", pod.Name, fit)
		}
	}
	return primary, nil
}

// followed reports whether one of the pods is the primary that all others follow, in sync.
func (n *namespace) followed(pods []corev1.Pod, primary string) (bool, string) {
	for i := range pods {
		if pods[i].Name != primary {
			continue
		}
		c := at(&pods[i])
		defer func() { _ = c.Close() }()
		info, err := c.Info(n.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "role:master") && strings.Count(info, "state=online") == len(pods)-1, info
	}
	return false, "there is no pod " + primary
}

// clusterAgrees waits until every node of the cluster reports a healthy state and the same primaries, and every replica
// is in sync.
func (n *namespace) clusterAgrees() {
	n.Helper()
	n.eventually(deployTime, "the cluster's nodes agree", func() (bool, string) {
		pods := n.servers("redis-cluster")
		layout := ""
		for i := range pods {
			own, err := clusterLayout(n.Context(), &pods[i], len(pods))
			if err != nil {
				return false, pods[i].Name + ": " + err.Error()
			}
			if layout == "" {
				layout = own
			}
			if own != layout {
				return false, fmt.Sprintf("%s has %s, another node %s", pods[i].Name, own, layout)
			}
		}
		return true, ""
	})
}

// clusterLayout is the owners of the slots according to a node of a cluster. An error states what is not healthy.
func clusterLayout(ctx context.Context, pod *corev1.Pod, nodes int) (string, error) {
	c := at(pod)
	defer func() { _ = c.Close() }()
	info, err := c.ClusterInfo(ctx).Result()
	if err != nil {
		return "", err
	}
	if !strings.Contains(info, "cluster_state:ok") ||
		!strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", nodes)) {
		return "", fmt.Errorf("%s", info)
	}
	replication, err := c.Info(ctx, "replication").Result()
	if err != nil {
		return "", err
	}
	if strings.Contains(replication, "role:slave") && !strings.Contains(replication, "master_link_status:up") {
		return "", fmt.Errorf("%s", replication)
	}
	text, err := c.ClusterNodes(ctx).Result()
	if err != nil {
		return "", err
	}
	primaries := map[string]string{} // slots -> node
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 8 || strings.Contains(fields[2], "fail") || strings.Contains(fields[2], "handshake") ||
			fields[7] != "connected":
			return "", fmt.Errorf("node %s", line)
		case strings.Contains(fields[2], "master") && len(fields) > 8:
			primaries[strings.Join(fields[8:], " ")] = fields[0]
		}
	}
	return fmt.Sprint(primaries), nil
}
