package experiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/schedule"
)

// scheduled is everything that one reconcile has read about an experiment with a schedule, which does not run itself: its runs are experiments.
type scheduled struct {
	experiment *v1alpha1.RedisExperiment
	before     *v1alpha1.RedisExperiment // as read, unchanged
	runs       []v1alpha1.RedisExperiment
	history    *experiment.History // nil = it cannot be used
	template   string              // experiment.HashOf its spec
	plan       *experiment.Plan    // nil with a problem
	seen       lifecycle.Schedule
}

// reconcileSchedule performs the next step of an experiment with a schedule.
func (r *Reconciler) reconcileSchedule(ctx context.Context, e, before *v1alpha1.RedisExperiment) (ctrl.Result, error) {
	s, err := r.observeSchedule(ctx, e, before)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision := lifecycle.NextForSchedule(s.seen, r.Clock.Now())
	done := r.performScheduled(ctx, s, decision)
	if found, err := problem.From(done.err); found != nil && err == nil {
		done.problem, done.err, decision.Until = found, nil, r.retryAt(s, decision)
	}
	return r.conclude(done, decision.Until, func(o outcome) error { return r.reportSchedule(ctx, s, decision, o) })
}

// mostRetry is the longest time between two attempts at what is refused.
const mostRetry = 10 * time.Minute

// retryAt is when a step is tried again that a problem keeps from being performed: the later, the longer that has lasted, but not after the next scheduled
// time, and once more just before a run cannot start any more.
func (r *Reconciler) retryAt(s *scheduled, d lifecycle.ScheduleDecision) time.Time {
	now := r.Clock.Now()
	at := now.Add(problemPoll)
	if c := meta.FindStatusCondition(s.before.Status.Conditions, v1alpha1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		at = now.Add(min(max(now.Sub(c.LastTransitionTime.Time), problemPoll), mostRetry))
	}
	limits := []time.Time{d.Next}
	if !d.At.IsZero() && s.seen.Deadline != nil {
		latest := d.At.Add(*s.seen.Deadline)
		limits = append(limits, latest, latest.Add(time.Second))
	}
	for _, limit := range limits {
		if limit.After(now) && limit.Before(at) {
			at = limit
		}
	}
	return at
}

// observeSchedule reads everything that the decision depends on.
func (r *Reconciler) observeSchedule(ctx context.Context, e, before *v1alpha1.RedisExperiment) (*scheduled, error) {
	s := &scheduled{experiment: e, before: before, template: experiment.HashOf(&e.Spec)}
	s.seen = lifecycle.Schedule{
		Deleting: e.DeletionTimestamp != nil, Suspend: e.Spec.Suspend, Abort: e.Spec.Abort, Finished: state.IsFinished(e.Status.Conditions), TTL: state.TTL(e.Spec.TTLSecondsAfterFinished),
		Created: e.CreationTimestamp.Time, Replace: e.Spec.ConcurrencyPolicy == v1alpha1.ConcurrencyReplace, Taken: map[int64]bool{},
	}
	if e.Status.CompletionTime != nil {
		s.seen.CompletedAt = e.Status.CompletionTime.Time
	}
	if d := e.Spec.StartingDeadlineSeconds; d != nil {
		s.seen.Deadline = new(time.Duration(*d) * time.Second)
	}
	if of := e.Status.Schedule; of != nil && of.NextScheduleTime != nil {
		s.seen.Next = of.NextScheduleTime.Time
	}
	if s.seen.Deleting || s.seen.Finished {
		return s, nil
	}
	var err error
	if s.plan, err = experiment.NewPlan(&e.Spec); err == nil {
		err = s.plan.Compares(&e.Spec)
	}
	if err == nil {
		s.seen.Times, err = schedule.Parse(e.Spec.Schedule, e.Spec.TimeZone)
	}
	if s.seen.Problem, err = problem.From(err); err != nil {
		return nil, err
	}
	s.history, err = recordStore{client: r.Client, experiment: e}.loadHistory(ctx)
	if found, err := problem.From(err); err != nil {
		return nil, err
	} else if s.seen.Problem == nil {
		s.seen.Problem = found
	}
	return s, r.observeRuns(ctx, s)
}

// observeRuns determines what has become of the schedule's runs.
func (r *Reconciler) observeRuns(ctx context.Context, s *scheduled) error {
	if err := r.findRuns(ctx, s); err != nil {
		return err
	}
	s.seen.Aborting = true
	for i := range s.runs {
		run := &s.runs[i]
		if at, ok := scheduledAt(run); ok && run.Annotations[v1alpha1.AnnotationConfirms] == "" {
			s.seen.Taken[schedule.Minutes(at)] = true
		}
		switch {
		case !state.IsFinished(run.Status.Conditions):
			s.seen.Active = append(s.seen.Active, run.Name)
			s.seen.Aborting = s.seen.Aborting && run.Spec.Abort
			s.seen.Repeating = s.seen.Repeating || run.Annotations[v1alpha1.AnnotationConfirms] != ""
		case s.history != nil && !s.history.Has(run.Name):
			s.seen.Ended = append(s.seen.Ended, run.Name)
		}
	}
	if s.history != nil {
		s.observeHistory()
	}
	return nil
}

// observeHistory determines which times have had a run, which runs are not to be kept, and which one is to be repeated.
func (s *scheduled) observeHistory() {
	for i := range s.history.Runs {
		if run := &s.history.Runs[i]; run.Confirms == "" {
			s.seen.Taken[schedule.Minutes(run.Scheduled)] = true
		}
	}
	s.seen.Excess = s.excess()
	c := s.history.Confirming
	if c != nil && s.confirms() && c.Template == s.template && s.history.Find(c.Run) != nil && !s.history.Has(children.ConfirmingName(c.Run, c.Attempts)) {
		s.seen.Confirm = c.Run
	}
}

// confirms reports whether a run with a regression is repeated.
func (s *scheduled) confirms() bool {
	to := s.experiment.Spec.CompareTo
	return to != nil && to.Confirm
}

// findRuns lists the runs, in the order in which they were created. One that was created is looked for past the cache, which may not contain it yet.
func (r *Reconciler) findRuns(ctx context.Context, s *scheduled) error {
	var all v1alpha1.RedisExperimentList
	if err := r.Client.List(ctx, &all, client.InNamespace(s.experiment.Namespace), client.MatchingLabels(children.ExperimentLabels(s.experiment.Name, children.ComponentScheduled))); err != nil {
		return fmt.Errorf("list the runs: %w", err)
	}
	s.runs = slices.DeleteFunc(all.Items, func(run v1alpha1.RedisExperiment) bool { return !metav1.IsControlledBy(&run, s.experiment) })
	slices.SortFunc(s.runs, func(a, b v1alpha1.RedisExperiment) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	of := s.experiment.Status.Schedule
	if of == nil || of.Active == "" || s.run(of.Active) != nil || s.history != nil && s.history.Has(of.Active) {
		return nil
	}
	var run v1alpha1.RedisExperiment
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.experiment.Namespace, Name: of.Active}, &run)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read RedisExperiment %s: %w", of.Active, err)
	case metav1.IsControlledBy(&run, s.experiment):
		s.runs = append(s.runs, run)
	}
	return nil
}

// run finds a run by its name; nil = there is none.
func (s *scheduled) run(name string) *v1alpha1.RedisExperiment {
	if i := slices.IndexFunc(s.runs, func(run v1alpha1.RedisExperiment) bool { return run.Name == name }); i >= 0 {
		return &s.runs[i]
	}
	return nil
}

// names are those of the runs.
func (s *scheduled) names() []string {
	var all []string
	for i := range s.runs {
		all = append(all, s.runs[i].Name)
	}
	return all
}

// scheduledAt is the scheduled time of a run.
func scheduledAt(run *v1alpha1.RedisExperiment) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, run.Annotations[v1alpha1.AnnotationScheduledAt])
	return at, err == nil
}

// excess are the recorded runs that are not to be kept: those that were replaced, and the oldest ones beyond the limits.
func (s *scheduled) excess() []string {
	var excess []string
	var succeeded, failed int32
	for _, run := range slices.Backward(s.runs) {
		if run.DeletionTimestamp != nil || !s.history.Has(run.Name) {
			continue
		}
		count, limit := &succeeded, s.experiment.Spec.SuccessfulRunsHistoryLimit
		if run.Status.Verdict == v1alpha1.VerdictFail || meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionFailed) {
			count, limit = &failed, s.experiment.Spec.FailedRunsHistoryLimit
		}
		if replaced := run.Annotations[v1alpha1.AnnotationReplaced] == "true"; !replaced {
			*count++
			if limit == nil || *count <= *limit {
				continue
			}
		}
		excess = append(excess, run.Name)
	}
	return excess
}
