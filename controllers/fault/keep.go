package fault

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
)

// keep renews a fault whose effect would expire before its end.
func (s *scope) keep(ctx context.Context) error {
	keeper, ok := s.injector.(contract.Keeper)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, target.AskTimeout)
	defer cancel()
	var failed error
	for i := range s.fault.Status.Targets {
		failed = errors.Join(failed, keeper.Keep(ctx, &s.fault.Status.Targets[i]))
	}
	return failed
}

// followedPods returns the pods for the timeline: without the replacements that the fault deletes as soon as they appear.
func (s *scope) followedPods() []corev1.Pod {
	if !s.seen.Kept || !s.traits.EndsServer || s.seen.RevertedAll {
		return s.pods
	}
	return slices.DeleteFunc(slices.Clone(s.pods), func(p corev1.Pod) bool { return targetOf(&s.fault.Status, &p) == nil })
}

// recordRoleChanges adds to the timeline, for every primary that was ended, which server is the primary now.
func (s *scope) recordRoleChanges(ctx context.Context, now time.Time) {
	if !s.traits.EndsServer || s.target == nil || !s.seen.InjectedAny {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, target.AskTimeout)
	defer cancel()
	for _, seen := range fault.RolesAfter(ctx, s.deps.Redis, s.fault.Status.Targets) {
		appendEvent(&s.fault.Status, now, seen.Event, seen.Object, seen.Message)
	}
}
