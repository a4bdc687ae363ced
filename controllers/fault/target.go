package fault

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

// observeTarget sets the injector and what it acts on. Missing Secrets are a problem only before the targets are recorded.
func (r *Reconciler) observeTarget(ctx context.Context, s *scope) error {
	s.deps = contract.Deps{
		Redis: target.Redis{Namespace: s.fault.Namespace, Live: r.APIReader, Servers: r.Servers},
		Owner: *metav1.NewControllerRef(s.fault, v1alpha1.GroupVersion.WithKind("RedisFault")), Cluster: r.Client, LoadTest: s.seen.LoadName,
	}
	s.target = s.fault.Spec.Target
	switch {
	case s.target != nil:
	case s.seen.Recorded && s.fault.Status.Target != nil: // the load test may be deleted before the fault is reverted
		s.target = s.fault.Status.Target
	case s.test != nil && s.test.Spec.Target.IsSet():
		s.target = &s.test.Spec.Target
	}
	s.deps.Spec = s.target
	if s.target != nil {
		login, err := target.LoginFor(ctx, r.Client, s.fault.Namespace, s.target)
		if err := s.noteProblem(err); err != nil {
			return err
		}
		sentinels, err := target.SentinelsOf(ctx, r.Client, s.fault.Namespace, s.target, r.Servers)
		if err := s.noteProblem(err); err != nil {
			return err
		}
		s.deps.Login, s.deps.Sentinels = login, sentinels
	}
	injector, err := fault.For(&s.fault.Spec, s.deps)
	found, err := problem.From(err)
	if err != nil {
		return err
	}
	if found != nil {
		// Only another version of the operator supports this type. What it has injected cannot be reverted here: report that, change nothing.
		s.seen.Problem, injector = found, fault.Unknown{Problem: found}
	}
	s.injector, s.traits = injector, injector.Traits()
	s.seen.Lasts, s.seen.Takes = s.traits.Lasts, s.traits.Takes
	_, s.seen.Kept = injector.(contract.Keeper)
	return nil
}

// noteProblem shows a Problem, and returns other errors. For a recorded fault it shows all errors: nothing may block its revert, and the calls that
// depend on what is missing fail in bounded time.
func (s *scope) noteProblem(err error) error {
	found, err := problem.From(err)
	if err != nil && s.seen.Recorded {
		found, err = &problem.Problem{Reason: v1alpha1.ReasonSecretNotFound, Message: err.Error()}, nil
	}
	if found != nil {
		s.seen.Problem = found
	}
	return err
}
