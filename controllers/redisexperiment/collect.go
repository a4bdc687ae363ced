package redisexperiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/controllers/stored"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/result"
)

// collect records the run that has ended, once, and deletes the objects of old ones.
func (r *Reconciler) collect(ctx context.Context, s *scope) state.Outcome {
	if s.record == nil { // what there is of it is not overwritten
		s.experiment.Status.Run = nil
		return state.Outcome{Again: true}
	}
	if len(s.record.Runs) < s.run.slot.Number {
		kept, err := r.kept(ctx, s)
		if err != nil {
			return state.Outcome{Err: err}
		}
		of := s.recorded(kept)
		of.End = r.Clock.Now()
		of.Failed = digest.Truncate(of.Failed, maxReason)
		of.Inconclusive = digest.Truncate(of.Inconclusive, maxReason)
		s.record.Runs = append(s.record.Runs, of)
		err = stored.SaveRecord(ctx, r.Client, s.experiment, s.record)
		if err != nil {
			s.record.Runs = s.record.Runs[:len(s.record.Runs)-1]
			if !s.experiment.Spec.Abort || !lasts(err) {
				return state.Outcome{Err: err}
			}
			log.FromContext(ctx).Error(err, "The figures of an aborted run are not recorded", "run",
				s.run.slot.Number)
			s.experiment.Status.Run = nil
			return state.Outcome{Again: true}
		}
		log.FromContext(ctx).Info("Recorded a run", "run", s.run.slot.Number, "cell", s.run.variant.Name,
			"failed", of.Failed, "inconclusive", of.Inconclusive)
	}
	s.experiment.Status.Run = nil
	s.experiment.Status.Results = children.ExperimentRecordName(s.experiment.Name)
	return state.Outcome{Again: true, Err: r.prune(ctx, s)}
}

// lasts reports whether trying again does not help while nobody changes anything.
func lasts(err error) bool {
	found, _ := problem.From(err)
	return found != nil || problem.Refuses(err)
}

// maxReason is the longest reason that is recorded; with the load test's name it fits into the
// status.
const maxReason = 440

// kept are the results of the run that has ended. What cannot be read, now or later, is read from
// the statuses.
func (r *Reconciler) kept(ctx context.Context, s *scope) (result.Run, error) {
	if s.run.test == nil {
		return result.Run{}, nil
	}
	results, err := state.Results(ctx, r.Client, s.run.test)
	if results == nil {
		return result.Run{}, err
	}
	kept, err := children.ResultsIn(results)
	if err != nil {
		log.FromContext(ctx).Error(err, "The figures of a run are taken from the statuses", "loadTest",
			s.run.test.Name)
		return result.Run{}, nil
	}
	return kept, nil
}

// recorded is what the record keeps of the run that has ended.
func (s *scope) recorded(kept result.Run) experiment.RecordedRun {
	if s.run.test == nil {
		of := experiment.RecordedRun{
			Cell:         s.run.slot.Variant,
			Round:        s.run.slot.Round,
			LoadTest:     s.experiment.Status.Run.LoadTest,
			Start:        s.experiment.Status.Run.StartTime.Time,
			Inconclusive: s.unmeasured(),
			Unreverted:   s.unreverted(),
		}
		if !s.experiment.Spec.Abort {
			of.Failed = of.Inconclusive
		}
		return of
	}
	var faults []v1alpha1.RedisFault
	for _, c := range s.run.faults {
		if c.found != nil {
			faults = append(faults, *c.found)
		}
	}
	of := experiment.Recorded(experiment.OfObjects(s.run.test, faults, kept), s.run.slot)
	if of.Start.IsZero() {
		of.Start = s.experiment.Status.Run.StartTime.Time
	}
	if t := s.run.test.Status.Target; t != nil {
		of.Server = t.Server + " " + t.Version
	}
	of.Inconclusive = cmp.Or(s.notHeld(), s.incomplete(), of.Inconclusive)
	if len(faults) < len(s.run.faults) {
		of.Inconclusive = cmp.Or(of.Inconclusive, "a fault of it was deleted")
	}
	of.Failed, of.Missed, of.Unreverted = s.failed(), s.missed(), s.unreverted()
	return of
}

// unmeasured is why a run without a load test has no figures.
func (s *scope) unmeasured() string {
	switch name := s.experiment.Status.Run.LoadTest; {
	case s.seen.Run.Over != "":
		return s.seen.Run.Over
	case s.experiment.Spec.Abort:
		return fmt.Sprintf("spec.abort was set before RedisLoadTest %s was created", name)
	default:
		return fmt.Sprintf("RedisLoadTest %s was not created", name)
	}
}

// notHeld is which setting was not in force for the whole load, and why; "" = all were.
func (s *scope) notHeld() string {
	for _, c := range s.run.settings {
		if c.found == nil {
			return fmt.Sprintf("the setting %s was deleted", c.wanted.Spec.Action.Type)
		}
		held := meta.FindStatusCondition(c.found.Status.Conditions, v1alpha1.ConditionHeld)
		if held == nil {
			return fmt.Sprintf("the setting %s was not in force: RedisFault %s: %s",
				c.found.Spec.Action.Type, c.found.Name, state.EndOf(c.found.Status.Conditions))
		}
		if held.Status != metav1.ConditionTrue {
			return fmt.Sprintf("the setting %s was not in force for the whole load: RedisFault %s: %s: %s",
				c.found.Spec.Action.Type, c.found.Name, held.Reason, held.Message)
		}
	}
	return ""
}

// failed is why the run failed: what could not complete, or an objective that was missed; "" = it
// has not.
func (s *scope) failed() string {
	test := s.run.test
	if failure(test.Status.Conditions, test.Status.Verdict) {
		return fmt.Sprintf("RedisLoadTest %s: %s", test.Name, state.EndOf(test.Status.Conditions))
	}
	for _, c := range slices.Concat(s.run.faults, s.run.settings) {
		if c.found != nil && failure(c.found.Status.Conditions, c.found.Status.Verdict) {
			return fmt.Sprintf("RedisFault %s: %s", c.found.Name, state.EndOf(c.found.Status.Conditions))
		}
	}
	return ""
}

// incomplete is why the load test could not complete; "" = it is complete.
func (s *scope) incomplete() string {
	if meta.IsStatusConditionTrue(s.run.test.Status.Conditions, v1alpha1.ConditionComplete) {
		return ""
	}
	return fmt.Sprintf("RedisLoadTest %s: %s", s.run.test.Name,
		state.EndOf(s.run.test.Status.Conditions))
}

// missed reports whether the load test or a fault of the run has missed an objective.
func (s *scope) missed() bool {
	return s.run.test.Status.Verdict == v1alpha1.VerdictFail ||
		slices.ContainsFunc(s.run.faults, func(c child) bool {
			return c.found != nil &&
				c.found.Status.Verdict == v1alpha1.VerdictFail
		})
}

func failure(conditions []metav1.Condition, verdict v1alpha1.Verdict) bool {
	return verdict == v1alpha1.VerdictFail ||
		meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionFailed)
}

// unreverted is what a fault or a setting of the run has left behind; "" = nothing.
func (s *scope) unreverted() string {
	for _, c := range slices.Concat(s.run.faults, s.run.settings) {
		if c.found == nil {
			continue
		}
		end := meta.FindStatusCondition(c.found.Status.Conditions, v1alpha1.ConditionFailed)
		if end != nil && end.Status == metav1.ConditionTrue &&
			end.Reason == v1alpha1.ReasonRevertFailed {
			return fmt.Sprintf(
				"RedisFault %s could not be reverted, so that no further run would be measured on the same Redis: %s",
				c.found.Name, end.Message)
		}
	}
	return ""
}

// prune deletes the load tests of old runs, and their faults.
func (r *Reconciler) prune(ctx context.Context, s *scope) error {
	keep := s.experiment.Spec.LoadTestsHistoryLimit
	if keep == nil {
		return nil
	}
	old := func(of client.Object) bool {
		number, err := strconv.Atoi(of.GetLabels()[v1alpha1.LabelRun])
		return err == nil && number <= len(s.record.Runs)-int(*keep) && of.GetDeletionTimestamp() == nil
	}
	faults, err := r.faultsOf(ctx, s, client.MatchingLabels{})
	if err != nil {
		return err
	}
	for i := range faults {
		if !old(&faults[i]) {
			continue
		}
		err := r.Client.Delete(ctx, &faults[i])
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete RedisFault %s of an old run: %w", faults[i].Name, err)
		}
	}
	var tests v1alpha1.RedisLoadTestList
	err = r.Client.List(ctx, &tests, client.InNamespace(s.experiment.Namespace),
		client.MatchingLabels{v1alpha1.LabelExperiment: s.experiment.Name})
	if err != nil {
		return fmt.Errorf("list the load tests: %w", err)
	}
	for i := range tests.Items {
		test := &tests.Items[i]
		if !old(test) || !metav1.IsControlledBy(test, s.experiment) {
			continue
		}
		err := r.Client.Delete(ctx, test, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete RedisLoadTest %s of an old run: %w", test.Name, err)
		}
	}
	return nil
}
