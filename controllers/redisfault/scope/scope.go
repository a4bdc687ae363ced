// Package scope holds what one reconcile has read about a fault, and what a step has come to. It
// reads only objects that it is given.
package scope

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/runs"
)

// Mark is the instant at which something else broke Redis: t0 of a fault of type External.
type Mark struct {
	At     time.Time
	Offset *time.Duration // since the start of the load; nil = uncertain
	By     v1alpha1.MarkSource
	Why    string
}

// Fault is everything that one reconcile has read about a fault. It is filled once, before the
// decision.
type Fault struct {
	Fault  *v1alpha1.RedisFault    // as read; its status is changed and then written
	Before *v1alpha1.RedisFault    // as read, unchanged
	Test   *v1alpha1.RedisLoadTest // the load that measures it; nil when missing
	Run    *runs.Run               // of Test; nil when this process does not collect it
	// the fault's own, else the recorded one, else the test's; nil when none is known
	Target *v1alpha1.RedisTarget
	// what an injection acts on; its Spec is nil when no target is known; without a login before
	// connect
	Deps contract.Deps
	// fault.Unknown if this version does not support the type; without a login before connect
	Injector contract.Injector
	// nil before the first injection by this process, and after the end
	Reverter *faultrun.Reverter
	Traits   contract.Traits // of Injector
	Limits   []lock.Limit    // of the cluster's policy, before the record
	Neighbours
	// of External: the instant at which something else broke Redis; nil = not known yet, or stored
	Marked *Mark
	// earliest begin of a baseline, from the start of the load; 0 before the start
	QuietFrom time.Duration
	Figures
	FoundPods
	// why the roles have not settled, though the load has recovered; "" = they have, or it has not
	RolesOpen string
	Now       time.Time // when everything was read
	Seen      lifecycle.Fault
}

// Neighbours are the other faults on the same load.
type Neighbours struct {
	// name of one that is recorded and not settled, and that the fault is not to act beside
	UnderWay string
	Others   []summary.Window // when they explain what the load shows, from its start
	// those that acted, or from which the load recovered, within the fault's own time
	Meanwhile []*v1alpha1.RedisFault
	Partners  []types.UID // those in spec.beside that act
}

// Figures are what was measured of a fault so far.
type Figures struct {
	Measured  *result.Fault      // nil before the injection, or if the record cannot be read
	Impact    *impact.Impact     // from which Measured was made; nil with it
	Losses    *result.Losses     // nil while they are unknown
	Judgement *verdict.Judgement // nil unless the fault ends now, with a verdict
	RecordEnd time.Duration      // end of the record, from the load's start
}

// FoundPods are the pods of a target as they were read for the timeline.
type FoundPods struct {
	Pods []corev1.Pod // replaced ones included; only where PodsRead
	// whether Pods was read; never in the reconcile of the first injection
	PodsRead bool
	PodsAt   time.Time // when Pods was read
}

// LogOf returns the logger for actions on a target.
func (s *Fault) LogOf(ctx context.Context, t *v1alpha1.FaultTarget) logr.Logger {
	return log.FromContext(ctx).WithValues("faultType", s.Fault.Spec.Action.Type, "target", t.Pod)
}

// ProblemOf is an error that a fault which waits shows; others are retried.
func ProblemOf(err error) state.Outcome {
	found, err := problem.From(err)
	if err != nil {
		return state.Outcome{Err: err}
	}
	return state.Outcome{
		Problem: found,
		Ended:   found.Lasting,
		Failed:  found.Lasting,
	}
}
