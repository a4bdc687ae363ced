package redisfault

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/prometheus"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/target/confine"
)

// Reconciler injects faults, reverts them, and measures their impact.
type Reconciler struct {
	Client    client.Client
	APIReader client.WithWatch // not cached
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	Runs      *runs.Registry
	Servers   topology.Servers
	// its annotation stops all faults; "" = unknown, then none does
	OperatorNamespace string
	// required: what this process does with the faults between reconciles
	Term       *faultrun.Term
	Namespaces []string             // those that it watches; empty = all
	Supported  []v1alpha1.FaultType // the types that are switched on; nil = all
	// of host names that Redis or the spec names; nil = only those of the cluster are known
	Lookup     confine.Lookup
	Prometheus *prometheus.Client // evaluates the queries of stop conditions
	Metrics    *metrics.Metrics   // nil = nothing is counted

	policy rules.PolicyCopy
	copies sync.Map // of namespaces that are read by name, see rules.Namespaces
	// addresses of the pods of a namespace with unfinished faults, by its name: *confine.Book
	books     sync.Map
	restoring sync.Once
	restored  chan struct{} // closed at the end of that; made by restoring
	swept     atomic.Bool   // no node of a lost fault is left from before this process
}

// scope is everything that one reconcile has read about a fault. It is filled once, before the
// decision.
type scope struct {
	fault  *v1alpha1.RedisFault    // as read; its status is changed and then written
	before *v1alpha1.RedisFault    // as read, unchanged
	test   *v1alpha1.RedisLoadTest // the load that measures it; nil when missing
	run    *runs.Run               // of test; nil when this process does not collect it
	// the fault's own, else the recorded one, else the test's; nil when none is known
	target *v1alpha1.RedisTarget
	// what an injection acts on; its Spec is nil when no target is known; without a login before
	// connect
	deps contract.Deps
	// fault.Unknown if this version does not support the type; without a login before connect
	injector contract.Injector
	// nil before the first injection by this process, and after the end
	reverter *faultrun.Reverter
	traits   contract.Traits // of injector
	limits   []lock.Limit    // of the cluster's policy, before the record
	// name of another fault on the same load that is recorded and not settled
	underWay string
	others   []summary.Window // when other faults explain what the load shows, from its start
	// of External: the instant at which something else broke Redis; nil = not known yet, or stored
	marked *mark
	// earliest begin of a baseline, from the start of the load; 0 before the start
	quietFrom time.Duration
	measured  *result.Fault      // nil before the injection, or if the record cannot be read
	impact    *impact.Impact     // from which measured was made; nil with it
	losses    *result.Losses     // nil while they are unknown
	judgement *verdict.Judgement // nil unless the fault ends now, with a verdict
	recordEnd time.Duration      // end of the record, from the load's start
	pods      []corev1.Pod       // the target's pods, replaced ones included; only where podsRead
	// whether pods was read; never in the reconcile of the first injection
	podsRead bool
	podsAt   time.Time // when pods was read
	// why the roles have not settled, though the load has recovered; "" = they have, or it has not
	rolesOpen string
	now       time.Time // when everything was read
	seen      lifecycle.Fault
}

// logOf returns the logger for actions on a target.
func (s *scope) logOf(ctx context.Context, t *v1alpha1.FaultTarget) logr.Logger {
	return log.FromContext(ctx).WithValues("faultType", s.fault.Spec.Action.Type, "target", t.Pod)
}

// outcome is the result of a step.
type outcome struct {
	again   bool             // requeue at once
	stale   bool             // nothing was done: the copy in the cache is older than what is stored
	deleted bool             // the object was deleted, or will be reconciled for its patch
	problem *problem.Problem // shown in the conditions; the step is retried
	settled bool             // the fault is reverted, and its recovery was evaluated
	ended   bool             // the fault is finished: figures and conditions are final
	failed  bool             // with ended: it failed
	err     error            // retry with back-off
}
