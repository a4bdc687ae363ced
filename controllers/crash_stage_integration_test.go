//go:build integration

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
)

// crashStage is a Redis under load in a place of its own, with an operator that can be killed, and what can be seen of it all. Faults follow one
// another on it.
type crashStage struct {
	*place
	operator *process
	faults   int                      // so many ran here
	before   map[string]string        // what shows said when no fault had been
	shows    func() map[string]string // all that must be as it was after a fault; what cannot be read has an error for a value
	broken   func() int               // how often the fault broke something, on all of the stage; nil where nobody can count it
}

// crashKind is one kind of fault on its stage.
type crashKind struct {
	name  string
	fault v1alpha1.FaultType
	on    func(*testing.T) *place // where it needs another cluster; nil = newPlace
	scene func(*place) scene
	spec  func(*place, *v1alpha1.RedisFaultSpec)

	quick  bool // the one of its mechanism that make test has; the others are in the full table
	fades  bool // nobody may see it: it ends with the process that made it, or only Chaos Mesh itself could break anything
	pauses bool // clients wait meanwhile
}

// scene is a Redis with the cluster around it.
type scene struct {
	target v1alpha1.RedisTarget // of the load
	shows  func() map[string]string
	broken func() int
}

// raise starts a stage whose load runs.
func (k crashKind) raise(t *testing.T) *crashStage {
	t.Helper()
	p := placeOn(t, k.on)
	set := k.scene(p)
	startKubelet(p, nil)
	s := &crashStage{place: p, operator: startProcess(p), broken: set.broken}
	s.shows = func() map[string]string {
		all := set.shows()
		maps.Copy(all, p.clusterShows())
		return all
	}
	p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target = set.target
		test.Spec.Client.Connections = 2
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(50)), Duration: length(2 * time.Hour)}
	}))
	p.testStands("run", time.Minute, v1alpha1.ReasonRunning)
	s.before = s.shows()
	return s
}

// within waits until something is so, and says whether it came. It looks when an object has changed or the operator has ended, and every so often.
func (s *crashStage) within(patience time.Duration, came func() bool) bool {
	if s.changed == nil {
		s.watch()
	}
	for end := time.Now().Add(patience); !came(); {
		if time.Now().After(end) {
			return false
		}
		again := time.NewTimer(s.lookEvery)
		select {
		case <-s.changed:
		case <-s.operator.ended:
		case <-again.C:
		}
		again.Stop()
	}
	return true
}

// differences are the lines that two views do not share.
func differences(before, after map[string]string) []string {
	var lines []string
	for name := range maps.Keys(before) {
		if after[name] != before[name] {
			lines = append(lines, fmt.Sprintf("%s is %q, was %q", name, after[name], before[name]))
		}
	}
	for name := range maps.Keys(after) {
		if _, known := before[name]; !known {
			lines = append(lines, fmt.Sprintf("%s is %q, was not there", name, after[name]))
		}
	}
	slices.Sort(lines)
	return lines
}

// serverShows is a server's settings and role, and whether a client can write.
func serverShows(address string) map[string]string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c := goredis.NewClient(&goredis.Options{Addr: address, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, DisableIdentity: true})
	defer c.Close()
	shows := map[string]string{}
	settings, err := c.ConfigGet(ctx, "*").Result()
	for name, value := range settings {
		shows["setting "+name] = value
	}
	delete(shows, "setting dir") // another one in each life of a server
	// In a cluster the first key whose slot this server has; a replica has none.
	for i := 0; err == nil && i < 64; i++ {
		err = c.Set(ctx, fmt.Sprintf("crash-test-%d", i), "written", 0).Err()
		if err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
			break
		}
		err = nil
	}
	shows["writes"] = fmt.Sprint(err)
	// PUBLISH is what a paused server lets wait and a replica does not refuse.
	shows["publishes"] = fmt.Sprint(c.Publish(ctx, "crash-test", "heard").Err())
	if shows["setting cluster-enabled"] == "yes" {
		state, _ := c.ClusterInfo(ctx).Result()
		for line := range strings.Lines(state) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); slices.Contains([]string{"cluster_state", "cluster_slots_ok", "cluster_known_nodes", "cluster_size"}, name) {
				shows["setting "+name] = value
			}
		}
	}
	info, _ := c.Info(ctx, "replication").Result()
	for line := range strings.Lines(info) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); slices.Contains([]string{"role", "connected_slaves", "master_link_status", "master_failover_state"}, name) {
			shows[name] = value
		}
	}
	return shows
}

// calls is how often a server executed a command, such as "client|kill", since its start.
func calls(address, command string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c := goredis.NewClient(&goredis.Options{Addr: address, MaxRetries: -1, DisableIdentity: true, ContextTimeoutEnabled: true})
	defer c.Close()
	info, _ := c.Info(ctx, "commandstats").Result()
	n := 0
	for line := range strings.Lines(info) {
		if rest, is := strings.CutPrefix(line, "cmdstat_"+command+":calls="); is {
			n, _ = strconv.Atoi(rest[:strings.IndexByte(rest, ',')])
		}
	}
	return n
}

// slow is how often a server executed a command that took it half a second or longer.
func slow(address, command string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c := goredis.NewClient(&goredis.Options{Addr: address, MaxRetries: -1, DisableIdentity: true, ContextTimeoutEnabled: true})
	defer c.Close()
	entries, _ := c.SlowLogGet(ctx, -1).Result()
	n := 0
	for _, e := range entries {
		if strings.EqualFold(e.Args[0], command) && e.Duration >= 500*time.Millisecond {
			n++
		}
	}
	return n
}

// clusterShows is all of the place that a fault may change: pods, workloads, nodes. Load pods and what only the control plane writes are left out.
func (p *place) clusterShows() map[string]string {
	ctx, shows := context.Background(), map[string]string{}
	say := func(err error, what string, is ...any) {
		text, _ := json.Marshal(is)
		shows[what] = string(text)
		if err != nil {
			shows[what] = err.Error()
		}
	}
	var pods corev1.PodList
	say(p.client.List(ctx, &pods, client.InNamespace(p.namespace)), "pods")
	for _, pod := range pods.Items {
		if pod.Labels[v1alpha1.LabelLoadTest] != "" {
			continue
		}
		container := pod.Spec.Containers[0]
		say(nil, "pod "+pod.Name, pod.Status.Phase, pod.DeletionTimestamp, pod.Labels, pod.Annotations, container.Args, container.Command, container.Resources)
	}
	var sets appsv1.StatefulSetList
	say(p.client.List(ctx, &sets, client.InNamespace(p.namespace)), "statefulsets")
	for _, set := range sets.Items {
		say(nil, "statefulset "+set.Name, set.Spec, set.Annotations)
	}
	var nodes corev1.NodeList
	say(p.client.List(ctx, &nodes, client.MatchingLabels{placeLabel: p.namespace}), "nodes")
	for _, node := range nodes.Items {
		say(nil, "node "+node.Name, node.Spec.Unschedulable, node.Spec.Taints, node.Labels, node.Annotations)
	}
	return shows
}

// placeLabel marks the objects that belong to no namespace.
const placeLabel = "place"

// orphansOf are the objects that a fault made and that are still there. Events of it are its story.
func (p *place) orphansOf(f *v1alpha1.RedisFault) []string {
	p.t.Helper()
	var orphans []string
	lists := []client.ObjectList{
		&corev1.PodList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &corev1.PersistentVolumeClaimList{},
		&batchv1.JobList{}, &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &v1alpha1.RedisLoadTestList{},
	}
	if p.stopMesh != nil {
		for _, kind := range kindsOfMesh() {
			lists = append(lists, object.NewList(kind))
		}
	}
	for _, list := range lists {
		err := p.client.List(context.Background(), list, client.InNamespace(p.namespace))
		if err != nil && !(p.stopMesh != nil && apierrors.IsNotFound(err)) { // a CRD that was removed took its objects along
			p.t.Fatal(err)
		}
		for _, o := range objectsOf(list) {
			owned := slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == f.UID })
			if owned || o.GetLabels()[v1alpha1.LabelFault] != "" {
				gvk, _ := apiutil.GVKForObject(o, p.client.Scheme())
				orphans = append(orphans, gvk.Kind+" "+o.GetName())
			}
		}
	}
	return orphans
}

func objectsOf(list client.ObjectList) []client.Object {
	items, _ := meta.ExtractList(list)
	objects := make([]client.Object, len(items))
	for i := range items {
		objects[i] = items[i].(client.Object)
	}
	return objects
}
