//go:build e2e

package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/testing/await"
)

// movable are the settings of the replication: a failover changes them permanently, and a new pod has another address.
var movable = []string{"replicaof", "slaveof", "cluster-announce-ip"}

// redisAt is a client of the server in a pod. Every command gets a reply or an error within the limit. The caller
// closes it.
func redisAt(ip, port string, limit time.Duration) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:          net.JoinHostPort(ip, port),
		DialTimeout:   limit,
		ReadTimeout:   limit,
		MaxRetries:    -1,
		DialerRetries: 1,
		PoolSize:      1,
	})
}

func asText(object any) string {
	out, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// settled is the state of all worlds, once each is ready and its servers agree on their roles.
func (s *soak) settled(when string) (state map[string]string) {
	s.Helper()
	await.Within(s.T, deployTime, "everything is ready "+when, func() (err error) {
		state, err = s.state()
		return err
	})
	return state
}

// settledAs is the same after the plan. It waits until the state is that from before, and returns it also if it never
// is.
func (s *soak) settledAs(before map[string]string) (state map[string]string) {
	s.Helper()
	err := await.Try(s.Context(), deployTime, func() error {
		now, err := s.state()
		if now != nil {
			state = now
		}
		if err == nil && !maps.Equal(before, now) {
			err = fmt.Errorf("the state differs: %s", gocmp.Diff(before, now))
		}
		return err
	})
	if err != nil {
		s.Logf("after the plan: %v", err)
		if state == nil {
			state = map[string]string{}
		}
		state["readiness"] = err.Error()
	}
	return state
}

// state is all that faults may have changed: settings, workloads, pods, nodes. An error says what is not ready, or
// which roles are not sane.
func (s *soak) state() (map[string]string, error) {
	state := map[string]string{}
	for _, w := range s.worlds {
		if err := s.worldState(w, state); err != nil {
			return nil, fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	var nodes corev1.NodeList
	if err := s.List(s.Context(), &nodes); err != nil {
		return nil, err
	}
	for _, node := range nodes.Items {
		state[node.Name+": unschedulable"] = fmt.Sprint(node.Spec.Unschedulable)
		state[node.Name+": ours"] = ours(node.Annotations)
		for _, taint := range node.Spec.Taints {
			state[node.Name+": taint "+taint.Key] = string(taint.Effect)
		}
	}
	return state, nil
}

// ours are annotations of the operator.
func ours(annotations map[string]string) string {
	var found []string
	for key, value := range annotations {
		if strings.Contains(key, "redquake.dev/") {
			found = append(found, key+"="+value)
		}
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

func (s *soak) worldState(w *world, state map[string]string) error {
	set, err := s.rolledOut(w.namespace, w.App)
	if err != nil {
		return err
	}
	state[w.Name+": StatefulSet"], state[w.Name+": annotations"] = asText(set.Spec), ours(set.Annotations)
	if w.Name == "sentinel" {
		if _, err := s.rolledOut(w.namespace, "redis-sentinel"); err != nil {
			return err
		}
	}
	var pods corev1.PodList
	if err := s.List(s.Context(), &pods, client.InNamespace(w.namespace), client.MatchingLabels{
		"app": w.App,
	}); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		name := w.Name + "/" + pod.Name
		c := redisAt(pod.Status.PodIP, "6379", requestLimit)
		settings, err := c.ConfigGet(s.Context(), "*").Result()
		_ = c.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", pod.Name, err)
		}
		for setting, value := range settings {
			if !slices.Contains(movable, setting) {
				state[name+": "+setting] = value
			}
		}
		state[name+": resources"] = asText(pod.Spec.Containers[0].Resources)
		state[name+": in force"] = asText(pod.Status.ContainerStatuses[0].Resources)
		state[name+": annotations"] = ours(pod.Annotations)
	}
	roles, err := s.roles(w, pods.Items)
	state[w.Name+": roles"] = roles
	return err
}

// roles says who is who. An error says what is not sane: in each world, exactly one primary has each part of the data,
// and every other server follows it.
func (s *soak) roles(w *world, pods []corev1.Pod) (string, error) {
	primaries, replicas := 0, 0
	var named string
	for i := range pods {
		c := redisAt(pods[i].Status.PodIP, "6379", requestLimit)
		info, err := c.InfoMap(s.Context(), "replication", "cluster").Result()
		var cluster string
		if err == nil && w.Name == "cluster" {
			cluster, err = c.ClusterInfo(s.Context()).Result()
		}
		_ = c.Close()
		if err != nil {
			return "", fmt.Errorf("%s: %w", pods[i].Name, err)
		}
		if cluster != "" && (!strings.Contains(cluster, "cluster_state:ok") ||
			!strings.Contains(cluster, fmt.Sprintf("cluster_known_nodes:%d\r", w.Servers))) {
			return "", fmt.Errorf("%s: %s", pods[i].Name, cluster)
		}
		switch r := info["Replication"]; {
		case r["role"] == "master":
			primaries++
			named = pods[i].Name
		case r["master_link_status"] == "up":
			replicas++
		default:
			return "", fmt.Errorf("%s: %v", pods[i].Name, r)
		}
	}
	if w.Name == "sentinel" {
		if err := s.sentinelsName(w, named); err != nil {
			return "", err
		}
	}
	want := 1
	if w.Name == "cluster" {
		want = w.Servers
	}
	if primaries != want || primaries+replicas != w.Servers {
		return "", fmt.Errorf("%d primaries and %d replicas in sync of %d servers", primaries, replicas, w.Servers)
	}
	return fmt.Sprintf("%d primaries, %d replicas in sync", primaries, replicas), nil
}

// sentinelsName is an error unless all sentinels name a pod as the primary.
func (s *soak) sentinelsName(w *world, primary string) error {
	var pods corev1.PodList
	if err := s.List(s.Context(), &pods, client.InNamespace(w.namespace), client.MatchingLabels{
		"app": "redis-sentinel",
	}); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		c := redis.NewSentinelClient(&redis.Options{
			Addr:        net.JoinHostPort(pod.Status.PodIP, "26379"),
			MaxRetries:  -1,
			DialTimeout: requestLimit,
			ReadTimeout: requestLimit,
		})
		is, err := c.Master(s.Context(), "mymaster").Result()
		_ = c.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", pod.Name, err)
		}
		if name, _, _ := strings.Cut(is["ip"], "."); name != primary || is["flags"] != "master" {
			return fmt.Errorf("%s names %s, which is %s; %s says that it is the primary", pod.Name, name, is["flags"], primary)
		}
	}
	return nil
}

// records notes which load tests have a record.
func (s *soak) records() {
	s.Helper()
	for _, w := range s.worlds {
		var maps corev1.ConfigMapList
		if err := s.List(s.Context(), &maps, client.InNamespace(w.namespace), client.HasLabels{
			v1alpha1.LabelLoadTest,
		}); err != nil {
			s.Error(err)
		}
		for _, m := range maps.Items {
			if len(m.BinaryData[children.ResultsSeriesKey]) > 0 {
				s.facts.Records[m.Namespace+"/"+m.Name] = true
			}
		}
	}
}

// pause is the time between two tries of what the API server does not take.
func pause(ctx context.Context) {
	timer := time.NewTimer(250 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
