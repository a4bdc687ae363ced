// Package roll replaces the pods of a StatefulSet whose template a fault has changed: one at a
// time, replicas first.
package roll

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/fault/contract"
	faultpod "github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/podstate"
)

// OnDelete is the strategy with which pods get a new template only when they are deleted, which the
// fault does in its own order.
var OnDelete = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}

// Step is how long one step of a roll may take: a pod until it is ready and in sync.
const Step = 5 * time.Minute

// Roller replaces the pods of a StatefulSet that were made by an earlier template: replicas first,
// primaries last, one at a time, the next when all others are ready and in sync. The StatefulSet's
// strategy must be OnDelete: else its controller replaces pods as well.
type Roller struct {
	contract.Deps
	// Differs reports whether a pod of another revision is otherwise than the template says; nil =
	// each of another revision is.
	Differs func(set *appsv1.StatefulSet, pod *corev1.Pod) bool
	// Check is called of a new pod that is ready and in sync; nil = nothing is checked. After its
	// error no further pod is replaced.
	Check func(ctx context.Context, pod *corev1.Pod) error
}

// rolled is one pod of a StatefulSet.
type rolled struct {
	pod     *corev1.Pod
	stale   bool   // it was started by another revision
	primary bool   //
	trouble string // why no other pod may be replaced now; "" = it is ready and in sync
}

// Advance replaces the next pod if it may be. It is complete when all pods are as the template
// says.
func (r Roller) Advance(ctx context.Context, set *appsv1.StatefulSet) (contract.Progress, error) {
	if set.Status.ObservedGeneration < set.Generation {
		return contract.Underway("waiting until the StatefulSet controller has seen the template of %s",
			set.Name), nil
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
		if r.Check == nil {
			continue
		}
		if err := r.Check(ctx, m.pod); err != nil {
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

// waitsFor returns why no pod can be replaced now; "" where the next one can. While one pod is not
// ready or in sync, only such a pod is replaced.
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
func (r Roller) replace(ctx context.Context, pod *corev1.Pod) error {
	err := r.Cluster.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}

// next is the pod to replace: one that is not ready, else a replica, else a primary. nil where none
// is stale.
func (Roller) next(members []rolled) *rolled {
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
		m := &members[i]
		if m.stale && (first == nil || rank(*m) <= rank(*first)) {
			first = m
		}
	}
	return first
}

// members are the pods of a StatefulSet, by ordinal.
func (r Roller) members(ctx context.Context, set *appsv1.StatefulSet) ([]rolled, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, err
	}
	pods, err := r.ListPods(ctx, client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("read the pods of StatefulSet %s: %w", set.Name, err)
	}
	var members []rolled
	for i := range pods {
		pod := &pods[i]
		if !metav1.IsControlledBy(pod, set) {
			continue
		}
		m := rolled{pod: pod}
		m.stale = pod.Labels[appsv1.StatefulSetRevisionLabel] != set.Status.UpdateRevision &&
			(r.Differs == nil || r.Differs(set, pod))
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
func (r Roller) examine(ctx context.Context, m *rolled) {
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
		state, err := r.ClusterInfo(ctx, address)
		if err != nil || state["cluster_state"] != "ok" {
			m.trouble = fmt.Sprintf("cluster_state is not ok at pod %s", m.pod.Name)
		}
	}
}

// ready returns why a pod is not ready; "" where it is.
func ready(pod *corev1.Pod) string {
	if podstate.IsReady(pod) && pod.Status.PodIP != "" {
		return ""
	}
	return fmt.Sprintf("pod %s is not ready", pod.Name)
}

// Unsettled returns why a StatefulSet cannot be rolled now: another roll is in progress, or a pod
// is not ready; "" where it can.
func (r Roller) Unsettled(ctx context.Context, set *appsv1.StatefulSet) (string, error) {
	members, err := r.members(ctx, set)
	if err != nil {
		return "", err
	}
	for _, m := range members {
		switch {
		case m.pod.Labels[appsv1.StatefulSetRevisionLabel] != set.Status.UpdateRevision:
			return fmt.Sprintf("pod %s is not of its latest revision", m.pod.Name), nil
		case m.trouble != "":
			return m.trouble, nil
		}
	}
	n := int(faultpod.ReplicasOf(set))
	if len(members) != n || set.Status.ObservedGeneration < set.Generation {
		return fmt.Sprintf("it has %d pods instead of %d", len(members), n), nil
	}
	return "", nil
}

// Stale reports whether a pod is left that Advance would replace.
func (r Roller) Stale(ctx context.Context, set *appsv1.StatefulSet) (bool, error) {
	members, err := r.members(ctx, set)
	return slices.ContainsFunc(members, func(m rolled) bool { return m.stale }), err
}
