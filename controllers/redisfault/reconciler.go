package redisfault

import (
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/ending"
	"github.com/redquake/redquake/controllers/redisfault/load"
	"github.com/redquake/redquake/controllers/redisfault/reach"
	"github.com/redquake/redquake/controllers/redisfault/turns"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/prometheus"
	"github.com/redquake/redquake/internal/redis/topology"
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
	Operator   contract.Operator  // by which faults act
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

// reach is by what faults act.
func (r *Reconciler) reach() *reach.Reach {
	return &reach.Reach{
		Client:     r.Client,
		APIReader:  r.APIReader,
		Runs:       r.Runs,
		Servers:    r.Servers,
		Term:       r.Term,
		Lookup:     r.Lookup,
		Operator:   r.Operator,
		Prometheus: r.Prometheus,
		Books:      &r.books,
	}
}

// ending ends faults whatever their reconciles wait for.
func (r *Reconciler) ending() *ending.Ender {
	return &ending.Ender{
		Client:            r.Client,
		APIReader:         r.APIReader,
		Clock:             r.Clock,
		Term:              r.Term,
		Reach:             r.reach(),
		OperatorNamespace: r.OperatorNamespace,
		Namespaces:        r.namespaces(),
		Swept:             &r.swept,
	}
}

// load observes the loads of faults.
func (r *Reconciler) load() *load.Observer {
	return &load.Observer{
		Client: r.Client,
		Clock:  r.Clock,
		Runs:   r.Runs,
	}
}

// turns has faults act in turn.
func (r *Reconciler) turns() *turns.Turns {
	return &turns.Turns{
		Clock:  r.Clock,
		Term:   r.Term,
		Claims: r.claims(),
		Rules:  r.rules(),
		Reach:  r.reach(),
	}
}

// claims reads the other faults.
func (r *Reconciler) claims() claims.Reader {
	return claims.Reader{
		Client:     r.Client,
		APIReader:  r.APIReader,
		Clock:      r.Clock,
		Namespaces: r.Namespaces,
	}
}

// namespaces reads namespaces, with their annotations.
func (r *Reconciler) namespaces() rules.Namespaces {
	return rules.Namespaces{
		Client:    r.Client,
		APIReader: r.APIReader,
		Clock:     r.Clock,
		Names:     r.Namespaces,
		Copies:    &r.copies,
	}
}

// rules reads what decides whether faults may begin.
func (r *Reconciler) rules() rules.Reader {
	return rules.Reader{
		APIReader:         r.APIReader,
		Clock:             r.Clock,
		OperatorNamespace: r.OperatorNamespace,
		Supported:         r.Supported,
		Prometheus:        r.Prometheus,
		PowerHook:         r.Operator.Power != nil,
		Namespaces:        r.namespaces(),
		Copy:              &r.policy,
	}
}
