package experiment

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// performScheduled executes the decision on a schedule.
func (r *Reconciler) performScheduled(ctx context.Context, s *scheduled, d lifecycle.ScheduleDecision) outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if d.Action == lifecycle.ScheduleWait {
		return outcome{problem: s.seen.Problem}
	}
	if old, err := state.IsStale(ctx, r.APIReader, "RedisExperiment", s.before); old || err != nil {
		return outcome{deleted: true, stale: old && err == nil, err: client.IgnoreNotFound(err)}
	}
	switch d.Action {
	case lifecycle.ScheduleRecord:
		return r.recordRun(ctx, s, d.Run)
	case lifecycle.ScheduleDelete:
		return r.deleteRun(ctx, s, d.Run)
	case lifecycle.ScheduleAbort:
		return r.abortRuns(ctx, s)
	case lifecycle.ScheduleCreate:
		return r.createRun(ctx, s, children.ScheduledExperiment(s.experiment, d.At, s.earlier()))
	case lifecycle.ScheduleConfirm:
		return r.confirm(ctx, s)
	case lifecycle.ScheduleAdvance:
		return outcome{again: true}
	case lifecycle.ScheduleFinish, lifecycle.ScheduleFail:
		return outcome{ended: true, failed: d.Action == lifecycle.ScheduleFail}
	case lifecycle.ScheduleExpire:
		return r.expire(ctx, s.experiment)
	}
	return outcome{}
}

// earlier is the run with which the next one is compared; "" = there is none.
func (s *scheduled) earlier() string {
	to := s.experiment.Spec.CompareTo
	if to == nil {
		return ""
	}
	if to.Run == "last" {
		return s.history.Last(s.template)
	}
	return to.Run
}

// createRun creates a run. It may exist already: its name is that of its time.
func (r *Reconciler) createRun(ctx context.Context, s *scheduled, run *v1alpha1.RedisExperiment) outcome {
	err := r.Client.Create(ctx, run)
	switch {
	case apierrors.IsAlreadyExists(err):
		existing := &v1alpha1.RedisExperiment{}
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(run), existing); err != nil {
			return outcome{err: fmt.Errorf("read RedisExperiment %s: %w", run.Name, err)}
		}
		if !metav1.IsControlledBy(existing, s.experiment) {
			return outcome{err: &problem.Problem{Reason: v1alpha1.ReasonObjectNotOwned, Message: fmt.Sprintf("RedisExperiment %s belongs to somebody else: delete it, or give the schedule another name", run.Name)}}
		}
	case problem.Refuses(err):
		return outcome{err: &problem.Problem{Reason: v1alpha1.ReasonRefused, Message: fmt.Sprintf("RedisExperiment %s: %s", run.Name, problem.Refusal(err))}}
	case err != nil:
		return outcome{err: fmt.Errorf("create RedisExperiment %s: %w", run.Name, err)}
	default:
		log.FromContext(ctx).Info("Created a run", "run", run.Name)
	}
	s.active(run.Name)
	return outcome{again: true}
}

// active stores which run is under way.
func (s *scheduled) active(name string) {
	if s.experiment.Status.Schedule == nil {
		s.experiment.Status.Schedule = &v1alpha1.ExperimentSchedule{}
	}
	s.experiment.Status.Schedule.Active = name
}

// confirm creates the repetition of a run, compared with the same earlier one.
func (r *Reconciler) confirm(ctx context.Context, s *scheduled) outcome {
	c := s.history.Confirming
	return r.createRun(ctx, s, children.ConfirmingExperiment(s.experiment, c.Run, c.Attempts, s.history.Find(c.Run).Scheduled, c.Against))
}

// abortRuns ends the run that is under way. One that makes way for another one is marked: it is deleted once it is recorded.
func (r *Reconciler) abortRuns(ctx context.Context, s *scheduled) outcome {
	for i := range s.runs {
		run := &s.runs[i]
		if run.Spec.Abort || state.IsFinished(run.Status.Conditions) {
			continue
		}
		changed := run.DeepCopy()
		changed.Spec.Abort = true
		if !s.experiment.Spec.Abort {
			changed.Annotations[v1alpha1.AnnotationReplaced] = "true"
		}
		if err := r.Client.Patch(ctx, changed, client.MergeFrom(run)); client.IgnoreNotFound(err) != nil {
			return outcome{err: fmt.Errorf("abort RedisExperiment %s: %w", run.Name, err)}
		}
		log.FromContext(ctx).Info("Aborted a run", "run", run.Name)
	}
	return outcome{}
}

func (r *Reconciler) deleteRun(ctx context.Context, s *scheduled, name string) outcome {
	run := s.run(name)
	err := r.Client.Delete(ctx, run, client.Preconditions{UID: &run.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return outcome{err: fmt.Errorf("delete RedisExperiment %s: %w", name, err)}
	}
	log.FromContext(ctx).Info("Deleted a run", "run", name)
	// The cache may contain it for a moment: what is next does not depend on it.
	return outcome{again: true}
}

// startOf is when a run began.
func startOf(run *v1alpha1.RedisExperiment) time.Time {
	if run.Status.StartTime != nil {
		return run.Status.StartTime.Time
	}
	return run.CreationTimestamp.Time
}
