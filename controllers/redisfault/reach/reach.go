// Package reach gives by what a fault acts: its Redis with the logins, its injector, the reverter,
// and what its stop conditions are evaluated by.
package reach

import (
	"cmp"
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/prometheus"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/target/sentinel"
)

// Reach is by what faults act.
type Reach struct {
	Client     client.Client
	APIReader  client.WithWatch // not cached
	Runs       *runs.Registry
	Servers    topology.Servers
	Term       *faultrun.Term
	Lookup     confine.Lookup // see the Reconciler
	Operator   contract.Operator
	Prometheus *prometheus.Client // evaluates the queries of stop conditions
	// Books are the addresses of the pods of a namespace with unfinished faults, by its name:
	// *confine.Book.
	Books *sync.Map
}

// DepsOf is what a fault acts on, without the logins.
func (r *Reach) DepsOf(f *v1alpha1.RedisFault, of *v1alpha1.RedisTarget) contract.Deps {
	return contract.Deps{
		Redis: target.Redis{
			Namespace: f.Namespace,
			Live:      r.APIReader,
			Servers:   r.ServersOf(f.Namespace),
			Spec:      of,
			Watched:   r.Term.Find(f.UID).Pods(),
		},
		Owner:    *metav1.NewControllerRef(f, v1alpha1.GroupVersion.WithKind("RedisFault")),
		Cluster:  r.Client,
		LoadTest: scope.LoadTestName(f),
		DryRun:   f.Spec.DryRun,
		Operator: r.Operator,
	}
}

// ServersOf is how faults in a namespace reach Redis: only its own pods.
func (r *Reach) ServersOf(namespace string) topology.Servers {
	book, known := r.Books.Load(namespace)
	if !known {
		book, _ = r.Books.LoadOrStore(namespace,
			confine.NewBook(namespace, func() []corev1.Pod { return r.Term.PodsIn(namespace) }, r.APIReader,
				r.Lookup))
	}
	return confine.To(r.Servers, book.(*confine.Book))
}

// Connect reads the Secrets of the target. For a recorded fault, whatever they lack is only shown:
// nothing may block its revert, and the calls that depend on it fail in bounded time.
func (r *Reach) Connect(ctx context.Context, s *scope.Fault) error {
	deps, err := r.login(ctx, s.Deps)
	if err != nil && s.Fault.Status.StartTime == nil {
		return err
	}
	if _, unknown := s.Injector.(fault.Unknown); unknown {
		return nil
	}
	injector, known := fault.For(&s.Fault.Spec, deps)
	if known == nil {
		s.Deps, s.Injector = deps, injector
	}
	return nil
}

// login adds the logins to the servers and to the sentinels, as far as the Secrets have them, and
// the Service of the target.
func (r *Reach) login(ctx context.Context, deps contract.Deps) (contract.Deps, error) {
	if deps.Spec == nil {
		return deps, nil
	}
	var failed, missing, unread error
	deps.Redis, unread = deps.ReadService(ctx)
	deps.Login, failed = target.LoginFor(ctx, r.Client, deps.Namespace, deps.Spec)
	deps.Sentinels, missing = sentinel.Of(ctx, r.Client, deps.Namespace, deps.Spec,
		deps.Servers)
	return deps, cmp.Or(failed, missing, unread)
}
