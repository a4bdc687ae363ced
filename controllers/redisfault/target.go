package redisfault

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

// observeTarget determines the Redis of the fault, and the traits of its type. No Secret is read
// before it is used.
func (r *Reconciler) observeTarget(ctx context.Context, s *scope.Fault) error {
	pinTarget(s)
	s.Target = scope.RedisOf(s.Fault, s.Test)
	s.Deps = r.reach().DepsOf(s.Fault, s.Target)
	if needsPods(s.Fault) {
		r.watchPods(ctx, s)
	}
	injector, err := fault.For(&s.Fault.Spec, s.Deps)
	found, err := problem.From(err)
	if err != nil {
		return err
	}
	if found != nil {
		// Only another version of the operator supports this type. What it has injected cannot be
		// reverted here: report that, change nothing.
		s.Seen.Problem, injector = found, fault.Unknown{Problem: found}
	}
	s.Injector, s.Traits = injector, injector.Traits()
	if s.Seen.Setting && s.Traits.Silences && !s.Seen.Recorded {
		s.Seen.Problem = silencing(s.Fault)
	}
	s.Seen.External, s.Seen.KnowsTarget = s.Traits.External, s.Target != nil
	s.Seen.Lasts, s.Seen.Takes, s.Seen.Step = s.Traits.Lasts, s.Traits.Takes, s.Traits.Step
	_, s.Seen.Kept = injector.(contract.Keeper)
	return nil
}

// pinTarget remembers the Redis to which the load test leads when the fault first sees it. Whoever
// may change a load test may be allowed less than who has created the fault: the fault never
// follows the load test to another Redis.
func pinTarget(s *scope.Fault) {
	status := &s.Fault.Status
	if s.Fault.Spec.Target != nil || s.Test == nil || !s.Test.Spec.Target.IsSet() || s.Seen.Recorded ||
		s.Seen.Deleting {
		return
	}
	if status.Target == nil {
		status.Target = s.Test.Spec.Target.DeepCopy()
	}
	if s.Seen.Problem == nil && !equality.Semantic.DeepEqual(*status.Target, s.Test.Spec.Target) {
		s.Seen.Problem = &problem.Problem{Reason: v1alpha1.ReasonTargetChanged, Message: fmt.Sprintf(
			"spec.loadTestRef.name: RedisLoadTest %s leads to another Redis than when this fault first "+
				"saw it, which is in status.target. Create the fault anew, or set spec.target", s.Test.Name)}
	}
}

// closeBook drops the addresses of a namespace when it has no unfinished fault any more. Whoever
// still uses them keeps them.
func (r *Reconciler) closeBook(ctx context.Context, namespace string) {
	if _, known := r.books.Load(namespace); !known {
		return
	}
	unfinished := scope.RequestsFor(ctx, r.Client, namespace, scope.IsOpen)
	if len(unfinished) == 0 {
		r.books.Delete(namespace)
	}
}
