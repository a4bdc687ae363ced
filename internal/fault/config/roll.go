package config

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/fault/contract"
	faultpod "github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/redis/topology"
)

// roller replaces the pods of a StatefulSet whose Redis container starts otherwise than its template says: replicas first, primaries last, one at a
// time, the next when all others are ready and in sync. The StatefulSet's strategy must be OnDelete: else its controller replaces pods as well.
type roller struct {
	contract.Deps
	optionSource
	check func(ctx context.Context, pod *corev1.Pod) error // of a new pod that is ready and in sync; nil = none
}

// rolled is one pod of a StatefulSet.
type rolled struct {
	pod     *corev1.Pod
	stale   bool   // it was started by another revision
	primary bool   //
	trouble string // why no other pod may be replaced now; "" = it is ready and in sync
}

// advance replaces the next pod if it may be. It is complete when all pods are as the template says.
func (r roller) advance(ctx context.Context, set *appsv1.StatefulSet) (contract.Progress, error) {
	if set.Status.ObservedGeneration < set.Generation {
		return contract.Underway("waiting until the StatefulSet controller has seen the template of %s", set.Name), nil
	}
	members, err := r.members(ctx, set)
	if err != nil {
		return contract.Progress{}, err
	}
	total, done := int(faultpod.ReplicasOf(set)), 0
	for _, m := range members {
		if m.stale || m.trouble != "" {
			continue
		}
		done++
		if r.check == nil {
			continue
		}
		if err := r.check(ctx, m.pod); err != nil {
			return contract.Progress{}, err
		}
	}
	rolling := func(step string) contract.Progress {
		return contract.Underway("%d of %d pods rolled: %s", done, total, step)
	}
	next := r.next(members)
	if why := waitsFor(members, total, next); why != "" {
		return rolling(why), nil
	}
	if next == nil {
		return contract.Progress{}, nil
	}
	if err := r.replace(ctx, next.pod); err != nil {
		return contract.Progress{}, err
	}
	return rolling("replacing pod " + next.pod.Name), nil
}

// waitsFor returns why no pod can be replaced now; "" where the next one can. While one pod is not ready or in sync, only such a pod is replaced.
func waitsFor(members []rolled, total int, next *rolled) string {
	for _, m := range members {
		if m.pod.DeletionTimestamp != nil {
			return fmt.Sprintf("pod %s is terminating", m.pod.Name)
		}
	}
	if len(members) < total {
		return "waiting for the StatefulSet controller to create the next pod"
	}
	for _, m := range members {
		if m.trouble != "" && (next == nil || m.pod != next.pod && next.trouble == "") {
			return m.trouble
		}
	}
	return ""
}

// replace deletes this very pod, so that the StatefulSet controller creates it anew.
func (r roller) replace(ctx context.Context, pod *corev1.Pod) error {
	err := r.Cluster.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}

// next is the pod to replace: one that is not ready, else a replica, else a primary. nil where none is stale.
func (roller) next(members []rolled) *rolled {
	rank := func(m rolled) int {
		switch {
		case ready(m.pod) != "":
			return 0
		case m.primary:
			return 2
		}
		return 1
	}
	var first *rolled
	for i := range members { // the highest ordinal first, as StatefulSets roll
		if m := &members[i]; m.stale && (first == nil || rank(*m) <= rank(*first)) {
			first = m
		}
	}
	return first
}

// members are the pods of a StatefulSet, by ordinal.
func (r roller) members(ctx context.Context, set *appsv1.StatefulSet) ([]rolled, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, err
	}
	pods, err := r.ListPods(ctx, client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("read the pods of StatefulSet %s: %w", set.Name, err)
	}
	want := r.of(&set.Spec.Template.Spec)
	var members []rolled
	for i := range pods {
		pod := &pods[i]
		if !metav1.IsControlledBy(pod, set) {
			continue
		}
		m := rolled{pod: pod}
		// Both must differ: a webhook may change the arguments of every new pod, and a new revision may be somebody else's change.
		m.stale = pod.Labels[appsv1.StatefulSetRevisionLabel] != set.Status.UpdateRevision && !slices.Equal(r.of(&pod.Spec), want)
		r.examine(ctx, &m)
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b rolled) int {
		if d := len(a.pod.Name) - len(b.pod.Name); d != 0 { // redis-9 before redis-10
			return d
		}
		return strings.Compare(a.pod.Name, b.pod.Name)
	})
	return members, nil
}

// examine determines whether a member is ready and in sync.
func (r roller) examine(ctx context.Context, m *rolled) {
	if m.trouble = ready(m.pod); m.trouble != "" {
		return
	}
	address := r.Address(m.pod)
	info, err := r.Info(ctx, address, "everything")
	if err != nil {
		m.trouble = fmt.Sprintf("the server of pod %s does not answer: %v", m.pod.Name, err)
		return
	}
	replication := topology.ReplicationOf(info)
	m.primary = replication.Role == topology.Primary
	switch {
	case info.On("loading"):
		m.trouble = fmt.Sprintf("the server of pod %s loads its data", m.pod.Name)
	case replication.Role == topology.Replica && (!replication.LinkUp || replication.Syncing):
		m.trouble = fmt.Sprintf("the replica in pod %s is not in sync", m.pod.Name)
	case info.Mode() == "cluster":
		if state, err := r.ClusterInfo(ctx, address); err != nil || state["cluster_state"] != "ok" {
			m.trouble = fmt.Sprintf("cluster_state is not ok at pod %s", m.pod.Name)
		}
	}
}

// ready returns why a pod is not ready; "" where it is.
func ready(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.Status.PodIP != "" {
			return ""
		}
	}
	return fmt.Sprintf("pod %s is not ready", pod.Name)
}

// templateEdit is a change of a StatefulSet's template, with the state before it.
type templateEdit struct {
	StatefulSet string                           `json:"statefulSet"`
	UID         string                           `json:"uid"`
	Before      []string                         `json:"before"` // what the source returned
	After       []string                         `json:"after"`  //
	Strategy    appsv1.StatefulSetUpdateStrategy `json:"strategy"`

	optionSource
}

// apply writes what the source sets and the strategy in one patch, unless the StatefulSet has changed since it was read.
func (r roller) apply(ctx context.Context, set *appsv1.StatefulSet, words []string, strategy appsv1.StatefulSetUpdateStrategy) error {
	changed := set.DeepCopy()
	container := containerIn(&changed.Spec.Template.Spec, r.Container)
	if container == nil {
		return fmt.Errorf("the template of StatefulSet %s has no longer a container %s", set.Name, r.Container)
	}
	r.set(container, words)
	changed.Spec.UpdateStrategy = strategy
	if reflect.DeepEqual(set, changed) {
		return nil
	}
	if err := r.Cluster.Patch(ctx, changed, client.StrategicMergeFrom(set, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch the template of StatefulSet %s: %w", set.Name, err)
	}
	return nil
}

func containerIn(pod *corev1.PodSpec, name string) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == name {
			return &pod.Containers[i]
		}
	}
	return nil
}
