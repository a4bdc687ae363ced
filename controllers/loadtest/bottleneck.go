package loadtest

import (
	"context"
	"errors"

	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

// observeLimit asks for the CPU limit of Redis' containers once the record is complete. No client of Redis can see it. Without it the bottleneck CPULimit
// is not looked for, so that it is no reason to wait.
func (r *Reconciler) observeLimit(ctx context.Context, s *scope) error {
	if of := &s.test.Spec.Target; !s.session.Finished || (of.PodSelector == nil && of.Service == nil) {
		return nil
	}
	limit, err := target.Redis{Namespace: s.test.Namespace, Live: r.APIReader, Spec: &s.test.Spec.Target}.CPULimit(ctx)
	if _, ok := errors.AsType[*problem.Problem](err); ok {
		return nil // no pod is known: a Service without a selector, say, or Redis is down
	}
	s.serverCPULimit = limit
	return err
}
