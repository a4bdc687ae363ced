package schedule

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

// perform executes the decision.
func (r *Reconciler) perform(
	ctx context.Context, s *scope, d lifecycle.ScheduleDecision,
) state.Outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if d.Action == lifecycle.ScheduleWait {
		return state.Outcome{}
	}
	o, fresh := state.Fresh(ctx, r.APIReader, "RedisExperimentSchedule", s.before)
	if !fresh {
		o.SkipReport = true
		return o
	}
	//exhaustive:enforce
	switch d.Action {
	case lifecycle.ScheduleWait: // see above
	case lifecycle.ScheduleRecord:
		return r.recordRun(ctx, s, d.Run)
	case lifecycle.ScheduleDelete:
		return r.deleteRun(ctx, s, d.Run)
	case lifecycle.ScheduleAbort:
		return r.abortRuns(ctx, s)
	case lifecycle.ScheduleCreate:
		return r.createRun(ctx, s, children.ScheduledExperiment(s.schedule, d.At, s.earlier()))
	case lifecycle.ScheduleConfirm:
		return r.confirm(ctx, s)
	case lifecycle.ScheduleAdvance:
		return state.Outcome{Again: true}
	}
	return state.Outcome{}
}

// earlier is the run with which the next one is compared; "" = there is none.
func (s *scope) earlier() string {
	to := s.schedule.Spec.CompareTo
	if to == nil {
		return ""
	}
	if to.Run == "last" {
		return s.history.Last(s.template)
	}
	return to.Run
}

// createRun creates a run. It may exist already: its name is that of its time.
func (r *Reconciler) createRun(
	ctx context.Context, s *scope, run *v1alpha1.RedisExperiment,
) state.Outcome {
	err := r.Client.Create(ctx, run)
	switch {
	case apierrors.IsAlreadyExists(err):
		existing := &v1alpha1.RedisExperiment{}
		err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(run), existing)
		if err != nil {
			return state.Outcome{Err: fmt.Errorf("read RedisExperiment %s: %w", run.Name, err)}
		}
		if !metav1.IsControlledBy(existing, s.schedule) {
			return state.Outcome{
				Err: &problem.Problem{
					Reason: v1alpha1.ReasonObjectNotOwned,
					Message: fmt.Sprintf(
						"RedisExperiment %s belongs to somebody else: delete it, or give the schedule another name",
						run.Name),
				},
			}
		}
	case problem.Refuses(err):
		return state.Outcome{
			Err: &problem.Problem{
				Reason:  v1alpha1.ReasonRefused,
				Message: fmt.Sprintf("RedisExperiment %s: %s", run.Name, problem.Refusal(err)),
			},
		}
	case err != nil:
		return state.Outcome{Err: fmt.Errorf("create RedisExperiment %s: %w", run.Name, err)}
	default:
		log.FromContext(ctx).Info("Created a run", "run", run.Name)
	}
	s.schedule.Status.Active = run.Name
	return state.Outcome{Again: true}
}

// confirm creates the repetition of a run, compared with the same earlier one.
func (r *Reconciler) confirm(ctx context.Context, s *scope) state.Outcome {
	c := s.history.Confirming
	return r.createRun(ctx, s,
		children.ConfirmingExperiment(s.schedule, c.Run, c.Attempts, s.history.Find(c.Run).Scheduled,
			c.Against))
}

// abortRuns ends the run that is under way, as it makes way for another one, and marks it: it is
// deleted once it is recorded.
func (r *Reconciler) abortRuns(ctx context.Context, s *scope) state.Outcome {
	for i := range s.runs {
		run := &s.runs[i]
		if run.Spec.Abort || state.IsFinished(run.Status.Conditions) {
			continue
		}
		changed := run.DeepCopy()
		changed.Spec.Abort = true
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, v1alpha1.AnnotationReplaced, "true")
		err := r.Client.Patch(ctx, changed, client.MergeFrom(run))
		if client.IgnoreNotFound(err) != nil {
			return state.Outcome{Err: fmt.Errorf("abort RedisExperiment %s: %w", run.Name, err)}
		}
		log.FromContext(ctx).Info("Aborted a run", "run", run.Name)
	}
	return state.Outcome{}
}

func (r *Reconciler) deleteRun(ctx context.Context, s *scope, name string) state.Outcome {
	run := s.run(name)
	err := r.Client.Delete(ctx, run, client.Preconditions{UID: &run.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return state.Outcome{Err: fmt.Errorf("delete RedisExperiment %s: %w", name, err)}
	}
	log.FromContext(ctx).Info("Deleted a run", "run", name)
	// The cache may contain it for a moment: what is next does not depend on it.
	return state.Outcome{Again: true}
}

// startOf is when a run began.
func startOf(run *v1alpha1.RedisExperiment) time.Time {
	if run.Status.StartTime != nil {
		return run.Status.StartTime.Time
	}
	return run.CreationTimestamp.Time
}
