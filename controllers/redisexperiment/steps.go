package redisexperiment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// perform executes the decision.
func (r *Reconciler) perform(
	ctx context.Context, s *scope, d lifecycle.Decision[lifecycle.ExperimentAction],
) state.Outcome {
	ctx, cancel := context.WithTimeout(ctx, timeoutOf(d.Action))
	defer cancel()
	if d.Action == lifecycle.ExperimentWait {
		return state.Outcome{Problem: s.seen.Problem}
	}
	// What was created, recorded and deleted since would be created again.
	o, fresh := state.Fresh(ctx, r.APIReader, "RedisExperiment", s.before)
	if !fresh {
		o.SkipReport = true
		return o
	}
	//exhaustive:enforce
	switch d.Action {
	case lifecycle.ExperimentWait: // see above
	case lifecycle.ExperimentNote, lifecycle.ExperimentCheck, lifecycle.ExperimentStart:
		return r.prepare(ctx, s, d.Action)
	case lifecycle.ExperimentBegin:
		return r.begin(ctx, s)
	case lifecycle.ExperimentApply:
		return r.apply(ctx, s)
	case lifecycle.ExperimentLoad:
		return r.load(ctx, s)
	case lifecycle.ExperimentAbort:
		return r.abort(ctx, s)
	case lifecycle.ExperimentCollect:
		return r.collect(ctx, s)
	case lifecycle.ExperimentFinish:
		err := r.findEarlier(ctx, s, d)
		return state.Outcome{Ended: err == nil, Err: err}
	case lifecycle.ExperimentFail:
		return state.Outcome{Ended: true, Failed: true}
	case lifecycle.ExperimentExpire:
		return state.Expire(ctx, r.Client, s.experiment, "experiment")
	}
	return state.Outcome{}
}

// prepare does what comes before the first run.
func (r *Reconciler) prepare(
	ctx context.Context, s *scope, action lifecycle.ExperimentAction,
) state.Outcome {
	switch action {
	case lifecycle.ExperimentNote:
		return state.Note(ctx, r.Client, s.before)
	case lifecycle.ExperimentCheck:
		return r.check(ctx, s)
	}
	return r.start(ctx, s)
}

// start draws the seed: from then on the spec is frozen, and the order of the runs is known.
func (r *Reconciler) start(ctx context.Context, s *scope) state.Outcome {
	if err := r.removeChecks(ctx, s); err != nil {
		return state.Outcome{Err: err}
	}
	status := &s.experiment.Status
	status.StartTime = new(metav1.NewMicroTime(r.Clock.Now()))
	status.Seed = new(rand.Int64N(1 << 53)) // every reader of JSON keeps so many bits
	log.FromContext(ctx).Info("Starting", "seed", *status.Seed, "cells", len(s.plan.Variants), "runs",
		s.seen.Total)
	return state.Outcome{Again: true}
}

// begin stores which run is next, before anything of it is created.
func (r *Reconciler) begin(ctx context.Context, s *scope) state.Outcome {
	slot := s.plan.Slot(s.seen.Recorded+1, *s.experiment.Status.Seed)
	of := &v1alpha1.ExperimentRun{
		Number:    int32(slot.Number),
		Round:     int32(slot.Round),
		Cell:      s.plan.Variants[slot.Variant].Name,
		LoadTest:  children.RunName(s.experiment.Name, slot.Number),
		Stage:     v1alpha1.RunSettings,
		StartTime: metav1.NewTime(r.Clock.Now()),
	}
	s.experiment.Status.Run = of
	log.FromContext(ctx).Info("Beginning a run", "run", of.Number, "round", of.Round, "cell", of.Cell)
	return state.Outcome{Again: true}
}

// apply creates the next setting of the run. It is in force once its fault is active.
func (r *Reconciler) apply(ctx context.Context, s *scope) state.Outcome {
	for _, c := range s.run.settings {
		if c.found == nil {
			return r.created(s, r.create(ctx, s, c.wanted, "RedisFault"))
		}
	}
	return state.Outcome{}
}

// load creates the faults and then the load test of the run: faults wait for it.
func (r *Reconciler) load(ctx context.Context, s *scope) state.Outcome {
	for _, c := range s.run.faults {
		if c.found == nil {
			err := r.create(ctx, s, c.wanted, "RedisFault")
			if err != nil {
				return r.created(s, err)
			}
		}
	}
	if s.run.test == nil {
		err := r.create(ctx, s, children.RunLoadTest(s.experiment, s.run.variant, s.run.slot),
			"RedisLoadTest")
		if err != nil {
			return r.created(s, err)
		}
	}
	s.experiment.Status.Run.Stage = v1alpha1.RunLoad
	return state.Outcome{}
}

// create creates a child. One of an earlier reconcile may exist already; one of somebody else keeps
// the experiment from going on.
func (r *Reconciler) create(
	ctx context.Context, s *scope, object client.Object, kind string,
) error {
	name := object.GetName()
	err := r.Client.Create(ctx, object)
	switch {
	case apierrors.IsAlreadyExists(err):
		existing := &metav1.PartialObjectMetadata{}
		existing.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
		err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(object), existing)
		if err != nil {
			return fmt.Errorf("read %s %s: %w", kind, name, err)
		}
		if !metav1.IsControlledBy(existing, s.experiment) {
			return &problem.Problem{
				Reason: v1alpha1.ReasonObjectNotOwned,
				Message: fmt.Sprintf(
					"%s %s belongs to somebody else: delete it, or give the experiment another name", kind, name),
			}
		}
	case err != nil:
		return fmt.Errorf("create %s %s: %w", kind, name, err)
	}
	return nil
}

// createPatience is for how long a child is tried again that cannot be created, such as beyond a
// quota, while settings of its run are in force.
const createPatience = 5 * time.Minute

// created is the outcome of the creation of a child. A run of which one cannot be created ends, so
// that its settings are reverted; one without settings waits.
func (r *Reconciler) created(s *scope, err error) state.Outcome {
	if err == nil {
		return state.Outcome{}
	}
	message := "it could not be created: " + err.Error()
	if problem.Refuses(err) {
		message = "the API server refuses it: " + problem.Refusal(err)
	}
	since, holds := s.run.held()
	if apierrors.IsInvalid(err) || holds && r.Clock.Since(since) > createPatience {
		s.experiment.Status.Run.Message = digest.Truncate(message, maxReason)
		return state.Outcome{Again: true}
	}
	if problem.Refuses(err) {
		return state.Outcome{
			Err: &problem.Problem{
				Reason:  v1alpha1.ReasonRefused,
				Message: s.experiment.Status.Run.LoadTest + ": " + message,
			},
		}
	}
	return state.Outcome{Err: err}
}

// held is since when all settings of the run that exist are in force; false if there are none.
func (r *run) held() (since time.Time, holds bool) {
	for _, c := range r.settings {
		if c.found == nil {
			continue
		}
		for _, t := range c.found.Status.Targets {
			if t.ActiveAt != nil && t.ActiveAt.After(since) {
				since, holds = t.ActiveAt.Time, true
			}
		}
	}
	return since, holds
}

// abort ends what is under way of the run: its load test and its faults. Its settings end with the
// load test, if there is one.
func (r *Reconciler) abort(ctx context.Context, s *scope) state.Outcome {
	test := s.run.test
	if test != nil && !test.Spec.Abort && !state.IsFinished(test.Status.Conditions) {
		changed := test.DeepCopy()
		changed.Spec.Abort = true
		err := r.Client.Patch(ctx, changed, client.MergeFrom(test))
		if client.IgnoreNotFound(err) != nil {
			return state.Outcome{Err: fmt.Errorf("abort RedisLoadTest %s: %w", test.Name, err)}
		}
	}
	ending := s.run.faults
	if s.run.test == nil {
		ending = append(ending, s.run.settings...)
	}
	for _, c := range ending {
		if c.found == nil || c.found.Spec.Abort || state.IsFinished(c.found.Status.Conditions) {
			continue
		}
		changed := c.found.DeepCopy()
		changed.Spec.Abort = true
		err := r.Client.Patch(ctx, changed, client.MergeFrom(c.found))
		if client.IgnoreNotFound(err) != nil {
			return state.Outcome{Err: fmt.Errorf("abort RedisFault %s: %w", c.found.Name, err)}
		}
	}
	s.experiment.Status.Run.Stage = v1alpha1.RunReverting
	if s.run.test == nil {
		s.experiment.Status.Run.Message = digest.Truncate(s.unmeasured(), maxReason)
	}
	return state.Outcome{}
}
