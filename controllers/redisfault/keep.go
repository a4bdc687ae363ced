package redisfault

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/timeline"
)

// keep ends the pods that have taken the places of targets, as the fault would end before its time
// with them. One that runs already, as the operator was away, may have become the last copy: the
// guard is asked for it.
func (r *Reconciler) keep(ctx context.Context, s *scope) error {
	keeper, ok := s.injector.(contract.Keeper)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, target.AskTimeout)
	defer cancel()
	due, failed := keeper.Due(ctx, s.fault.Status.Targets)
	if refused := r.mayHitAlso(ctx, s, due); refused != nil {
		due, failed = slices.DeleteFunc(due, inUse), errors.Join(failed, refused)
	}
	for i := range due {
		failed = errors.Join(failed, keeper.Keep(ctx, &due[i]))
	}
	return failed
}

// mayHitAlso asks the guard for replacements of targets that run.
func (r *Reconciler) mayHitAlso(ctx context.Context, s *scope, due []corev1.Pod) error {
	var names []string
	for i := range due {
		if inUse(due[i]) {
			names = append(names, due[i].Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	others, err := r.claims().HitsNow(ctx, s.fault)
	if err != nil {
		return err
	}
	return guard.CheckAlso(ctx, s.deps.Redis, &s.fault.Spec, s.traits, names, s.fault.Status.Targets,
		others)
}

func inUse(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning
}

// followedPods returns the pods for the timeline: without the replacements that the fault deletes
// as soon as they appear.
func (s *scope) followedPods() []corev1.Pod {
	if !s.seen.Kept || !s.traits.EndsServer || s.seen.RevertedAll {
		return s.pods
	}
	return slices.DeleteFunc(slices.Clone(s.pods), func(p corev1.Pod) bool {
		return timeline.TargetOf(&s.fault.Status, &p) == nil
	})
}
