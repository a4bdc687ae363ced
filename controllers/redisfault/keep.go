package redisfault

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/target/confine"
)

// keep ends the pods that have taken the places of targets, as the fault would end before its time
// with them. One that runs already, as the operator was away, may have become the last copy: the
// guard is asked for it.
func (r *Reconciler) keep(ctx context.Context, s *scope.Fault) error {
	keeper, ok := s.Injector.(contract.Keeper)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, confine.AskTimeout)
	defer cancel()
	due, failed := keeper.Due(ctx, s.Fault.Status.Targets)
	refused := r.checkGuardsAlso(ctx, s, due)
	if refused != nil {
		due, failed = slices.DeleteFunc(due, inUse), errors.Join(failed, refused)
	}
	for i := range due {
		failed = errors.Join(failed, keeper.Keep(ctx, &due[i]))
	}
	return failed
}

// checkGuardsAlso asks the guard for replacements of targets that run.
func (r *Reconciler) checkGuardsAlso(ctx context.Context, s *scope.Fault, due []corev1.Pod) error {
	var names []string
	for i := range due {
		if inUse(due[i]) {
			names = append(names, due[i].Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	others, err := r.claims().HitsNow(ctx, s.Fault)
	if err != nil {
		return err
	}
	return guard.CheckAlso(ctx, s.Deps.Redis, &s.Fault.Spec, s.Traits, names, s.Fault.Status.Targets,
		others)
}

func inUse(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning
}
