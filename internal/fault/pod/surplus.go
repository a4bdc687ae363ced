package pod

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/target/podstate"
)

// group is the targets of one controller that are hit.
type group struct {
	controller Controller
	pods       int32 // how many pods the controller had
	since      time.Time
	hit        []types.UID
}

func join(groups map[types.UID]*group, record keptRecord, t *v1alpha1.FaultTarget) {
	since := t.InjectedAt.Time.Truncate(time.Second) // as coarse as creationTimestamp
	g, ok := groups[record.Controller.UID]
	if !ok {
		g = &group{
			controller: record.Controller,
			pods:       record.Pods,
			since:      since,
		}
		groups[record.Controller.UID] = g
	}
	if since.Before(g.since) {
		g.since = since
	}
	g.hit = append(g.hit, types.UID(t.UID))
}

// surplus returns the pods that a controller has made since the injection, and with which fewer
// pods are missing than were hit: those that serve last.
func (k keptDown) surplus(ctx context.Context, g *group) ([]corev1.Pod, error) {
	running, err := k.running(ctx, g.controller)
	if err != nil {
		return nil, err
	}
	running = slices.DeleteFunc(running, func(p corev1.Pod) bool {
		return slices.Contains(g.hit,
			p.UID)
	})
	recent := slices.DeleteFunc(slices.Clone(running), func(p corev1.Pod) bool {
		return p.CreationTimestamp.Time.Before(g.since)
	})
	if len(recent) == 0 {
		return nil, nil
	}
	size, err := k.sizeOf(ctx, g)
	if err != nil {
		return nil, err
	}
	spared := max(int(size)-len(g.hit), 0)
	due := min(max(len(running)-spared, 0), len(g.hit), len(recent))
	slices.SortFunc(recent, idleFirst)
	return recent[:due], nil
}

// running are the pods of a controller that are neither deleted nor over.
func (k keptDown) running(ctx context.Context, controller Controller) ([]corev1.Pod, error) {
	all, err := k.LatestPods(ctx) // a new pod triggers a reconcile
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(p corev1.Pod) bool {
		return ControllerOf(&p).UID != controller.UID || p.DeletionTimestamp != nil ||
			p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	}), nil
}

// sizeOf is how many pods a controller is to have: what a ReplicaSet says now, else how many there
// were before the fault.
func (k keptDown) sizeOf(ctx context.Context, g *group) (int32, error) {
	if g.controller.Kind != "ReplicaSet" {
		return g.pods, nil
	}
	set := &appsv1.ReplicaSet{}
	err := k.Live.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: g.controller.Name}, set)
	switch {
	case apierrors.IsNotFound(err):
		return g.pods, nil
	case err != nil:
		return 0, fmt.Errorf("read the size of ReplicaSet %s: %w", g.controller.Name, err)
	case set.Spec.Replicas == nil:
		return 1, nil
	}
	return *set.Spec.Replicas, nil
}

// idleFirst orders pods by what they would be missed: those that are not ready first, then the
// youngest, as a ReplicaSet does.
func idleFirst(a, b corev1.Pod) int {
	return cmp.Or(cmp.Compare(rank(&a), rank(&b)),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// rank is 1 of a pod that is ready.
func rank(pod *corev1.Pod) int {
	if podstate.IsReady(pod) {
		return 1
	}
	return 0
}
