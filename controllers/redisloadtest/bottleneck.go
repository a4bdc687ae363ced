package redisloadtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

// observeLimit reads the CPU limit of the Redis containers once the record is complete, as no
// client of Redis can read it. Without it the bottleneck CPULimit is not evaluated, so a missing
// limit does not delay the end.
func (r *Reconciler) observeLimit(ctx context.Context, s *scope.Test) error {
	spec := &s.Test.Spec.Target
	if !s.Session.Finished || (spec.PodSelector == nil && spec.Service == nil) {
		return nil
	}
	limit, err := target.Redis{
		Namespace: s.Test.Namespace,
		Live:      r.APIReader,
		Spec:      &s.Test.Spec.Target,
	}.CPULimit(ctx)
	if _, ok := errors.AsType[*problem.Problem](err); ok {
		return nil // no pod was found: the Service has no selector, for example, or Redis is down
	}
	if err != nil {
		return fmt.Errorf("read the CPU limit of Redis: %w", err)
	}
	s.ServerCPULimit = limit
	return nil
}
