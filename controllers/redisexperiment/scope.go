package redisexperiment

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/lifecycle"
)

// Reconciler runs experiments.
type Reconciler struct {
	Client    client.Client
	APIReader client.Reader // not cached
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	// Restored returns once an operator that starts has tried to revert the faults that are overdue;
	// nil = there are none.
	Restored func(ctx context.Context)
}

// scope is everything that one reconcile has read about an experiment. It is filled once, before
// the decision.
type scope struct {
	experiment *v1alpha1.RedisExperiment // as read; its status is changed and then written
	before     *v1alpha1.RedisExperiment // as read, unchanged
	// nil when the spec cannot be planned (see seen.Problem) or the experiment is finished
	plan *experiment.Plan
	// the runs that have ended; nil before the start, and if it cannot be used (see seen.Problem)
	record  *experiment.Record
	checks  []children.Check // before the start: the dry runs that there are to be
	toCheck []children.Check // those of them that do not exist yet
	run     *run             // nil when none is under way
	earlier *earlier         // when it ends: the run of spec.compareTo
	seen    lifecycle.Experiment
}

// run is the run that is under way, and what it is made of.
type run struct {
	slot     experiment.Slot
	variant  *experiment.Variant
	test     *v1alpha1.RedisLoadTest // nil = it does not exist
	settings []child                 // in the order in which they are applied
	faults   []child
}

// child is a fault of a run: as it is to be created, and as it was found.
type child struct {
	wanted *v1alpha1.RedisFault
	found  *v1alpha1.RedisFault // nil = it does not exist
}

// Bounds of the calls of one step.
const (
	callTimeout = 30 * time.Second
	// a dry run of the creation of every cell's load test, by all that the API server asks
	checkTimeout = 5 * time.Minute
)

func timeoutOf(action lifecycle.ExperimentAction) time.Duration {
	if action == lifecycle.ExperimentCheck {
		return checkTimeout
	}
	return callTimeout
}
