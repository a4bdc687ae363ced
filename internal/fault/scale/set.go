package scale

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/owner"
	faultpod "github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target/paging"
)

// scaling is the StatefulSet of a target now, against its record.
type scaling struct {
	record    *scaleRecord
	name      string
	set       *appsv1.StatefulSet
	gone      bool  // it was deleted or replaced
	replicas  int32 // now
	old, want int32 // before the fault, and by it
}

// changed are the pods that are added or removed: a StatefulSet adds and removes those with the
// highest ordinals.
func (c *scaling) changed() []string {
	return c.pods(min(c.old, c.want), max(c.old, c.want))
}

// staying are the pods that exist before, during and after the fault.
func (c *scaling) staying() []string {
	return c.pods(0, min(c.old, c.want))
}

func (c *scaling) pods(from, until int32) []string {
	if o := c.set.Spec.Ordinals; o != nil {
		from, until = from+o.Start, until+o.Start
	}
	var names []string
	for i := from; i < until; i++ {
		names = append(names, c.name+"-"+strconv.Itoa(int(i)))
	}
	return names
}

// foreign is the error of a number of replicas that is neither the old one nor the fault's.
func (c *scaling) foreign() error {
	return fmt.Errorf(
		"StatefulSet %s has %d replicas, neither the %d from before the fault nor its %d: somebody "+
			"else scales it, so it is not changed", c.name, c.replicas, c.old, c.want)
}

// read compares the StatefulSet with the target's record.
func (s *replicaScale) read(ctx context.Context, target *v1alpha1.FaultTarget) (*scaling, error) {
	record, recorded, err := contract.Load[scaleRecord](target)
	if err != nil {
		return nil, err
	}
	if !recorded {
		return nil, fmt.Errorf("pod %s has no record of which StatefulSet had how many replicas",
			target.Pod)
	}
	c := &scaling{
		record: &record,
		name:   record.StatefulSet,
		old:    record.Replicas,
		want:   record.Replicas + s.by,
	}
	c.set, err = s.set(ctx, c.name)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(c.set.UID) != record.UID:
		c.gone = true
		return c, nil
	case err != nil:
		return nil, err
	}
	c.replicas = faultpod.ReplicasOf(c.set)
	return c, nil
}

// scale sets the number of replicas. A change of the StatefulSet since it was read is a conflict.
func (s *replicaScale) scale(ctx context.Context, c *scaling, replicas int32) error {
	changed := c.set.DeepCopy()
	changed.Spec.Replicas = &replicas
	err := s.Cluster.Patch(ctx, changed,
		client.MergeFromWithOptions(c.set, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("scale StatefulSet %s to %d replicas: %w", c.name, replicas, err)
	}
	c.set, c.replicas = changed, replicas
	return nil
}

// recordSet finds the StatefulSet of the target's pod, refuses one that something else scales, and
// records its number of replicas.
func (s *replicaScale) recordSet(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (*scaling, error) {
	pod, err := s.Pod(ctx, target.Pod)
	if err != nil {
		return nil, err
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil, problem.Unsupported(
			"pod %s has no controller: only the replicas of a StatefulSet can be scaled", target.Pod)
	}
	if owner.Kind != "StatefulSet" {
		return nil, problem.Unsupported(
			"pod %s belongs to %s %s: only the replicas of a StatefulSet can be scaled", target.Pod,
			owner.Kind, owner.Name)
	}
	set, err := s.set(ctx, owner.Name)
	if err != nil {
		return nil, err
	}
	if err := s.scaledByOthers(ctx, set); err != nil {
		return nil, err
	}
	c := &scaling{
		name:     set.Name,
		set:      set,
		replicas: faultpod.ReplicasOf(set),
		old:      faultpod.ReplicasOf(set),
		want:     faultpod.ReplicasOf(set) + s.by,
	}
	if c.want < 0 {
		return nil, problem.Invalid("spec.action.replicaScale.by: %d: StatefulSet %s has only %s", s.by,
			set.Name, format.Plural(int(c.old), "replica"))
	}
	if set.Status.ReadyReplicas != c.old || set.Status.Replicas != c.old {
		return nil, problem.NotYet("StatefulSet %s has %d of %d pods ready: it is scaled when all are",
			set.Name, set.Status.ReadyReplicas, c.old)
	}
	c.record = &scaleRecord{
		StatefulSet: set.Name,
		UID:         string(set.UID),
		Replicas:    c.old,
	}
	return c, nil
}

func (s *replicaScale) set(ctx context.Context, name string) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{}
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, set)
	if err != nil {
		return nil, fmt.Errorf("read StatefulSet %s: %w", name, err)
	}
	return set, nil
}

// scaledByOthers refuses a StatefulSet whose number of replicas an operator or an autoscaler would
// revert.
func (s *replicaScale) scaledByOthers(ctx context.Context, set *appsv1.StatefulSet) error {
	above, err := owner.Of(ctx, s.Live, set)
	if err != nil {
		return err
	}
	if above != nil && above.Paused() == "" {
		return problem.Unsupported(
			"StatefulSet %s belongs to %s, whose operator would revert the scaling: %s", set.Name, above,
			above.Replicas())
	}
	var page autoscalingv2.HorizontalPodAutoscalerList
	autoscaler := ""
	err = paging.Each(ctx, s.Live, &page, func() bool {
		for i := range page.Items {
			a := &page.Items[i]
			if a.Spec.ScaleTargetRef.Kind == "StatefulSet" && a.Spec.ScaleTargetRef.Name == set.Name {
				autoscaler = a.Name
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return autoscaler == ""
	}, client.InNamespace(set.Namespace))
	if err != nil {
		return fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	if autoscaler != "" {
		return problem.Unsupported(
			"HorizontalPodAutoscaler %s scales StatefulSet %s, and would revert the scaling", autoscaler,
			set.Name)
	}
	return nil
}
