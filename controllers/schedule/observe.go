package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/controllers/stored"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/crontab"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// scope is everything that one reconcile has read about a schedule. It is filled once, before the
// decision.
type scope struct {
	schedule *v1alpha1.RedisExperimentSchedule // as read; its status is changed and then written
	before   *v1alpha1.RedisExperimentSchedule // as read, unchanged
	runs     []v1alpha1.RedisExperiment
	history  *history.History // nil = it cannot be used
	template string           // experiment.HashOf its template
	seen     lifecycle.Schedule
}

// observe reads everything that the decision depends on.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*scope, error) {
	of := &v1alpha1.RedisExperimentSchedule{}
	if err := r.Client.Get(ctx, key, of); err != nil {
		return nil, fmt.Errorf("read the schedule: %w", err)
	}
	s := &scope{
		schedule: of,
		before:   of.DeepCopy(),
		template: experiment.HashOf(&of.Spec.Template.Spec),
	}
	s.seen = lifecycle.Schedule{
		Deleting: of.DeletionTimestamp != nil,
		Suspend:  of.Spec.Suspend,
		Created:  of.CreationTimestamp.Time,
		Replace:  of.Spec.ConcurrencyPolicy == v1alpha1.ConcurrencyReplace,
		Taken:    map[int64]bool{},
	}
	if d := of.Spec.StartingDeadlineSeconds; d != nil {
		s.seen.Deadline = new(time.Duration(*d) * time.Second)
	}
	if next := of.Status.NextScheduleTime; next != nil {
		s.seen.Next = next.Time
	}
	if s.seen.Deleting {
		return s, nil
	}
	var err error
	if s.seen.Problem, err = problem.From(s.parse()); err != nil {
		return nil, err
	}
	s.history, err = stored.History(ctx, r.Client, of)
	if found, err := problem.From(err); err != nil {
		return nil, err
	} else if s.seen.Problem == nil {
		s.seen.Problem = found
	}
	return s, r.observeRuns(ctx, s)
}

// parse reads the spec. A Problem names the field.
func (s *scope) parse() (err error) {
	spec := &s.schedule.Spec
	if s.seen.Times, err = crontab.Parse(spec.Schedule, spec.TimeZone); err != nil {
		return err
	}
	plan, err := experiment.NewPlan(&spec.Template.Spec)
	if err == nil {
		err = plan.Compares(spec.CompareTo != nil)
	}
	return experiment.InTemplate(err)
}

// observeRuns determines what has become of the schedule's runs.
func (r *Reconciler) observeRuns(ctx context.Context, s *scope) error {
	if err := r.findRuns(ctx, s); err != nil {
		return err
	}
	s.seen.Aborting = true
	for i := range s.runs {
		run := &s.runs[i]
		at, ok := scheduledAt(run)
		if ok && run.Annotations[v1alpha1.AnnotationConfirms] == "" {
			s.seen.Taken[crontab.Minutes(at)] = true
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

// observeHistory determines which times have had a run, which runs are not to be kept, and which
// one is to be repeated.
func (s *scope) observeHistory() {
	for i := range s.history.Runs {
		if run := &s.history.Runs[i]; run.Confirms == "" {
			s.seen.Taken[crontab.Minutes(run.Scheduled)] = true
		}
	}
	s.seen.Excess = s.excess()
	c := s.history.Confirming
	if c != nil && s.confirms() && c.Template == s.template && s.history.Find(c.Run) != nil &&
		!s.history.Has(children.ConfirmingName(c.Run, c.Attempts)) {
		s.seen.Confirm = c.Run
	}
}

// confirms reports whether a run with a regression is repeated.
func (s *scope) confirms() bool {
	to := s.schedule.Spec.CompareTo
	return to != nil && to.Confirm
}

// findRuns lists the runs, in the order in which they were created. One that was created is looked
// for past the cache, which may not contain it yet.
func (r *Reconciler) findRuns(ctx context.Context, s *scope) error {
	var all v1alpha1.RedisExperimentList
	err := r.Client.List(ctx, &all, client.InNamespace(s.schedule.Namespace),
		client.MatchingLabels(children.ScheduleLabels(s.schedule.Name,
			children.ComponentScheduled)))
	if err != nil {
		return fmt.Errorf("list the runs: %w", err)
	}
	s.runs = slices.DeleteFunc(all.Items, func(run v1alpha1.RedisExperiment) bool {
		return !metav1.IsControlledBy(&run, s.schedule)
	})
	slices.SortFunc(s.runs, func(a, b v1alpha1.RedisExperiment) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	active := s.schedule.Status.Active
	if active == "" || s.run(active) != nil || s.history != nil && s.history.Has(active) {
		return nil
	}
	var run v1alpha1.RedisExperiment
	err = r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.schedule.Namespace, Name: active}, &run)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read RedisExperiment %s: %w", active, err)
	case metav1.IsControlledBy(&run, s.schedule):
		s.runs = append(s.runs, run)
	}
	return nil
}

// run finds a run by its name; nil = there is none.
func (s *scope) run(name string) *v1alpha1.RedisExperiment {
	if i := slices.IndexFunc(s.runs, func(run v1alpha1.RedisExperiment) bool {
		return run.Name == name
	}); i >= 0 {
		return &s.runs[i]
	}
	return nil
}

// names are those of the runs.
func (s *scope) names() []string {
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

// excess are the recorded runs that are not to be kept: those that were replaced, and the oldest
// ones beyond the limits.
func (s *scope) excess() []string {
	var excess []string
	var succeeded, failed int32
	for _, run := range slices.Backward(s.runs) {
		if run.DeletionTimestamp != nil || !s.history.Has(run.Name) {
			continue
		}
		count, limit := &succeeded, s.schedule.Spec.SuccessfulRunsHistoryLimit
		if run.Status.Verdict == v1alpha1.VerdictFail ||
			meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionFailed) {
			count, limit = &failed, s.schedule.Spec.FailedRunsHistoryLimit
		}
		replaced := run.Annotations[v1alpha1.AnnotationReplaced] == "true"
		if !replaced {
			*count++
			if limit == nil || *count <= *limit {
				continue
			}
		}
		excess = append(excess, run.Name)
	}
	return excess
}
