package fault

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/runs"
)

// Reconciler injects faults, reverts them, and measures what they did.
type Reconciler struct {
	Client            client.Client
	APIReader         client.Reader // reads past the cache
	Recorder          events.EventRecorder
	Clock             clock.PassiveClock
	Runs              *runs.Registry
	Servers           topology.Servers
	OperatorNamespace string // its annotation stops all faults; "" = unknown, then none does

	witnesses sync.Map // of faults under way, by UID: *witness
	calls     sync.Map // when an injection or a revert that is not complete was last called, by UID: time.Time
}

// scope is everything that one reconcile knows of a fault. It is filled once, before anything is decided.
type scope struct {
	fault     *v1alpha1.RedisFault    // as read; its status is what will be written
	before    *v1alpha1.RedisFault    // as read, untouched
	test      *v1alpha1.RedisLoadTest // the load that measures it; nil when missing
	run       *runs.Run               // of test; nil when this process does not collect it
	target    *v1alpha1.RedisTarget   // the fault's own, else the recorded one, else the test's; nil when none is known
	deps      contract.Deps           // what an injection acts on; its Spec is nil when no target is known
	injector  contract.Injector       // fault.Unknown where this version does not know the type
	traits    contract.Traits         // of injector
	underWay  string                  // another fault that is recorded on the same load and not over
	quietFrom time.Duration           // from here on, counted from the load's start, the record can be a baseline; 0 before the start
	measured  *result.Fault           // nil before the injection, or when the record is out of reach
	losses    *result.Losses          // nil while they are not known
	recordEnd time.Duration           // end of the record, from the load's start
	pods      []corev1.Pod            // the target's pods, replaced ones included; only where podsRead
	podsRead  bool                    // pods is what there is; never in the reconcile that injects
	podsAt    time.Time               // when they were
	seen      lifecycle.Fault
}

// logOf is the logger of what is done to a target.
func (s *scope) logOf(ctx context.Context, t *v1alpha1.FaultTarget) logr.Logger {
	return log.FromContext(ctx).WithValues("faultType", s.fault.Spec.Action.Type, "target", t.Pod)
}

// outcome is what a step came to.
type outcome struct {
	again   bool             // look again at once
	deleted bool             // the object is no more
	problem *problem.Problem // found by the step: shown, and tried again
	settled bool             // the fault is reverted, and its recovery was judged
	ended   bool             // the object is over: figures and conditions are final
	failed  bool             // with ended: it failed
	err     error            // try again later
}
