package redisfault

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/confine"
)

// observeTarget determines the Redis of the fault, and the traits of its type. No Secret is read
// before it is used.
func (r *Reconciler) observeTarget(ctx context.Context, s *scope) error {
	s.pinTarget()
	s.target = redisOf(s.fault, s.test)
	s.deps = r.depsOf(s.fault, s.target)
	if needsPods(s.fault) {
		r.watchPods(ctx, s)
	}
	injector, err := fault.For(&s.fault.Spec, s.deps)
	found, err := problem.From(err)
	if err != nil {
		return err
	}
	if found != nil {
		// Only another version of the operator supports this type. What it has injected cannot be
		// reverted here: report that, change nothing.
		s.seen.Problem, injector = found, fault.Unknown{Problem: found}
	}
	s.injector, s.traits = injector, injector.Traits()
	if s.seen.Setting && s.traits.Silences && !s.seen.Recorded {
		s.seen.Problem = silencing(s.fault)
	}
	s.seen.External, s.seen.KnowsTarget = s.traits.External, s.target != nil
	s.seen.Lasts, s.seen.Takes, s.seen.Step = s.traits.Lasts, s.traits.Takes, s.traits.Step
	_, s.seen.Kept = injector.(contract.Keeper)
	return nil
}

// pinTarget remembers the Redis to which the load test leads when the fault first sees it. Whoever
// may change a load test may be allowed less than who has created the fault: the fault never
// follows the load test to another Redis.
func (s *scope) pinTarget() {
	status := &s.fault.Status
	if s.fault.Spec.Target != nil || s.test == nil || !s.test.Spec.Target.IsSet() || s.seen.Recorded ||
		s.seen.Deleting {
		return
	}
	if status.Target == nil {
		status.Target = s.test.Spec.Target.DeepCopy()
	}
	if s.seen.Problem == nil && !equality.Semantic.DeepEqual(*status.Target, s.test.Spec.Target) {
		s.seen.Problem = &problem.Problem{Reason: v1alpha1.ReasonTargetChanged, Message: fmt.Sprintf(
			"spec.loadTestRef.name: RedisLoadTest %s leads to another Redis than when this fault first "+
				"saw it, which is in status.target. Create the fault anew, or set spec.target", s.test.Name)}
	}
}

// redisOf is the fault's own target, else the one that it remembers, else the load test's; nil
// where none is known.
func redisOf(f *v1alpha1.RedisFault, test *v1alpha1.RedisLoadTest) *v1alpha1.RedisTarget {
	switch {
	case f.Spec.Target != nil:
		return f.Spec.Target
	case f.Status.Target != nil:
		return f.Status.Target
	case test != nil && test.Spec.Target.IsSet():
		return &test.Spec.Target
	}
	return nil
}

func isRecorded(status *v1alpha1.RedisFaultStatus) bool {
	return status.StartTime != nil && len(status.Targets) > 0
}

// depsOf is what a fault acts on, without the logins.
func (r *Reconciler) depsOf(f *v1alpha1.RedisFault, of *v1alpha1.RedisTarget) contract.Deps {
	return contract.Deps{
		Redis: target.Redis{
			Namespace: f.Namespace,
			Live:      r.APIReader,
			Servers:   r.serversOf(f.Namespace),
			Spec:      of,
			Watched:   r.Term.Find(f.UID).Pods(),
		},
		Owner:    *metav1.NewControllerRef(f, v1alpha1.GroupVersion.WithKind("RedisFault")),
		Cluster:  r.Client,
		LoadTest: loadTestName(f),
		DryRun:   f.Spec.DryRun,
	}
}

// serversOf is how faults in a namespace reach Redis: only its own pods.
func (r *Reconciler) serversOf(namespace string) topology.Servers {
	book, known := r.books.Load(namespace)
	if !known {
		book, _ = r.books.LoadOrStore(namespace,
			confine.NewBook(namespace, func() []corev1.Pod { return r.Term.PodsIn(namespace) }, r.APIReader,
				r.Lookup))
	}
	return confine.To(r.Servers, book.(*confine.Book))
}

// closeBook drops the addresses of a namespace when it has no unfinished fault any more. Whoever
// still uses them keeps them.
func (r *Reconciler) closeBook(ctx context.Context, namespace string) {
	if _, known := r.books.Load(namespace); !known {
		return
	}
	unfinished := r.requestsFor(ctx, namespace, isOpen)
	if len(unfinished) == 0 {
		r.books.Delete(namespace)
	}
}

// connect reads the Secrets of the target. For a recorded fault, whatever they lack is only shown:
// nothing may block its revert, and the calls that depend on it fail in bounded time.
func (r *Reconciler) connect(ctx context.Context, s *scope) error {
	deps, err := r.login(ctx, s.deps)
	if err != nil && s.fault.Status.StartTime == nil {
		return err
	}
	if _, unknown := s.injector.(fault.Unknown); unknown {
		return nil
	}
	injector, known := fault.For(&s.fault.Spec, deps)
	if known == nil {
		s.deps, s.injector = deps, injector
	}
	return nil
}

// login adds the logins to the servers and to the sentinels, as far as the Secrets have them, and
// the Service of the target.
func (r *Reconciler) login(ctx context.Context, deps contract.Deps) (contract.Deps, error) {
	if deps.Spec == nil {
		return deps, nil
	}
	var failed, missing, unread error
	deps.Redis, unread = deps.ReadService(ctx)
	deps.Login, failed = target.LoginFor(ctx, r.Client, deps.Namespace, deps.Spec)
	deps.Sentinels, missing = target.SentinelsOf(ctx, r.Client, deps.Namespace, deps.Spec,
		deps.Servers)
	return deps, cmp.Or(failed, missing, unread)
}

// reverterOf returns the reverter of a recorded fault.
func (r *Reconciler) reverterOf(ctx context.Context, f *v1alpha1.RedisFault) *faultrun.Reverter {
	return r.Term.Adopt(ctx, f, func() *faultrun.Means { return r.meansOf(f) })
}

// meansOf is by what a reverter of the fault acts while this manager leads.
func (r *Reconciler) meansOf(f *v1alpha1.RedisFault) *faultrun.Means {
	deps := r.depsOf(f, redisOf(f, nil))
	var traits contract.Traits
	if injector, err := fault.For(&f.Spec, deps); err == nil {
		traits = injector.Traits()
	}
	spec := f.Spec.DeepCopy()
	build := func(ctx context.Context) (contract.Injector, error) {
		deps, missing := r.login(ctx, deps)
		injector, err := fault.For(spec, deps)
		if err != nil { // of a type that only another version of the operator supports
			injector, missing = fault.Unknown{Problem: err}, nil
		}
		return injector, missing
	}
	return &faultrun.Means{
		Traits:   traits,
		Live:     r.APIReader,
		Statuses: r.Client.Status(),
		Build:    build,
		Stops:    r.stopsOf(f),
	}
}

// problemOf is an error that a fault which waits shows; others are retried.
func problemOf(err error) outcome {
	found, err := problem.From(err)
	if err != nil {
		return outcome{err: err}
	}
	return outcome{
		problem: found,
		ended:   found.Lasting,
		failed:  found.Lasting,
	}
}
