//go:build integration

package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// fleet stands in for the StatefulSet controller, the scheduler and the kubelets of a place whose Redis is a StatefulSet. The servers are real:
// redis-0 starts as the primary, the others as its replicas.
type fleet struct {
	*place
	nodes   []string // that pods can go to, the first that takes any; empty = all are on one that is no object
	volumes *volumes // of redis-0; nil without
	servers map[types.UID]*fleetServer

	clustered bool // the servers make a cluster instead: see formCluster

	mu      sync.Mutex
	stopped int // servers that ended with their pods
}

type fleetServer struct {
	command *exec.Cmd
	exited  chan struct{}
}

// startFleet makes a StatefulSet of so many pods and waits until all are in sync.
func startFleet(p *place, replicas int32, change func(*fleet, *appsv1.StatefulSet)) *fleet {
	p.t.Helper()
	f := &fleet{place: p, servers: map[types.UID]*fleetServer{}}
	labels := map[string]string{"app": "redis"}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("256Mi")}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(5)),
			Containers: []corev1.Container{{
				Name: "redis", Image: "redis:7", Args: []string{"redis-server"}, Ports: []corev1.ContainerPort{{ContainerPort: 6379}},
				Resources: corev1.ResourceRequirements{Limits: room, Requests: room},
			}},
		}},
	}}
	if change != nil {
		change(f, set)
	}
	p.create(set)
	stop := p.standIn("the fleet", 300*time.Millisecond, f.sync, &corev1.PodList{}, &appsv1.StatefulSetList{})
	p.t.Cleanup(func() {
		stop()
		for uid := range f.servers {
			f.stop(uid)
		}
	})
	if f.clustered {
		p.until("all servers answer", time.Minute, func() bool { return f.ready(replicas) }, func() string { return "" })
		p.mustChange(f.formCluster())
	}
	p.until("the fleet is in sync", time.Minute, func() bool {
		shows := f.shows()
		return shows["roles"] == f.inSync(replicas) && (!f.clustered || shows["nodes"] == fmt.Sprintf("ok, 3 primaries of %d nodes", replicas))
	}, func() string { return fmt.Sprint(f.shows()) })
	return f
}

func (f *fleet) ipOf(ordinal int) string { return f.subnet + strconv.Itoa(2+ordinal) }

func (f *fleet) address(ordinal int) string { return f.ipOf(ordinal) + ":6379" }

// ready says whether all servers have answered.
func (f *fleet) ready(replicas int32) bool {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "redis"}}
	return f.read(set) && set.Status.ReadyReplicas == replicas
}

func ordinalOf(pod *corev1.Pod) int {
	n, _ := strconv.Atoi(pod.Name[strings.LastIndex(pod.Name, "-")+1:])
	return n
}

// sync brings everything a step further.
func (f *fleet) sync(ctx context.Context) error {
	set := &appsv1.StatefulSet{}
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "redis"}, set); err != nil {
		return err
	}
	var all corev1.PodList
	if err := f.client.List(ctx, &all, client.InNamespace(f.namespace)); err != nil {
		return err
	}
	there := map[types.UID]bool{}
	var pods []*corev1.Pod
	var problems []error
	for i := range all.Items {
		pod := &all.Items[i]
		there[pod.UID] = true
		switch {
		case pod.Labels["app"] == "redis":
			pods = append(pods, pod)
		case pod.Labels[v1alpha1.LabelFault] != "":
			problems = append(problems, f.runHelper(ctx, pod))
		}
	}
	for uid := range f.servers {
		if !there[uid] { // deleted by force
			f.stop(uid)
		}
	}
	ready := int32(0)
	for _, pod := range pods {
		running, err := f.syncPod(ctx, set, pod)
		problems = append(problems, err)
		if running {
			ready++
		}
	}
	problems = append(problems, f.scale(ctx, set, pods, ready), f.tell(ctx, set, int32(len(pods)), ready))
	return errors.Join(problems...)
}

// syncPod is what scheduler and kubelet do for a pod.
func (f *fleet) syncPod(ctx context.Context, set *appsv1.StatefulSet, pod *corev1.Pod) (running bool, err error) {
	server := f.servers[pod.UID]
	switch {
	case pod.DeletionTimestamp != nil || ordinalOf(pod) >= int(*set.Spec.Replicas):
		f.stop(pod.UID)
		return false, client.IgnoreNotFound(f.client.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	case pod.Spec.NodeName == "":
		node, err := f.schedulable(ctx)
		if node == "" || err != nil {
			return false, err
		}
		return false, f.client.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}})
	case server == nil:
		if attached, err := f.volumes.attach(ctx, f.place, pod); !attached || err != nil {
			return false, err
		}
		f.start(pod)
		return true, f.setRunning(ctx, pod)
	}
	inForce := pod.Status.ContainerStatuses[0].Resources
	if inForce == nil || !inForce.Limits.Cpu().Equal(*pod.Spec.Containers[0].Resources.Limits.Cpu()) {
		return true, f.setRunning(ctx, pod) // resized
	}
	return true, nil
}

// scale makes the pods that are missing, and replaces those of an old template one by one unless somebody else is to.
func (f *fleet) scale(ctx context.Context, set *appsv1.StatefulSet, pods []*corev1.Pod, ready int32) error {
	revision := revisionOf(set)
	for ordinal := range int(*set.Spec.Replicas) {
		if slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return ordinalOf(p) == ordinal }) {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Namespace, pod.Name = f.namespace, fmt.Sprintf("redis-%d", ordinal)
		pod.Labels = maps.Clone(pod.Labels)
		pod.Labels[appsv1.StatefulSetRevisionLabel] = revision
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		if len(f.nodes) == 0 {
			pod.Spec.NodeName = "node-1"
		}
		return f.client.Create(ctx, pod)
	}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType || ready < *set.Spec.Replicas {
		return nil
	}
	for _, pod := range slices.Backward(pods) {
		if pod.Labels[appsv1.StatefulSetRevisionLabel] != revision {
			return f.client.Delete(ctx, pod)
		}
	}
	return nil
}

func revisionOf(set *appsv1.StatefulSet) string {
	text, _ := json.Marshal(set.Spec.Template)
	return fmt.Sprintf("redis-%.4x", sha256.Sum256(text))
}

// tell writes the StatefulSet's status where it has changed.
func (f *fleet) tell(ctx context.Context, set *appsv1.StatefulSet, pods, ready int32) error {
	status := appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, Replicas: pods, ReadyReplicas: ready, AvailableReplicas: ready, CurrentReplicas: pods, UpdatedReplicas: pods,
		CurrentRevision: revisionOf(set), UpdateRevision: revisionOf(set),
	}
	if set.Status.ObservedGeneration == status.ObservedGeneration && set.Status.Replicas == pods && set.Status.ReadyReplicas == ready && set.Status.UpdateRevision == status.UpdateRevision {
		return nil
	}
	set.Status = status
	return f.client.Status().Update(ctx, set)
}

// schedulable is the first node that takes pods; "" where none does.
func (f *fleet) schedulable(ctx context.Context) (string, error) {
	for _, name := range f.nodes {
		node := &corev1.Node{}
		if err := f.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return "", err
		}
		if !node.Spec.Unschedulable {
			return name, nil
		}
	}
	return "", nil
}

// runHelper is the kubelet's part for a pod that a fault made.
func (f *fleet) runHelper(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return f.client.Delete(ctx, pod, client.GracePeriodSeconds(0))
	}
	if pod.Status.Phase != corev1.PodPending {
		return nil
	}
	now := metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}}
	return f.client.Status().Update(ctx, pod)
}

func (f *fleet) setRunning(ctx context.Context, pod *corev1.Pod) error {
	ip, now := f.ipOf(ordinalOf(pod)), metav1.Now()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &now, QOSClass: pod.Status.QOSClass,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "redis", Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			Resources: pod.Spec.Containers[0].Resources.DeepCopy(), AllocatedResources: pod.Spec.Containers[0].Resources.Requests,
		}},
	}
	return f.client.Status().Update(ctx, pod)
}

// start runs a pod's server with the arguments of its container, and returns when it answers.
func (f *fleet) start(pod *corev1.Pod) {
	ip := f.ipOf(ordinalOf(pod))
	args := append(slices.Clone(pod.Spec.Containers[0].Args[1:]), "--port", "6379", "--bind", ip, "--save", "", "--dir", f.t.TempDir(), "--loglevel", "warning", "--replica-announce-ip", ip,
		"--repl-diskless-sync-delay", "0")
	switch {
	case f.clustered:
		args = append(args, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-announce-ip", ip)
	case ordinalOf(pod) > 0:
		args = append(args, "--replicaof", f.ipOf(0), "6379")
	}
	s := &fleetServer{command: exec.Command("redis-server", args...), exited: make(chan struct{})}
	if err := s.command.Start(); err != nil {
		f.t.Errorf("redis-server: %v", err)
		return
	}
	go func() {
		_ = s.command.Wait()
		close(s.exited)
	}()
	f.servers[pod.UID] = s
	firstAnswer(f.t, f.address(ordinalOf(pod)))
}

// stop ends a pod's server, if it has one.
func (f *fleet) stop(uid types.UID) {
	s := f.servers[uid]
	if s == nil {
		return
	}
	delete(f.servers, uid)
	_ = s.command.Process.Kill()
	<-s.exited
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped++
}

func (f *fleet) serversStopped() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopped
}

// shows is what its servers show: which of them is the primary is no part of it.
func (f *fleet) shows() map[string]string {
	shows := map[string]string{}
	var all corev1.PodList
	if err := f.client.List(context.Background(), &all, client.InNamespace(f.namespace), client.MatchingLabels{"app": "redis"}); err != nil {
		shows["pods"] = err.Error()
	}
	addresses := map[string]string{}
	for i := range all.Items {
		addresses[all.Items[i].Name] = f.address(ordinalOf(&all.Items[i]))
	}
	maps.Copy(shows, serversShow(addresses))
	return shows
}

// serversShow is the settings of the servers of a replication, by name, and the roles of all together.
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
			nodes[fmt.Sprintf("%s, %s primaries of %s nodes", one["setting cluster_state"], one["setting cluster_size"], one["setting cluster_known_nodes"])] = true
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
		shows["nodes"] = strings.Join(slices.Sorted(maps.Keys(nodes)), "; ") // of the cluster, as its members count them
	}
	return shows
}
