package redisexperiment

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/controllers/stored"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// observe reads everything that the decision depends on.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*scope, error) {
	e := &v1alpha1.RedisExperiment{}
	if err := r.Client.Get(ctx, key, e); err != nil {
		return nil, fmt.Errorf("read the experiment: %w", err)
	}
	s := &scope{experiment: e, before: e.DeepCopy()}
	if state.MayRun(e, e.Status.Conditions) {
		e.Status = v1alpha1.RedisExperimentStatus{}
	}
	s.seen = seenOf(e)
	if s.seen.Deleting || s.seen.Finished || s.seen.Restored != "" {
		return s, nil
	}
	plan, err := experiment.NewPlan(&e.Spec)
	// the first run of a schedule may have nothing to compare with
	if err == nil && children.ScheduleOf(e) == nil {
		err = plan.Compares(e.Spec.CompareTo != nil)
	}
	if err != nil {
		if s.seen.Problem, err = problem.From(err); err != nil || e.Status.Run == nil {
			return s, err
		}
		return s, r.observeRun(ctx, s) // planned by another version: what it has created is to end
	}
	s.plan, s.seen.Total = plan, plan.Runs()
	if !s.seen.Started {
		return s, r.observeChecks(ctx, s)
	}
	if err := r.observeRecord(ctx, s); err != nil {
		return nil, err
	}
	if e.Status.Run == nil {
		return s, nil
	}
	return s, r.observeRun(ctx, s)
}

// seenOf is what the object alone shows of an experiment.
func seenOf(e *v1alpha1.RedisExperiment) lifecycle.Experiment {
	seen := lifecycle.Experiment{
		Deleting: e.DeletionTimestamp != nil,
		Suspend:  e.Spec.Suspend,
		Abort:    e.Spec.Abort,
		Finished: state.IsFinished(e.Status.Conditions),
		TTL:      state.TTL(e.Spec.TTLSecondsAfterFinished),
		Checked:  e.Status.Seed != nil,
		Started:  e.Status.Seed != nil,
		Noted:    state.Noted(e),
	}
	if !seen.Started {
		seen.Restored = state.Restored(e, "RedisExperiment")
	}
	if e.Status.CompletionTime != nil {
		seen.CompletedAt = e.Status.CompletionTime.Time
	}
	return seen
}

// observeRecord reads the runs that have ended.
func (r *Reconciler) observeRecord(ctx context.Context, s *scope) error {
	record, err := stored.Record(ctx, r.Client, s.experiment)
	if err == nil && record != nil {
		if other := s.plan.Check(record); other != nil {
			err = &problem.Problem{
				Reason:  v1alpha1.ReasonResultsNotStorable,
				Lasting: true,
				Message: fmt.Sprintf("ConfigMap %s was changed: %s",
					children.ExperimentRecordName(s.experiment.Name), other),
			}
		}
	}
	found, err := problem.From(err)
	if found != nil || err != nil {
		s.seen.Problem = found
		return err
	}
	if s.record = record; record == nil {
		s.record = &experiment.Record{Version: experiment.RecordVersion, Cells: s.plan.Names()}
	}
	s.seen.Recorded = len(s.record.Runs)
	// A run is recorded before the status counts it.
	p := s.experiment.Status.Progress
	if p != nil && int(p.Finished) > s.seen.Recorded {
		s.record = nil
		s.seen.Problem = &problem.Problem{
			Reason:  v1alpha1.ReasonResultsNotStorable,
			Lasting: true,
			Message: fmt.Sprintf(
				"ConfigMap %s was deleted or replaced: it has %d of %d runs that have ended",
				children.ExperimentRecordName(s.experiment.Name), s.seen.Recorded, p.Finished),
		}
		return nil
	}
	for i := range s.record.Runs {
		run := &s.record.Runs[i]
		if run.Unreverted != "" {
			s.seen.Problem = &problem.Problem{
				Reason:  v1alpha1.ReasonRevertFailed,
				Message: run.Unreverted,
				Lasting: true,
			}
		}
		if run.Failed != "" && s.experiment.Spec.StopOnFailure {
			s.seen.Failure = run.Failed
		}
	}
	return nil
}

// observeChecks finds the dry runs of the experiment's settings and faults.
func (r *Reconciler) observeChecks(ctx context.Context, s *scope) error {
	s.checks = children.Checks(s.experiment, s.plan.Variants)
	found, err := r.faultsOf(ctx, s, client.MatchingLabels{
		v1alpha1.LabelComponent: children.ComponentCheck,
	})
	if err != nil {
		return err
	}
	passed := 0
	for _, c := range s.checks {
		i := slices.IndexFunc(found, func(f v1alpha1.RedisFault) bool { return f.Name == c.Fault.Name })
		switch {
		case i < 0:
			s.toCheck = append(s.toCheck, c)
		case !state.IsFinished(found[i].Status.Conditions):
			s.seen.Checks = append(s.seen.Checks, c.What)
		default:
			passed++
			refused := refusal(&found[i])
			if refused != "" && s.seen.Problem == nil {
				s.seen.Problem = &problem.Problem{
					Reason:  v1alpha1.ReasonRefused,
					Message: fmt.Sprintf("cell %s: %s: %s", c.Cell, c.What, refused),
					Lasting: true,
				}
			}
		}
	}
	s.seen.Lacks = len(s.toCheck) > 0 && len(s.seen.Checks) < checksAtOnce
	s.seen.Checked = passed == len(s.checks) && accepted(s.experiment)
	return nil
}

// accepted reports whether the API server has accepted what every cell of this very spec will
// create.
func accepted(e *v1alpha1.RedisExperiment) bool {
	c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionAccepted)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == e.Generation
}

// refusal is why a finished dry run shows that the fault cannot run; "" = it can.
func refusal(f *v1alpha1.RedisFault) string {
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionComplete)
	if c.Reason == v1alpha1.ReasonDryRun {
		return ""
	}
	return fmt.Sprintf("%s: %s", c.Reason, c.Message)
}

// faultsOf are the experiment's faults with these labels.
func (r *Reconciler) faultsOf(
	ctx context.Context, s *scope, labels client.MatchingLabels,
) ([]v1alpha1.RedisFault, error) {
	labels[v1alpha1.LabelExperiment] = s.experiment.Name
	var all v1alpha1.RedisFaultList
	err := r.Client.List(ctx, &all, client.InNamespace(s.experiment.Namespace), labels)
	if err != nil {
		return nil, fmt.Errorf("list the faults: %w", err)
	}
	return slices.DeleteFunc(all.Items, func(f v1alpha1.RedisFault) bool {
		return !metav1.IsControlledBy(&f, s.experiment)
	}), nil
}

// observeRun finds what the run that is under way is made of.
func (r *Reconciler) observeRun(ctx context.Context, s *scope) error {
	of := s.experiment.Status.Run
	s.run = &run{}
	found, err := r.faultsOf(ctx, s, client.MatchingLabels{
		v1alpha1.LabelRun: strconv.Itoa(int(of.Number)),
	})
	if err != nil {
		return err
	}
	if s.plan == nil {
		s.run.faults = unplanned(found)
	} else if err := r.planned(ctx, s, found); err != nil {
		return err
	}
	if err := r.findLoad(ctx, s); err != nil {
		return err
	}
	s.seen.Run = s.observedRun()
	return nil
}

// planned finds the settings and faults of the run.
func (r *Reconciler) planned(
	ctx context.Context, s *scope, found []v1alpha1.RedisFault,
) (err error) {
	seed := *s.experiment.Status.Seed
	s.run.slot = s.plan.Slot(int(s.experiment.Status.Run.Number), seed)
	s.run.variant = &s.plan.Variants[s.run.slot.Variant]
	if s.run.settings, err = r.pair(ctx, s,
		children.RunSettings(s.experiment, s.run.variant, s.run.slot), found); err != nil {
		return err
	}
	s.run.faults, err = r.pair(ctx, s,
		children.RunFaults(s.experiment, s.run.variant, s.run.slot, seed), found)
	return err
}

// pair finds those of the wanted faults that exist. What is to end is looked for past the cache: it
// may not contain yet what was created last.
func (r *Reconciler) pair(
	ctx context.Context, s *scope, wanted []*v1alpha1.RedisFault, found []v1alpha1.RedisFault,
) (all []child, err error) {
	for _, w := range wanted {
		c := child{wanted: w}
		if i := slices.IndexFunc(found, func(f v1alpha1.RedisFault) bool {
			return f.Name == w.Name
		}); i >= 0 {
			c.found = &found[i]
		} else if s.stopping() {
			f := &v1alpha1.RedisFault{}
			err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(w), f)
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("read RedisFault %s: %w", w.Name, err)
			} else if err == nil && metav1.IsControlledBy(f, s.experiment) {
				c.found = f
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// stopping reports whether the run that is under way is to end at once.
func (s *scope) stopping() bool {
	return s.experiment.Spec.Abort || s.seen.Problem != nil && s.seen.Problem.Lasting ||
		s.experiment.Status.Run.Message != ""
}

// unplanned are the faults of a run of which no plan is known.
func unplanned(found []v1alpha1.RedisFault) (all []child) {
	for i := range found {
		all = append(all, child{wanted: &found[i], found: &found[i]})
	}
	return all
}

// findLoad reads the load test of the run. One that was created is looked for past the cache, which
// may not contain it yet.
func (r *Reconciler) findLoad(ctx context.Context, s *scope) error {
	test := &v1alpha1.RedisLoadTest{}
	of := s.experiment.Status.Run
	key := client.ObjectKey{Namespace: s.experiment.Namespace, Name: of.LoadTest}
	err := r.Client.Get(ctx, key, test)
	if apierrors.IsNotFound(err) && (of.Stage != v1alpha1.RunSettings || s.stopping()) {
		err = r.APIReader.Get(ctx, key, test)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read RedisLoadTest %s: %w", key.Name, err)
	case metav1.IsControlledBy(test, s.experiment) && test.DeletionTimestamp == nil:
		s.run.test = test
	}
	return nil
}

// observedRun is the state of the run that is under way.
func (s *scope) observedRun() *lifecycle.ExperimentRun {
	of := s.experiment.Status.Run
	o := &lifecycle.ExperimentRun{
		Name:     of.LoadTest,
		Cell:     of.Cell,
		Loaded:   of.Stage != v1alpha1.RunSettings,
		Aborting: true,
		Over:     of.Message,
	}
	if test := s.run.test; test != nil {
		if o.Ended = state.IsFinished(test.Status.Conditions); !o.Ended {
			o.Open = append(o.Open, "RedisLoadTest "+test.Name)
			o.Aborting = test.Spec.Abort
		}
	} else if o.Loaded && o.Over == "" {
		o.Over = fmt.Sprintf("RedisLoadTest %s was deleted", o.Name)
	}
	for _, c := range slices.Concat(s.run.faults, s.run.settings) {
		if c.found == nil || state.IsFinished(c.found.Status.Conditions) {
			continue
		}
		o.Open = append(o.Open, "RedisFault "+c.found.Name)
		revertsItself := c.found.Spec.Setting && s.run.test != nil
		o.Aborting = o.Aborting && (c.found.Spec.Abort || revertsItself)
	}
	if !o.Loaded {
		s.observeSettings(o)
	}
	return o
}

// observeSettings determines how far the settings of a run are that has no load yet.
func (s *scope) observeSettings(o *lifecycle.ExperimentRun) {
	for _, c := range s.run.settings {
		if c.found == nil {
			o.Missing = true
			return
		}
		complete := meta.FindStatusCondition(c.found.Status.Conditions, v1alpha1.ConditionComplete)
		switch {
		case complete == nil:
			o.Waiting = "RedisFault " + c.found.Name
			return
		case state.IsFinished(c.found.Status.Conditions):
			o.Over = fmt.Sprintf("the setting %s was not in force: RedisFault %s: %s: %s",
				c.found.Spec.Action.Type, c.found.Name, complete.Reason, complete.Message)
			return
		case complete.Reason != v1alpha1.ReasonActive:
			o.Waiting = fmt.Sprintf("RedisFault %s: %s: %s", c.found.Name, complete.Reason, complete.Message)
			return
		}
	}
}
