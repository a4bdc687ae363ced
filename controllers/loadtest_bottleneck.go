package controllers

import (
	"context"
	"errors"

	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/problem"
)

// observeLimit asks for the CPU limit of Redis' containers once the record is complete. No client of Redis can see it. Without it the bottleneck CPULimit
// is not looked for, so that it is no reason to wait.
func (r *RedisLoadTestReconciler) observeLimit(ctx context.Context, s *loadTestScope) error {
	if target := &s.test.Spec.Target; !s.session.Finished || (target.PodSelector == nil && target.Service == nil) {
		return nil
	}
	limit, err := fault.CPULimit(ctx, fault.Surroundings{Namespace: s.test.Namespace, Live: r.Live}, &s.test.Spec.Target)
	if _, ok := errors.AsType[*problem.Problem](err); ok {
		return nil // no pod is known: a Service without a selector, say, or Redis is down
	}
	s.serverCPULimit = limit
	return err
}
