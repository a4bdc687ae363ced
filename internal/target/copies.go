package target

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/podstate"
)

// markSentinels gives servers that do not answer the role of a sentinel if another pod of their
// controller is one.
func markSentinels(found []Server) {
	of := map[types.UID]bool{}
	for i := range found {
		owner := metav1.GetControllerOf(found[i].Pod)
		if owner != nil && found[i].State.Role == topology.Sentinel {
			of[owner.UID] = true
		}
	}
	for i := range found {
		owner := metav1.GetControllerOf(found[i].Pod)
		if owner != nil && found[i].Err != nil && of[owner.UID] {
			found[i].State.Role = topology.Sentinel
		}
	}
}

// missingPods adds the pods of a target that do not run, those that a StatefulSet lacks, and those
// of it that the target does not select. Pods that have ended for good, and those of sentinels, are
// no copies.
func (r Redis) missingPods(ctx context.Context, all []corev1.Pod, c *Census) error {
	found := c.Servers
	sentinels := map[types.UID]bool{}
	for i := range found {
		owner := metav1.GetControllerOf(found[i].Pod)
		if owner != nil && found[i].State.Role == topology.Sentinel {
			sentinels[owner.UID] = true
		}
	}
	exists, sets := map[string]bool{}, map[types.UID]string{}
	for i := range all {
		pod := &all[i]
		owner := metav1.GetControllerOf(pod)
		if pod.Labels[v1alpha1.LabelLoadTest] != "" || owner != nil && sentinels[owner.UID] {
			continue
		}
		if owner != nil && owner.Kind == "StatefulSet" {
			sets[owner.UID] = owner.Name
		}
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		exists[pod.Name] = true
		if why := podstate.Absence(pod); why != "" {
			c.Missing = append(c.Missing, Missing{
				Name:  pod.Name,
				Why:   why,
				Shard: NoShard,
			})
		}
	}
	for _, name := range slices.Sorted(maps.Values(sets)) {
		missing, beside, err := r.lacking(ctx, name, exists)
		if err != nil {
			return err
		}
		c.Missing = append(c.Missing, missing...)
		c.unselected = append(c.unselected, beside...)
	}
	return nil
}

// lacking are the pods that a StatefulSet should have and that do not run, and those that run and
// are not selected; none where it cannot be read.
func (r Redis) lacking(
	ctx context.Context, name string, exists map[string]bool,
) (missing []Missing, beside []corev1.Pod, err error) {
	set := &appsv1.StatefulSet{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name},
		set); apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("read StatefulSet %s: %w", name, err)
	}
	first, replicas := int32(0), int32(1)
	if set.Spec.Ordinals != nil {
		first = set.Spec.Ordinals.Start
	}
	if set.Spec.Replicas != nil {
		replicas = *set.Spec.Replicas
	}
	var all map[string]*corev1.Pod // of the set; read once, where any is absent
	for n := first; n < first+replicas; n++ {
		absent := fmt.Sprintf("%s-%d", name, n)
		if exists[absent] {
			continue
		}
		if all == nil {
			if all, err = r.podsOf(ctx, set); err != nil {
				return nil, nil, err
			}
		}
		switch pod := all[absent]; {
		case pod == nil:
			missing = append(missing, Missing{
				Name:  absent,
				Why:   "does not exist",
				Shard: NoShard,
			})
		case podstate.Absence(pod) != "":
			missing = append(missing, Missing{
				Name:  absent,
				Why:   podstate.Absence(pod),
				Shard: NoShard,
			})
		default:
			beside = append(beside, *pod)
		}
	}
	return missing, beside, nil
}

// podsOf are the pods of a StatefulSet by name, whether the target selects them or not.
func (r Redis) podsOf(
	ctx context.Context, set *appsv1.StatefulSet,
) (map[string]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read the selector of StatefulSet %s: %w", set.Name, err)
	}
	pods, err := r.ListPods(ctx, client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, err
	}
	all := make(map[string]*corev1.Pod, len(pods))
	for i := range pods {
		all[pods[i].Name] = &pods[i]
	}
	return all, nil
}
